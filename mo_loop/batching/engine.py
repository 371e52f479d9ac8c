"""Engine: performs the assignments of a batch; PoolEngine: worker processes of this machine.

    engine = PoolEngine(BatchOptions(jobs=2))
    threads = engine.start(work, drafts)        # takes assignments from the WorkQueue, and reports to it
    engine.stop()                               # ends what runs; the threads end soon after

An engine has threads of its own. Each takes assignments from a WorkQueue, reports when one begins and what its answer
is, and at last that the thread ends. Another engine is in mo_loop/batching/cluster.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.plan import BatchPlan, Planned
from mo_loop.batching.task import Answer, Assignment, attempted
from mo_loop.errors import UsageError
from mo_loop.support.workers import Pool, WorkerStartError

JOB = "mo_loop.batching.job:convert"
"""The function that a worker process calls with a task, as `module:function`."""


# -- what a batch is told


@dataclass(frozen=True)
class Started:
    """A worker begins with a model."""

    model: Planned


@dataclass(frozen=True)
class Finished:
    """A model is done; `number` is its place in the plan."""

    number: int
    model: Planned
    answer: Answer


@dataclass(frozen=True)
class NoteAdded:
    """A text for the user at the end of the batch."""

    text: str


@dataclass(frozen=True)
class EngineFailed:
    """The batch ends with this exception; with its reports if the engine `is_lost`, whose models can be converted
    later."""

    error: BaseException
    is_lost: bool = False


@dataclass(frozen=True)
class Stopped:
    """A signal ends the batch."""

    signal: str


@dataclass(frozen=True)
class Ended:
    """A thread ends."""


Event = Started | Finished | NoteAdded | EngineFailed | Stopped | Ended


class WorkQueue:
    """The queue from which the threads of an engine take assignments, and to which they report events."""

    def __init__(
        self, take: Callable[[], Assignment | None], is_over: Callable[[], bool], plan: BatchPlan, folder: Path | None
    ) -> None:
        self.take = take
        """The next assignment; None if there is none, or the batch is over."""
        self.is_over = is_over
        """Whether nothing that has not begun is to begin."""
        self.plan = plan
        self.folder = folder
        """The folder of the outputs as the user gave it; None if they are at a URL."""
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()

    def tell(self, event: Event) -> None:
        """Notify the thread that runs the batch."""
        self.events.put(event)


class Engine(Protocol):
    """Does the assignments of a batch."""

    options: BatchOptions
    """Those of the batch, with the number of its workers."""

    needs_earlier: bool
    """Whether its assignments need the time and memory of an earlier conversion."""

    def ordered(self, models: Sequence[Planned]) -> Iterable[int]:
        """The order in which workers get the models, as places in the plan."""

    def start(self, work: WorkQueue, drafts: Path) -> int:
        """Start threads that work while there are assignments, with drafts below a folder; return their number."""

    def stop(self) -> None:
        """End running work, and release the resources of the engine for this batch. Finished work is still reported."""


class PoolEngine:
    """Worker processes of this machine, fed by a thread each."""

    needs_earlier = False

    def __init__(self, options: BatchOptions) -> None:
        self.options = options
        self._pool: Pool | None = None

    def ordered(self, models: Sequence[Planned]) -> Iterable[int]:
        """The order of the plan."""
        return range(len(models))

    def start(self, work: WorkQueue, drafts: Path) -> int:
        """A thread for each worker."""
        asked = self.options
        self._pool = pool = Pool(JOB, jobs=asked.workers, limit=asked.timeout, memory=asked.memory, scratch=str(drafts))
        for _ in range(asked.workers):
            threading.Thread(target=self._work, args=(pool, work, drafts), daemon=True).start()
        return asked.workers

    def stop(self) -> None:
        """Kill the workers."""
        if self._pool is not None:
            self._pool.close()

    def _work(self, pool: Pool, work: WorkQueue, drafts: Path) -> None:
        try:
            while (assignment := work.take()) is not None:
                work.tell(Started(assignment.model))
                answer = attempted(assignment, drafts / f"{assignment.number}.xml", pool.call)
                work.tell(Finished(assignment.number, assignment.model, answer))
        except BaseException as error:
            work.tell(EngineFailed(start_error(error, self.options.memory)))
        finally:
            work.tell(Ended())


def start_error(error: BaseException, memory: int | None) -> BaseException:
    """The error of a worker process that cannot start with its memory."""
    if not isinstance(error, WorkerStartError) or memory is None:
        return error
    return UsageError(f"a worker cannot start with {memory} bytes of memory", hint="give a larger --memory")
