"""Draws a model of one operator and takes its times. `measure` runs in a worker process, which may crash."""

from dataclasses import replace
from typing import Any

from tools.benching.loop_times import Row, Task
from tools.benching.loop_times import measure as times_of

SECONDS = 2.0


def measure(task: tuple[Any, ...]) -> Row:
    """The row of a task of tools/bench_operators.py; one that ONNX Runtime does not run is left out."""
    from mo_loop.support.workers import report_stage

    report_stage("draw")
    name, op, elements, form, kind, number, rounds, cpu, peer = task
    if elements is None:
        from tools.benching.typical_operators import typical

        return times_of(Task(name, *typical(op, form == "dynamic"), 1, rounds, seconds=SECONDS, peer=peer, cpu=cpu))
    return _drawn(Task(name, b"", {}, 1, rounds, seconds=SECONDS, peer=peer, cpu=cpu), op, elements, form, kind, number)


def _drawn(task: Task, op: str, elements: int, form: str, kind: str, number: int) -> Row:
    from tests.fuzz.operators.known import known
    from tests.fuzz.operators.trial import Invalid, Missing
    from tools.benching.operator_models import NoKernel, model

    try:
        found = model(op, elements, form, kind, number)
    except (Missing, Invalid, NoKernel, MemoryError) as error:
        return Row(task.name, f"left out: {error}")
    if found is None:
        return Row(task.name, "left out: no tensor of this size and type")
    facts, sample = found
    atol = sample.atol
    if atol is None and kind in ("float", "float16"):
        atol = max(map(_rounding, (array for _, array in sample.expected[0])))
    row = times_of(
        replace(
            task, model=sample.model, feeds=sample.feeds[0], expected=sample.expected[0], rtol=sample.rtol, atol=atol
        )
    )
    if row.problem and any(known(facts, result) for result in ("wrong", "refused", "not compilable", "fails")):
        row.problem = f"left out: {row.problem}"
    return row


def _rounding(array: Any) -> float:
    """The difference that sums of many numbers of such a size may have."""
    import numpy as np

    if array.dtype.kind != "f" or not np.isfinite(array).any():
        return 0.0
    return max(1e-5, float(np.abs(array[np.isfinite(array)]).max()) * (2e-3 if array.dtype.itemsize == 2 else 4e-6))
