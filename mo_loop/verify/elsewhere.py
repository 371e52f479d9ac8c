"""OpenVINO of another release: IR files run in a worker process of another Python interpreter.

    compiled = CompiledElsewhere("model.xml", "build/runtimes/2024.6.0/bin/python")
    compiled.run({"x": x})

The interpreter needs openvino, numpy and ml_dtypes; it imports mo_loop from this folder.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.verify.isolated import FILLED, LIMIT, IsolatedError
from mo_loop.verify.runtime import Compiled, compile_ir
from mo_loop.workers import Pool


class CompiledElsewhere:
    """A compiled model in the worker of an interpreter; the next one compiled there replaces it."""

    def __init__(self, path: str | Path, python: str) -> None:
        """Raises IsolatedError if the IR does not compile, or the process crashes."""
        self._pool = _pool(python)
        self._call(str(path))

    def run(self, feeds: Mapping[str, Any] | Sequence[Any]) -> list[tuple[str, np.ndarray]]:
        """One inference, as `Compiled.run`. Raises IsolatedError if it fails, or the process crashes."""
        found: list[tuple[str, np.ndarray]] = self._call(feeds)
        return found

    def _call(self, task: Any) -> Any:
        outcome = self._pool.call(task)
        if not outcome.ok:
            raise IsolatedError(outcome.message, outcome.status)
        return outcome.value


def serve(task: str | Mapping[str, Any] | Sequence[Any]) -> list[tuple[str, np.ndarray]] | None:
    """What the worker runs: a path is compiled, inputs are run on what was compiled last."""
    if isinstance(task, str):
        _compiled[:] = []
        _compiled.append(compile_ir(task))
        return None
    return _compiled[0].run(task)


_compiled: list[Compiled] = []


@functools.cache
def _pool(python: str) -> Pool:
    return Pool(f"{__name__}:serve", limit=LIMIT, python=python, env=FILLED)
