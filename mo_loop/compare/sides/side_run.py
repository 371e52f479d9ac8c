"""SideRun: one side of a comparison while it runs, and its result at the end.

    run = SideRun("f32")
    with run:                                        # an IsolatedError ends the block, and becomes the status
        run.worker = compiled(settings, Path("model.xml"), "f32")
        run.reaches("inference 0 (generated 0)")
        run.add(rows_of(...))
    return run.side()

Leaving the block closes the worker. Of the rows of an output in one set the worst stays. `ran_in_steps` runs an IR with
states: sequences of steps, each from a reset, compared after every step.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief
from mo_loop.compare.execution.runtime import ReshapeError, compile_ir
from mo_loop.compare.input_sets.given import save
from mo_loop.compare.results.array_comparison import Named
from mo_loop.compare.results.output_rows import by_wanted_name, rows_of, type_text
from mo_loop.compare.results.report import DIFFERS, ENDED, NOT_RESHAPABLE, PASSED, InputSet, Row, Side
from mo_loop.compare.results.verify_settings import F32, Feeds, VerifyOptions, properties_of
from mo_loop.support.workers import Pool


def compiled(
    settings: VerifyOptions, target: Path, precision: str, shared: Pool | None = None, **more: str
) -> Hosted:
    """An IR, compiled in a precision for the device, with more properties, in a worker process: one of its own, or that
    of the `shared` pool."""
    properties = properties_of(precision, settings.device) | more
    arguments = (str(target), properties, settings.device, settings.sizes)
    return Hosted(compile_ir, *arguments, pool=shared, limit=settings.limit, python=settings.python)


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


@dataclass(frozen=True)
class StepRun:
    """One inference of the IR: its inputs, the outputs that it has to give, and values of variables by their ids.

    Where ONNX Runtime runs a whole sequence at once, `expected` are the outputs of all, and this is the step `number`
    of `count`.
    """

    feeds: Feeds
    expected: Named
    states: Mapping[str, np.ndarray] = field(default_factory=dict)
    number: int = 0
    count: int = 1

    def wanted(self, found: Mapping[str, Any]) -> Named:
        """The outputs that can be compared after the step: slices of those with the axis of the sequence, the others
        at last. `found` are those of the IR after this step, under the same names."""
        wanted: Named = []
        for name, array in self.expected:
            shape = np.shape(array)
            small = np.shape(found[name]) if name in found else shape
            axes = [axis for axis, (a, b) in enumerate(zip(shape, small, strict=False)) if a != b]
            if len(shape) == len(small) and len(axes) == 1 and (shape[axes[0]], small[axes[0]]) == (self.count, 1):
                wanted.append((name, np.take(array, [self.number], axes[0])))
            elif self.number == self.count - 1:
                wanted.append((name, array))
        return wanted


@dataclass(frozen=True)
class SequenceRun:
    """The steps from one reset to the next."""

    name: str
    steps: Sequence[StepRun]

    @property
    def record(self) -> InputSet:
        """The sequence as the report has it, with the types of its first step."""
        return InputSet(self.name, {name: type_text(value) for name, value in self.steps[0].feeds.items()})

    @property
    def expected(self) -> list[Named]:
        """The outputs of ONNX Runtime."""
        return [[*each.expected, *each.states.items()] for each in self.steps]


def ran_in_steps(
    target: Path, sequences: Sequence[SequenceRun], order: Sequence[int], precision: str, settings: VerifyOptions,
    notes: list[str],
) -> Side:  # fmt: skip
    """Run an IR: the sequences in this order, each from a reset. `notes` get the remarks that do not count as
    differences."""
    run = SideRun(precision)
    steps = [(number, place, step) for number in order for place, step in enumerate(sequences[number].steps, 1)]
    # Caches that the device fuses with attention are u8 otherwise.
    more = {"KV_CACHE_PRECISION": F32} if precision == F32 and settings.device.startswith("CPU") else {}
    with run:
        worker = run.worker = compiled(settings, target, precision, None, **more)
        for inference, (number, place, step) in enumerate(steps):
            run.reaches(f"step {place} of {sequences[number].name}")
            outputs, states = worker.call("step", step.feeds, place == 1, bool(step.states))
            named = by_wanted_name(step.expected, outputs)
            wanted, kept = step.wanted(named), _named(step.states)
            # Otherwise an output lacks, which the comparison reports.
            found = [*named.items()] if len(outputs) == len(step.expected) else outputs
            have = [(f"state {name}", _as(value, states.get(name), precision)) for name, value in step.states.items()]
            for expected, outcome in ((wanted, found), (kept, have)):
                rows = rows_of(number, inference, expected, outcome, settings, notes)
                run.add(replace(row, step=place) for row in rows)
            if settings.save is not None:
                start = f"sequence{number + 1}-step{place}"
                files = {"inputs": step.feeds.items(), "onnxruntime": [*wanted, *kept],
                         precision: [*outputs, *_named(states)]}  # fmt: skip
                for name, arrays in files.items():
                    save(Path(settings.save, f"{start}-{name}.npz"), arrays)
    return run.side()


def _named(states: Mapping[str, np.ndarray]) -> Named:
    return [(f"state {name}", value) for name, value in states.items()]


def _as(value: np.ndarray, have: np.ndarray | None, precision: str) -> np.ndarray:
    """The state `have` of the IR, to compare it with `value`."""
    have = np.zeros(0, np.float32) if have is None else have
    if value.ndim == 0 and have.size == 1:
        have = have.reshape(())  # the CPU device has scalars as tensors of one element
    return have if precision == F32 else have.astype(value.dtype)
