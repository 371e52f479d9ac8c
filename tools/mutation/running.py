"""Tests run on a copy of the tree, each time in a fork of a process that has the heavy packages imported."""

import compileall
import contextlib
import os
import py_compile
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

COPIED = ("mo_loop", "transforms", "tests", "tools", "docs", "pyproject.toml", "README.md", "Makefile")
PRELOADED = (
    "pytest", "numpy", "onnx.helper", "onnx.numpy_helper", "onnx.parser", "onnx.reference", "networkx", "lxml.etree",
    "click.testing", "rich.console", "hypothesis.strategies", "google.protobuf.json_format",
)
"""Modules that the tests import and no mutant changes."""

PATIENCE = 6.0
"""Seconds of the wall for one of the processor: other processes may be running."""


class Outcome(NamedTuple):
    """How a run of tests ended: `passed`, `failed`, `timeout` or `unknown` (no such tests), and where it failed."""

    status: str
    test: str


class Tree:
    """A copy of the tree whose modules may be changed."""

    def __init__(self, root: Path, place: Path) -> None:
        for name in PRELOADED:
            import_module(name)
        self.place = place
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy2(source, place / name)
        # A mutant may have the size and the second of the original: the content identifies what is compiled.
        checked = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(place, quiet=1, invalidation_mode=checked)

    @contextmanager
    def changed(self, module: str, code: str) -> Iterator[None]:
        """The module with other code."""
        path = self.place / module
        original = path.read_bytes()
        path.write_text(code, "utf-8")
        try:
            yield
        finally:
            path.write_bytes(original)

    def run(self, tests: Sequence[str], limit: float) -> Outcome:
        """Run these tests until one fails, for `limit` seconds of the processor."""
        report = self.place.with_suffix(".failed")
        report.unlink(missing_ok=True)
        status = self.call(_tests, tests, report, limit=limit)
        test = report.read_text("utf-8") if report.exists() else ""
        if os.WIFSIGNALED(status):
            is_late = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
            return Outcome("timeout" if is_late else "failed", f"signal {os.WTERMSIG(status)}")
        code = os.waitstatus_to_exitcode(status)
        if code in (4, 5) and not test:  # of pytest: not found, or nothing to run
            return Outcome("unknown", "")
        return Outcome("failed" if code else "passed", test)

    def call(self, function: Callable[..., int], *arguments: Any, limit: float | None = None) -> int:
        """The wait status of a fork that calls the function in the copy; it ends with all its children."""
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if not process:
            self._child(function, *arguments, limit=limit)
        deadline = time.monotonic() + (limit or 1e9) * PATIENCE
        status = None
        while status is None and time.monotonic() < deadline:
            done, found = os.waitpid(process, os.WNOHANG)
            status = found if done else None
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)
        return os.waitpid(process, 0)[1] if status is None else status

    def _child(self, function: Callable[..., int], *arguments: Any, limit: float | None) -> None:
        code = 99
        try:
            os.setsid()
            log = os.open(self.place.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 5))
            os.chdir(self.place)
            here = os.fspath(self.place)
            sys.path[:0] = [here]
            os.environ["PYTHONPATH"] = here
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the content identifies what is compiled, see above
            sys.dont_write_bytecode = True
            code = function(*arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _tests(tests: Sequence[str], report: Path) -> int:
    import pytest

    flags = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", "--no-header"]
    return int(pytest.main([*flags, *tests], plugins=[_First(report)]))


class _First:
    """A plugin of pytest that writes down which test failed."""

    def __init__(self, report: Path) -> None:
        self.report = report

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.report.write_text(report.nodeid, "utf-8")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.report.write_text(f"{report.nodeid} cannot be imported", "utf-8")
