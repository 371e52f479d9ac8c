"""Worker processes that a comparison or a batch leaves are kept for the next one of the same test process.

A new process imports OpenVINO and ONNX Runtime, which takes longer than most models of the tests. Only an idle worker
is kept: one that crashed, hung or is killed while it works ends as usual. One process runs the functions of all pools,
in the folder of each; workers of another interpreter, environment or memory limit, and those of a batch, are others.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mo_loop.batching.engine import JOB
from mo_loop.support import workers
from mo_loop.support.worker_process import Worker
from mo_loop.support.workers import TaskOutcome
from tests.running.processor import is_limited

FUNCTIONS = ("mo_loop.compare.", "tests.fuzz.", "tests.running.", "tools.")
"""Modules with the functions of kept workers; those of the tests of workers are none of them."""

ANY, ANY_JOB = "tests.running.kept_worker:run", "tests.running.kept_job:run"

LIMITED = "tests.running.limited_worker:serve"
"""The function of workers under a limit of the instructions."""

FUNCTION = "MO_LOOP_TEST_FUNCTION"
"""The environment variable with the function that such a worker would have otherwise, as "module:name"."""

MOST = 4
"""So many idle workers are kept."""

_idle: list[WarmWorker] = []
"""The longest idle one first."""


class WarmWorker(Worker):
    """A worker that `close` keeps while it is idle. If it runs any function, `place` is the folder and the function of
    its tasks."""

    def __init__(self, key: Any, function: str, **settings: Any) -> None:
        super().__init__(function, **settings)
        self.key = key
        self.place: tuple[str, str] | None = None
        self._is_ready = self._is_busy = self._is_ending = False

    def start(self) -> None:
        if not self._is_ready:
            super().start()
            self._is_ready = True

    def run(self, task: Any, limit: float) -> TaskOutcome:
        self._is_busy = True
        try:
            if self.place is None:
                return super().run(task, limit)
            return replace(super().run((*self.place, task), limit), task=task)
        finally:
            self._is_busy = False

    def kill(self) -> None:
        if not self._can_be_kept() or self._is_ending:
            super().kill()

    def close(self) -> None:
        if not self._can_be_kept():
            super().close()
        elif self not in _idle:
            _idle.append(self)
            if len(_idle) > MOST:
                _idle.pop(0).end()

    def wait(self) -> None:
        if not self._can_be_kept():
            super().wait()

    def end(self) -> None:
        """End the process."""
        self._is_ending = True
        super().close()

    def _can_be_kept(self) -> bool:
        return self._is_ready and not self._is_busy and self.alive


def use() -> None:
    """Make the pools of this process take and leave such workers."""
    folder = tempfile.mkdtemp(prefix="mo_loop-warm-")  # temporary files outlive the pool

    def taken(function: str, *, memory: int | None, env: Mapping[str, str], scratch: str, python: str | None) -> Worker:
        if not function.startswith((JOB, *FUNCTIONS)):
            return Worker(function, memory=memory, env=env, scratch=scratch, python=python)
        here = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        place = None if python else (os.getcwd(), function)
        # Another folder may have the path of one that was removed, but not its number while a worker is there.
        used = (function, os.getcwd(), os.stat(os.curdir).st_ino) if place is None else (function == JOB,)
        key = (*used, memory, frozenset((here | dict(env)).items()), python, *sys.path)
        worker = next((each for each in reversed(_idle) if each.key == key and each.alive), None)
        if worker is not None:
            _idle.remove(worker)
        else:
            if place is not None:
                function = ANY_JOB if function == JOB else ANY
                if is_limited():  # in other interpreters, there is no pytest
                    env, function = {**env, FUNCTION: function}, LIMITED
            worker = WarmWorker(key, function, memory=memory, env=env, scratch=folder, python=python)
        worker.place = place
        return worker

    def end() -> None:
        while _idle:
            _idle.pop().end()
        shutil.rmtree(folder, ignore_errors=True)

    workers.Worker = taken  # type: ignore[assignment, misc]
    atexit.register(end)
