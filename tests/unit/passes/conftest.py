"""Fixtures for the tests of the pass engine."""

import pytest

from mo_loop.graph import Graph


@pytest.fixture
def graph() -> Graph:
    return Graph("main")
