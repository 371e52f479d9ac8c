"""Worker processes that a comparison or a batch leaves are kept for the next one of the same test process.

A new process imports OpenVINO and ONNX Runtime, which takes longer than most models of the tests. Only an idle worker
is kept: one that crashed, hung or is killed while it works ends as usual. Workers of another interpreter, environment
or memory limit are others. Those of a batch go to its folder with each model.
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

FUNCTIONS = ("mo_loop.compare.", "tests.fuzz.", "tools.")
"""Modules with the functions of kept workers; those of the tests of workers are none of them."""

IN_FOLDER = "tests.running.workers:convert_in"

LIMITED = "tests.running.limited_worker:serve"
"""The function of workers under a limit of the instructions."""

FUNCTION = "MO_LOOP_TEST_FUNCTION"
"""The environment variable with the function that such a worker would have otherwise, as "module:name"."""

MOST = 4
"""So many idle workers are kept."""

_idle: list[WarmWorker] = []
"""The longest idle one first."""


def convert_in(task: tuple[str, Any]) -> Any:
    """In the worker: convert a model of a batch that runs in this folder."""
    from mo_loop.batching.job import convert

    os.chdir(task[0])
    return convert(task[1])


class WarmWorker(Worker):
    """A worker that `close` keeps while it is idle."""

    def __init__(self, key: Any, function: str, **settings: Any) -> None:
        super().__init__(function, **settings)
        self.key = key
        self._is_ready = self._is_busy = self._is_ending = False

    def start(self) -> None:
        if not self._is_ready:
            super().start()
            self._is_ready = True

    def run(self, task: Any, limit: float) -> TaskOutcome:
        self._is_busy = True
        try:
            if self._setup["function"] != IN_FOLDER:
                return super().run(task, limit)
            return replace(super().run((os.getcwd(), task), limit), task=task)
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
        if function == JOB:
            function = IN_FOLDER
        elif not function.startswith(FUNCTIONS):
            return Worker(function, memory=memory, env=env, scratch=scratch, python=python)
        elif is_limited() and python is None:  # others have no pytest
            env, function = {**env, FUNCTION: function}, LIMITED
        here = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        # Another folder may have the path of one that was removed, but not its number while a worker is there.
        folders = (*sys.path,) if function == IN_FOLDER else (os.getcwd(), os.stat(os.curdir).st_ino, *sys.path)
        key = (function, memory, frozenset((here | dict(env)).items()), python, folders)
        for worker in reversed(_idle):
            if worker.key == key and worker.alive:
                _idle.remove(worker)
                return worker
        return WarmWorker(key, function, memory=memory, env=env, scratch=folder, python=python)

    def end() -> None:
        while _idle:
            _idle.pop().end()
        shutil.rmtree(folder, ignore_errors=True)

    workers.Worker = taken  # type: ignore[assignment, misc]
    atexit.register(end)
