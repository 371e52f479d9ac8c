"""Persistent worker processes that run native code which may crash or hang.

    with Pool("package.module:function", jobs=2, limit=30) as pool:
        for outcome in pool.map(tasks):
            print(outcome.task, outcome.status, outcome.value or outcome.message)

`function(task)` runs in a new interpreter, which also runs later tasks. A worker that crashes, exceeds the time limit
or runs out of memory is replaced, and its task ends as `crash`, `timeout` or `memory`. A task whose function raises
another exception ends as `error`. The main loop of the process is in mo_loop/support/worker_process.py.

A worker leads its own process group: Ctrl-C at a terminal reaches only the parent, and processes that a task starts
end with the worker.

Parent and worker exchange pickles. They use private copies of the worker's standard streams; the output of native code
goes to a log, and the message of a crash contains its last lines. A worker ends when its input stream ends, so it never
outlives its parent. A thread watches the stream while a task runs. If native code holds the interpreter lock forever, a
timer of `faulthandler`, which needs no lock, ends the process.

Workers of pebble and loky outlive a killed parent while a task runs, and so does what a task has started. pebble
imports the script of the caller, and loky has no limit of time and loses all tasks with one crash.
"""

import queue
import shutil
import tempfile
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from mo_loop.support.process_memory import NO_MEMORY_LIMIT, can_limit_memory
from mo_loop.support.worker_process import (
    CRASH,
    ERROR,
    MEMORY,
    OK,
    TIMEOUT,
    TaskOutcome,
    Worker,
    WorkerStartError,
    report_stage,
)

__all__ = ["CRASH", "ERROR", "MEMORY", "OK", "TIMEOUT", "Pool", "TaskOutcome", "WorkerStartError", "report_stage"]


class Pool:
    """Workers for one function, started when needed, replaced when they die, ended with the pool or the interpreter.

    `jobs` workers at most; `limit` seconds for a task; `memory` bytes that a worker may allocate, a warning where the
    system has no such limit; `env` is added to the workers' environment; `scratch` is a folder for their temporary
    files, which is removed with the pool; `python` is the path of another interpreter for the workers, with its own
    packages. A pool may be shared by threads.
    """

    def __init__(
        self, function: str, *, jobs: int = 1, limit: float = 60.0, memory: int | None = None,
        env: Mapping[str, str] | None = None, scratch: str | None = None, python: str | None = None,
    ) -> None:
        self.jobs = max(1, jobs)
        self.limit = limit
        if memory is not None and not can_limit_memory():
            warnings.warn(f"{NO_MEMORY_LIMIT}: workers run without one", stacklevel=2)
        scratch = tempfile.mkdtemp(prefix="mo_loop-workers-") if scratch is None else scratch
        self._worker = partial(Worker, function, memory=memory, env=dict(env or {}), scratch=scratch, python=python)
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()
        self._slots = threading.Semaphore(self.jobs)
        self._lock = threading.RLock()
        self._end = weakref.finalize(self, _end, self._lock, self._workers, self._idle, scratch)

    def call(self, task: Any, limit: float | None = None, *, fresh: bool = False) -> TaskOutcome:
        """Wait for a free worker and run one task; with `fresh` the worker has not run any other task."""
        with self._slots:
            worker = self._take(fresh)
            try:
                outcome = worker.run(task, self.limit if limit is None else limit)
            except BaseException:
                worker.close()
                raise
            finally:
                if worker.alive and self._end.alive:
                    with self._lock:
                        self._idle.append(worker)
                else:
                    self._drop(worker)
            return outcome

    def map(self, tasks: Iterable[Any], limit: float | None = None) -> Iterator[TaskOutcome]:
        """Run many tasks. Outcomes are yielded as tasks end, which is not the order of the tasks."""
        source, running = iter(tasks), 0
        results: queue.SimpleQueue[TaskOutcome | BaseException] = queue.SimpleQueue()

        def run(task: Any) -> None:
            try:
                results.put(self.call(task, limit))
            except BaseException as error:
                results.put(error)

        while True:
            for task in islice(source, 2 * self.jobs - running):  # no worker waits for the caller
                threading.Thread(target=run, args=(task,), daemon=True).start()
                running += 1
            if not running:
                return
            result = results.get()
            running -= 1
            if isinstance(result, BaseException):
                raise result
            yield result

    def close(self) -> None:
        """End all workers, also busy ones, and remove their temporary files. Runs at exit, too."""
        self._end()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, fresh: bool) -> Worker:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is not None and worker.alive and not fresh:
            return worker
        if worker is not None:
            self._drop(worker)
        with self._lock:  # `close` waits until the process is among those that it kills
            if not self._end.alive:
                raise RuntimeError("the pool is closed")
            worker = self._worker()
            self._workers.add(worker)
        try:
            worker.start()
        except BaseException:
            self._drop(worker)
            raise
        return worker

    def _drop(self, worker: Worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.close()


def _end(lock: threading.RLock, workers: set[Worker], idle: list[Worker], scratch: str) -> None:
    """Kill busy workers; the threads that wait for them close them."""
    with lock:  # another thread may be starting a process
        started = list(workers)
    for worker in started:
        worker.kill()
    for worker in list(idle):
        worker.close()
    for worker in started:
        worker.wait()
    shutil.rmtree(scratch, ignore_errors=True)
