"""Workers of this process, for many comparisons of small models: no process is started for each.

    with here():
        verify("model.onnx")

A crash ends this process, so call it in a worker.
"""

import copy
import importlib
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from mo_loop.compare.execution import isolated
from mo_loop.support.workers import ERROR, OK, TaskOutcome


@contextmanager
def here() -> Iterator[None]:
    """Let every pool that is made in the block run its tasks in this process."""
    isolated._pool.cache_clear()
    with patch("mo_loop.support.workers.Worker", Here):
        yield
    isolated._pool.cache_clear()


class Here:
    """A worker as `mo_loop.support.worker_process.Worker` is one, in this process."""

    alive = True

    def __init__(self, function: str, **_: Any) -> None:
        module, _, name = function.partition(":")
        self._function = getattr(importlib.import_module(module), name)
        self._made: list[Any] = []
        """The object that the worker has made (isolated.py)."""

    def start(self) -> None:
        return None

    def run(self, task: Any, limit: float) -> TaskOutcome:
        """Run one task, without a limit."""
        isolated._made = self._made
        try:
            return TaskOutcome(task, OK, self._function(copy.copy(task)))
        except Exception as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            return TaskOutcome(task, ERROR, None, text, "", type(error).__name__, getattr(error, "code", ""),
                               traceback.format_exc())

    def kill(self) -> None:
        return None

    close = wait = kill
