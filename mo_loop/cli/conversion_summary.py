"""The texts about a conversion: its result, its times, its current phase, and the decisions of its passes.

The result, as text and as JSON:

    model.xml  12.3 kB
    model.bin  4.2 MB
      operations    35 -> 41
      weights       4.2 MB -> 4.2 MB, unchanged (f32 stays f32)
      compressed    constants: 30, values clipped: 2; unchanged: 1 outside f16
      control flow  1 Loop -> TensorIterator, 1 Loop unrolled ×4, 2 If decided
      states        past.0 -> present.0  f32[?,4,?,16]
                    past.1 -> present.1  f32[?,4,?,16]
      sizes         x[?,3,?,?]: ? may change, 3 is checked
                    all others may change
      target        OpenVINO 2024.6-2026.4
      time          0.31 s

Counts are those of all scopes. As JSON (`--format json`) it is one object:

    {"schema": "mo-loop convert", "version": 1, "ok": true, "model": "model.onnx",
     "xml": {"path": "model.xml", "bytes": 12345}, "bin": {"path": "model.bin", "bytes": 4200000},
     "inputs": [{"name": "x", "type": "f32[1,3]"}], "outputs": [...],
     "operations": {"before": 35, "after": 41},
     "weights": {"before": {"f32": 4200000}, "after": {"f32": 4199000, "i64": 64}, "compressed": false},
     "compression": null, or {"compressed": 30, "values": 1050000, "clipped": 2, "kept": 1, "deciding": 1,
                              "saved": 2100000},
     "control_flow": [{"operator": "Loop", "became": "TensorIterator", "count": 1}, ...],
     "states": [{"variable": "past.0present.0", "type": "f32[?,4,?,16]", "input": "past.0", "output": "present.0"}],
     "sizes": {"x": "?,3,?,?", "ids": "?,?"},
     "target": "2024.6-2026.4", "library": "", "seconds": 0.31, "phases": {"reading": 0.02, ...}, "warnings": ["..."]}

where `weights` are bytes by element type; `input` and `output` of a state are null if it was one of a loop. The pass
WriteSizes describes `sizes`. The object of a conversion that failed is that of mo_loop/cli/output.py.

The table of --verbose shows where the time went, on stderr, also after an error:

                       s  share             nodes    memory
    start-up       0.171     5%                     58.1 MB
    reading        0.058     2%                     87.7 MB
    translating    1.271    40%             50003  169.8 MB
    passes         0.941    30%    50003 -> 50002  187.1 MB
      LocalRules   0.210     7%             50002  187.1 MB
      60 others    0.123     4%
    checking       0.135     4%             50002  187.1 MB
    writing        0.418    13%             50002  201.5 MB
    other          0.062     2%
    all            3.164   100%                    201.5 MB

`start-up` is the time of the process until reading begins, `other` is the time between the parts. Nodes are those of
all scopes, `memory` is the most that the process had by then; it is left out where the system does not report it.

A line on stderr shows the current phase of a long conversion, and disappears at the end:

    writing 3 s, 1.2 GB of 4.0 GB, 413.8 MB/s

It appears after a second, and only on a terminal.

The output of --explain-pass is the outcome of each candidate of a pass, and the reason:

    explanations = Explanations(config, {"NopElimination": ["EliminatePad", "EliminateConvert"]})
    Conversion(options, [explanations]).run("model.onnx")
    explanations.lines()
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from mo_loop.cli.output import painted, table, tell
from mo_loop.conversion_info import size_rows
from mo_loop.graph import Graph
from mo_loop.printable import printable, sized
from mo_loop.support.files import pair_of
from mo_loop.support.process_memory import peak_memory
from mo_loop.target import ANY, NEWEST, shown, version
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.manager import Phase, Step

if TYPE_CHECKING:
    from mo_loop.converted_model import Model
    from mo_loop.look.conversion_record import Record


SCHEMA, VERSION = "mo-loop convert", 1

LITTLE = 1 << 12
"""Bytes of small constants, such as shapes, which a conversion may add."""

MOST_ROWS = 32
"""States, and inputs with restricted sizes, that the text lists."""


def summary(
    record: Record, model: Model, source: str, target: str, sizes: tuple[int, int], compressed: bool, seconds: float
) -> dict[str, Any]:
    """The object above without the warnings; `sizes` are the bytes of the .xml and the .bin."""
    from mo_loop.look.conversion_record import graph_statistics, onnx_statistics, outcomes

    assert record.model is not None and record.graph is not None
    before, after = onnx_statistics(record.model), graph_statistics(record.graph)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "ok": True,
        "model": source,
        "xml": {"path": target, "bytes": sizes[0]},
        "bin": {"path": pair_of(target)[1], "bytes": sizes[1]},
        "inputs": [{"name": each.name, "type": each.type_text} for each in model.inputs],
        "outputs": [{"name": each.name, "type": each.type_text} for each in model.outputs],
        "operations": {"before": before.operations, "after": after.operations},
        "weights": {"before": before.weights, "after": after.weights, "compressed": compressed},
        "compression": None if record.compression is None else asdict(record.compression),
        "control_flow": list(map(asdict, outcomes(record))),
        "states": _states(record),
        "sizes": record.graph.rt_info.get("sizes", {}),
        "target": record.graph.rt_info["converter"]["target"],
        "library": record.graph.rt_info["converter"].get("library", ""),
        "device": record.graph.rt_info["conversion_parameters"].get("device", ANY),
        "seconds": round(seconds, 4),
        "phases": {name: round(each, 4) for name, each in record.phases.items()},
    }


def _states(record: Record) -> list[dict[str, Any]]:
    """The variables of the model, in the order of its inputs."""
    from mo_loop.ops.recurrent import ReadValue

    assert record.graph is not None
    found = []
    for node in record.graph.of(ReadValue):
        before, after = record.pairs.get(node.variable_id, (None, None))
        type_ = str(node.outputs[0].type)
        found.append({"variable": node.variable_id, "type": type_, "input": before, "output": after})
    return found


def as_text(found: dict[str, Any]) -> str:
    """The lines above."""
    xml, data = found["xml"], found["bin"]
    width = max(len(each["path"]) for each in (xml, data))
    lines = [f"{painted(each['path'].ljust(width), bold=True)}  {sized(each['bytes'])}" for each in (xml, data)]
    rows = [
        ("operations", f"{found['operations']['before']} -> {found['operations']['after']}"),
        ("weights", _weights(found["weights"], data["bytes"])),
        ("compressed", _compression(found["compression"])),
        ("control flow", ", ".join(
            f"{each['count']} {each['operator']} {'-> ' if each['became'][0].isupper() else ''}{each['became']}"
            for each in found["control_flow"]
        )),
        *_titled("states", _state_rows(found["states"])),
        *_titled("sizes", size_rows(found["sizes"])),
        ("target", _target(found["target"], found["device"])),
        *_titled("needs", [
            f"the library of {package}, of the same release as OpenVINO",
            f'in Python: import {package}; in C++: core.add_extension("lib{package}.so")',
        ] if (package := found["library"]) else []),
        ("time", f"{found['seconds']:.2f} s"),
    ]
    return "\n".join([*lines, *(f"  {name.ljust(12)}  {text}" for name, text in rows if text)])


def _target(releases: str, device: str) -> str:
    """The releases, with what a release that is newer than all known ones is taken for; the device if it is not any."""
    known, newest = shown(NEWEST), releases.rpartition("-")[2]
    as_known = "" if version(newest) <= NEWEST else f", written as for {known}, the newest one that is known"
    return f"OpenVINO {releases}" + ("" if device == ANY else f", device {device}") + as_known


def _titled(title: str, rows: list[str]) -> list[tuple[str, str]]:
    """The first rows, and the number of the others; the first one has the title."""
    more = len(rows) - MOST_ROWS
    shown = [*rows[:MOST_ROWS], f"and {more} more (--format json, mo-loop inspect)"] if more > 0 else rows
    return [("" if number else title, printable(row)) for number, row in enumerate(shown)]


def _state_rows(states: list[dict[str, Any]]) -> list[str]:
    """A row for each state, with the inputs and outputs that it replaces."""
    names = [each["variable"] if each["input"] is None else f"{each['input']} -> {each['output']}" for each in states]
    shown = [printable(name) for name in names]
    width = max(map(len, shown[:MOST_ROWS]), default=0)
    return [f"{name.ljust(width)}  {each['type']}" for name, each in zip(shown, states, strict=True)]


def _weights(weights: dict[str, Any], written: int) -> str:
    before, after = weights["before"], weights["after"]
    total = sum(before.values())
    largest = sorted(before, key=lambda name: -before[name])[:3]
    names = [name for name in largest if before[name] and before[name] * 100 >= total]
    is_halved = weights["compressed"] and after.get("f16", 0) > before.get("f16", 0)
    is_larger = written > total + max(total // 10, LITTLE)
    changes = [
        "f32 stored as f16" if is_halved and name == "f32" else f"{name} stays {name}"
        for name in names
        if is_halved or (name in after and not (is_larger and after[name] < before[name]))
    ]
    kept = f" ({', '.join(changes)})" if changes else ""
    change = "" if is_halved or not total else ", larger" if is_larger else ", unchanged"
    return f"{sized(total)} -> {sized(written)}{change}{kept}"


def _compression(counts: dict[str, int] | None) -> str:
    """The constants that compression changed or kept; empty if f16 represents all values."""
    if counts is None or not (counts["clipped"] or counts["kept"] or counts["deciding"]):
        return ""
    reasons = {"kept": "outside f16", "deciding": "for shapes or control flow"}
    kept = [f"{counts[key]} {what}" for key, what in reasons.items() if counts[key]]
    clipped = f", values clipped: {counts['clipped']}" if counts["clipped"] else ""
    return f"constants: {counts['compressed']}{clipped}" + (f"; unchanged: {', '.join(kept)}" if kept else "")


SLOWEST = 5
"""The number of passes with a row of their own."""


class TimeRow(NamedTuple):
    """A part of the conversion, or a pass."""

    name: str
    seconds: float
    nodes: str = ""
    memory: int = 0


class TimeTable:
    """An observer that prints the table when the block ends."""

    def __init__(self) -> None:
        self._parts: list[TimeRow] = []
        self._passes: list[TimeRow] = []
        self._before = 0  # the nodes at the beginning of the present part
        self._first = 0.0  # the time of the first event

    def __call__(self, event: Step | Phase) -> None:
        if isinstance(event, Step):
            nodes = _node_change(event.nodes_before, event.nodes_after)
            self._passes.append(TimeRow(f"  {event.name}", event.seconds, nodes, peak_memory()))
        elif event.seconds is not None:
            nodes = _node_change(self._before, _node_count(event.graph))
            self._parts.append(TimeRow(event.name, event.seconds, nodes, peak_memory()))
        else:
            self._before = _node_count(event.graph)
            if not self._parts:
                self._first = time.perf_counter()
                self._parts.append(TimeRow("start-up", time.process_time(), memory=peak_memory()))

    def __enter__(self) -> TimeTable:
        return self

    def __exit__(self, *_: object) -> None:
        if self._parts:
            tell(table(self.lines(time.perf_counter() - self._first), (1, 2, 3, 4), err=True))

    def lines(self, seconds: float) -> list[tuple[str, ...]]:
        """The cells of the table; `seconds` is the time from the first event on."""
        whole = self._parts[0].seconds + seconds
        rows = []
        for part in self._parts:
            rows += [part, *self._slowest()] if part.name == "passes" else [part]
        rows.append(TimeRow("other", max(0.0, whole - sum(part.seconds for part in self._parts))))
        rows.append(TimeRow("all", whole, memory=peak_memory()))
        lines: list[tuple[str, ...]] = [("", "s", "share", "nodes", "memory")]
        for name, time_, nodes, memory in rows:
            lines.append((name, f"{time_:.3f}", f"{time_ / whole:.0%}", nodes, sized(memory) if memory else ""))
        return lines if peak_memory() else [line[:-1] for line in lines]

    def _slowest(self) -> list[TimeRow]:
        """The slowest passes in the order of the run, and the others as one row."""
        slowest = sorted(self._passes, key=lambda row: row.seconds, reverse=True)[:SLOWEST]
        shown = [row for row in self._passes if row in slowest]
        others = [row.seconds for row in self._passes if row not in slowest]
        return [*shown, TimeRow(f"  {len(others)} others", sum(others))] if others else shown


def _node_count(graph: Graph | None) -> int:
    return 0 if graph is None else sum(map(len, graph.scopes()))


def _node_change(before: int, after: int) -> str:
    return f"{before} -> {after}" if before and before != after else str(after or "")


class Progress:
    """An observer that shows the phases of a conversion while the block runs."""

    def __init__(self, after: float = 1.0) -> None:
        """The line appears `after` seconds."""
        self._phase: Phase | None = None
        self._after = after
        self._total = 0
        self._since = 0.0  # the beginning of the phase
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __call__(self, event: Step | Phase) -> None:
        if isinstance(event, Phase):
            self._phase = event
            if event.seconds is None:
                self._since = time.monotonic()

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _show(self) -> None:
        start = time.monotonic()
        if self._done.wait(self._after):
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(stderr=True)
        with Live(
            get_renderable=lambda: Text(self.line(time.monotonic() - start), no_wrap=True, overflow="ellipsis"),
            console=console, refresh_per_second=10, transient=True, redirect_stdout=False, redirect_stderr=False,
        ):
            self._done.wait()

    def line(self, seconds: float) -> str:
        """The text after `seconds`."""
        phase = self._phase
        text = f"{'starting' if phase is None else phase.name} {seconds:.0f} s"
        if phase is None or phase.name != "writing" or phase.graph is None or phase.subject is None:
            return text
        from mo_loop.look.conversion_record import graph_statistics

        self._total = self._total or graph_statistics(phase.graph).bytes
        written = phase.subject.size
        rate = written / max(phase.seconds or time.monotonic() - self._since, 1e-6)
        return f"{text}, {sized(written)} of {sized(self._total)}, {sized(round(rate))}/s"


class Explanations:
    """An observer of the passes whose decisions `config` records."""

    def __init__(self, config: PassConfig, names: Mapping[str, Sequence[str]]) -> None:
        """`names`: each name in --explain-pass -> the names of the passes that it selects."""
        self._config = config
        self._names = names
        self._changed: dict[str, bool] = {}
        config.explain(*(name for each in names.values() for name in each))

    def __call__(self, event: Step | Phase) -> None:
        if not isinstance(event, Step):
            return
        self._changed[event.name] = event.changed or self._changed.get(event.name, False)
        for name, count in event.matchers:
            self._changed[name] = count > 0 or self._changed.get(name, False)

    def lines(self) -> Iterator[str]:
        """The decisions; for a pass without any, the reason."""
        for name, held in self._names.items():
            found = [line for each in held for line in self._decisions(each)]
            yield from map(printable, found or [self._nothing(name)])

    def _decisions(self, name: str) -> Iterator[str]:
        found = [each for each in self._config.explanations if each.pass_name == name]
        if found:
            outcomes = Counter(each.outcome for each in found)
            yield f"{name}: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        for each in found:
            depth = f" ({each.depth} of the pattern matched before)" if each.outcome == "refused" and each.depth else ""
            yield f"  {each.node}: {each.outcome}" + (f": {each.reason}{depth}" if each.reason else "")

    def _nothing(self, name: str) -> str:
        if name not in self._changed:
            return f"{name}: the conversion ended before it ran"
        if self._changed[name]:
            return f"{name}: changed the graph; it does not record single candidates"
        return f"{name}: no candidates recorded"
