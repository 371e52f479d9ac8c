"""Converts one model with every converter in turn, runs the IR, and compares the results.

`measure` takes a `Task` and returns a `Row`. It runs in a worker process, which may crash; `report_stage` names the
converter that runs.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mo_loop.compare.results.array_comparison import Named
from mo_loop.frontend.onnx_graphs import graph_protos
from mo_loop.support.workers import report_stage
from tests.running.samples import expected_values

OURS, PORTABLE, EXACT, PEER = "mo-loop", "portable", "exact", "ovc"
"""The sides: our IR, the same with --quantization portable and exact, and that of ovc."""

REFUSED, NOT_COMPILED, FAILS, WRONG = "refused", "not compiled", "fails", "wrong"

NO_TELEMETRY = {"CI": "true"}
"""The environment in which openvino.convert_model sends no usage reports: its threads would take time of both sides."""

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A model and the sets of inputs to run it on. `sides` are the converters to try, each `repetitions` times."""

    name: str
    model: bytes
    sets: Sequence[Arrays]
    repetitions: int
    sides: tuple[str, ...] = (OURS, PEER)


@dataclass
class Side:
    """The result of a model on one side: `problem` is one word, or empty if the numbers are right."""

    seconds: float | None = None
    difference: float = 0.0
    problem: str = ""
    reason: str = ""


@dataclass
class Row:
    """One line of the table."""

    name: str
    opset: int = 0
    nodes: Counter[str] = field(default_factory=Counter)
    sides: dict[str, Side] = field(default_factory=dict)


def measure(task: Task) -> Row:
    """Convert a model on all sides in turn, then run each IR and compare the results."""
    import onnx

    proto = onnx.load_from_string(task.model)
    opset = max(each.version for each in proto.opset_import if each.domain in ("", "ai.onnx"))
    row = Row(task.name, opset, Counter(operators(proto)), {side: Side() for side in task.sides})
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "model.onnx")
        source.write_bytes(task.model)
        targets = {side: Path(scratch, f"{side}.xml") for side in task.sides}
        for repetition in range(task.repetitions):
            for side in task.sides if repetition % 2 == 0 else reversed(task.sides):
                report_stage(side)
                if not row.sides[side].problem:
                    _convert(row.sides[side], CONVERTERS[side], source, targets[side])
        report_stage("oracle")
        expected = expected_values(source, task.sets).values
        for side in task.sides:
            report_stage(side)
            if not row.sides[side].problem:
                _compare(row.sides[side], targets[side], task.sets, expected)
    return row


def _convert(side: Side, converter: Callable[[Path, Path], None], source: Path, target: Path) -> None:
    started = time.perf_counter()
    try:
        converter(source, target)
    except Exception as error:
        side.problem, side.reason = REFUSED, str(error)
        return
    took = time.perf_counter() - started
    side.seconds = took if side.seconds is None else min(took, side.seconds)


def _compare(side: Side, target: Path, sets: Sequence[Arrays], expected: Sequence[Named]) -> None:
    from mo_loop.compare.execution.runtime import compile_ir
    from mo_loop.compare.results.array_comparison import compare_all

    side.problem = NOT_COMPILED
    try:
        compiled = compile_ir(target)
        side.problem = FAILS
        results = [
            each
            for feeds, wanted in zip(sets, expected, strict=True)
            for each in compare_all(wanted, compiled.run(feeds))
        ]
    except Exception as error:
        side.reason = str(error)
        return
    side.difference = max(each.largest_abs for each in results)
    side.reason = "; ".join(str(each) for each in results if not each)
    side.problem = WRONG if side.reason else ""


def operators(proto: Any) -> Iterator[str]:
    """The operator of every node, including those of bodies and functions."""
    return (node.op_type for graph in graph_protos(proto) for node in graph.node)


def _ours(source: Path, target: Path, quantization: str = "fast") -> None:
    from mo_loop import convert_model, save_model

    save_model(convert_model(source, quantization=quantization), target)


def _peer(source: Path, target: Path) -> None:
    import openvino

    openvino.save_model(openvino.convert_model(source), target, compress_to_fp16=False)


CONVERTERS = {OURS: _ours, **{mode: partial(_ours, quantization=mode) for mode in (PORTABLE, EXACT)}, PEER: _peer}
