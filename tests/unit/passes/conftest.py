"""What the tests of the pass engine begin with."""

from __future__ import annotations

import pytest

from mo_loop.graph import Graph


@pytest.fixture
def graph() -> Graph:
    return Graph("main")
