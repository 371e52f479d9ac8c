"""Text in, text out: every .txt below tests/golden is a case.

    A description of the case.
    # pass: LoopToTI                     one pass or several with commas, run in that order; arguments as in a call
    # input
    %x = Parameter : f32[2]              a graph in the language of mo_loop.text
    # expected
    graph { ... }                        the graph after the passes; `unchanged` if they must not change it

The passes run, the types and invariants of the graph are checked, its canonical text is compared, and a second run must
change nothing. `# with names` compares names too. A case without a pass tests the text form itself: the expected part
is the input as `to_text` prints it, with names.

UPDATE_GOLDEN=1 writes the expected parts again: read the diff before you keep it.
"""

import ast
import functools
import importlib
import os
import pkgutil
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mo_loop import transforms
from mo_loop.graph import Graph
from mo_loop.graph.verifier import invariants
from mo_loop.text import parse, to_text

FOLDER = Path(__file__).parent
CASES = sorted(FOLDER.rglob("*.txt"))
SECTION = re.compile(r"^# (?:(input|expected|with names)|pass: *(.+))$", re.MULTILINE)
WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Case(NamedTuple):
    """One file, parsed. `head` is everything before the text of the expected part."""

    head: str
    passes: str
    with_names: bool
    input: str
    expected: str


def read(text: str) -> Case:
    """Parse a case."""
    found = {"passes": "", "input": "", "expected": ""}
    marks = list(SECTION.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    head = text
    for mark, end in zip(marks, ends, strict=True):
        lines_above = "\n" * text.count("\n", 0, mark.end())  # so that error messages give the line number in the file
        found[mark.group(1) or "passes"] = mark.group(2) or lines_above + text[mark.end() : end]
        if mark.group(1) == "expected":
            head = text[: mark.start()]
    names = any(mark.group(1) == "with names" for mark in marks)
    return Case(head, found["passes"], names, found["input"], found["expected"])


def passes_of(text: str) -> list[Any]:
    """`LoopToTI, Pad(limit=3)` as instances of the classes."""
    calls = ast.parse(f"[{text}]", mode="eval").body
    assert isinstance(calls, ast.List)
    made = []
    for call in calls.elts:
        name = call.func if isinstance(call, ast.Call) else call
        keywords = call.keywords if isinstance(call, ast.Call) else []
        assert isinstance(name, ast.Name)
        made.append(find(name.id)(**{str(each.arg): ast.literal_eval(each.value) for each in keywords}))
    return made


@functools.cache
def modules() -> list[str]:
    """The modules below mo_loop.transforms."""
    return [module.name for module in pkgutil.walk_packages(transforms.__path__, "mo_loop.transforms.")]


def find(name: str) -> Any:
    """The pass class `name`: from the file of that name, else from any module below mo_loop.transforms."""
    file = WORD_ENDS.sub("_", name).lower()
    for module in sorted(modules(), key=lambda each: each.rpartition(".")[2] != file):
        found = getattr(importlib.import_module(module), name, None)
        if found is not None:
            return found
    raise LookupError(f"no module below mo_loop.transforms has a pass {name}")


def outcome(case: Case) -> tuple[str, bool]:
    """The text of the graph after the passes, and whether they reported a change. Round trips keep the texts."""
    graph = parse(case.input)
    text, before = to_text(graph), shown(graph, names=True)
    again = parse(text)
    assert to_text(again) == text
    assert shown(again, names=True) == before
    if not case.passes:
        return text, False
    said = run(case, graph)
    after = shown(graph, names=True)
    assert said == (after != before), f"the passes say changed={said}\n{after}"
    assert shown(parse(after), names=True) == after
    assert not run(case, graph), "a second run changes something again"
    assert shown(graph, names=True) == after
    return after if case.with_names else shown(graph, names=False), said


def run(case: Case, graph: Graph) -> bool:
    """Run the passes once; check types and invariants afterwards."""
    changed = False
    for each in passes_of(case.passes):
        changed = each.run(graph) or changed
        graph.validate()
        assert not invariants(graph)
    return changed


def shown(graph: Graph, *, names: bool) -> str:
    return to_text(graph, names=names, canonical=True)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())
def test_case(path: Path) -> None:
    case = read(path.read_text("utf-8"))
    found, changed = outcome(case)
    wanted = case.expected.strip()
    if os.environ.get("UPDATE_GOLDEN") and not (wanted == "unchanged" and not changed):
        path.write_text(f"{case.head}# expected\n{found}", "utf-8")
        return
    if wanted == "unchanged":
        assert not changed, found
        return
    expected = parse(case.expected)
    assert found == (shown(expected, names=case.with_names) if case.passes else to_text(expected))
