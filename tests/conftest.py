"""Settings for all tests."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # The tests start hundreds of processes. All of them share one folder of bytecode, so each module is compiled once;
    # nothing is written into the folder of the sources. The imports below are long: they come after it.
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / "build" / "test-bytecode"))
    sys.dont_write_bytecode = False

from hypothesis import settings

from mo_loop import conversion
from mo_loop.compare.execution.isolated import IsolatedError
from tests.running import draws, workers
from tests.running.processor import fail_or_skip, is_of_the_processor
from tests.running.rows import checks_passes, choose, command, header, of_these_files, without_other_parts

pytest_plugins = ("pytester",)

# No deadline: times vary with the load of the machine. The same examples in every run: a failure can be repeated.
settings.register_profile("repository", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repository")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of tests/running, tests/browser, tests/cluster and tests/runtime/test_devices.py."""
    parser.addoption("--each-row", action="store_true", help="make each row of parameters a test of its own")
    parser.addoption("--all", action="store_true", help="run all rows of sweeps, and check all passes in every test")
    parser.addoption("--files-of", type=int, default=0, metavar="N", help="run one of N parts of the test files")
    parser.addoption("--times", action="store_true", help="print where the time goes, by file and by kind of work")
    parser.addoption("--browser", action="store_true", help="run tests/browser, which need playwright and Chromium")
    parser.addoption("--cluster", action="store_true", help="run tests/cluster, which need moto, s3fs and distributed")
    parser.addoption("--devices", action="store_true", help="run tests on the devices that `make gpu arm` has made")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the parts of sweeps, keep workers; measure, if asked."""
    config.addinivalue_line("markers", "sweep(parts): rows of which `make test` runs one part")
    choose(config)
    workers.use()
    if config.getoption("times"):
        from tests.running.times import Times

        config.pluginmanager.register(Times(config), "times")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Pause the search for cycles, a quarter of the collection, and leave out later what is collected: it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path) -> None:
    """One process of xdist at a time imports a test module, and rewrites its assertions, which takes longer than the
    rest of the collection; the others read what it wrote."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        with module_path.open("rb") as file, suppress(Exception, pytest.skip.Exception):  # pytest says it again
            import fcntl  # not on Windows

            fcntl.flock(file, fcntl.LOCK_EX)
            importlib.import_module(".".join(module_path.relative_to(ROOT).with_suffix("").parts))


def pytest_report_header() -> str:
    """Which parts of sweeps run."""
    return header()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other parts of the files and of sweeps; record what the modules draw from."""
    draws.record({item.module for item in items if isinstance(item, pytest.Function)})
    chosen, other_files = of_these_files(items, config.getoption("files_of"))
    items[:], other_rows = without_other_parts(chosen)
    config.hook.pytest_deselected(items=other_files + other_rows)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Conversions of the tests that tests/running/rows.py chooses check the graph after each pass. Each test draws the
    same random numbers as alone."""
    conversion.CHECK_PASSES = checks_passes(item.nodeid)
    if isinstance(item, pytest.Function):
        draws.restart(item.module.__name__)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[Any]:
    """The report of a red test ends with the command that repeats it."""
    report = yield
    if report.failed:
        report.sections.append(("to repeat it", command(item, call.excinfo and call.excinfo.value)))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """The models of a test are judged at its end, and the test fails if one of them does not pass. It is skipped where
    the runtime has not computed a model because of a limit of the instructions, and all others pass."""
    from tests.running.together import forget, judge_all

    try:
        yield
        judge_all()
    except (IsolatedError, RuntimeError) as error:
        if is_of_the_processor(str(error)):
            judge_all()
            fail_or_skip([str(error)])
        raise
    finally:
        forget()


@pytest.fixture(autouse=True)
def kept_loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests with the mark `keeps_loops`, whose subject is the loop itself, convert without passes that shorten it."""
    if request.node.get_closest_marker("keeps_loops"):
        from mo_loop.transforms.pipelines import LOOPS

        for each in LOOPS:
            monkeypatch.setattr(each, "enabled_by_default", False)
