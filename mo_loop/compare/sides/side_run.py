"""SideRun: one side of a comparison while it runs, and its result at the end.

    run = SideRun("f32")
    with run:                                        # an IsolatedError ends the block, and becomes the status
        run.worker = compiled(settings, Path("model.xml"), "f32")
        run.reaches("inference 0 (generated 0)")
        run.add(rows_of(...))
    return run.side()

Leaving the block closes the worker. Of the rows of an output in one set the worst stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief
from mo_loop.compare.execution.runtime import ReshapeError, compile_ir
from mo_loop.compare.results.report import DIFFERS, ENDED, NOT_RESHAPABLE, PASSED, Row, Side
from mo_loop.compare.results.verify_settings import VerifyOptions, properties_of
from mo_loop.support.workers import Pool


def compiled(
    settings: VerifyOptions, target: Path, precision: str, make: Callable[..., Any] = compile_ir,
    shared: Pool | None = None, **more: str,
) -> Hosted:  # fmt: skip
    """The object of `make` for an IR in a precision on the device, with more properties, in a worker process: one of
    its own, or that of the `shared` pool."""
    properties = properties_of(precision, settings.device) | more
    sizes = (settings.sizes,) if settings.sizes else ()  # an IR with states has a `make` that takes none
    arguments = (str(target), properties, settings.device, *sizes)
    return Hosted(make, *arguments, pool=shared, limit=settings.limit, python=settings.python)


class SideRun:
    """A side of this name. `worker` runs its IR; until an inference is reached, an error means that none compiles."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.worker: Hosted | None = None
        self._start = time.perf_counter()
        self._rows: dict[tuple[int, str], Row] = {}
        self._status, self._place = "not compilable", ""
        self._message = ""

    def reaches(self, place: str) -> None:
        """The inference that begins: an error from now on is one of it."""
        self._status, self._place = "fails", f"{place}: "

    def add(self, rows: Iterable[Row]) -> None:
        """Keep the rows that are worse than those before of the same set and output."""
        for row in rows:
            known = self._rows.get((row.set, row.output))
            if known is None or _is_worse(row, known):
                self._rows[row.set, row.output] = row

    def side(self) -> Side:
        """The result."""
        seconds = time.perf_counter() - self._start
        return Side(self.name, self._status, self._message, tuple(self._rows.values()), seconds)

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if self.worker is not None:
            self.worker.release()
        if error is None:
            self._status = PASSED if all(row.result for row in self._rows.values()) else DIFFERS
        if not isinstance(error, IsolatedError):
            return False
        self._status, self._message = ENDED.get(error.status, self._status), self._place + brief(error)
        if error.error == ReshapeError.__name__:
            self._status, self._message = NOT_RESHAPABLE, self._message.partition(": ")[2]
        return True


def _is_worse(row: Row, known: Row) -> bool:
    """Whether a row replaces another one: the first one that differs, else the one with the largest difference."""
    if not known.result:
        return False
    return not row.result or row.result.largest_abs > known.result.largest_abs


def is_empty(feeds: Mapping[str, Any]) -> bool:
    """Whether an input has no elements."""
    return any(np.size(value) == 0 for value in feeds.values() if not isinstance(value, list))
