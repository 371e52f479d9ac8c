"""Portion: the models that are submitted to Dask together, and their state.

A future costs a Dask worker some milliseconds, a small model not many more. So models that take little time go
together, as many as take SECONDS by the times of those before; a worker does them one after the other. A portion that
fails as a whole is submitted again model by model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from mo_loop.batching.assignment import Answer, Assignment
from mo_loop.batching.estimates import estimate, size_of

SECONDS = 0.25
MOST = 16


@dataclass(eq=False)
class Portion:
    """Models, and the memory that the one that needs most of them needs.

    `place` is the number of its submission, `begun` how often a worker began it, `deaths` how often its workers died,
    `fate` why it was cancelled by this process: `unfit`, `dropped`, `again`.
    """

    assignments: tuple[Assignment, ...]
    need: int
    place: int = 0
    begun: int = 0
    deaths: int = 0
    fate: str = ""

    def singles(self) -> Iterable[Portion]:
        """A portion for each model."""
        return [Portion((assignment,), self.need) for assignment in self.assignments]


class Pace:
    """The number of models in a portion."""

    def __init__(self, is_single: bool) -> None:
        self._is_single = is_single
        self._seconds = SECONDS

    def heard(self, answer: Answer) -> None:
        """Take the time of a model into account; the last ones count most."""
        self._seconds += 0.2 * (answer.seconds - self._seconds)

    @property
    def count(self) -> int:
        """The models of the next portion."""
        return 1 if self._is_single else max(1, min(MOST, int(SECONDS / max(self._seconds, 1e-3))))


def need_of(assignment: Assignment, limit: int | None) -> int:
    """The memory that is declared for a model: the estimate, at most the limit of the batch."""
    is_compared = assignment.task.work.comparing is not None
    need = estimate(size_of(assignment.model), assignment.earlier, with_comparison=is_compared).memory
    return need if limit is None else min(need, limit)


def portable(assignment: Assignment) -> Assignment:
    """The assignment for a process with another working directory, and another folder of temporary files."""
    task, model = assignment.task, assignment.model
    if isinstance(model.source, Path):
        model = replace(model, source=model.source.absolute())
        task = replace(task, source=os.path.abspath(task.source))
    if isinstance(model.target, Path):
        model = replace(model, target=model.target.absolute())
        task = replace(task, target=os.path.abspath(task.target))
    if task.remote is not None:
        task = replace(task, remote=replace(task.remote, scratch=replace(task.remote.scratch, folder=None)))
    return replace(assignment, model=model, task=task)
