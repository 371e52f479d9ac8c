"""OpenVINO of another release: IR files run in a worker process of another Python interpreter.

    compiled = CompiledElsewhere("model.xml", "build/runtimes/2024.6.0/bin/python")
    compiled.run({"x": x})

The interpreter needs openvino, numpy and ml_dtypes; it imports mo_loop from this folder.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mo_loop.compare.execution.hosted_object import Feeds, Hosted, pool_of
from mo_loop.compare.execution.runtime import compile_ir, read_ir


class CompiledElsewhere(Hosted):
    """A compiled model in the worker of an interpreter; the next one compiled there replaces it."""

    def __init__(self, path: str | Path, python: str) -> None:
        """Raises IsolatedError if the IR does not compile, or the process crashes."""
        super().__init__(compile_ir, str(path), pool=_pool(python))

    def run(self, feeds: Feeds) -> list[tuple[str, np.ndarray]]:
        """As `Hosted.run`. Arrays are sent in C order: another release of numpy may not read those of Fortran order."""
        if isinstance(feeds, Mapping):
            return super().run({name: np.asarray(value, order="C") for name, value in feeds.items()})
        return super().run([np.asarray(value, order="C") for value in feeds])


def read_elsewhere(path: str | Path, python: str) -> None:
    """Raises IsolatedError if an interpreter's OpenVINO does not read an .xml file."""
    Hosted(read_ir, str(path), pool=_pool(python))


_pool = functools.cache(pool_of)
