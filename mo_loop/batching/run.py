"""Batch: runs an engine on a plan, reports results, and ends on a signal. PreparedBatch: what it needs before its first
conversion, from the command and from Python.

    batch = Batch(plan, folder, lambda model: Work(options, digest), BatchOptions(jobs=2))
    results = batch.run(listener)                       # batch.stop("SIGINT") from a signal handler ends it

The engine has threads that take assignments and report events (`mo_loop.batching.engine`). The thread that calls `run`
updates the state and calls the listener. Workers write into a temporary folder in the output folder, which is removed
at the end, and move each pair of files to its place. Files that a killed worker had set aside there are restored.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mo_loop.batching.batch_options import BatchOptions, Places
from mo_loop.batching.engine import (
    Answer,
    Assignment,
    Ended,
    Engine,
    EngineFailed,
    Event,
    Finished,
    IrComparison,
    NoteAdded,
    PoolEngine,
    Started,
    Stopped,
    Work,
    WorkQueue,
    restore,
    result_of,
)
from mo_loop.batching.estimates import Earlier, earlier_of
from mo_loop.batching.outputs import Outputs, refuse_weights
from mo_loop.batching.plan import BatchPlan, Planned, planned
from mo_loop.batching.report import About, BatchReport, earlier_report, known_failures
from mo_loop.batching.result import GOOD, KeptResults, ModelResult, Results, StateEntry
from mo_loop.errors import FileError, StorageError

SAVE_EVERY = 5.0
"""The interval in seconds at which a running batch writes its state. A killed process loses at most this much."""

WAITING = 1000
"""Events that may wait for the thread that runs the batch. It hears of models that are up to date slower than they are
found."""

LAST_RESULTS = 5.0
"""Seconds that an ended batch waits for its threads, whose workers are killed."""


class BatchListener:
    """Receives the events of a batch, in the thread that runs it; this one ignores them."""

    def started(self, model: Planned) -> None:
        """A worker begins."""

    def finished(self, result: ModelResult) -> None:
        """A model is done."""


class Batch:
    """One run over a plan.

    Raises:
        FileError: the output folder cannot be written.
    """

    def __init__(
        self, plan: BatchPlan, folder: Path | Outputs, work: Callable[[Planned], Work], options: BatchOptions, *,
        engine: Engine | None = None, earlier: Mapping[str, Earlier] | None = None,
    ) -> None:
        """`folder` is that of the plan, or its outputs (`mo_loop.batching.outputs`); `work` gives the work for each
        model.

        `engine` does the work, by default worker processes of this machine. `earlier` are results of a report, by names
        of models: for an engine that needs to know the memory of a model that is not recorded with the outputs.
        """
        self.plan = plan
        self.outputs = Outputs(folder) if isinstance(folder, Path) else folder
        self._work_of = work
        self._options = options
        self._earlier = earlier or {}
        jobs = min(options.workers, len(plan.models))
        self.engine = PoolEngine(replace(options, jobs=jobs)) if engine is None else engine
        self._results = KeptResults(plan.models)
        local = self.outputs.place if isinstance(self.outputs.place, Path) else None
        self._queue = WorkQueue(self._next, lambda: self._is_over, plan, local)
        self._numbers = iter(self.engine.ordered(plan.models))
        self._numbers_lock = threading.Lock()
        self._is_over = False
        self._stopped_by = ""
        self._signal = ""
        self._lost = ""
        self._notes: list[str] = []
        self._begun: dict[int, Assignment] = {}
        self._saved = time.monotonic()

    def stop(self, signal: str) -> None:
        """End the run and cancel all models that are not finished. Signal handlers may call this."""
        self._stopped_by = signal
        self._queue.tell(Stopped(signal))

    def run(self, listener: BatchListener) -> Results:
        """Convert the models that are not up to date and return a result for every model, in the order of the plan.

        Raises:
            UsageError: a worker cannot start with so little memory.
        """
        started = time.monotonic()
        try:
            self._convert_all(listener)
        finally:
            notes = _note_unless_saved(self.outputs.close)
        seconds = time.monotonic() - started
        return Results(self._results, seconds, self._signal, (*self._notes, *notes), lost=self._lost)

    def _convert_all(self, listener: BatchListener) -> None:
        with self.outputs.drafts() as drafts:
            threads = 0
            try:
                threads = self.engine.start(self._queue, Path(drafts)) if self.plan.models else 0
                while threads and not self._signal and not self._lost:
                    threads -= self._handled(listener)
            finally:
                self._is_over = True
                self.engine.stop()
                self._hear_last(threads, listener)

    def _hear_last(self, threads: int, listener: BatchListener) -> None:
        """Take the results of models that were done when the batch ended, and restore the files that a killed worker
        left."""
        end = time.monotonic() + LAST_RESULTS
        while threads and time.monotonic() < end:
            try:
                event = self._queue.events.get(timeout=0.1)
            except queue.Empty:
                continue
            threads -= isinstance(event, Ended)
            if isinstance(event, Finished) and event.answer.is_good:
                listener.finished(self._settled(event))
        for assignment in self._begun.values():
            with contextlib.suppress(FileError):  # the next batch tries it again
                restore(assignment)

    # -- in the threads of the engine

    def _next(self) -> Assignment | None:
        """The next model that has to be converted, or whose files have to be compared."""
        while (number := self._next_number()) is not None:
            start = time.perf_counter()
            model = self.plan.models[number]
            try:
                assignment, entry = self._assignment(number, model)
            except StorageError as error:
                self._queue.tell(Finished(number, model, Answer(error)))
                continue
            if entry is None:
                self._begun[number] = assignment
                return assignment
            self._queue.tell(Finished(number, model, Answer(entry, time.perf_counter() - start)))
            while self._queue.events.qsize() > WAITING and not self._is_over:
                time.sleep(0.01)
        return None

    def _next_number(self) -> int | None:
        with self._numbers_lock:
            return None if self._is_over else next(self._numbers, None)

    def _assignment(self, number: int, model: Planned) -> tuple[Assignment, StateEntry | None]:
        """The assignment, and the entry if the model is known to be up to date."""
        is_new = self.outputs.prepare(model)
        work = self._work_of(model)
        known = None if self._options.force else self.outputs.known(model, work)
        entry = None if self._options.force or known is not None else self.outputs.current(model, work)
        limit = self._options.timeout + (work.comparing.limit if work.comparing else 0.0)
        task = self.outputs.task(model, work, self._options.durable)
        earlier = None
        if self.engine.needs_earlier and entry is None:
            earlier = self.outputs.earlier(model) or self._earlier.get(model.name)
        return Assignment(number, model, task, limit, known, is_new, earlier), entry

    # -- in the thread of the caller

    def _handled(self, listener: BatchListener) -> bool:
        """Wait a limited time for the next event; return whether a thread has ended."""
        try:
            event: Event = self._queue.events.get(timeout=0.5)  # Ctrl-C on Windows needs a limited wait
        except queue.Empty:
            return False
        match event:
            case Stopped():
                self._signal = event.signal
            case EngineFailed(error, is_lost=True):
                self._lost = str(error)
            case EngineFailed(error):
                self._end_by(error)
            case NoteAdded():
                self._notes.append(event.text)
            case Started():
                listener.started(event.model)
            case Finished():
                listener.finished(self._settled(event))
        return isinstance(event, Ended)

    def _end_by(self, error: BaseException) -> None:
        """Raise the exception of a thread, unless it is a consequence of Ctrl-C.

        Ctrl-C reaches a worker that does not lead its own group yet, and a moment later the handler here.
        """
        end = time.monotonic() + 0.5
        while not self._stopped_by and time.monotonic() < end:
            time.sleep(0.01)
        if not self._stopped_by:
            raise error
        self._signal = self._stopped_by

    def _settled(self, event: Finished) -> ModelResult:
        result, entry = result_of(event.model, event.answer.result)
        if entry is not None:
            self.outputs.put(event.model, entry)
        result = replace(result, seconds=event.answer.seconds)
        self._results.put(event.number, result)
        self._begun.pop(event.number, None)
        if result.status not in GOOD and not self._options.keep_going:
            self._is_over = True
        if time.monotonic() - self._saved > SAVE_EVERY:
            _note_unless_saved(self.outputs.save)
            self._saved = time.monotonic()
        return result


def _note_unless_saved(save: Callable[[], None]) -> tuple[str, ...]:
    """Write the state; return a note if that fails. The next batch then converts more models than it has to."""
    try:
        save()
    except FileError as error:
        return (f"{error.message}: the next batch converts the models again",)
    return ()


@dataclass(frozen=True)
class PreparedBatch:
    """A batch whose models are found. `about.asked` has the number of its workers; `earlier` is the report of
    `places.baseline`."""

    about: About
    plan: BatchPlan
    outputs: Outputs
    work: Callable[[Planned], Work]
    places: Places
    earlier: Mapping[str, Any] | None

    @classmethod
    def of(
        cls, paths: Iterable[str], places: Places, asked: BatchOptions, work: Callable[[Planned], Work],
        facts: Mapping[str, Any], comparing: IrComparison | None = None,
    ) -> "PreparedBatch":
        """Find the models, and read the earlier report; `facts` are the options of the conversions for the report, and
        `comparing` is a comparison that this machine must be able to make.

        Raises:
            UsageError: a path does not exist or has no model, or two models have the same output.
            FileError: a file cannot be read.
            InputError: a package for comparisons is not installed.
        """
        earlier = None if places.baseline is None else earlier_report(places.baseline)
        plan = planned(paths, places.folder)
        outputs = Outputs(places.folder, places.scratch(plan.root, asked.scratch))
        refuse_weights(plan, outputs)
        if comparing is not None:
            comparing.require()
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        asked = replace(asked, jobs=min(asked.workers, len(plan.models)))
        about = About(started, str(plan.root), str(places.folder), asked, facts)
        return cls(about, plan, outputs, work, places, earlier)

    def batch(self, engine: Engine | None = None) -> Batch:
        """The batch, with worker processes of this machine or an engine."""
        earlier = earlier_of(self.earlier) if self.earlier and engine is not None else None
        return Batch(self.plan, self.outputs, self.work, self.about.asked, engine=engine, earlier=earlier)

    def run(self, batch: Batch, listener: BatchListener) -> BatchReport:
        """Convert the models."""
        results = batch.run(listener)
        results.known = known_failures(self.earlier) if self.earlier else frozenset()
        return BatchReport(replace(self.about, asked=batch.engine.options), results)
