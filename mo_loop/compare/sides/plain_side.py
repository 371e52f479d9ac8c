"""An IR without states on its device: all sets on one compiled model, compared after every inference.

    plain = PlainSide(found, settings, notes)                      # the ExpectedSets
    side = plain.ran("f32", Path("model.xml"))
    other = plain.other("ovc", Path("model.onnx"), folder)         # the IR of another converter
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief
from mo_loop.compare.execution.runtime import GROUP_SIZE, KNOWN
from mo_loop.compare.input_sets.given import save
from mo_loop.compare.results.array_comparison import Named, largest_number
from mo_loop.compare.results.output_rows import by_wanted_name, flat, packed, rows_of, unpacked
from mo_loop.compare.results.report import AGAINST, DIFFERS, ENDED, PASSED, Side
from mo_loop.compare.results.verify_settings import DEFAULT, F32, VerifyOptions
from mo_loop.compare.sides.expected_sets import ExpectedSets
from mo_loop.compare.sides.side_run import SideRun, compiled, is_empty
from mo_loop.graph import Graph
from mo_loop.support.workers import Pool
from mo_loop.transforms.low_precision.saturation import rounded_products

if TYPE_CHECKING:
    from mo_loop.compare.layers.heat import Distance


class PlainSide:
    """Runs IR with the same sets; `notes` get the remarks that do not count as differences."""

    def __init__(
        self, found: ExpectedSets, settings: VerifyOptions, notes: list[str], pool: Pool | None = None,
        order: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """By default all sets run forwards and backwards. `pool` has the process of the run in f32, which stays for
        another run of the same IR."""
        self.found, self._order = found, order
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

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the sets in the order of the inferences."""
        numbers = range(len(self.found.sets))
        return (*numbers, *reversed(numbers)) if self._order is None else tuple(self._order)

    def ran(self, precision: str, target: Path, name: str = "", *, shares: bool | None = None) -> Side:
        """Run an IR and compare; the one that is verified runs in the process of `pool` in f32, others if it `shares`.
        """
        shares = precision == F32 and not name if shares is None else shares
        run = SideRun(name or precision)
        found: dict[int, Named] = {}
        refused = self.refused = set()
        self.differing = []
        self.distances = {key: each for key, each in self.distances.items() if key[0] != run.name}
        with run:
            for inference, number in enumerate(self.order):
                if number in refused:
                    continue
                shared = self.pool if shares else None
                run.worker = run.worker or compiled(self._settings, target, precision, shared=shared)
                self.properties = run.worker.facts[2]
                run.reaches(f"inference {inference} ({self.found.sets[number][0]})")
                outputs = self._outputs(run, run.worker, number)
                if outputs is None:
                    refused.add(number)
                    continue
                found[number] = outputs
                self._measure(run.name, number, outputs)
                expected = self.found.expected[number]
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
        set_name, feeds = self.found.sets[number]
        known = {name for names in worker.facts[0] for name in names}
        try:
            return unpacked(worker.run(packed(feeds, known)), self.found.expected[number])
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

        wanted = flat(self.found.expected[number])
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


@dataclass(frozen=True)
class DefaultRun:
    """The output with the largest difference, relative to its largest number; `properties` are the values of those that
    differ from the run in f32, `error` is why the IR does not run."""

    output: str = ""
    largest_abs: float = 0.0
    relative: float = 0.0
    properties: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    def as_json(self) -> dict[str, Any]:
        """All fields; a difference that is not finite is text."""
        found = {key: value for key, value in asdict(self).items() if value or isinstance(value, float)}
        return {key: str(value) if value in (np.inf, -np.inf) else value for key, value in found.items()}

    def __str__(self) -> str:
        if self.error:
            return f"with the device's defaults the IR does not run: {self.error}"
        values = ", ".join(f"{name} is {value}" for name, value in self.properties.items())
        why = f": {values}" if values else ", whose properties are those of the run in f32"
        what = f"{self.output} differs by {self.largest_abs:.3g} ({self.relative:.2g} of its largest number)"
        return f"with the device's defaults, {what if self.output else 'nothing differs'}{why}"


def default_run(plain: PlainSide, settings: VerifyOptions, target: Path, graph: Graph) -> DefaultRun:
    """Run each set once, but for those whose sizes the runtime does not take. `graph` is that of the IR, `plain` ran it
    in f32, in a process that may still be there."""
    found = plain.found
    order = [number for number in range(len(found.sets)) if number not in plain.refused]
    again = PlainSide(found, replace(settings, save=None, dump=None), [], plain.pool, order)
    side = again.ran(DEFAULT, target, shares=True)
    if side.status not in (PASSED, DIFFERS):
        return DefaultRun(error=side.message)
    worst = DefaultRun()
    for row in side.rows:
        largest = np.inf if row.result.kind == "shape" else row.result.largest_abs
        scale = largest_number(dict(flat(found.expected[row.set])).get(row.output, 0.0))
        if largest / (scale or 1.0) > worst.relative:
            worst = DefaultRun(row.output, largest, largest / (scale or 1.0))
    changed = {name: value for name, value in again.properties.items() if value != KNOWN[name]}
    if not rounded_products(graph):  # no layer whose activations the device would round
        changed.pop(GROUP_SIZE, None)
    return replace(worst, properties=changed)
