"""An IR without states on its device: all sets on one compiled model, compared after every inference.

    plain = PlainSide(sets, expected, (0, 1, 1, 0), settings, notes)
    side = plain.ran("f32", Path("model.xml"))
    other = plain.other("ovc", Path("model.onnx"), folder)         # the IR of another converter
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief
from mo_loop.compare.input_sets.given import save
from mo_loop.compare.results.array_comparison import Named
from mo_loop.compare.results.output_rows import by_wanted_name, flat, packed, rows_of, unpacked
from mo_loop.compare.results.report import AGAINST, ENDED, Side
from mo_loop.compare.results.verify_settings import F32, Feeds, VerifyOptions
from mo_loop.support.workers import Pool

if TYPE_CHECKING:
    from mo_loop.compare.layers.heat import Distance

import time
from collections.abc import Callable
from types import TracebackType

from mo_loop.compare.execution.isolated import SERVE
from mo_loop.compare.execution.runtime import ReshapeError, compile_ir
from mo_loop.compare.results.report import DIFFERS, NOT_RESHAPABLE, PASSED, Row
from mo_loop.compare.results.verify_settings import properties_of


class PlainSide:
    """Runs IR with the same sets, in one `order`; `notes` get the remarks that do not count as differences."""

    def __init__(
        self, sets: Sequence[tuple[str, Feeds]], expected: Sequence[Named], order: Sequence[int],
        settings: VerifyOptions, notes: list[str], pool: Pool | None = None,
    ) -> None:  # fmt: skip
        """`pool` has the process of the run in f32, which stays for another run of the same IR."""
        self._sets, self._expected, self.order = sets, expected, tuple(order)
        self._settings, self._notes = settings, notes
        self.pool = pool
        self.refused: set[int] = set()
        """The sets that the IR which ran last does not run because of their sizes."""
        self.properties: Mapping[str, str] = {}
        """The values of the properties of the device that change numbers, where the IR ran last."""
        self.differing: list[tuple[int, Named]] = []
        """(number of the set, outputs) of the inferences of the IR that ran last whose outputs differ."""
        self.distances: dict[tuple[str, int, str], Distance] = {}
        """The worst distance of an output, by the side and the number of the set; only for a dump."""

    def ran(self, precision: str, target: Path, name: str = "", *, shares: bool | None = None) -> Side:
        """Run an IR and compare; the one that is verified runs in the process of `pool` in f32, others if it `shares`.
        """
        shares = precision == F32 and not name if shares is None else shares
        run = SideRun(name or precision)
        found: dict[int, Named] = {}
        refused = self.refused = set()
        self.differing = []
        with run:
            for inference, number in enumerate(self.order):
                if number in refused:
                    continue
                shared = self.pool if shares else None
                run.worker = run.worker or compiled(self._settings, target, precision, shared=shared)
                self.properties = run.worker.facts[2]
                run.reaches(f"inference {inference} ({self._sets[number][0]})")
                outputs = self._outputs(run, run.worker, number)
                if outputs is None:
                    refused.add(number)
                    continue
                found[number] = outputs
                self._measure(run.name, number, outputs)
                expected = self._expected[number]
                rows = list(rows_of(
                    number, inference, expected, outputs, self._settings, self._notes, of_scale=precision == F32
                ))  # fmt: skip
                run.add(rows)
                if not all(row.result for row in rows):
                    self.differing.append((number, outputs))
        save_sets(self._settings.save, run.name, found)
        return run.side()

    def other(self, converter: str, model: Path, folder: Path) -> Side:
        """The IR of another converter, which runs in a process of its own and writes to `folder`."""
        name = f"{AGAINST}{converter}"
        target = folder / f"{converter}.xml"
        with Pool(f"{__name__}:convert_otherwise", limit=self._settings.limit) as pool:
            outcome = pool.call((str(model), str(target)))
        if not outcome.ok:
            return Side(name, ENDED.get(outcome.status, "refused"), outcome.message)
        return self.ran(F32, target, name)

    def _outputs(self, run: SideRun, worker: Hosted, number: int) -> Named | None:
        """The outputs for a set; None, with a note, if the runtime refuses its sizes: one is 0, or below a window."""
        set_name, feeds = self._sets[number]
        known = {name for names in worker.facts[0] for name in names}
        try:
            return unpacked(worker.run(packed(feeds, known)), self._expected[number])
        except IsolatedError as error:
            if error.status != "error" or not (is_empty(feeds) or is_too_small(error)):
                raise
            # Many operations of the runtime refuse tensors without elements, and windows longer than their input: a
            # limit, not a difference.
            self._notes.append(f"OpenVINO ({run.name}) does not run the inputs {set_name}: {brief(error)}")
            worker.close()  # an inference after one that failed can fail for the same reason
            run.worker = self.pool = None
            return None

    def _measure(self, side: str, number: int, found: Named) -> None:
        """Keep how far the outputs are apart, if a page is to show it."""
        if self._settings.dump is None:
            return
        from mo_loop.compare.layers.heat import distance

        wanted = flat(self._expected[number])
        have = by_wanted_name(wanted, flat(found))
        for name, expected in wanted:
            if name not in have:
                continue
            measured = distance(expected, have[name], self._settings.rtol, self._settings.atol)
            known = self.distances.get((side, number, name))
            if known is None or measured.worst > known.worst:
                self.distances[side, number, name] = measured


def save_sets(folder: Any, side: str, found: Mapping[int, Iterable[tuple[str, Any]]]) -> None:
    """Write the arrays of each set to a folder, if there is one."""
    if folder is None:
        return
    for number, arrays in found.items():
        save(Path(folder) / f"set{number}-{side.replace(' ', '-')}.npz", arrays)


def convert_otherwise(task: tuple[str, str]) -> None:
    """Convert with OpenVINO's own converter, in a worker."""
    convert_with_ovc(*map(Path, task))


def convert_with_ovc(source: Path, target: Path, _: Any = None) -> None:
    """Write the IR of OpenVINO's own converter to `target`, without the processes that it starts for telemetry."""
    os.environ["CI"] = "true"
    import openvino

    openvino.save_model(openvino.convert_model(str(source)), str(target), compress_to_fp16=False)


WINDOWS = (
    "cmp::le(kernel, dim.get_length())",  # a pool
    "larger than the data shape after padding",  # a convolution
    "REFLECT padding mode requires", "SYMMETRIC padding mode requires",
    "The provided frame size is",  # a short-time Fourier transform
)  # fmt: skip
"""Texts of the checks of the runtime where a window, or a reflected part, is longer than its input."""


def is_too_small(error: Exception) -> bool:
    """Whether the runtime refuses inputs because a size is below that of a window."""
    return any(each in str(error) for each in WINDOWS)


def is_empty(feeds: Mapping[str, Any]) -> bool:
    """Whether an input has no elements."""
    return any(np.size(value) == 0 for value in feeds.values() if not isinstance(value, list))


def compiled(
    settings: VerifyOptions, target: Path, precision: str, make: Callable[..., Any] = compile_ir,
    shared: Pool | None = None, **more: str,
) -> Hosted:  # fmt: skip
    """The object of `make` for an IR in a precision on the device, with more properties, in a worker process: one of
    its own, or that of the `shared` pool."""
    pool = worker_pool(settings) if shared is None else shared
    properties = properties_of(precision, settings.device) | more
    sizes = (settings.sizes,) if settings.sizes else ()  # an IR with states has a `make` that takes none
    arguments = (str(target), properties, settings.device, *sizes)
    return Hosted(make, *arguments, pool=pool, keeps_pool=shared is not None)


def worker_pool(settings: VerifyOptions) -> Pool:
    """The process in which an IR runs."""
    return Pool(SERVE, limit=settings.limit, python=settings.python)


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

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool:
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
