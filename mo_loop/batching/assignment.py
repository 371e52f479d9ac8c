"""Assignment and Answer: one model as an engine gets it and gives it back; `attempted` does it.

    answer = attempted(assignment, draft, pool.call)

`attempted` is the work of all engines on a model, in a thread of this process or on another machine: check whether
it is up to date, convert it in a worker process, try it once more in a new one, and bring its files into order.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from mo_loop.batching.entries import StateEntry
from mo_loop.batching.estimates import Earlier
from mo_loop.batching.fingerprint import is_current
from mo_loop.batching.outcomes import status_of
from mo_loop.batching.plan import Planned
from mo_loop.batching.result import CRASH, MEMORY
from mo_loop.batching.task import Task
from mo_loop.errors import MoLoopError
from mo_loop.ir.pair import remove_draft, restore_pair
from mo_loop.support.workers import TaskOutcome


@dataclass(frozen=True)
class Assignment:
    """The work to do for one model.

    `number` is its place in the plan, `task` its conversion, without a draft, `limit` the seconds for all of it,
    `known` the result of an earlier batch, `is_new` whether it had no .bin before this batch, `earlier` its memory and
    time in an earlier batch.
    """

    number: int
    model: Planned
    task: Task
    limit: float
    known: StateEntry | None = None
    is_new: bool = False
    earlier: Earlier | None = None


@dataclass(frozen=True)
class Answer:
    """The entry of a model that is up to date, the outcome of its conversion, or why it cannot be converted; and the
    seconds it took."""

    result: StateEntry | TaskOutcome | MoLoopError
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether the model is up to date, or its worker returned."""
        return isinstance(self.result, StateEntry) or (isinstance(self.result, TaskOutcome) and self.result.ok)


class Call(Protocol):
    """`Pool.call`."""

    def __call__(self, task: Task, limit: float | None = None, *, fresh: bool = False) -> TaskOutcome:
        """Run a task in a worker process."""


def attempted(assignment: Assignment, draft: Path, call: Call) -> Answer:
    """Convert the model, unless it is up to date, into the file `draft` and then to its place."""
    start = time.perf_counter()
    known, options = assignment.known, assignment.task.work.digest
    if known is not None and is_current(known, assignment.model, options):
        return Answer(known, time.perf_counter() - start)
    task = replace(assignment.task, draft=str(draft))
    outcome = call(task, assignment.limit)
    if not outcome.first and status_of(outcome) in (CRASH, MEMORY):
        # The cause may be the state that an earlier model left in the worker.
        restore(assignment)
        outcome = call(task, assignment.limit, fresh=True)
    if not outcome.ok:
        restore(assignment)
        remove_draft(draft)
    return Answer(outcome, outcome.seconds)


def restore(assignment: Assignment) -> None:
    """Bring the files of a model into order after its worker was killed. At a URL there is nothing to do: a pair that
    was not finished has no .xml."""
    if isinstance(assignment.model.target, Path):
        restore_pair(assignment.model.target, is_new=assignment.is_new)
