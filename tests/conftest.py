"""Settings for all tests."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

# No deadline: times vary with the load of the machine. The same examples in every run: a failure can be repeated.
settings.register_profile("repository", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repository")


if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # The tests start hundreds of processes. All of them share one folder of bytecode, so each module is compiled once;
    # nothing is written beside the sources.
    bytecode = tempfile.mkdtemp(prefix="mo_loop-bytecode-")
    atexit.register(shutil.rmtree, bytecode, ignore_errors=True)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", bytecode)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of tests/rows.py, tests/times.py, tests/browser and tests/cluster."""
    parser.addoption("--each-row", action="store_true", help="make each row of parameters a test of its own")
    parser.addoption("--times", action="store_true", help="print where the time goes, by file and by kind of work")
    parser.addoption("--browser", action="store_true", help="run tests/browser, which need playwright and Chromium")
    parser.addoption("--cluster", action="store_true", help="run tests/cluster, which need moto, s3fs and distributed")


def pytest_configure(config: pytest.Config) -> None:
    """Measure, if asked."""
    if config.getoption("times"):
        from tests.times import Times

        config.pluginmanager.register(Times(config), "times")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """The models of a test are judged at its end, and the test fails if one of them does not pass."""
    from tests.together import forget, judge_all

    try:
        yield
        judge_all()
    finally:
        forget()


@pytest.fixture(scope="session", autouse=True)
def checked_passes() -> Iterator[None]:
    """Every conversion in a test checks the invariants of the graph after each pass, unless the test turns it off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mo_loop.conversion.CHECK_PASSES", True)
        yield


@pytest.fixture(autouse=True)
def kept_loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests with the mark `keeps_loops`, whose subject is the loop itself, convert without passes that shorten it."""
    if request.node.get_closest_marker("keeps_loops"):
        from mo_loop.transforms.pipelines import LOOPS

        for each in LOOPS:
            monkeypatch.setattr(each, "enabled_by_default", False)
