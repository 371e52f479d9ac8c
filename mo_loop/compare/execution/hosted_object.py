"""Hosted: an object that runs native code, in a worker process that may crash or hang.

    compiled = Hosted(compile_ir, "model.xml")
    compiled.run({"x": x})
    compiled.close()

The worker makes the object once and keeps it for the calls that follow; after a crash or a hang, the next call makes it
again. `facts` is its attribute of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import LIMIT, IsolatedError
from mo_loop.support.workers import Pool

Feeds = Mapping[str, Any] | Sequence[Any]

SERVE = f"{__name__}:serve"
"""The function of the workers."""


@dataclass(frozen=True)
class _Make:
    """The task that makes the object; every other task is a set of inputs."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Hosted:
    """An object in a worker process, with a method `run`. `make(*arguments)` creates it."""

    def __init__(
        self, make: Callable[..., Any], *arguments: Any, pool: Pool | None = None, limit: float = LIMIT,
        keeps_pool: bool = False,
    ) -> None:  # fmt: skip
        """`make` is a function or class of a module. Objects in one `pool` replace each other; with `keeps_pool` it
        stays for the next one.

        Raises IsolatedError if the object cannot be made, or the process crashes or exceeds `limit` seconds.
        """
        self._pool = Pool(SERVE, limit=limit) if pool is None else pool
        self._keeps_pool = keeps_pool
        self._make = _Make(make, arguments)
        self._is_lost = False
        self.facts = self._call(self._make)

    def run(self, feeds: Feeds) -> list[tuple[str, np.ndarray]]:
        """One call of its `run`. Raises IsolatedError if it fails, or the process crashes or exceeds the limit."""
        found: list[tuple[str, np.ndarray]] = self._call(feeds)
        return found

    def ask(self, task: Any) -> Any:
        """One call of a `run` that takes or returns something else. Raises IsolatedError as `run` does."""
        return self._call(task)

    def close(self) -> None:
        """End the worker."""
        self._pool.close()

    def release(self) -> None:
        """End the worker, unless another object takes its place."""
        if not self._keeps_pool:
            self._pool.close()

    def _call(self, task: Any) -> Any:
        outcome = self._pool.call(self._make if self._is_lost else task)
        if self._is_lost and outcome.ok:  # the process that had the object ended with the call before
            self._is_lost = False
            outcome = self._pool.call(task)
        if not outcome.ok:
            self._is_lost = self._is_lost or outcome.status != "error"
            raise IsolatedError(outcome.message, outcome.status, outcome.error)
        return outcome.value


def serve(task: Any) -> Any:
    """Create the object or run inputs on it, in the worker."""
    if isinstance(task, _Make):
        _made[:] = []
        _made.append(task.function(*task.arguments))
        return getattr(_made[0], "facts", None)
    return _made[0].run(task)


_made: list[Any] = []
