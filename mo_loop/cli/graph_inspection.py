"""The output of mo-loop inspect --graph and --nodes, as lines of text or JSON.

The control flow of a model is a tree of lines, the nodes are a table:

    Loop loop
    |  trip count    input n
    |  merged        a f32[3] -> s, back edge t
    |  final         t -> y f32[3]
    `- body loop/step: 2 nodes
       |- 1 node: Identity
       `- If choice
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from mo_loop.cli.output import painted, stdout_encoding, terminal_width
from mo_loop.look.inspection.contents import (
    NODES_SCHEMA,
    NODES_VERSION,
    ControlNode,
    Entry,
    FunctionCall,
    NodeRow,
    Outline,
    Run,
    Skeleton,
    node_rows,
    skeleton,
    starts,
)
from mo_loop.look.inspection.description import unknown
from mo_loop.look.records.opening import opened
from mo_loop.look.records.structure import Structure, TensorPort
from mo_loop.printable import counted, first_few, printable, printable_record, shortened
from mo_loop.support.process_memory import paused_collector
from mo_loop.text.spelling import quoted

HEADS = ("scope", "name", "operator", "inputs", "outputs")

_SEPARATORS = re.compile('[ ,"]')

WIDEST = 40
"""The widest column; a longer cell moves the rest of its line."""


def node_table(rows: Iterable[NodeRow]) -> Iterator[str]:
    """The lines. Names are complete, so that they can be copied."""
    lines = [HEADS, *map(_cells, rows)]
    widths = [min(max(map(len, column)), WIDEST) for column in zip(*lines, strict=True)]
    for place, line in enumerate(lines):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        yield text if place else painted(text, bold=True)


def _cells(row: NodeRow) -> tuple[str, ...]:
    outputs = [_quoted_name(each.name) + (f" {printable(str(each))}" if each.is_known else "") for each in row.outputs]
    return (
        _quoted_name(row.scope) if row.scope else "(main)", _quoted_name(row.name) if row.name else "",
        _quoted_name(row.operator), ", ".join(map(_quoted_name, row.inputs)), ", ".join(outputs),
    )


def _quoted_name(text: str) -> str:
    """A name; quoted as in JSON if it is empty, or would run into the text around it."""
    return text if text.isprintable() and text and not _SEPARATORS.search(text) else quoted(text)


ENTRIES = 8
"""The number of inputs or outputs of one kind that a node shows; JSON has all of them."""

OPERATORS = 5
"""The number of operators that a run of nodes shows."""

NAME = 60
"""The number of characters of a name that are shown."""

NARROWEST = 20
"""The smallest width to which a text is wrapped; in deeply nested bodies lines get longer than the terminal."""

BOX = ("├─ ", "└─ ", "│  ", "   ")
ASCII = ("|- ", "`- ", "|  ", "   ")

NAMES = {"onnx": "ONNX", "ir": "OpenVINO IR", "dump": "dump"}


def tree(skeleton: Skeleton, encoding: str, width: int | None = None) -> Iterator[str]:
    """The lines. Box-drawing characters are used if `encoding` has them; with a `width`, long lines are wrapped."""
    shown = printable_record(skeleton)
    lines = _Tree(_marks(encoding), width)
    nodes = sum(each.nodes for each in shown.outlines())
    count = sum(1 for _ in shown.outlines())
    head = f"{NAMES[shown.format]}, {counted(nodes, 'node')} in {counted(count, 'scope')}"
    yield f"{painted(shown.file, bold=True)}: {head}"
    yield from lines.top(shown.graph)
    for each in shown.functions:
        if each.tag == "function":
            yield f"{painted('function', fg='cyan')} {_name(each.path)}: {counted(each.nodes, 'node')}"
        yield from lines.top(each)


def _marks(encoding: str) -> Sequence[str]:
    try:
        "".join(BOX).encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BOX


class _Tree:
    """Makes lines with the given marks, of the given width at most."""

    def __init__(self, marks: Sequence[str], width: int | None) -> None:
        self._branch, self._last, self._through, self._blank = marks
        self._width = width

    def top(self, outline: Outline) -> Iterator[str]:
        """The main graph, a function, or the body that was chosen."""
        if outline.tag not in ("model", "function"):
            yield from self._wrapped("", "", _body(outline))
        if outline.inputs:
            yield from self._wrapped(self._branch, self._through, _ports("inputs", outline.inputs))
        yield from self._steps(outline, "", is_last=not outline.outputs)
        if outline.outputs:
            yield from self._wrapped(self._last, self._blank, _ports("outputs", outline.outputs))

    def _steps(self, outline: Outline, indent: str, *, is_last: bool = True) -> Iterator[str]:
        """The steps of a graph; `is_last` if nothing follows them."""
        for place, step in enumerate(outline.steps):
            ends = is_last and place == len(outline.steps) - 1
            mark, below = (self._last, self._blank) if ends else (self._branch, self._through)
            if isinstance(step, ControlNode):
                room = NAME if self._width is None else self._width - len(indent + mark + step.operator) - 1
                name = shortened(step.name, max(min(room, NAME), NARROWEST))
                yield f"{indent}{mark}{painted(step.operator, fg='cyan')} {name}"
                yield from self._control(step, indent + below)
            else:
                yield from self._wrapped(indent + mark, indent + below, _plain(step))

    def _control(self, step: ControlNode, indent: str) -> Iterator[str]:
        facts = indent + (self._through if step.bodies else self._blank)
        for name, text in _facts(step):
            yield from self._wrapped(f"{facts}{name:13} ", f"{facts}{'':14}", text)
        for place, body in enumerate(step.bodies):
            ends = place == len(step.bodies) - 1
            mark, below = (self._last, self._blank) if ends else (self._branch, self._through)
            yield from self._wrapped(indent + mark, indent + below, _body(body))
            yield from self._steps(body, indent + below)

    def _wrapped(self, head: str, indent: str, text: str) -> Iterator[str]:
        """`text` after `head`; the rest of a long text follows in lines that begin with `indent`."""
        if self._width is None or len(head) + len(text) <= self._width:
            yield head + text
            return
        room = self._width - max(len(head), len(indent) + 2)
        first, *more = wrap(text, max(room, NARROWEST), break_on_hyphens=False) or [""]
        yield head + first
        yield from (f"{indent}  {line}" for line in more)


def _facts(step: ControlNode) -> Iterator[tuple[str, str]]:
    for name, text in (("trip count", step.trip_count), ("condition", step.condition), ("continues", step.goes_on)):
        if text is not None:
            yield name, shortened(text, NAME + 20)
    if step.iteration is not None:
        yield "iteration", f"-> {_name(step.iteration)}"
    for entries, line in ((step.inputs, _input), (step.outputs, _output)):
        for kind in dict.fromkeys(each.kind for each in entries):
            found = [each for each in entries if each.kind == kind]
            shown = found[:ENTRIES] if len(found) > ENTRIES + 1 else found
            if kind in ("captured", "input", "output"):
                yield kind, first_few([_typed(each.value) for each in found], len(shown))
                continue
            for place, each in enumerate(shown):
                inner = ", ".join(f"{_name(name)} of {_name(tag)}" for tag, name in each.inner.items())
                yield "" if place else kind, inner if kind in ("parameter", "result") else line(each)
            if len(found) > len(shown):
                yield "", f"and {len(found) - len(shown)} more"


def _input(entry: Entry) -> str:
    names = list(dict.fromkeys(map(_name, entry.inner.values())))
    text = f"{_typed(entry.value)} -> {', '.join(names)}{_slicing(entry)}".strip()
    return text if entry.back_edge is None else f"{text}, back edge {_name(entry.back_edge)}"


def _output(entry: Entry) -> str:
    names = [_name(each) or "?" for each in entry.inner.values()]
    inner = " or ".join(dict.fromkeys(names))
    return f"{inner} -> {_typed(entry.value)}{_slicing(entry)}" if entry.value.name else inner


def _slicing(entry: Entry) -> str:
    if not entry.slicing:
        return ""
    stride, part = entry.slicing["stride"], entry.slicing.get("part_size", 1)
    size = f", {part} at a time" if part > 1 else ""
    return f", axis {entry.slicing['axis']}{size}{', backwards' if stride < 0 else ''}"


def _plain(step: Run | FunctionCall) -> str:
    if isinstance(step, FunctionCall):
        return f"call of {_name(step.function)}: {_name(step.name)}"
    shown = list(step.operators.items())
    room = OPERATORS if len(shown) > OPERATORS + 1 else len(shown)
    more = sum(count for _, count in shown[room:])
    texts = [f"{count} {_name(name)}" for name, count in shown[:room]] + ([f"{more} others"] if more else [])
    return f"1 node: {_name(shown[0][0])}" if step.nodes == 1 else f"{counted(step.nodes, 'node')}: {', '.join(texts)}"


def _body(outline: Outline) -> str:
    constants = f", {counted(outline.constants, 'constant')}" if outline.constants else ""
    return f"{_name(outline.tag)} {_name(outline.path)}: {counted(outline.nodes, 'node')}{constants}"


def _ports(title: str, ports: Sequence[TensorPort]) -> str:
    return f"{title} {first_few(list(map(_typed, ports)), ENTRIES)}" if ports else ""


def _typed(port: TensorPort) -> str:
    """A name and a type; only the name if nothing is known of the type."""
    name = _name(port.name)
    return name if not port.is_known else f"{name} {shortened(str(port), NAME)}"


def _name(text: str) -> str:
    return shortened(text, NAME)


def graph_lines(structure: Structure, file: str, form: str, *chosen: Any) -> Iterator[str]:
    """The control flow of a model, which the user calls `file`; `chosen` are further arguments of `skeleton`."""
    with paused_collector():
        found = skeleton(structure, *chosen)
    found.file = file
    if form == "json":
        return iter([json.dumps(found.as_json(), indent=1, ensure_ascii=False)])
    return tree(found, stdout_encoding(), terminal_width())


def node_lines(structure: Structure, file: str, form: str, *chosen: Any) -> Iterator[str]:
    """The nodes of a model, which the user calls `file`; `chosen` are further arguments of `node_rows`."""
    rows = node_rows(structure, *chosen)
    if form == "text":
        yield from node_table(rows)
        return
    head = {"schema": NODES_SCHEMA, "version": NODES_VERSION, "file": file, "format": structure.kind.lower()}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "nodes": ['
    yield ",\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows) + "]}"


def structure_with(scope: str | None, operator: str | None, path: str, allowed: Sequence[str]) -> Structure:
    """The structure of the model at `path`. UsageError if it does not have this scope or operator."""
    with paused_collector():
        structure = opened(path, weights=False, allowed=allowed)
    starts(structure, scope)
    if operator is not None:
        operators = dict.fromkeys(item.operator for each in structure.scopes() for item in each.items)
        if operator not in operators:
            raise unknown("operator", operator, list(operators))
    return structure
