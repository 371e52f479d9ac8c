"""The IR with states on its device: sequences of steps, each from a reset, compared after every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.runtime import Stepped
from mo_loop.compare.input_sets.given import save
from mo_loop.compare.results.array_comparison import Named
from mo_loop.compare.results.output_rows import by_wanted_name, rows_of, type_text
from mo_loop.compare.results.report import InputSet, Side
from mo_loop.compare.results.verify_settings import F32, Feeds, VerifyOptions
from mo_loop.compare.sides.side_run import SideRun, compiled

STEPPED: Callable[..., Any] = Stepped
"""The class of the object in the worker; tests replace it by a device with a fault."""


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
        worker = run.worker = compiled(settings, target, precision, STEPPED, None, **more)
        for inference, (number, place, step) in enumerate(steps):
            run.reaches(f"step {place} of {sequences[number].name}")
            outputs, states = worker.run(step.feeds, place == 1, bool(step.states))
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
