"""The browser of all tests of this folder, and when they run: `make test-browser` gives --browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.browsing import Browsing, Shown, missing
from tests.browser.made_pages import MadePages
from tests.running.rows import skip_unless_chosen

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --browser, the tests of this folder are skipped; with it, what they need must be there."""
    skip_unless_chosen(config, items, HERE, "browser", missing(), "in a browser")


@pytest.fixture(autouse=True)
def beside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """On several processes of xdist, tests with the mark `alone` run while no other one does: they measure times."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    import fcntl  # not on Windows

    with (tmp_path_factory.getbasetemp().parent / "running").open("w") as file:
        is_alone = request.node.get_closest_marker("alone") is not None
        fcntl.flock(file, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        yield


@pytest.fixture(scope="session")
def browsing() -> Iterator[Browsing]:
    """The browser."""
    with Browsing() as running:
        yield running


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> MadePages:
    """The pages that several tests look at."""
    return MadePages(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def show(browsing: Browsing) -> Iterator[Callable[..., Shown]]:
    """Opens pages; at the end of the test each is closed, and has no faults."""
    opened: list[Shown] = []

    def show(file: Path, where: str = "", **options: Any) -> Shown:
        opened.append(browsing.open(file, where, **options))
        return opened[-1]

    yield show
    for each in opened:
        each.close()
