"""Watch: the workers of a cluster while a batch runs: how many threads, how much memory; whether any are left. Portion:
the models that are submitted to Dask together, and their state.

A future costs a Dask worker some milliseconds, a small model not many more. So models that take little time go
together, as many as take SECONDS by the times of those before; a worker does them one after the other. A portion that
fails as a whole is submitted again model by model.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed.system import MEMORY_LIMIT

from mo_loop.batching.cluster.on_worker import MEMORY
from mo_loop.batching.cluster.requirements import Unable
from mo_loop.batching.engine import Answer, Assignment
from mo_loop.batching.estimates import estimate, size_of

if TYPE_CHECKING:
    from distributed import Client


EVERY = 2.0
"""Seconds between two looks."""

PATIENCE = 60.0
"""Seconds in which a worker that was lost may be replaced."""


class Watch:
    """Asks the scheduler for its workers now and then, in a thread of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._end = threading.Event()
        self._short_since = 0.0
        self._lock = threading.Lock()
        self._workers: dict[str, Any] = {}
        self.unable: dict[str, Unable] = {}
        """Workers that are left out, by their addresses, and why."""
        self.able: list[str] = []
        """The addresses of the others, if there are workers that are left out."""
        self.threads = 0
        """Threads of all workers; while there are none, those that there were."""
        self.largest = 0
        """The MEMORY of the worker that has most of it. A worker that is lost counts for some time."""
        self.present = 0
        """The same of the workers that are there now."""
        self.look()

    def look(self) -> None:
        """Ask now."""
        workers = workers_of(self._client)
        with self._lock:
            self._workers = workers
            self._count()

    def leave_out(self, unable: Unable) -> bool:
        """Do not count a worker any more; whether it was counted before."""
        with self._lock:
            is_new = unable.worker not in self.unable
            self.unable[unable.worker] = unable
            self._count()
            return is_new

    def _count(self) -> None:
        workers = {address: each for address, each in self._workers.items() if address not in self.unable}
        self.able = list(workers) if self.unable else []
        if self._workers and not workers:  # to wait does not help: all that are there lack something
            self.largest = self.present = 0
            return
        self.threads = sum(each["nthreads"] for each in workers.values()) or self.threads
        largest = max((int(each["resources"].get(MEMORY, 0)) for each in workers.values()), default=0)
        self.present = largest
        if largest >= self.largest:
            self._short_since = 0.0
            self.largest = largest
            return
        self._short_since = self._short_since or time.monotonic()
        if time.monotonic() - self._short_since > PATIENCE:
            self.largest = largest

    @property
    def has_workers(self) -> bool:
        """Whether there are workers, or there were some a short time ago."""
        return self.largest > 0

    def start(self, changed: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        """Check at intervals, and call `changed` after each check, until `stop`; `failed` if that is not possible."""

        def run() -> None:
            while not self._end.wait(EVERY):
                try:
                    self.look()
                    changed()
                except (OSError, TimeoutError):
                    # The scheduler is gone, which the futures will report, or it is busy: the next check may succeed.
                    continue
                except Exception as error:
                    failed(error)
                    return

        threading.Thread(target=run, daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._end.set()


def workers_of(client: Client) -> dict[str, Any]:
    """Address of each worker -> the facts that the scheduler has about it."""
    try:
        info = client.scheduler_info(n_workers=-1)
    except TypeError:  # an older release of distributed, which gives all
        info = client.scheduler_info()
    workers: dict[str, Any] = info["workers"]
    return workers


def machines(client: Client) -> tuple[int, int]:
    """The threads of all workers, and the bytes of memory of the largest one: its MEMORY, or the value that it will
    get."""
    workers = workers_of(client).values()
    memory = [int(each["resources"].get(MEMORY) or each["memory_limit"] or MEMORY_LIMIT) for each in workers]
    return sum(each["nthreads"] for each in workers), max(memory, default=0)


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
