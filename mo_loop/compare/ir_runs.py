"""Runs of an IR on its device, compared with expected values: one side of a verification.

    runs = IrRuns(found, settings, notes)                     # of ExpectedSets, or of ExpectedSequences
    side = runs.ran("f32", Path("model.xml"))                 # all sets on one compiled model
    other = runs.other("ovc", Path("model.onnx"), folder)     # the IR of another converter

    run = SideRun("f32")
    with run.running():                              # an IsolatedError ends the block, and becomes the status
        run.worker = compiled(settings, Path("model.xml"), "f32")
        run.reaches("inference 0 (generated 0)")
        run.add(rows_of(...))
    return run.side()

Leaving the block closes the worker. Of the rows of an output in one set the worst stays. Outputs are compared after
every inference.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import SERVE, Hosted, IsolatedError, brief
from mo_loop.compare.execution.runtime import GROUP_SIZE, KNOWN, ReshapeError, compile_ir
from mo_loop.compare.input_sets.expected_sequences import ExpectedSequences
from mo_loop.compare.input_sets.expected_sets import ExpectedSet, ExpectedSets, StepRun
from mo_loop.compare.input_sets.given import save
from mo_loop.compare.results.array_comparison import Named, flat, json_ready, largest_number, packed, unpacked
from mo_loop.compare.results.report import AGAINST, DIFFERS, ENDED, NOT_RESHAPABLE, PASSED, Row, Side, rows_of
from mo_loop.compare.verify_options import DEFAULT, F32, VerifyOptions, properties_of
from mo_loop.errors import UsageError
from mo_loop.graph import Graph
from mo_loop.support.workers import Pool
from mo_loop.transforms.low_precision.weights import rounded_products

WINDOWS = (
    "cmp::le(kernel, dim.get_length())",  # a pool
    "larger than the data shape after padding",  # a convolution
    "REFLECT padding mode requires", "SYMMETRIC padding mode requires",
    "The provided frame size is",  # a short-time Fourier transform
)
"""Texts of the checks of the runtime where a window, or a reflected part, is longer than its input."""


def compiled(settings: VerifyOptions, target: Path, precision: str, shared: Pool | None = None, **more: str) -> Hosted:
    """An IR, compiled in a precision for the device, with more properties, in a worker process: one of its own, or that
    of the `shared` pool."""
    arguments = (str(target), properties_of(precision, settings.device) | more, settings.device, settings.sizes)
    return Hosted(compile_ir, *arguments, pool=shared, limit=settings.limit, python=settings.python)


def worker_pool(settings: VerifyOptions) -> Pool:
    """The process in which an IR runs."""
    return Pool(SERVE, limit=settings.limit, python=settings.python)


def is_empty(feeds: Mapping[str, Any]) -> bool:
    """Whether an input has no elements."""
    return any(np.size(value) == 0 for value in feeds.values() if not isinstance(value, list))


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
        """Keep the worst row of each set and output: the first one that differs, else that of the largest difference.
        """
        for row in rows:
            known = self._rows.setdefault((row.set, row.output), row)
            if known.result and (not row.result or row.result.largest_abs > known.result.largest_abs):
                self._rows[row.set, row.output] = row

    def side(self) -> Side:
        """The result."""
        seconds = time.perf_counter() - self._start
        return Side(self.name, self._status, self._message, tuple(self._rows.values()), seconds)

    @contextmanager
    def running(self) -> Iterator[None]:
        """The inferences are within. An IsolatedError ends the block, and becomes the status; the worker ends too."""
        try:
            yield
            self._status = PASSED if all(row.result for row in self._rows.values()) else DIFFERS
        except IsolatedError as error:
            self._status, self._message = ENDED.get(error.status, self._status), self._place + brief(error)
            if error.error == ReshapeError.__name__:
                self._status = NOT_RESHAPABLE
        finally:
            if self.worker is not None:
                self.worker.close()


@dataclass
class IrRuns:
    """Runs IR with the same sets, each from a reset of the states; `notes` get the remarks that do not count as
    differences.

    By default all sets run forwards and backwards, else those of `numbers`. `pool` is a process that stays after a run
    for the next one: `sharing` gives one.
    """

    found: ExpectedSets | ExpectedSequences
    settings: VerifyOptions
    notes: list[str]
    pool: Pool | None = None
    numbers: Sequence[int] | None = None
    refused: set[int] = field(default_factory=set)
    """The sets that the IR which ran last does not run because of their sizes."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """The values of the properties of the device that change numbers, where the IR ran last."""

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the sets in the order of the inferences."""
        numbers = range(len(self.found.sets))
        return (*numbers, *reversed(numbers)) if self.numbers is None else tuple(self.numbers)

    @contextmanager
    def sharing(self) -> Iterator[None]:
        """The runs within have one process, until one of them needs a new one."""
        with worker_pool(self.settings) as self.pool:
            yield
        self.pool = None

    def ran(self, precision: str, target: Path, name: str = "") -> Side:
        """Run an IR and compare."""
        run, sets, settings = SideRun(name or precision), self.found.sets, self.settings
        has_states, found = self.found.has_states, dict[int, Named]()
        self.refused = set()
        # Caches that the device fuses with attention are u8 otherwise.
        is_exact = has_states and precision == F32 and settings.device.startswith("CPU")
        more = {"KV_CACHE_PRECISION": F32} if is_exact else {}
        steps = ((number, place, step) for number in self.order for place, step in enumerate(sets[number].steps, 1))
        with run.running():
            for inference, (number, place, step) in enumerate(steps):
                if number in self.refused:
                    continue
                run.worker = run.worker or compiled(settings, target, precision, self.pool, **more)
                self.properties = run.worker.facts[2]
                of = sets[number].name
                run.reaches(f"step {place} of {of}" if has_states else f"inference {inference} ({of})")
                done = self._inferred(run, run.worker, of, step, is_first=place == 1)
                if done is None:
                    self.refused.add(number)
                    continue
                outputs, states = done
                wanted, have = step.compared(outputs)
                after = {each: _as(value, states.get(each), precision) for each, value in step.states.items()}
                of_scale = precision == F32 and not has_states
                for expected, outcome in ((wanted, have), (_named(step.states), _named(after))):
                    rows = rows_of(number, inference, expected, outcome, settings, self.notes, of_scale=of_scale)
                    run.add(replace(row, step=place if has_states else 0) for row in rows)
                if not has_states:
                    found[number] = outputs
                elif settings.save is not None:
                    files = {"inputs": step.feeds.items(), "onnxruntime": [*wanted, *_named(step.states)],
                             precision: [*outputs, *_named(states)]}
                    for kind, arrays in files.items():
                        save(Path(settings.save, f"sequence{number + 1}-step{place}-{kind}.npz"), arrays)
        save_sets(settings.save, run.name, found)
        return run.side()

    def enlarge(self, target: Path) -> bool:
        """Replace generated sets that OpenVINO refuses by larger ones; returns whether any could be found.

        The sets that stay refused are as they were. Both runtimes run at once meanwhile.
        """
        found, sets = self.found, self.found.sets
        numbers = [number for number in sorted(self.refused) if not is_empty(sets[number].feeds)]
        if self.settings.inputs or not numbers or not isinstance(found, ExpectedSets):
            return False
        with closing(found.hosted()) as oracle, closing(compiled(self.settings, target, F32)) as ir:
            return any([self._enlarge(found, number, oracle, ir) for number in numbers])

    def _enlarge(self, found: ExpectedSets, number: int, oracle: Hosted, ir: Hosted) -> bool:
        known = {name for names in ir.facts[0] for name in names}
        for sizes, feeds in found.search.candidates(number, above=found.sets[number].sizes):
            try:
                expected = oracle.run(feeds)
                ir.run(packed(feeds, known))
            except IsolatedError as error:
                if error.status != "error":
                    return False
                continue
            found.sets[number] = ExpectedSet(found.sets[number].name, [StepRun(feeds, expected)], sizes)
            found.search.fits(sizes)
            return True
        return False

    def other(self, converter: str, model: Path, folder: Path) -> Side:
        """The IR of another converter, which runs in a process of its own and writes to `folder`."""
        name = f"{AGAINST}{converter}"
        target = folder / f"{converter}.xml"
        with Pool(SERVE, limit=self.settings.limit) as pool:
            outcome = pool.call((convert_with_ovc, (model, target)))
        if not outcome.ok:
            return Side(name, ENDED.get(outcome.status, "refused"), outcome.message)
        return self.ran(F32, target, name)

    def _inferred(
        self, run: SideRun, worker: Hosted, name: str, step: StepRun, *, is_first: bool
    ) -> tuple[Named, dict[str, Any]] | None:
        """The outputs and the states after a step, the first one from a reset; None, with a note, if the runtime
        refuses the sizes of a set: one is 0, or below a window."""
        known = {name for names in worker.facts[0] for name in names}
        try:
            is_reset, has_states = is_first and self.found.has_states, bool(step.states)
            outputs, states = worker.call("step", packed(step.feeds, known), is_reset, has_states)
            return unpacked(outputs, step.expected), states
        except IsolatedError as error:
            is_of_size = is_empty(step.feeds) or any(text in str(error) for text in WINDOWS)
            if self.found.has_states or error.status != "error" or not is_of_size:
                raise
            # Many operations of the runtime refuse tensors without elements, and windows longer than their input: a
            # limit, not a difference.
            self.notes.append(f"OpenVINO ({run.name}) does not run the inputs {name}: {brief(error)}")
            (self.pool or worker).close()  # an inference after one that failed can fail for the same reason
            run.worker = self.pool = None
            return None


def save_sets(folder: Any, side: str, found: Mapping[int, Iterable[tuple[str, Any]]]) -> None:
    """Write the arrays of each set to a folder, if there is one."""
    if folder is None:
        return
    for number, arrays in found.items():
        save(Path(folder) / f"set{number}-{side.replace(' ', '-')}.npz", arrays)


def convert_with_ovc(source: Path, target: Path, _: Any = None) -> None:
    """Write the IR of OpenVINO's own converter to `target`, without the processes that it starts for telemetry."""
    os.environ["CI"] = "true"
    import openvino

    openvino.save_model(openvino.convert_model(str(source)), str(target), compress_to_fp16=False)


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
        found = json_ready(asdict(self))
        return {key: value for key, value in found.items() if value or isinstance(value, float)}

    def __str__(self) -> str:
        if self.error:
            return f"with the device's defaults the IR does not run: {self.error}"
        values = ", ".join(f"{name} is {value}" for name, value in self.properties.items())
        why = f": {values}" if values else ", whose properties are those of the run in f32"
        what = f"{self.output} differs by {self.largest_abs:.3g} ({self.relative:.2g} of its largest number)"
        return f"with the device's defaults, {what if self.output else 'nothing differs'}{why}"


def default_run(plain: IrRuns, target: Path, graph: Graph) -> DefaultRun:
    """Run each set once, but for those whose sizes the runtime does not take. `graph` is that of the IR, `plain` ran it
    in f32, in a process that may still be there."""
    found = plain.found
    order = [number for number in range(len(found.sets)) if number not in plain.refused]
    again = IrRuns(found, replace(plain.settings, save=None, dump=None), [], plain.pool, order)
    side = again.ran(DEFAULT, target)
    if side.status not in (PASSED, DIFFERS):
        return DefaultRun(error=side.message)
    worst = DefaultRun()
    for row in side.rows:
        largest = np.inf if row.result.kind == "shape" else row.result.largest_abs
        scale = largest_number(dict(flat(found.sets[row.set].expected)).get(row.output, 0.0))
        if largest / (scale or 1.0) > worst.relative:
            worst = DefaultRun(row.output, largest, largest / (scale or 1.0))
    changed = {name: value for name, value in again.properties.items() if value != KNOWN[name]}
    if not rounded_products(graph):  # no layer whose activations the device would round
        changed.pop(GROUP_SIZE, None)
    return replace(worst, properties=changed)


# -- an IR with states


def require_stepwise(settings: VerifyOptions) -> None:
    """UsageError for options that compare single inferences: tensors inside an IR depend on the steps before."""
    asked = {
        "--dump": settings.dump is not None, "--layers": settings.layers, "--passes": settings.passes,
        "--against": bool(settings.against),
    }
    for flag, is_asked in asked.items():
        if is_asked:
            raise UsageError(
                f"verify does not compare an IR with states with {flag}",
                why="it runs single inferences, and those of such an IR depend on the ones before",
                hint="verify the conversion without states (without --stateful and LowLatency2) with it",
            )


def _named(states: Mapping[str, np.ndarray]) -> Named:
    return [(f"state {name}", value) for name, value in states.items()]


def _as(value: np.ndarray, have: np.ndarray | None, precision: str) -> np.ndarray:
    """The state `have` of the IR, to compare it with `value`."""
    have = np.zeros(0, np.float32) if have is None else have
    if value.ndim == 0 and have.size == 1:
        have = have.reshape(())  # the CPU device has scalars as tensors of one element
    return have if precision == F32 else have.astype(value.dtype)
