"""Measures one network of real size: both IRs, their size, memory and compile time, their numbers, and their speed.

`measure` takes a `Task` and returns a `Row`. It runs in a worker process, which may crash; `report_stage` names the
side that is at work.
"""

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.support.workers import report_stage
from tools.measuring import OURS, PEER
from tools.real.processes import Footprint, SideError, arrays, convert, run
from tools.real.targets import Row, Size
from tools.timing import quick_ratio, timed

SIDES = (OURS, PEER)
PROPERTIES = {
    "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1,
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "32",
}
"""The last one is the default of the plugin; mo_loop/compare/execution/runtime.py has 0."""
KEEPS_ACTIVATIONS = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
LEAST_ROUNDS, MOST_ROUNDS = 9, 101


@dataclass(frozen=True)
class Task:
    """A row of the table: a model file, its inputs, and how it is run. `seconds` limits the timed part."""

    name: str
    group: str
    model: Path
    feeds: Mapping[str, Any]
    keeps_activations: bool
    seconds: float
    threads: int
    repetitions: int = 3

    @property
    def properties(self) -> dict[str, Any]:
        """The properties with which both sides are compiled."""
        properties = PROPERTIES | {"INFERENCE_NUM_THREADS": self.threads}
        return properties | KEEPS_ACTIVATIONS if self.keeps_activations else properties


def measure(task: Task) -> Row:
    """Convert with both, run each IR in processes of its own, then time both in turn."""
    row = Row(task.name, task.group)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        feeds = folder / "feeds.npz"
        np.savez(feeds, **task.feeds)
        report_stage("oracle")
        expected = expected_values(task.model, task.feeds, task.threads)
        found = {side: _measured_alone(row, side, task, folder, feeds, expected) for side in SIDES}
        if row.problem:
            return row
        # The processes of both sides alternate, so that a slow moment of the machine does not fall on one side.
        for number in range(1, task.repetitions):
            for side in SIDES if number % 2 else reversed(SIDES):
                found[side].append(run(folder / f"{side}.xml", feeds, folder / "again.npz", task.properties))
        row.ours.seconds_to_compile, row.peer.seconds_to_compile = (_least(found[side]) for side in SIDES)
        row.compile_spread = max(_excess(found[side]) for side in SIDES)
        row.ours.peak, row.peer.peak = (int(statistics.median(each.peak for each in found[side])) for side in SIDES)
        report_stage("timing")
        _time(row, task, folder)
    return row


def _measured_alone(
    row: Row, side: str, task: Task, folder: Path, feeds: Path, expected: Sequence[np.ndarray]
) -> list[Footprint]:
    """Convert and run one side; its size and its difference. A failure goes into the row, the other continues."""
    report_stage(side)
    target, results = folder / f"{side}.xml", folder / f"{side}.npz"
    size: Size = row.ours if side == OURS else row.peer
    try:
        convert(side, task.model, target)
        footprint = run(target, feeds, results, task.properties)
    except SideError as error:
        row.problem = "; ".join(filter(None, (row.problem, f"{side}: {error}")))
        return []
    size.bin = target.with_suffix(".bin").stat().st_size
    size.difference = difference(expected, arrays(results))
    size.seconds_to_compile, size.peak = footprint.seconds, footprint.peak
    return [footprint]


def expected_values(model: Path, feeds: Mapping[str, Any], threads: int) -> list[np.ndarray]:
    """The results of ONNX Runtime. Its products of u8 and s8 saturate on some processors without an option."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # activations stay in f32
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    known = {each.name for each in session.get_inputs()}
    return session.run(None, {name: array for name, array in feeds.items() if name in known})


def difference(expected: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    """The largest difference of any output, as a part of its largest magnitude; infinite if one is NaN."""
    if len(expected) != len(found):
        return float("inf")
    return max(map(_difference, expected, found), default=0.0)


def _difference(expected: np.ndarray, found: np.ndarray) -> float:
    if expected.shape != found.shape:
        return float("inf")
    wanted, have = expected.astype(np.float64), found.astype(np.float64)
    if not np.isfinite(have).all():
        return float("inf")
    return float(np.abs(wanted - have).max(initial=0) / max(np.abs(wanted).max(initial=0), 1e-30))


def _least(footprints: Sequence[Footprint]) -> float:
    return min(each.seconds for each in footprints)


def _excess(footprints: Sequence[Footprint]) -> float:
    """How much the second fastest compilation exceeds the fastest."""
    first, second, *_ = sorted(each.seconds for each in footprints)
    return second / first - 1


def _time(row: Row, task: Task, folder: Path) -> None:
    from mo_loop.compare.execution.runtime import compile_ir

    # What is compiled first has other memory than the rest: one side is first and last, the other is between.
    order = ((OURS, 0), (PEER, 0), (PEER, 1), (OURS, 1))
    made = {each: compile_ir(folder / f"{each[0]}.xml", task.properties) for each in order}
    for each in made.values():
        each.run(task.feeds)
    times = timed([made[each] for each in sorted(order)], MOST_ROUNDS, LEAST_ROUNDS, task.seconds)
    row.ours.seconds, row.peer.seconds, row.ratio, (row.ours.spread, row.peer.spread) = quick_ratio(times)
