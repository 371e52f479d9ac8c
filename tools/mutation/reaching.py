"""Which tests execute a line, and how long they take: measured once, by running the tests under coverage."""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mutation.running import Tree


def measure(tree: Tree, packages: Sequence[str], tests: Sequence[str], folder: Path) -> None:
    """Run the tests of these files and write down which lines each one executes. What is known of other files stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for test in tests:
        name = folder / test.replace("/", "-")
        data = name.with_suffix(".coverage")
        data.unlink(missing_ok=True)
        tree.call(_record, packages, test, data, name.with_suffix(".json"))


def _record(packages: Sequence[str], test: str, data: Path, times: Path) -> int:
    import coverage
    import pytest

    recorder = coverage.Coverage(data_file=data, source_pkgs=list(packages), config_file=False, messages=False)
    recorder.set_option("run:relative_files", True)
    recorder.set_option("run:disable_warnings", ["no-data-collected", "module-not-imported"])
    recorder.start()
    watcher = _Watcher(recorder)
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", test], plugins=[watcher])
    recorder.stop()
    recorder.save()
    times.write_text(json.dumps(watcher.seconds))
    return int(code)


DECLARATIONS = {
    "mo_loop/frontend/ops/": "tests/unit/frontend/test_signatures.py",
    "mo_loop/ops/": "tests/unit/ops/test_axes.py",
}
"""Tests that read the declarations of functions and classes in a folder, which only the import executes."""


class _Watcher:
    """A plugin of pytest: the lines executed are those of the running test; notes how long tests that pass take."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.recorder.switch_context(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.recorder.switch_context("")
        if nodeid in self._failed:
            self.seconds.pop(nodeid, None)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


class Reach:
    """The measured coverage of the tests."""

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self.seconds: dict[str, float] = {}
        self._lines: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for times in sorted(folder.glob("*.json")):
            self.seconds |= json.loads(times.read_text())
            data = CoverageData(times.with_suffix(".coverage"))
            data.read()
            for file in data.measured_files():
                for line, contexts in data.contexts_by_lineno(file).items():
                    self._lines[file][line] += [each for each in contexts if each]

    def tests(self, module: str, line: int, code: str, budget: float) -> list[str]:
        """Tests that execute the statement of a line, the fastest of every kind first, of `budget` seconds in all.

        Of the head of a function: those that execute its body. Of other statements outside of functions: those that
        execute anything in the module, for only the test that imports a module first executes its declarations. Tests
        of declarations come first.
        """
        lines = self._lines.get(module, {})
        tree = ast.parse(code)
        declared: list[str] = []
        head = next((each for each in _functions(tree) if _start(each) <= line < each.body[0].lineno), None)
        is_declaration = _is_declaration(tree, line)
        if is_declaration:
            files = {file for folder, file in DECLARATIONS.items() if module.startswith(folder)}
            declared = sorted(test for test in self.seconds if test.partition("::")[0] in files)
        reached = {test for number in _statement(tree, head, line) for test in lines.get(number, ())}
        if (is_declaration and not head) or not reached:
            reached = {test for tests in lines.values() for test in tests}
        return declared + self._chosen(((reached & self.seconds.keys()) - {*declared}), budget)

    def _chosen(self, tests: Iterable[str], budget: float) -> list[str]:
        kinds: dict[str, list[str]] = defaultdict(list)
        for test in sorted(tests, key=lambda each: (self.seconds[each], each)):
            kinds[_kind(test)].append(test)
        turns = sorted((turn, self.seconds[test], test) for each in kinds.values() for turn, test in enumerate(each))
        chosen: list[str] = []
        for _, seconds, test in turns:
            if seconds <= budget:
                budget -= seconds
                chosen.append(test)
        return chosen


def _kind(test: str) -> str:
    """A test function; of the golden cases, those of one folder."""
    function, _, parameters = test.partition("[")
    return function + parameters.rpartition("/")[0]


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _start(function: ast.FunctionDef) -> int:
    """The first line of a function: that of its first decorator, if it has any."""
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def _is_declaration(tree: ast.Module, line: int) -> bool:
    """Whether a line is in the body of no function."""
    return not any(each.body[0].lineno <= line <= (each.end_lineno or 0) for each in _functions(tree))


def _statement(tree: ast.Module, head: ast.FunctionDef | None, line: int) -> range:
    """The lines of the innermost statement around a line; of a compound one those before its body, of a function whose
    head the line is in, those of its body."""
    if head is not None:
        return range(head.body[0].lineno, (head.end_lineno or 0) + 1)
    found: ast.stmt | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            found = node  # breadth first: the last one is the innermost
    if found is None:
        return range(line, line + 1)
    body = getattr(found, "body", None)
    last = max(body[0].lineno, found.lineno + 1) - 1 if body else found.end_lineno or found.lineno
    return range(found.lineno, last + 1)
