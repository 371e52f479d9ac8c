"""Judges one random graph. `judge` runs in a worker process."""

from dataclasses import dataclass

import numpy as np

from mo_loop.compare.execution.isolated import brief
from mo_loop.support.workers import report_stage
from tests.fuzz import SKIPPED
from tests.fuzz.control_flow.oracle import nudged
from tests.fuzz.graphs import draw
from tests.running import samples as judging
from tests.running.samples import OURS, Sample, Verdict

TOLERANCE, LARGEST = 2e-3, 1e5
"""The largest difference, as a share of the largest number of a result, and the largest number of a model."""


@dataclass(frozen=True)
class Task:
    """A graph of a seed, the converter, and the interpreter of another release that runs the IR."""

    seed: int
    index: int
    converter: str = OURS
    without: tuple[str, ...] = ()
    python: str | None = None
    pattern: str = ""


def judge(task: Task) -> Verdict:
    """The verdict of one graph; SKIPPED, with the reason, if it cannot test a converter."""
    report_stage("oracle")
    try:
        sample = sample_of(task)
    except Exception as error:  # ONNX Runtime's errors share no base class
        return Verdict(SKIPPED, brief(error))
    return judging.judge((task.converter, sample)) if isinstance(sample, Sample) else Verdict(SKIPPED, sample)


def sample_of(task: Task) -> Sample | str:
    """The sets of inputs run there and back on one compiled model; or why the graph is not tried."""
    from mo_loop.compare.oracle.oracle import OnnxRuntime
    from mo_loop.compare.results.array_comparison import compare_all
    from mo_loop.transforms.config import PassConfig

    case = draw(task.seed, task.index, task.pattern)
    if not case.model.graph.node:
        return "no layer fits"
    runtime = OnnxRuntime(case.model)
    expected = [runtime.run(feeds) for feeds in case.sets]
    arrays = [array for found in expected for _, array in found]
    largest = [float(np.abs(array).max()) if array.size else 0.0 for array in arrays]
    if not all(size <= LARGEST for size in largest):
        return "numbers are too large, or not finite"
    atol = TOLERANCE * max(0.01, min(filter(None, largest), default=0.0))
    for feeds, found in zip(case.sets, expected, strict=True):
        again = runtime.run(nudged(feeds))
        if not case.is_exact and not all(compare_all(found, again, rtol=TOLERANCE / 10, atol=atol / 10)):
            return "results jump for slightly larger inputs"
    config = PassConfig()
    config.disable(*task.without)
    order = (*range(len(expected)), *reversed(range(len(expected))))
    rtol, atol = (0.0, 0.0) if case.is_exact else (TOLERANCE, atol)
    arguments = {"config": config, **({"quantization": "exact"} if case.is_exact else {})}
    return Sample(case.name, case.model.SerializeToString(), case.sets, expected, order, rtol=rtol, atol=atol,
                  exact=True, arguments=arguments, python=task.python)

