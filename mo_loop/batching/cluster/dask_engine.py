"""DaskEngine: does the assignments of a batch on the workers of a cluster.

    with connected("tcp://host:8786") as client:
        engine = DaskEngine(client, options, files)
        results = Batch(plan, folder, work, engine.options, engine=engine).run(listener)

One thread submits models, the largest first, and takes answers as they come; small ones are submitted in portions
(`scheduling.py`). CHECKS_AT_ONCE threads find out which models have to be converted, because they wait for the store.
Twice as many models are submitted as the workers have threads, so that a worker need not wait for the next, and the
scheduler need not hold 100,000 models. The memory requirement of each model is declared to Dask; a model above every
worker's memory is refused.

A model whose worker dies is tried once more on another. The scheduler itself decides how often a worker may die while
it has a model (allowed-failures); a model that was not begun when its worker died is submitted again. A worker that
cannot convert models (`requirements.py`) is left out, and its models go to the others.
"""

from __future__ import annotations

import itertools
import os
import pickle
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.batching import engine
from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.cluster.connecting import own_versions, require_folder, within
from mo_loop.batching.cluster.on_worker import MEMORY, STARTS_NOT, Equipment, Reply, portable_function
from mo_loop.batching.cluster.requirements import Requirements, SentFile, Unable
from mo_loop.batching.cluster.scheduling import Pace, Portion, Watch, need_of, portable
from mo_loop.batching.estimates import largest_first, size_of
from mo_loop.batching.plan import Planned
from mo_loop.batching.result import GOOD
from mo_loop.errors import ClusterError, MoLoopError
from mo_loop.support.workers import CRASH, ERROR, TaskOutcome, WorkerStartError

if TYPE_CHECKING:
    from distributed import Client, Future


STOP = 10.0
"""Seconds in which the workers have to end their processes after Ctrl-C."""

CHECKS_AT_ONCE = 8
"""Models whose outputs are compared at once, whether they are up to date."""

TRIES = 4
"""The number of times that the workers of a model may die, as long as none of them has begun it twice."""


class DaskEngine:
    """An engine for one batch.

    Raises:
        ClusterError: a worker cannot be prepared.
    """

    needs_earlier = True

    def __init__(self, client: Client, options: BatchOptions, files: Sequence[SentFile] = ()) -> None:
        """`options.jobs` does not matter: `self.options` has the number of threads of the workers. Without `keep_going`
        each model is submitted alone, so that none begins after a failure."""
        self._client = client
        self._files = tuple(files)
        self._name = f"mo-loop-{uuid.uuid4().hex[:12]}"
        self._watch = Watch(client)
        self.options = replace(options, jobs=self._watch.threads)
        self._lock = threading.Lock()
        self._futures: dict[Future, Portion] = {}
        self._is_single = not options.keep_going
        self._pace = Pace(self._is_single)
        self._has_failed = False
        self._places = itertools.count()
        self._waiting: set[int] = set()
        self._is_stopping = False
        self._looks = ThreadPoolExecutor(CHECKS_AT_ONCE)

    @property
    def dashboard(self) -> str:
        """The URL of the scheduler's dashboard; empty if it has none. One on this machine has it with bokeh alone."""
        if self._client.cluster is not None and find_spec("bokeh") is None:
            return ""
        try:
            # Its HTTP server runs without a dashboard, too, and is all that the scheduler lists.
            applications = self._client.run_on_scheduler(lambda dask_scheduler: len(
                dask_scheduler.http_application.applications
            ))
            return str(self._client.dashboard_link or "") if applications else ""
        except Exception:  # a link does not end a batch
            return ""

    def ordered(self, models: Sequence[Planned]) -> Iterable[int]:
        """The largest first, so that none of them remains for the end."""
        return largest_first(models)

    def start(self, work: engine.WorkQueue, drafts: Path) -> int:
        """Equip the workers and start the thread."""
        self._queue, self._drafts = work, str(drafts)
        texts = {}
        folders = [work.plan.root] if isinstance(work.plan.root, Path) else []
        folders += [] if work.folder is None else [drafts]
        for folder in folders:
            require_folder(self._client, folder)
        if work.folder is not None:
            there, here = str(work.folder.absolute()), str(work.folder)
            texts = {there + os.sep: here + os.sep} if there != here else {}
        first = work.plan.models[0]
        requirements = Requirements(
            own_versions(), tuple(str(folder.absolute()) for folder in folders),
            None if isinstance(first.source, Path) else first.source,
            None if isinstance(first.target, Path) else first.target.parent,
        )
        equipment = Equipment(self._name, engine.JOB, self.options.memory, self._files, texts, requirements)
        self._client.subscribe_topic(self._name, self._heard)
        try:
            self._client.register_plugin(equipment, self._name)
        except Exception as error:
            raise ClusterError(
                "a worker cannot be prepared for the batch", why=f"{type(error).__name__}: {error}", code="ML297",
                hint="see the log of the worker",
            ) from error
        # A worker that has just come has no plugin yet.
        asked = self._client.run(
            lambda name, dask_worker: getattr(dask_worker.plugins.get(name), "unable", None), self._name,
            on_error="ignore",
        )
        for unable in asked.values():
            if unable is not None:
                self._leave_out(unable)
        self._watch.look()
        if not self._watch.has_workers and self._watch.unable:
            raise self._lost()
        self._watch.start(self._check, lambda error: work.tell(engine.EngineFailed(error)))
        threading.Thread(target=self._work, daemon=True).start()
        return 1

    def stop(self) -> None:
        """Cancel unfinished work, and let the workers end their processes and remove their files."""
        self._is_stopping = True
        self._watch.stop()
        if self._client.status != "running":
            return
        within(STOP, self._cancel, self._pending())
        within(STOP, self._client.unregister_worker_plugin, self._name)
        within(STOP, self._client.unsubscribe_topic, self._name)

    # -- in the thread

    def _work(self) -> None:
        try:
            self._convert_all()
        except _Gone:
            if not self._is_stopping:
                self._queue.tell(engine.EngineFailed(self._lost(), is_lost=True))
        except BaseException as error:
            self._queue.tell(engine.EngineFailed(error))
        finally:
            self._looks.shutdown(wait=False, cancel_futures=True)
            self._queue.tell(engine.Ended())

    def _convert_all(self) -> None:
        from distributed import as_completed

        completed = as_completed(loop=self._client.loop, with_results=True, raise_errors=False)
        while True:
            for portion in self._next_portions():
                completed.add(self._submit(portion))
            if not self._futures:
                return
            future, result = next(completed)
            with self._lock:
                portion = self._futures.pop(future)
            for again in self._handled(future, result, portion):
                completed.add(self._submit(again))
            if (self._queue.is_over() or (self._is_single and self._has_failed)) and not self._is_stopping:
                # The batch ends after a failure: those that have not begun are cancelled.
                pending = self._pending().items()
                self._cancel({future: portion for future, portion in pending if not portion.begun}, "dropped")

    def _next_portions(self) -> Iterator[Portion]:
        is_over = self._is_stopping or (self._is_single and self._has_failed)
        while not is_over and (free := 2 * self._watch.threads + 2 - len(self._futures)) > 0:
            count = self._pace.count
            taken = self._taken(free * count)
            if not taken:
                return
            fitting = [(assignment, need) for assignment, need in taken if self._fits(assignment, need)]
            for start in range(0, len(fitting), count):
                assignments, needs = zip(*fitting[start : start + count], strict=True)
                yield Portion(assignments, max(needs))

    def _taken(self, most: int) -> list[tuple[engine.Assignment, int]]:
        """The next models that have to be converted, the largest first, with the memory that they need."""
        assignments = list(filter(None, self._looks.map(lambda _: self._queue.take(), range(most))))
        assignments.sort(key=lambda assignment: (-size_of(assignment.model), assignment.number))
        return [(assignment, need_of(assignment, self.options.memory)) for assignment in assignments]

    def _fits(self, assignment: engine.Assignment, need: int) -> bool:
        """Whether a worker has the memory; a model that needs more is refused."""
        if need <= self._watch.largest:
            return True
        self._tell(assignment, engine.Answer(self._too_large(need)))
        return False

    def _submit(self, portion: Portion) -> Future:
        if self._client.status != "running" or not self._watch.has_workers:
            raise _Gone
        portion.place, portion.fate = next(self._places), ""
        payload = pickle.dumps((self._name, portion.place, list(map(portable, portion.assignments)), self._drafts))
        future = self._client.submit(
            portable_function(payload), pure=False, key=f"{self._name}-{portion.place}",
            resources={MEMORY: portion.need}, priority=-portion.place, workers=self._watch.able or None,
        )
        with self._lock:
            self._futures[future] = portion
        return future

    def _handled(self, future: Future, result: Any, portion: Portion) -> Iterable[Portion]:
        """Report the answers of a portion, and forget the future; return the assignments to submit again."""
        status = future.status
        future.release()
        if status == "finished":
            if not isinstance(result, list):  # what `portable_function` returns where mo_loop cannot be loaded
                address, why = result
                unable = Unable(address, "ML292", "a worker cannot load mo_loop", why, "install it on the worker")
                result = [unable] * len(portion.assignments)
            pairs = zip(portion.assignments, result, strict=True)
            return [again for assignment, answer in pairs for again in self._settled(assignment, answer, portion)]
        error = result[1] if isinstance(result, tuple) else result
        if status in ("cancelled", "lost") or isinstance(error, CancelledError):
            return self._cancelled(portion)
        return portion.singles() if len(portion.assignments) > 1 else self._failed(error, portion)

    def _settled(self, assignment: engine.Assignment, answer: Reply, portion: Portion) -> Iterable[Portion]:
        """Report the reply of a worker about a model; return the assignments to submit again."""
        if isinstance(answer, Unable):
            if answer.code == STARTS_NOT:
                raise engine.start_error(WorkerStartError(answer.why), self.options.memory)
            self._leave_out(answer)
            return (Portion((assignment,), portion.need),)
        if isinstance(answer.result, MoLoopError):
            self._has_failed = True
        else:
            self._pace.heard(answer)
            self._has_failed |= engine.result_of(assignment.model, answer.result)[0].status not in GOOD
        self._tell(assignment, answer)
        return ()

    def _tell(self, assignment: engine.Assignment, answer: engine.Answer) -> None:
        self._queue.tell(engine.Finished(assignment.number, assignment.model, answer))

    def _leave_out(self, unable: Unable) -> None:
        """Give no more models to a worker, and report it once."""
        if self._watch.leave_out(unable):
            self._queue.tell(engine.NoteAdded(f"a worker is left out: {unable.error}"))

    def _cancelled(self, portion: Portion) -> Iterable[Portion]:
        if self._is_stopping or portion.fate == "dropped":
            return ()
        if portion.fate == "again":
            return (portion,)
        if portion.fate != "unfit":
            raise _Gone
        for assignment in portion.assignments:
            self._tell(assignment, engine.Answer(self._too_large(portion.need)))
        return ()

    def _failed(self, error: Any, portion: Portion) -> Iterable[Portion]:
        """The same for the exception of a single model."""
        from distributed.scheduler import KilledWorker

        (assignment,) = portion.assignments
        if isinstance(error, KilledWorker):
            portion.deaths += 1
            if portion.begun < 2 and portion.deaths < TRIES:
                return (portion,)
            outcome = TaskOutcome(
                None, CRASH, message=f"the worker was lost: {error.allowed_failures + 1} workers died while they had "
                f"the model, the last of them was {error.last_worker.address}",
            )
        else:
            name = type(error).__name__
            outcome = TaskOutcome(None, ERROR, message=f"{name}: {error}", error=name)
        self._tell(assignment, engine.Answer(outcome))
        return ()

    # -- in the threads of the client

    def _heard(self, event: tuple[float, Any]) -> None:
        """Handle the start of a portion on a worker, or a later worker that does not meet the requirements of the
        batch."""
        if not isinstance(event[1], int):
            self._leave_out(Unable(*event[1]))
            return
        with self._lock:
            submitted = {portion.place: portion for portion in self._futures.values()}
        portion = submitted.get(event[1])
        if portion is not None:
            portion.begun += 1
            for assignment in portion.assignments:
                self._queue.tell(engine.Started(assignment.model))

    def _check(self) -> None:
        """Cancel the models that wait for a worker that will not come."""
        if not self._watch.has_workers:
            self._cancel(self._pending())
            return
        pending = self._pending().items()
        self._cancel({future: portion for future, portion in pending if portion.need > self._watch.largest}, "unfit")
        self._wake()

    def _wake(self) -> None:
        """Submit models again that no worker has twice in a row, although there is one that fits.

        The scheduler checks such a model when a worker connects, but not when it gets its MEMORY a moment later.
        """
        assigned = {key for keys in self._client.processing().values() for key in keys}
        waiting = {
            future: portion for future, portion in self._pending().items()
            if future.key not in assigned and portion.need <= self._watch.present
        }
        stuck = {future: portion for future, portion in waiting.items() if portion.place in self._waiting}
        self._waiting = {portion.place for portion in waiting.values()}
        self._cancel(stuck, "again")

    def _pending(self) -> dict[Future, Portion]:
        """The futures that are not finished, and the `lost` ones, which are computed again: the worker died with the
        answer."""
        with self._lock:
            return {
                future: portion for future, portion in self._futures.items() if future.status in ("pending", "lost")
            }

    def _cancel(self, futures: Mapping[Future, Portion], fate: str = "") -> None:
        for portion in futures.values():
            portion.fate = fate or portion.fate
        if futures:
            self._client.cancel(list(futures))

    # -- within

    def _too_large(self, need: int) -> ClusterError:
        return ClusterError(
            f"the model needs about {need} bytes of memory", code="ML294",
            why=f"the worker with most memory has {self._watch.largest}",
            hint="start a worker with more memory (--memory-limit, or --resources MEMORY=...), or give --memory",
        )

    def _lost(self) -> ClusterError:
        again = "the same command continues with the models that remain"
        if self._watch.unable and not self._watch.has_workers:
            error = list(self._watch.unable.values())[-1].error
            hint = f"{error.hint}; then {again}"
            return ClusterError(f"no worker can convert the models: {error.message}", why=error.why, hint=hint,
                                code=error.code)
        if not self._watch.has_workers:
            return ClusterError("the cluster has no workers left", code="ML291", hint=f"start workers; {again}")
        return ClusterError("the connection to the scheduler is lost", code="ML295", hint=again)


class _Gone(Exception):
    """The scheduler has cancelled the work, or cannot be reached."""
