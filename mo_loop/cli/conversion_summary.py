"""The result of a conversion, as text and as JSON.

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
     "target": "2024.6-2026.4", "seconds": 0.31, "phases": {"reading": 0.02, ...}, "warnings": ["..."]}

where `weights` are bytes by element type; `input` and `output` of a state are null if it was one of a loop. The pass
WriteSizes describes `sizes`. The object of a conversion that failed is that of mo_loop/cli/error_output.py.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mo_loop.cli.output import painted
from mo_loop.printable import printable, sized
from mo_loop.report.conversion_info import size_rows

if TYPE_CHECKING:
    from mo_loop.converted_model import Model
    from mo_loop.report.record import Record

SCHEMA, VERSION = "mo-loop convert", 1

LITTLE = 1 << 12
"""Bytes of small constants, such as shapes, which a conversion may add."""

MOST_ROWS = 32
"""States, and inputs with restricted sizes, that the text lists."""


def summary(
    record: Record, model: Model, source: str, target: str, sizes: tuple[int, int], compressed: bool, seconds: float
) -> dict[str, Any]:
    """The object above without the warnings; `sizes` are the bytes of the .xml and the .bin."""
    from mo_loop.report.record import graph_statistics, onnx_statistics, outcomes

    assert record.model is not None and record.graph is not None
    before, after = onnx_statistics(record.model), graph_statistics(record.graph)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "ok": True,
        "model": source,
        "xml": {"path": target, "bytes": sizes[0]},
        "bin": {"path": os.path.splitext(target)[0] + ".bin", "bytes": sizes[1]},
        "inputs": [{"name": each.name, "type": each.type_text} for each in model.inputs],
        "outputs": [{"name": each.name, "type": each.type_text} for each in model.outputs],
        "operations": {"before": before.operations, "after": after.operations},
        "weights": {"before": before.weights, "after": after.weights, "compressed": compressed},
        "compression": None if record.compression is None else asdict(record.compression),
        "control_flow": [
            {"operator": each.kind, "became": each.became, "count": each.count} for each in outcomes(record)
        ],
        "states": _states(record),
        "sizes": record.graph.rt_info.get("sizes", {}),
        "target": record.graph.rt_info["converter"]["target"],
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
        ("control flow", _flow(found["control_flow"])),
        *_titled("states", _state_rows(found["states"])),
        *_titled("sizes", size_rows(found["sizes"])),
        ("target", f"OpenVINO {found['target']}"),
        ("time", f"{found['seconds']:.2f} s"),
    ]
    return "\n".join([*lines, *(f"  {name.ljust(12)}  {text}" for name, text in rows if text)])


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
    kept = [
        f"{count} {what}"
        for count, what in ((counts["kept"], "outside f16"), (counts["deciding"], "for shapes or control flow"))
        if count
    ]
    clipped = f", values clipped: {counts['clipped']}" if counts["clipped"] else ""
    return f"constants: {counts['compressed']}{clipped}" + (f"; unchanged: {', '.join(kept)}" if kept else "")


def _flow(outcomes: list[dict[str, Any]]) -> str:
    return ", ".join(
        f"{each['count']} {each['operator']} {'-> ' if each['became'][0].isupper() else ''}{each['became']}"
        for each in outcomes
    )
