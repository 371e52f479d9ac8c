"""OpenVINO of another release: IR files run in a worker process of another Python interpreter.

    compiled = CompiledElsewhere("model.xml", "build/runtimes/2024.6.0/bin/python")
    compiled.run({"x": x})

The interpreter needs openvino, numpy and ml_dtypes; it imports mo_loop from this folder.
"""

from __future__ import annotations

import functools
from pathlib import Path

from mo_loop.compare.execution.hosted_object import Hosted, pool_of
from mo_loop.compare.execution.runtime import compile_ir, read_ir


class CompiledElsewhere(Hosted):
    """A compiled model in the worker of an interpreter; the next one compiled there replaces it."""

    def __init__(self, path: str | Path, python: str) -> None:
        """Raises IsolatedError if the IR does not compile, or the process crashes."""
        super().__init__(compile_ir, str(path), pool=_pool(python))


def read_elsewhere(path: str | Path, python: str) -> None:
    """Raises IsolatedError if an interpreter's OpenVINO does not read an .xml file."""
    Hosted(read_ir, str(path), pool=_pool(python))


_pool = functools.cache(pool_of)
