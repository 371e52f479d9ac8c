"""Draws a model of one operator and takes its times. `measure` runs in a worker process, which may crash."""

from __future__ import annotations

from typing import Any

from tools.benching.loop_times import Row, Task
from tools.benching.loop_times import measure as times_of

SECONDS = 2.0


def measure(task: tuple[Any, ...]) -> Row:
    """The row of a task of tools/bench_operators.py; one that ONNX Runtime does not run is left out."""
    from mo_loop.support.workers import report_stage
    from tests.fuzz.operators.known import known
    from tests.fuzz.operators.trial import Invalid, Missing
    from tools.benching.operator_models import NoKernel, model

    name, op, elements, form, kind, number, rounds, peer = task
    report_stage("draw")
    try:
        found = model(op, elements, form, kind, number)
    except (Missing, Invalid, NoKernel) as error:
        return Row(name, f"left out: {error}")
    if found is None:
        return Row(name, "left out: no tensor of this size and type")
    facts, sample = found
    row = times_of(
        Task(
            name, sample.model, sample.feeds[0], 1, rounds, expected=sample.expected[0],
            rtol=sample.rtol, atol=sample.atol, seconds=SECONDS, peer=peer,
        )
    )  # fmt: skip
    if row.problem and any(known(facts, result) for result in ("wrong", "refused", "not compilable", "fails")):
        row.problem = f"left out: {row.problem}"
    return row
