"""One model as workers and engines get it: Task and Done, the messages to and from a worker; Assignment and Answer,
those to and from an engine. Engine: performs the assignments of a batch; PoolEngine: worker processes of this machine.

    answer = attempted(assignment, draft, pool.call)
    result, entry = result_of(model, answer.result)
    engine = PoolEngine(BatchOptions(jobs=2))
    threads = engine.start(work, drafts)        # takes assignments from the WorkQueue, and reports to it
    engine.stop()                               # ends what runs; the threads end soon after

`attempted` is the work of all engines on a model, in a thread of this process or on another machine: check whether it
is up to date, convert it in a worker process, try it once more in a new one, and bring its files into order.
`result_of` is the result of the model, and the entry of one that was converted now, for `Outputs.put`. The conversion
is in job.py, which loads the converter.

An engine has threads of its own. Each takes assignments from a WorkQueue, reports when one begins and what its answer
is, and at last that the thread ends. Another engine is in mo_loop/batching/cluster.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.estimates import Earlier
from mo_loop.batching.fingerprint import is_current
from mo_loop.batching.plan import BatchPlan, Planned
from mo_loop.batching.result import (
    CONVERTED,
    CRASH,
    DIFFERS,
    FAILED,
    MEMORY,
    SKIPPED,
    Error,
    FileSizes,
    ModelResult,
    StateEntry,
    StateRecord,
    errors_of,
)
from mo_loop.batching.storage.locations import Info, Location
from mo_loop.errors import MoLoopError, UsageError
from mo_loop.ir.pair import remove_draft, restore_pair
from mo_loop.options import ConvertOptions
from mo_loop.support.workers import ERROR, Pool, TaskOutcome, WorkerStartError

if TYPE_CHECKING:
    from mo_loop.batching.storage.scratch import Scratch


class IrComparison(Protocol):
    """Compares the IR of one model with another runtime: what a batch knows of `Comparing`.

    `inputs` are files that it reads; `limit` is in seconds; with `strict` a model that cannot be compared fails. It is
    pickled.
    """

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def limit(self) -> float: ...

    @property
    def strict(self) -> bool: ...

    def require(self) -> None:
        """InputError unless this machine can compare."""

    def compare(self, source: str, ir: str, options: ConvertOptions) -> tuple[Any, int, str]:
        """Compare the IR of one model: the report as plain data, the exit code, and a text about the difference.

        NotComparableError if that is not possible.
        """

    def with_inputs(self, inputs: tuple[str, ...]) -> Self:
        """The same with other files."""


@dataclass(frozen=True)
class Work:
    """The options of the conversion of a model, its comparison, and the hash of both."""

    options: ConvertOptions
    digest: str
    comparing: IrComparison | None = None


@dataclass(frozen=True)
class Remote:
    """The additional data of a task with URLs: space on the local disk, and the facts of the listing about the model.

    If the outputs are at a URL, their prefix, the name of the .xml below it, whether none was there, and the records of
    earlier conversions.
    """

    scratch: Scratch
    listed: Info | None = None
    prefix: Location | None = None
    name: str = ""
    is_new: bool = False
    records: tuple[StateRecord, ...] = ()


@dataclass(frozen=True)
class Task:
    """A model, its draft .xml, its final .xml, its work, and whether the files must be on the disk at the end. `source`
    and `target` are paths, or URLs if there is `remote`."""

    source: str
    draft: str
    target: str
    work: Work
    durable: bool = False
    remote: Remote | None = None


@dataclass(frozen=True)
class Done:
    """The result of one conversion: an entry if it succeeded, else errors; `detail` is a traceback.

    `comparison` is the report of the comparison as plain data; `difference` describes the difference, and there is no
    entry.
    """

    entry: StateEntry | None = None
    errors: tuple[Error, ...] = ()
    exit_code: int = 0
    detail: str = ""
    warnings: tuple[str, ...] = ()
    difference: str = ""
    comparison: Any = None


_OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "Cannot allocate memory")


def result_of(model: Planned, answer: StateEntry | TaskOutcome | MoLoopError) -> tuple[ModelResult, StateEntry | None]:
    """The result without its seconds, and the entry to be kept, if there is a new one."""
    if isinstance(answer, StateEntry):
        return _with_files(model, SKIPPED, answer), None
    if isinstance(answer, MoLoopError):
        return ModelResult(model, FAILED, 0, answer.exit_code, errors_of(answer)), None
    if answer.status == ERROR:
        bug = Error("ML499", answer.message, (), "", "", 4)
        return ModelResult(model, FAILED, 0, 4, (bug,), detail=answer.detail), None
    if not answer.ok:
        hint = " (a system does this when it has no memory left)" if "SIGKILL" in answer.message else ""
        return ModelResult(model, status_of(answer), message=answer.message + hint, detail=answer.detail), None
    done = answer.value
    if done.difference:
        differs = ModelResult(
            model, DIFFERS, 0, done.exit_code, (), done.warnings, done.difference, comparison=done.comparison
        )
        return differs, None
    if done.entry is None:
        return ModelResult(model, FAILED, 0, done.exit_code, done.errors, done.warnings, detail=done.detail), None
    entry = replace(done.entry, warnings=done.warnings, comparison=done.comparison)
    return _with_files(model, CONVERTED, entry), entry


def _with_files(model: Planned, status: str, entry: StateEntry) -> ModelResult:
    external = sum(file.size for file in entry.external.values())
    sizes = FileSizes(entry.source.size, external, entry.xml.size, entry.bin.size)
    return ModelResult(
        model, status, 0, 0, warnings=entry.warnings, facts=entry.facts, sizes=sizes, comparison=entry.comparison
    )


def status_of(outcome: TaskOutcome) -> str:
    """The status of a task without a result. Native code without memory prints a message and ends the process."""
    if outcome.status == CRASH and any(sign in outcome.detail for sign in _OUT_OF_MEMORY):
        return MEMORY
    return outcome.status


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
