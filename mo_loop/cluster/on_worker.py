"""What a Dask worker has and does.

    client.register_plugin(Equipment(...), name)             # each worker, also one that comes later
    client.submit(bridge(), pickle.dumps((name, place, assignments, drafts)))

Equipment holds a pool of worker processes with our limits, which start with the first model, and the files that were
sent. A Dask worker has as many of these processes as threads, so each thread keeps its own. They and the files go with
the plugin at the end of the batch, with the Dask worker, and, if the client was killed, some minutes after the last
model.
"""

from __future__ import annotations

import pickle
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import WorkerPlugin, get_worker

from mo_loop.batch.assignment import Answer, Assignment, attempted
from mo_loop.batch.task import Task
from mo_loop.cluster.agreement import own_versions
from mo_loop.cluster.sent_files import SentFile, told_as_given, with_places, written
from mo_loop.errors import ClusterError
from mo_loop.workers import Outcome, Pool

if TYPE_CHECKING:
    from distributed import Worker

MEMORY = "MEMORY"
"""The resource of Dask that a model needs: bytes."""

IDLE = 300.0
"""Seconds without a model after which the processes end and the files are removed; the next model brings them back."""


class Equipment(WorkerPlugin):
    """What a worker has for one batch."""

    def __init__(
        self, name: str, function: str, memory: int | None, files: tuple[SentFile, ...], texts: Mapping[str, str]
    ) -> None:
        """`memory` limits each process; without it the limit of the Dask worker does. `texts` are replaced in answers:
        paths on a worker by those that the user gave."""
        self.name = name
        self._function = function
        self._memory = memory
        self._files = files
        self._texts = dict(texts)
        self._expected = own_versions()

    async def setup(self, worker: Worker) -> None:
        """Called by Dask on each worker. One without a MEMORY resource gets one from its memory limit."""
        self._worker = worker
        self._lock = threading.Lock()
        self._running = 0
        self._last = time.monotonic()
        self._is_closed = False
        self._pool: Pool | None = None
        self._places: dict[str, str] = {}
        self._found = own_versions()
        if MEMORY not in worker.state.total_resources:
            await worker.set_resources(**{MEMORY: memory_of(worker)})

    def teardown(self, worker: Worker) -> None:
        """Called by Dask at the end of the batch, or of the worker."""
        with self._lock:
            self._is_closed = True
        self._release()

    def convert(self, given: Assignment, drafts: str) -> Answer:
        """Do one model, in a thread of the Dask worker."""
        if self._found != self._expected:
            raise ClusterError(
                f"the worker {self._worker.address}, which came during the batch, has other versions",
                why=f"here: {self._expected}; there: {self._found}", code="ML293",
            )  # fmt: skip
        with self._lock:
            self._running += 1
        try:
            pool, places = self._ready()
            task = _at_home(with_places(given.task, places) if places else given.task)
            # A worker that was lost may still write its draft of this model.
            draft = Path(drafts, f"{given.number}-{uuid.uuid4().hex[:8]}.xml")
            answer = attempted(replace(given, task=task), draft, pool.call)
        finally:
            with self._lock:
                self._running -= 1
                self._last = time.monotonic()
        if isinstance(answer.found, Outcome):
            answer = Answer(replace(answer.found, task=None), answer.seconds)
        return self._told(answer, places)

    def _told(self, answer: Answer, places: Mapping[str, str]) -> Answer:
        texts = {**{there: given for given, there in places.items()}, **self._texts}
        told: Answer = told_as_given(answer, texts) if texts else answer
        return told

    def _ready(self) -> tuple[Pool, dict[str, str]]:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the batch has ended")
            if self._pool is None:
                folder = tempfile.mkdtemp(prefix="mo_loop-batch-")
                self._places = written(self._files, folder)
                memory = self._memory or self._worker.memory_manager.memory_limit
                # The folder goes with the pool; if this process is killed, with its children.
                jobs = self._worker.state.nthreads
                self._pool = Pool(self._function, jobs=jobs, memory=memory, scratch=folder)
                threading.Thread(target=self._end_when_idle, args=(self._pool,), daemon=True).start()
            return self._pool, self._places

    def _end_when_idle(self, pool: Pool) -> None:
        while self._pool is pool:
            time.sleep(min(IDLE / 4, 10.0))
            with self._lock:
                is_idle = self._running == 0 and time.monotonic() - self._last > IDLE
            if is_idle:
                self._release()

    def _release(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
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


def converted(payload: bytes) -> list[Answer]:
    """What Dask runs: `payload` is the name of the equipment, the number of the portion, its assignments, and the
    folder of drafts."""
    name, place, portion, drafts = pickle.loads(payload)
    worker = get_worker()
    equipment = worker.plugins.get(name)
    if not isinstance(equipment, Equipment):
        raise ClusterError(
            f"the worker {worker.address} is not equipped for the batch", code="ML297", hint="see its log"
        )
    worker.log_event(name, place)
    return [equipment.convert(given, drafts) for given in portion]


def bridge() -> Callable[[bytes], Any]:
    """`converted` for a scheduler that does not have mo_loop and yet unpickles what is submitted: a local function is
    pickled by its content."""

    def run(payload: bytes) -> Any:
        from mo_loop.cluster.on_worker import converted

        return converted(payload)

    return run
