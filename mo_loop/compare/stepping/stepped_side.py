"""The IR with states on its device: sequences of steps, each from a reset, compared after every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import Hosted
from mo_loop.compare.input_sets.given import save
from mo_loop.compare.results.array_comparison import Named, by_wanted_name
from mo_loop.compare.results.report import InputSet, Row, Side, rows_of, type_text
from mo_loop.compare.results.verify_settings import F32, Feeds, VerifyOptions
from mo_loop.compare.sides.side_run import SideRun, compiled
from mo_loop.compare.stepping.stateful_runtime import StateTask, Stepped

Wanted = Callable[[Named], Named]
"""Gives the expected values after a step from the actual ones: slices depend on the shape of the IR's outputs."""


@dataclass
class StepRun:
    """One inference of the IR: its inputs, the outputs that it has to give, and values of variables by their ids."""

    feeds: Feeds
    wanted: Wanted
    states: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass
class SequenceRun:
    """The steps from one reset to the next. `expected` are outputs of ONNX Runtime, for notes about them."""

    name: str
    steps: list[StepRun]
    expected: list[Named]

    @property
    def record(self) -> InputSet:
        """The sequence as the report has it, with the types of its first step."""
        return InputSet(self.name, {name: type_text(value) for name, value in self.steps[0].feeds.items()})


class SteppedSide:
    """Runs an IR. `names` are the outputs of the ONNX model that it must have; `notes` get the remarks that do not
    count as differences."""

    def __init__(self, target: Path, names: Sequence[str], settings: VerifyOptions, notes: list[str]) -> None:
        self._target, self._names, self._settings, self._notes = target, names, settings, notes

    def ran(self, precision: str, sequences: Sequence[SequenceRun], order: Sequence[int]) -> Side:
        """Run the sequences in this order, each from a reset."""
        run = SideRun(precision)
        steps = ((number, place, step) for number in order for place, step in enumerate(sequences[number].steps))
        with run:
            worker = run.worker = self._stepped(precision)
            for inference, (number, place, step) in enumerate(steps):
                run.reaches(f"step {place + 1} of {sequences[number].name}")
                outputs, states = worker.run(StateTask(step.feeds, reset=not place, states=bool(step.states)))
                run.add(self._rows(number, inference, place + 1, step, outputs, states, precision))
                self._save(precision, number, place, step, outputs, states)
        return run.side()

    def _stepped(self, precision: str) -> Hosted:
        settings = self._settings
        # Caches that the device fuses with attention are u8 otherwise.
        more = {"KV_CACHE_PRECISION": F32} if precision == F32 and settings.device.startswith("CPU") else {}
        return compiled(settings, self._target, precision, STEPPED, None, **more)

    def _rows(
        self, number: int, inference: int, step: int, run: StepRun, outputs: Named, states: Mapping[str, np.ndarray],
        precision: str,
    ) -> Iterable[Row]:  # fmt: skip
        wanted = run.wanted(outputs)
        found = outputs
        if len(outputs) == len(self._names):  # otherwise an output lacks, which the comparison reports
            found = [*by_wanted_name([(name, None) for name in self._names], outputs).items()]
        yield from (
            _at(row, step) for row in rows_of(number, inference, wanted, found, self._settings, self._notes)
        )
        for name, value in run.states.items():
            have = states.get(name)
            if have is None:
                have = np.zeros(0, np.float32)
            if value.ndim == 0 and have.size == 1:
                have = have.reshape(())  # the CPU device has scalars as tensors of one element
            if precision != F32:
                have = have.astype(value.dtype)
            pair = [(f"state {name}", value)], [(f"state {name}", have)]
            yield from (_at(row, step) for row in rows_of(number, inference, *pair, self._settings, self._notes))

    def _save(
        self, precision: str, number: int, place: int, step: StepRun, outputs: Named, states: Mapping[str, np.ndarray]
    ) -> None:
        if self._settings.save is None:
            return
        folder = Path(self._settings.save)
        name = f"sequence{number + 1}-step{place + 1}"
        save(folder / f"{name}-inputs.npz", step.feeds.items())
        save(folder / f"{name}-onnxruntime.npz", [*step.wanted(outputs), *_named_states(step.states)])
        save(folder / f"{name}-{precision}.npz", [*outputs, *_named_states(states)])


STEPPED: Callable[..., Any] = Stepped
"""The class of the object in the worker; tests replace it by a device with a fault."""


def _named_states(states: Mapping[str, np.ndarray]) -> Named:
    return [(f"state {name}", value) for name, value in states.items()]


def _at(row: Row, step: int) -> Row:
    return replace(row, step=step)
