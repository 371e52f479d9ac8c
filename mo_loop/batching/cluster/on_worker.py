"""The part of a cluster batch that runs on a Dask worker.

    client.register_plugin(Equipment(...), name)             # each worker, also one that comes later
    client.submit(portable_function(pickle.dumps((name, place, assignments, drafts))))

Equipment holds a pool of worker processes with our limits, which start with the first model, and the files that were
sent. A Dask worker has as many of these processes as threads, so each thread keeps its own. They and the files go with
the plugin at the end of the batch, with the Dask worker, and, if the client was killed, some minutes after the last
model.

Nothing that runs here raises: Dask would log the exception with all that was submitted, and so with signed URLs. A
worker that cannot convert models answers `Unable`.
"""

from __future__ import annotations

import asyncio
import pickle
import shutil
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import WorkerPlugin, get_worker

from mo_loop.batching.cluster.requirements import (
    Requirements,
    SentFile,
    Unable,
    is_of_worker,
    with_given_paths,
    with_places,
    written,
)
from mo_loop.batching.engine import Answer, Assignment, Task, attempted
from mo_loop.errors import ClusterError, MoLoopError
from mo_loop.support.workers import ERROR, Pool, TaskOutcome, WorkerStartError

if TYPE_CHECKING:
    from distributed import Worker

STARTS_NOT = "ML201"
"""The code of a worker process that does not start with the memory that the user allows."""

MEMORY = "MEMORY"
"""The resource of Dask that a model needs: bytes."""

IDLE = 300.0
"""Seconds without a model after which the processes end and the files are removed; the next model brings them back."""


ACCESS = 60.0
"""Seconds for the check of the store before a worker gets its first model; later checks report the fault."""

Reply = Answer | Unable
"""The reply of a worker for a model: its answer, or that the worker cannot convert it."""


class Equipment(WorkerPlugin):
    """The processes and files of a worker for one batch."""

    def __init__(
        self, name: str, function: str, memory: int | None, files: tuple[SentFile, ...], texts: Mapping[str, str],
        requirements: Requirements,
    ) -> None:
        """`memory` limits each process; without it the limit of the Dask worker does. `texts` are replaced in answers:
        paths on a worker by those that the user gave."""
        self.name = name
        self._function = function
        self._memory = memory
        self._files = files
        self._texts = dict(texts)
        self._requirements = requirements

    async def setup(self, worker: Worker) -> None:
        """Called by Dask on each worker. One without a MEMORY resource gets one from its memory limit, unless it does
        not meet the requirements of the batch."""
        self._worker = worker
        self._lock = threading.Lock()
        self._running = 0
        self._last = time.monotonic()
        self._is_closed = False
        self._pool: Pool | None = None
        self._places: dict[str, str] = {}
        self._can_compare = False
        self._is_ready = threading.Event()
        self.unable: Unable | None = None
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.to_thread(self._look), ACCESS)
        finally:
            self._is_ready.set()
        if self.unable is not None:
            each = self.unable
            worker.log_event(self.name, [each.worker, each.code, each.message, each.why, each.hint])
        elif MEMORY not in worker.state.total_resources:
            await worker.set_resources(**{MEMORY: memory_of(worker)})

    def teardown(self, worker: Worker) -> None:
        """Called by Dask at the end of the batch, or of the worker."""
        with self._lock:
            self._is_closed = True
            pool = self._taken()
        _close(pool)

    def convert(self, assignment: Assignment, drafts: str) -> Reply:
        """Do one model, in a thread of the Dask worker."""
        self._is_ready.wait(ACCESS)
        if self.unable is not None:
            return self.unable
        with self._lock:
            self._running += 1
        try:
            return self._converted(assignment, drafts)
        finally:
            with self._lock:
                self._running -= 1
                self._last = time.monotonic()

    def _converted(self, assignment: Assignment, drafts: str) -> Reply:
        try:
            comparing = assignment.task.work.comparing
            if comparing is not None and not self._can_compare:
                comparing.require()
                self._can_compare = True
            pool, places = self._ready()
        except Exception as error:
            return Unable.by(self._worker.address, error)
        task = _at_home(with_places(assignment.task, places) if places else assignment.task)
        # A worker that was lost may still write its draft of this model.
        draft = Path(drafts, f"{assignment.number}-{uuid.uuid4().hex[:8]}.xml")
        try:
            answer = attempted(replace(assignment, task=task), draft, pool.call)
        except MoLoopError as error:
            return Answer(error)
        except (OSError, WorkerStartError) as error:  # of the process that was to convert it
            return self._start_failed(error)
        if is_of_worker(answer):
            self._look(with_writing=True)
            if self.unable is not None:
                return self.unable
        if isinstance(answer.result, TaskOutcome):
            answer = Answer(replace(answer.result, task=None), answer.seconds)
        texts = {**{there: given for given, there in places.items()}, **self._texts}
        return with_given_paths(answer, texts) if texts else answer

    def _look(self, *, with_writing: bool = False) -> None:
        """Find out whether this worker lacks something."""
        try:
            error: BaseException | None = self._requirements.missing(with_writing=with_writing)
        except Exception as other:
            error = other
        if error is not None:
            self.unable = Unable.by(self._worker.address, error)

    def _start_failed(self, error: Exception) -> Unable:
        """The error of a worker on which no process starts. A limit that the user gave can be the cause."""
        unable = Unable.by(self._worker.address, error)
        is_of_limit = isinstance(error, WorkerStartError) and self._memory is not None
        return replace(unable, code=STARTS_NOT) if is_of_limit else unable

    def _ready(self) -> tuple[Pool, dict[str, str]]:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the batch has ended")
            if self._pool is None:
                folder = tempfile.mkdtemp(prefix="mo_loop-batch-")
                try:
                    self._places = written(self._files, folder)
                except BaseException:
                    shutil.rmtree(folder, ignore_errors=True)
                    raise
                memory = self._memory or self._worker.memory_manager.memory_limit
                # The folder goes with the pool; if this process is killed, with its children.
                self._pool = Pool(self._function, jobs=self._worker.state.nthreads, memory=memory, scratch=folder)
                threading.Thread(target=self._end_when_idle, args=(self._pool,), daemon=True).start()
            return self._pool, self._places

    def _end_when_idle(self, pool: Pool) -> None:
        while self._pool is pool:
            time.sleep(min(IDLE / 4, 10.0))
            with self._lock:  # a conversion that begins now has to find either this pool or none
                is_idle = self._running == 0 and time.monotonic() - self._last > IDLE
                unused = self._taken() if is_idle and self._pool is pool else None
            _close(unused)

    def _taken(self) -> Pool | None:
        """The pool, which this object has no longer. The caller has the lock, and closes the pool without it."""
        pool, self._pool = self._pool, None
        return pool


def _close(pool: Pool | None) -> None:
    if pool is not None:
        pool.close()


def _at_home(task: Task) -> Task:
    """The task with its room on the disk of this machine, which all Dask workers here share."""
    if task.remote is None:
        return task
    return replace(task, remote=replace(task.remote, scratch=task.remote.scratch.resolved()))


def memory_of(worker: Worker) -> int:
    """The memory limit of a Dask worker; without one the memory of the machine."""
    from distributed.system import MEMORY_LIMIT

    return int(worker.memory_manager.memory_limit or MEMORY_LIMIT)


def converted(payload: bytes) -> list[Reply]:
    """Convert the models of a portion on a Dask worker. `payload` is the name of the equipment, the number of the
    portion, its assignments, and the folder of drafts."""
    name, place, portion, drafts = pickle.loads(payload)
    worker = get_worker()
    equipment = worker.plugins.get(name)
    if not isinstance(equipment, Equipment):
        error = ClusterError("the worker is not prepared for the batch", code="ML297", hint="see its log")
        return [Unable.by(worker.address, error)] * len(portion)
    worker.log_event(name, place)
    return [_reply(equipment, assignment, drafts) for assignment in portion]


def _reply(equipment: Equipment, assignment: Assignment, drafts: str) -> Reply:
    try:
        return equipment.convert(assignment, drafts)
    except Exception as error:
        text, name = f"{type(error).__name__}: {error}", type(error).__name__
        return Answer(TaskOutcome(None, ERROR, message=text, error=name, detail=traceback.format_exc()), 0.0)


def portable_function(payload: bytes) -> Callable[[], Any]:
    """`converted` for a scheduler that lacks mo_loop and yet unpickles the submitted functions: a local function is
    pickled by its content. Its name is all that Dask can log of it.

    It returns the list of `converted`, or address and error of a worker that cannot load or run it.
    """

    def run() -> Any:
        try:
            from mo_loop.batching.cluster.on_worker import converted

            return converted(payload)
        except Exception as error:
            from distributed import get_worker

            return get_worker().address, f"{type(error).__name__}: {error}"

    return run
