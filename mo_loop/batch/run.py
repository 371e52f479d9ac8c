"""Batch: runs workers on a plan, reports results, and ends on a signal.

    batch = Batch(plan, folder, lambda model: Work(options, digest), limits)
    results = batch.run(listener)                       # batch.stop("SIGINT") from a signal handler ends it

Each thread feeds one worker. The thread that calls `run` updates the state and calls the listener. Workers write into a
temporary folder in the output folder, which is removed at the end, and move each pair of files to its place. What a
killed worker had set aside there is restored.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from mo_loop.batch.drafts import drafts_in
from mo_loop.batch.fingerprint import is_current
from mo_loop.batch.plan import Plan, Planned
from mo_loop.batch.result import (
    CANCELLED,
    CONVERTED,
    CRASH,
    DIFFERS,
    FAILED,
    GOOD,
    MEMORY,
    SKIPPED,
    Error,
    Result,
    Results,
    Sizes,
)
from mo_loop.batch.state import Entry, State
from mo_loop.batch.task import Task, Work
from mo_loop.errors import FileError, UsageError
from mo_loop.ir.pair import remove_draft, restore_pair
from mo_loop.workers import ERROR, Outcome, Pool, WorkerStartError

SAVE_EVERY = 5.0
"""The interval in seconds at which a running batch writes its state. A killed process loses at most this much."""

LAST_RESULTS = 5.0
"""Seconds that an ended batch waits for its threads, whose workers are killed."""

_OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "Cannot allocate memory")


@dataclass(frozen=True)
class Limits:
    """`jobs` workers; `seconds` for one model; `memory` bytes for each worker, None for no limit."""

    jobs: int = 1
    seconds: float = 600.0
    memory: int | None = None


class Listener(Protocol):
    """Receives the events of a batch, in the thread that runs it."""

    def started(self, model: Planned) -> None:
        """A worker begins."""

    def finished(self, result: Result) -> None:
        """A model is done."""


class Batch:
    """One run over a plan.

    Raises:
        FileError: the output folder cannot be written.
    """

    def __init__(
        self, plan: Plan, folder: Path, work: Callable[[Planned], Work], limits: Limits, *, force: bool = False,
        fail_fast: bool = False, durable: bool = False,
    ) -> None:  # fmt: skip
        """`work` tells what is done with each model.

        `force` converts models that are up to date as well; with `fail_fast` no model begins after the first failure;
        `durable` waits until each pair of files is on the disk.
        """
        self.plan = plan
        self.folder = folder
        self.state = State(folder)
        self._work_of = work
        self._limits = limits
        self._force = force
        self._fail_fast = fail_fast
        self._durable = durable
        self._results: dict[str, Result] = {}
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._numbers = iter(range(len(plan.models)))
        self._is_over = False
        self._stopped_by = ""
        self._signal = ""
        self._begun: dict[str, Planned] = {}
        self._new: set[Path] = set()  # the targets that had no .bin when their conversion began
        self._saved = time.monotonic()

    def stop(self, signal: str) -> None:
        """End the run and cancel all models that are not finished. Signal handlers may call this."""
        self._stopped_by = signal
        self._events.put(("stop", signal))

    def run(self, listener: Listener) -> Results:
        """Convert the models that are not up to date and return a result for every model, in the order of the plan.

        Raises:
            UsageError: a worker cannot start with so little memory.
        """
        started = time.monotonic()
        try:
            self._convert_all(listener)
        finally:
            notes = self._saved_state()
        results = [self._results.get(each.name) or Result(each, CANCELLED) for each in self.plan.models]
        return Results(results, time.monotonic() - started, self._signal, notes)

    def _convert_all(self, listener: Listener) -> None:
        limits = self._limits
        with (
            drafts_in(self.folder) as drafts,
            Pool(
                "mo_loop.batch.job:convert", jobs=limits.jobs, limit=limits.seconds, memory=limits.memory,
                scratch=drafts,
            ) as pool,
        ):  # fmt: skip
            jobs = min(limits.jobs, len(self.plan.models))
            for _ in range(jobs):
                threading.Thread(target=self._work, args=(pool, Path(drafts)), daemon=True).start()
            try:
                while jobs and not self._signal:
                    jobs -= self._handled(listener)
            finally:
                self._is_over = True
                pool.close()
                self._hear_last(jobs, listener)

    def _hear_last(self, jobs: int, listener: Listener) -> None:
        """Take the results of models that were done when the batch ended, and restore what a killed worker left."""
        end = time.monotonic() + LAST_RESULTS
        while jobs and time.monotonic() < end:
            try:
                kind, content = self._events.get(timeout=0.1)
            except queue.Empty:
                continue
            jobs -= kind == "end"
            if kind == "done" and (isinstance(content[1], Entry) or content[1].ok):
                listener.finished(self._settled(*content))
        for model in self._begun.values():
            with contextlib.suppress(FileError):  # the next batch tries it again
                self._restore(model)

    # -- in the threads

    def _work(self, pool: Pool, drafts: Path) -> None:
        try:
            for number in self._numbers:
                if self._is_over:
                    break
                model = self.plan.models[number]
                self._events.put(("started", model))
                self._events.put(("done", (model, *self._tried(pool, model, drafts / f"{number}.xml"))))
        except BaseException as error:
            self._events.put(("broken", self._start_error(error)))
        finally:
            self._events.put(("end", None))

    def _tried(self, pool: Pool, model: Planned, draft: Path) -> tuple[Entry | Outcome, float]:
        """The entry of a model that is up to date, or the outcome of its conversion; and the seconds it took."""
        start = time.perf_counter()
        restore_pair(model.target)
        if not model.outputs[1].exists():
            self._new.add(model.target)
        entry = None if self._force else self.state.get(self._key(model))
        work = self._work_of(model)
        if entry is not None and is_current(entry.made, model, work.digest):
            return entry, time.perf_counter() - start
        task = Task(str(model.source), str(draft), str(model.target), work, self._durable)
        limit = self._limits.seconds + (work.comparing.seconds if work.comparing else 0.0)
        found = pool.call(task, limit)
        if not found.first and _status(found) in (CRASH, MEMORY):
            # The cause may be the state that an earlier model left in the worker.
            self._restore(model)
            found = pool.call(task, limit, fresh=True)
        if not found.ok:
            self._restore(model)
            remove_draft(draft)
        return found, found.seconds

    def _restore(self, model: Planned) -> None:
        """Bring the files of a model into order after its worker was killed."""
        restore_pair(model.target, is_new=model.target in self._new)

    def _start_error(self, error: BaseException) -> BaseException:
        if not isinstance(error, WorkerStartError) or self._limits.memory is None:
            return error
        return UsageError(
            f"a worker cannot start with {self._limits.memory} bytes of memory", hint="give a larger --memory"
        )

    # -- in the thread of the caller

    def _handled(self, listener: Listener) -> bool:
        """Wait a limited time for the next event; return whether a thread has ended."""
        try:
            kind, content = self._events.get(timeout=0.5)  # Ctrl-C on Windows needs a limited wait
        except queue.Empty:
            return False
        if kind == "stop":
            self._signal = content
        if kind == "broken":
            # Ctrl-C reaches a worker that does not lead its own group yet, and a moment later the handler here.
            end = time.monotonic() + 0.5
            while not self._stopped_by and time.monotonic() < end:
                time.sleep(0.01)
            if not self._stopped_by:
                raise content
            self._signal = self._stopped_by
        if kind == "started":
            self._begun[content.name] = content
            listener.started(content)
        if kind == "done":
            listener.finished(self._settled(*content))
        return bool(kind == "end")

    def _settled(self, model: Planned, found: Entry | Outcome, seconds: float) -> Result:
        result = replace(self._result(model, found), seconds=seconds)
        self._results[model.name] = result
        self._begun.pop(model.name, None)
        if result.status not in GOOD and self._fail_fast:
            self._is_over = True
        if time.monotonic() - self._saved > SAVE_EVERY:
            self._saved_state()
            self._saved = time.monotonic()
        return result

    def _saved_state(self) -> tuple[str, ...]:
        """Write the state; return a note if that fails. The next batch then converts more models than it has to."""
        try:
            self.state.save()
        except FileError as error:
            return (f"{error.message}: the next batch converts the models again",)
        return ()

    def _result(self, model: Planned, found: Entry | Outcome) -> Result:
        if isinstance(found, Entry):
            return _good(model, SKIPPED, found)
        if found.status == ERROR:
            bug = Error("ML499", found.message, (), "", "", 4)
            return Result(model, FAILED, 0, 4, (bug,), detail=found.detail)
        if not found.ok:
            return Result(model, _status(found), message=_message(found), detail=found.detail)
        done = found.value
        if done.difference:
            return Result(
                model, DIFFERS, 0, done.exit_code, (), done.warnings, done.difference, comparison=done.comparison
            )
        if done.entry is None:
            return Result(model, FAILED, 0, done.exit_code, done.errors, done.warnings, detail=done.detail)
        entry = replace(done.entry, warnings=done.warnings)
        self.state.put(self._key(model), entry)
        return replace(_good(model, CONVERTED, entry), comparison=done.comparison)

    def _key(self, model: Planned) -> str:
        return model.target.relative_to(self.folder).as_posix()


def _good(model: Planned, status: str, entry: Entry) -> Result:
    made = entry.made
    external = sum(each.size for each in made.external.values())
    sizes = Sizes(made.source.size, external, made.xml.size, made.bin.size)
    return Result(model, status, 0, 0, warnings=entry.warnings, facts=entry.facts, sizes=sizes)


def _status(found: Outcome) -> str:
    """The status of a task without a result. Native code without memory prints a message and ends the process."""
    if found.status == CRASH and any(sign in found.detail for sign in _OUT_OF_MEMORY):
        return MEMORY
    return found.status


def _message(found: Outcome) -> str:
    hint = " (a system does this when it has no memory left)" if "SIGKILL" in found.message else ""
    return found.message + hint
