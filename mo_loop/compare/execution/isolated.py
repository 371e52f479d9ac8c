"""Calls functions that run native code in a worker process: a crash or a hang ends only the worker.

    found = isolated(run_ir, "model.xml", [{"x": x}])

There is one worker. It is kept for the next call, and replaced after a crash or a hang.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

from mo_loop.support.workers import Pool

LIMIT = 120.0
FILLED = {"MALLOC_PERTURB_": "165"}
"""Environment of workers: glibc fills memory that it allocates and frees, so that reading it always gives wrong values.
"""
T = TypeVar("T")


class IsolatedError(Exception):
    """The function raised, crashed or did not end in time; `status` and `error`, the class of the exception, are those
    of the worker's `Outcome`, `message` is the text without the traceback, which ends with it."""

    def __init__(self, text: str, status: str, error: str = "", message: str = "") -> None:
        super().__init__(text)
        self.status, self.error, self.message = status, error, message or text


def isolated(function: Callable[..., T], *arguments: Any, limit: float = LIMIT, python: str | None = None) -> T:
    """`function(*arguments)` in the worker, for at most `limit` seconds. The function is one of a module's own.

    `python` is another interpreter for it.
    """
    outcome = _pool(python).call((function, arguments, os.getcwd()), limit)
    if not outcome.ok:
        said = f"{outcome.status} {outcome.stage}: {outcome.message}"
        text = f"{function.__qualname__}: {said}\n{outcome.detail}"
        message = outcome.message if outcome.status == "error" else said
        raise IsolatedError(text, outcome.status, outcome.error, message)
    result: T = outcome.value
    return result


def serve(task: tuple[Any, ...]) -> Any:
    """The function of the worker, called with a function, its arguments and, maybe, the folder of the caller.

    Paths are those of the caller, which may have changed its folder since the worker was started.
    """
    function, arguments, *folder = task
    if folder:
        os.chdir(folder[0])
    return function(*arguments)


@functools.cache
def _pool(python: str | None = None) -> Pool:
    return Pool(f"{__name__}:serve", limit=LIMIT, python=python)
