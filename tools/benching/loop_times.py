"""Takes the times of one model: our IR, ONNX Runtime, the IR of ovc, and for loops the same model without a loop.

`measure` takes a `Task` and returns a `Row`. It runs in a worker process, which may crash.
"""

import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.timing import timed


@dataclass(frozen=True)
class Task:
    """A model and its inputs; `hand` is the same without a loop, `disabled` are passes that do not run.

    `expected` and the tolerances are those of the outputs, by default ONNX Runtime's; rounds end after `seconds`.
    `peer` is whether ovc's IR is measured, too; with `cpu` the times are those of the processor.
    """

    name: str
    model: bytes
    feeds: Mapping[str, Any]
    threads: int
    rounds: int
    hand: bytes = b""
    disabled: tuple[str, ...] = ()
    expected: Sequence[tuple[str, Any]] = ()
    rtol: float | None = 1e-3
    atol: float | None = 1e-4
    seconds: float = math.inf
    peer: bool = True
    cpu: bool = False


@dataclass
class Row:
    """The shortest times in microseconds by side, the seconds of conversion and compilation, the size of our .xml,
    and the memory by which conversion, compilation and an inference of ours enlarge the process (with what they load).

    `refused` is the reason of a peer without times.
    """

    name: str
    problem: str = ""
    times: dict[str, float] = field(default_factory=dict)
    kilobytes: float = 0.0
    megabytes: float = 0.0
    compilation: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return self.times["ours"] / self.times["ort"]


class Oracle:
    """A session of ONNX Runtime with fixed inputs; `again` runs it like that of `Compiled`."""

    def __init__(self, model: bytes, feeds: Mapping[str, Any], threads: int) -> None:
        import numpy as np
        import onnx
        import onnxruntime

        from mo_loop.compare.oracle.oracle import labels_of_maps

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._feeds = {port.name: np.asarray(feeds[port.name]) for port in self._session.get_inputs()}
        self._labels = labels_of_maps(onnx.load_from_string(model))

    def run(self) -> list[tuple[str, Any]]:
        from mo_loop.compare.oracle.oracle import without_maps

        names = [port.name for port in self._session.get_outputs()]
        return without_maps(zip(names, self._session.run(None, self._feeds), strict=True), self._labels)

    def again(self) -> None:
        self._session.run(None, self._feeds)


def measure(task: Task) -> Row:
    """Convert with both converters, compare all with ONNX Runtime, and time them in turn."""
    from mo_loop import convert_model, save_model
    from mo_loop.compare.execution.runtime import compile_ir
    from mo_loop.compare.results.array_comparison import compare_all
    from mo_loop.support.workers import report_stage
    from mo_loop.transforms.config import PassConfig
    from tools.measuring import CONVERTERS, PEER

    row, threads = Row(task.name), {"INFERENCE_NUM_THREADS": task.threads}
    report_stage("onnxruntime")
    oracle = Oracle(task.model, task.feeds, task.threads)
    expected, sides = oracle.run(), {}
    expected = task.expected or expected
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "model.onnx")
        for side, model in (("ours", task.model), ("hand", task.hand), ("ovc", task.model)):
            if not model or (side == "ovc" and not task.peer):
                continue
            report_stage(side)
            source.write_bytes(model)
            target = Path(scratch, f"{side}.xml")
            try:
                start, before = time.perf_counter(), _resident()
                if side == "ovc":
                    CONVERTERS[PEER](source, target)
                else:
                    config = PassConfig()
                    config.disable(*task.disabled)
                    save_model(convert_model(source, config=config), target)
                compiled = compile_ir(target, threads)
                row.compilation[side] = time.perf_counter() - start
                compiled.run(task.feeds)
                if side == "ours":
                    row.megabytes = (_resident() - before) / 1e6
                found = compare_all(expected, compiled.run(task.feeds), rtol=task.rtol, atol=task.atol)
                wrong = [str(each) for each in found if not each]
            except Exception as error:
                wrong = [(str(error).strip().splitlines() or [type(error).__name__])[0][:120]]
            if not wrong:
                sides[side] = compiled
            elif side == "ours":
                row.problem = wrong[0]
                return row
            else:
                row.refused[side] = wrong[0]
        row.kilobytes = Path(scratch, "ours.xml").stat().st_size / 1e3
        report_stage("times")
        clock = time.process_time if task.cpu else time.perf_counter
        times = timed([oracle, *sides.values()], task.rounds, 3, task.seconds, clock)
    row.times = {side: 1e6 * min(each) for side, each in zip(["ort", *sides], times, strict=True)}
    return row


def _resident() -> int:
    """The bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
