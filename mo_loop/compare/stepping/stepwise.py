"""Verification of an IR with states: step by step from a reset, compared with ONNX Runtime, which has no states.

    stepwise = Stepwise(path, source, model, target, converted, settings)
    found = stepwise.compared()                    # sequences, sides, the source of the expected values, notes

Two kinds of variables give two kinds of sequences (mo_loop/compare/stepping/state_variables.py):

- The caller of the ONNX model carries the states: ONNX Runtime runs once for each step, and gets its own outputs back.
- The ONNX model has a loop over a sequence: ONNX Runtime runs it once, and the IR gets slices of its inputs.

Expected values come first, all of them, then the IR runs: both models are not in memory at once. Each sequence begins
with a reset, and runs a second time after the others, so that a state that a reset does not clear becomes a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.api import Model
from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief
from mo_loop.compare.input_sets.accepted_sets import SetSearch, sizes_in
from mo_loop.compare.input_sets.generated import shapes_of
from mo_loop.compare.input_sets.given import input_names, read_sets
from mo_loop.compare.oracle.checked_oracle import Oracle
from mo_loop.compare.results.array_comparison import Named, by_wanted_name
from mo_loop.compare.results.report import Side
from mo_loop.compare.results.verify_settings import F32, Feeds, VerifyOptions
from mo_loop.compare.stepping.cache_steps import PLANS, CacheInputs, CacheStep, StepPlan, reordering
from mo_loop.compare.stepping.slice_steps import SliceInputs, wanted_after
from mo_loop.compare.stepping.state_variables import Carried, matched, state_variables
from mo_loop.compare.stepping.stateful_runtime import InitialStates
from mo_loop.compare.stepping.stepped_side import SequenceRun, SteppedSide, StepRun
from mo_loop.errors import InputError, NotComparableError, UnsupportedError, UsageError
from mo_loop.frontend.model import OnnxModel
from mo_loop.graph.types import name_of
from mo_loop.transforms.states.port_names import BEAM_INDEX


@dataclass
class Compared:
    """The steps that were run, and their comparison."""

    sequences: list[SequenceRun]
    order: tuple[int, ...]
    sides: list[Side]
    oracle: str
    notes: list[str]


def require_stepwise(settings: VerifyOptions) -> None:
    """UsageError for options that compare single inferences: tensors inside an IR depend on the steps before."""
    asked = {
        "--dump": settings.dump is not None, "--layers": settings.layers, "--passes": settings.passes,
        "--against": bool(settings.against),
    }  # fmt: skip
    for flag, is_asked in asked.items():
        if is_asked:
            raise UsageError(
                f"verify does not compare an IR with states with {flag}",
                why="it runs single inferences, and those of such an IR depend on the ones before",
                hint="verify the conversion without states (without --stateful and LowLatency2) with it",
            )  # fmt: skip


class Stepwise:
    """One verification. `source` is the file that ONNX Runtime runs, `model` its contents; `target` is the IR."""

    def __init__(
        self, path: Path, source: Path, model: OnnxModel, target: Path, converted: Model, settings: VerifyOptions
    ) -> None:
        self._path, self._source, self._model = path, source, model
        self._target, self._converted, self._settings = target, converted, settings
        self._notes: list[str] = []
        self._known = shapes_of(converted)
        absent = [name for name in input_names(model) if name not in self._known]
        self._outputs = [each.name for each in model.proto.graph.output]
        self._states = matched(state_variables(converted.graph), absent, self._outputs)
        returned = {each.output for each in self._states.caches}
        self._remaining = [name for name in self._outputs if name not in returned]
        """The outputs that the IR still has."""
        self._beam = BEAM_INDEX in self._known and BEAM_INDEX not in input_names(model)
        self._require_inputs(absent)

    def compared(self) -> Compared:
        """Run both sides."""
        oracle = self._made_oracle()
        try:
            sequences = self._sliced(oracle) if self._states.others else self._carried(oracle)
        finally:
            oracle.close()
        name, reason = oracle.facts
        if reason:
            self._notes.append(f"the expected values are those of {name}: {reason}")
        order = (*range(len(sequences)), *reversed(range(len(sequences))))
        side = SteppedSide(self._target, self._remaining, self._settings, self._notes)
        sides = [side.ran(each, sequences, order) for each in dict.fromkeys((F32, self._settings.precision))]
        return Compared(sequences, order, sides, name, self._notes)

    def _require_inputs(self, absent: Sequence[str]) -> None:
        names = {*input_names(self._model), BEAM_INDEX}
        for port in self._converted.inputs:
            if names.isdisjoint((port.name, *port.names)):
                raise InputError(
                    f"the IR has the input {port.name!r}, which the ONNX model does not have",
                    hint="give the IR of this model",
                )  # fmt: skip
        carried = {each.input for each in self._states.caches}
        lost = [] if self._states.others else [name for name in absent if name not in carried]
        if lost:
            self._notes.append(f"the IR has neither an input nor a state for these inputs: {', '.join(lost)}")

    def _made_oracle(self) -> Hosted:
        try:
            return Hosted(Oracle, str(self._source), limit=self._settings.limit)
        except IsolatedError as error:
            raise NotComparableError(
                f"ONNX Runtime does not run {self._path}", why=brief(error), hint="there is nothing to compare with"
            ) from None

    # -- states that the caller carries

    def _carried(self, oracle: Hosted) -> list[SequenceRun]:
        inputs = CacheInputs(self._model, self._known, self._states.caches, self._settings.seed)
        initial = self._initial_states()
        try:
            if self._settings.inputs:
                return [self._given_steps(oracle, inputs, initial)]
            return self._generated_steps(oracle, inputs, initial)
        finally:
            if initial is not None:
                initial.close()

    def _generated_steps(self, oracle: Hosted, inputs: CacheInputs, initial: Hosted | None) -> list[SequenceRun]:
        """Sequences of the usual sizes; with larger ones, each on its own, if ONNX Runtime does not run those."""
        numbers = range(self._settings.sets)
        refused: list[str] = []
        for plan in PLANS:
            try:
                return [self._cached(oracle, inputs, initial, plan, number) for number in numbers]
            except IsolatedError as error:
                refused.append(brief(error))
        search = SetSearch(inputs.generator, sizes_in(self._model))
        found = []
        for number in numbers:
            for sizes in search.larger_sizes(number):
                inputs.grow(sizes)
                try:
                    found.append(self._cached(oracle, inputs, initial, PLANS[0], number))
                except IsolatedError:
                    continue
                search.fits(sizes)
                break
        if found:
            return found
        raise NotComparableError(
            "no steps could be generated that ONNX Runtime accepts", why=refused[0],
            hint="give the inputs of the steps, one file for each: --input-data STEP1.npz --input-data STEP2.npz",
        )  # fmt: skip

    def _initial_states(self) -> Hosted | None:
        """The worker that computes the initial values of the IR; None, with a note, if it fails."""
        try:
            return Hosted(InitialStates, str(self._target), limit=self._settings.limit)
        except IsolatedError as error:
            self._notes.append(f"the IR does not compute its initial states: {brief(error)}")
            return None

    def _cached(
        self, oracle: Hosted, inputs: CacheInputs, initial: Hosted | None, plan: StepPlan, number: int
    ) -> SequenceRun:
        """A generated sequence."""
        begin = step = inputs.begin(number, plan)
        draws = []
        for _ in range(self._settings.steps):
            feeds = inputs.draw(step)
            if self._beam:
                feeds[BEAM_INDEX] = reordering(step, inputs.batch(step, feeds))
            draws.append(feeds)
            step = inputs.following(step)
        return self._run_carried(oracle, f"sequence {number + 1}", draws, inputs, begin, initial)

    def _given_steps(self, oracle: Hosted, inputs: CacheInputs, initial: Hosted | None) -> SequenceRun:
        """The given sets are the steps of one sequence."""
        carried = {each.input for each in self._states.caches}
        names = [name for name in input_names(self._model) if name not in carried]
        sets = read_sets(self._settings.inputs, self._model, names)
        draws = [{name: value for name, value in feeds.items() if name not in carried} for _, feeds in sets]
        begin = inputs.begin(0, PLANS[0])
        if self._beam:
            for feeds in draws:
                feeds.setdefault(BEAM_INDEX, np.arange(inputs.batch(begin, feeds), dtype=np.int32))
        try:
            return self._run_carried(oracle, "the given steps", draws, inputs, begin, initial)
        except IsolatedError as error:
            raise InputError("ONNX Runtime does not accept the given steps", why=brief(error)) from None

    def _run_carried(
        self, oracle: Hosted, name: str, draws: Sequence[Feeds], inputs: CacheInputs, begin: CacheStep,
        initial: Hosted | None,
    ) -> SequenceRun:  # fmt: skip
        """ONNX Runtime, step by step: the states that it returns are the inputs of its next step."""
        computed = self._computed(initial, draws[0])
        states = inputs.initial(begin, draws[0], computed)
        steps, expected = [], []
        for feeds in draws:
            if self._beam:
                rows = feeds[BEAM_INDEX]
                states = {each.input: self._reordered(each, states[each.input], rows) for each in self._states.caches}
            outputs = oracle.run({**feeds, **states})
            have = dict(outputs)
            states = {each.input: have[each.output] for each in self._states.caches}
            rest = [(key, value) for key, value in outputs if key in self._remaining]
            after = {each.variable.id: have[each.output] for each in self._states.caches}
            steps.append(StepRun(feeds, partial(_all, rest), after))
            expected.append(outputs)
        return SequenceRun(name, steps, expected)

    def _computed(self, initial: Hosted | None, feeds: Feeds) -> dict[str, np.ndarray]:
        if initial is None:
            return {}
        try:
            found: dict[str, np.ndarray] = initial.run(feeds)
            return found
        except IsolatedError as error:
            self._notes.append(f"the IR does not compute its initial states: {brief(error)}")
            return {}

    def _reordered(self, cache: Carried, value: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """A state as the IR should see it. One that does not grow may have no batch: the IR shows if it has."""
        axis = cache.variable.batch
        if axis is None and cache.variable.grows == ():
            return value
        axis = self._usual_batch() if axis is None else axis
        _require_rows(rows, value.shape[axis])
        return np.take(value, rows, axis)

    def _usual_batch(self) -> int:
        """The axis of a cache that nothing reorders: that of the others, so that a missing reordering makes a
        difference."""
        return next((each.variable.batch for each in self._states.caches if each.variable.batch is not None), 0)

    # -- states inside the model

    def _sliced(self, oracle: Hosted) -> list[SequenceRun]:
        inputs = SliceInputs(self._model, self._converted, self._states.caches, self._settings.seed)
        if self._beam:
            what = f"verify cannot reorder states by {BEAM_INDEX} if a loop of the model has states"
            raise UnsupportedError(what)
        if self._settings.inputs:
            given = read_sets(self._settings.inputs, self._model, inputs.needed)
            for name, feeds in given:
                inputs.require_steps(name, feeds)
            wholes = [(name, inputs.completed(feeds), inputs.steps_of(feeds)) for name, feeds in given]
        else:
            lengths = [inputs.length(self._settings.steps)] * self._settings.sets
            if inputs.length(1) < lengths[0]:
                lengths.append(1)  # the first step alone
            wholes = [
                (f"sequence {number + 1}", inputs.draw(number, length), length) for number, length in enumerate(lengths)
            ]
        found = []
        for name, whole, length in wholes:
            try:
                outputs = oracle.run(whole)
            except IsolatedError as error:
                raise InputError(
                    f"ONNX Runtime does not accept the inputs of {name}", why=brief(error),
                    hint="give the inputs of whole sequences: --input-data FILE.npz",
                ) from None  # fmt: skip
            found.append(SequenceRun(name, self._slices(inputs, whole, length, outputs), [outputs]))
        return found

    def _slices(self, inputs: SliceInputs, whole: Feeds, length: int, outputs: Named) -> list[StepRun]:
        have = dict(outputs)
        rest = [(key, value) for key, value in outputs if key in self._remaining]
        steps = [
            StepRun(inputs.step(whole, number), partial(_slice, rest, number, length)) for number in range(length)
        ]
        steps[-1].states = {each.variable.id: have[each.output] for each in self._states.caches}
        return steps


def _require_rows(rows: Any, count: int) -> None:
    """InputError unless `rows`, which can come from a file, are the numbers of rows of states with `count` of them."""
    given = np.asarray(rows)
    if given.ndim == 1 and given.dtype.kind in "iu" and ((given >= 0) & (given < count)).all():
        return
    why = f"it is {name_of(given.dtype)}{list(given.shape)}"
    raise InputError(
        f"{BEAM_INDEX} does not name rows of the states, which have {count}", why=why,
        hint=f"give whole numbers from 0 to {count - 1}, and the same batch in all inputs",
    )  # fmt: skip


def _all(expected: Named, _: Named) -> Named:
    return expected


def _slice(expected: Named, step: int, steps: int, found: Named) -> Named:
    return wanted_after(expected, [*by_wanted_name(expected, found).items()], step, steps)
