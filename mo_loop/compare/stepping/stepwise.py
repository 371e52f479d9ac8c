"""The steps of a verification of an IR with states, and the expected outputs after each.

    found = ExpectedSequences(path, source, model, target, converted, settings, notes)
    found.sequences, found.oracle

Two kinds of variables give two kinds of sequences (mo_loop/compare/stepping/state_variables.py):

- The caller of the ONNX model carries the states: ONNX Runtime runs once for each step, and gets its own outputs back.
- The ONNX model has a loop over a sequence: ONNX Runtime runs it once, and the IR gets slices of its inputs.

Expected values come first, all of them, then the IR runs: both models are not in memory at once. Each sequence begins
with a reset, and runs a second time after the others, so that a state that a reset does not clear becomes a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from mo_loop.api import Model
from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief, isolated
from mo_loop.compare.execution.runtime import initial_states
from mo_loop.compare.input_sets.accepted_sets import SetSearch, sizes_in
from mo_loop.compare.input_sets.generated import shapes_of
from mo_loop.compare.input_sets.given import input_names, read_sets
from mo_loop.compare.results.array_comparison import Named
from mo_loop.compare.results.verify_settings import Feeds, VerifyOptions
from mo_loop.compare.sides.expected_sets import oracle_of
from mo_loop.compare.sides.side_run import SequenceRun, StepRun
from mo_loop.compare.stepping.state_variables import StateVariable, state_variables
from mo_loop.compare.stepping.step_inputs import PLANS, CacheInputs, CacheStep, SliceInputs
from mo_loop.errors import InputError, NotComparableError, UnsupportedError, UsageError
from mo_loop.frontend.model import OnnxModel
from mo_loop.graph.types import name_of
from mo_loop.transforms.states.port_names import BEAM_INDEX


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


class ExpectedSequences:
    """`sequences` are those to run, `oracle` is the source of their expected values."""

    def __init__(
        self, path: Path, source: Path, model: OnnxModel, target: Path, converted: Model, settings: VerifyOptions,
        notes: list[str],
    ) -> None:  # fmt: skip
        """`source` is the file that ONNX Runtime runs, `model` its contents, `path` that of the whole model; `target`
        is the file of the IR."""
        self._model, self._target, self._settings, self._notes = model, target, settings, notes
        known, names = shapes_of(converted), input_names(model)
        absent = [name for name in names if name not in known]
        states = state_variables(converted.graph, absent, [each.name for each in model.proto.graph.output])
        self._caches = [each for each in states if each.input]
        """The states that the caller of the ONNX model carries."""
        self._has_beam = BEAM_INDEX in known and BEAM_INDEX not in names
        for port in converted.inputs:
            if {*names, BEAM_INDEX}.isdisjoint((port.name, *port.names)):
                raise InputError(
                    f"the IR has the input {port.name!r}, which the ONNX model does not have",
                    hint="give the IR of this model",
                )  # fmt: skip
        self._needed = [name for name in names if name not in [each.input for each in self._caches]]
        is_sliced = len(self._caches) < len(states)
        lost = [name for name in absent if name in self._needed and not is_sliced]
        if lost:
            notes.append(f"the IR has neither an input nor a state for these inputs: {', '.join(lost)}")
        with closing(oracle_of(source, settings, notes, "there is nothing to compare with", path)) as oracle:
            self.oracle = oracle.facts[0]
            if is_sliced:
                self.sequences = self._sliced(oracle, SliceInputs(model, converted, self._caches, settings.seed))
            else:
                inputs = CacheInputs(model, known, self._caches, settings.seed, has_beam=self._has_beam)
                self.sequences = self._given(oracle, inputs) if settings.inputs else self._generated(oracle, inputs)

    # -- states that the caller carries

    def _generated(self, oracle: Hosted, inputs: CacheInputs) -> list[SequenceRun]:
        """Sequences of the usual sizes; with larger ones, each on its own, if ONNX Runtime does not run those."""

        def sequence(number: int, *plan: bool) -> SequenceRun:
            first = inputs.first(number, *plan)
            draws = inputs.drawn(first, self._settings.steps)
            return self._carried(oracle, f"sequence {number + 1}", draws, inputs, first)

        numbers = range(self._settings.sets)
        refused: list[str] = []
        for plan in PLANS:
            try:
                return [sequence(number, *plan) for number in numbers]
            except IsolatedError as error:
                refused.append(brief(error))
        search = SetSearch(inputs.generator, sizes_in(self._model))
        found = []
        for number in numbers:
            for sizes in search.larger_sizes(number):
                inputs.larger = sizes
                try:
                    found.append(sequence(number, *PLANS[0]))
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

    def _given(self, oracle: Hosted, inputs: CacheInputs) -> list[SequenceRun]:
        """The given sets are the steps of one sequence."""
        sets = read_sets(self._settings.inputs, self._model, self._needed)
        carried = {each.input for each in self._caches}
        draws = [{name: value for name, value in feeds.items() if name not in carried} for _, feeds in sets]
        first = inputs.first(0, *PLANS[0])
        for feeds in draws:
            inputs.reorder(first, feeds)
        try:
            return [self._carried(oracle, "the given steps", draws, inputs, first)]
        except IsolatedError as error:
            raise InputError("ONNX Runtime does not accept the given steps", why=brief(error)) from None

    def _carried(
        self, oracle: Hosted, name: str, draws: Sequence[Feeds], inputs: CacheInputs, first: CacheStep
    ) -> SequenceRun:
        """ONNX Runtime, step by step: the states that it returns are the inputs of its next step."""
        computed: dict[str, np.ndarray] = {}
        try:
            computed = isolated(initial_states, str(self._target), draws[0], limit=self._settings.limit)
        except IsolatedError as error:
            self._notes.append(f"the IR does not compute its initial states: {brief(error)}")
        states = inputs.initial(first, draws[0], computed)
        steps = []
        for feeds in draws:
            if self._has_beam:
                rows = feeds[BEAM_INDEX]
                states = {each.input: self._reordered(each, states[each.input], rows) for each in self._caches}
            outputs = oracle.run({**feeds, **states})
            have = dict(outputs)
            states = {each.input: have[each.output] for each in self._caches}
            steps.append(StepRun(feeds, *self._parts(outputs)))
        return SequenceRun(name, steps)

    def _parts(self, outputs: Named) -> tuple[Named, dict[str, np.ndarray]]:
        """The outputs that the IR still has, and the values of its variables by their ids."""
        have, returned = dict(outputs), {each.output for each in self._caches}
        rest = [(name, value) for name, value in outputs if name not in returned]
        return rest, {each.id: have[each.output] for each in self._caches}

    def _reordered(self, state: StateVariable, value: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """A state as the IR should see it. One that does not grow may have no batch: the IR shows if it has. A cache
        that nothing reorders has the batch of the others, so that a missing reordering makes a difference."""
        axis = state.batch
        if axis is None and state.grows == ():
            return value
        if axis is None:
            axis = next((each.batch for each in self._caches if each.batch is not None), 0)
        given, count = np.asarray(rows), value.shape[axis]
        if given.ndim != 1 or given.dtype.kind not in "iu" or not ((given >= 0) & (given < count)).all():
            raise InputError(
                f"{BEAM_INDEX} does not name rows of the states, which have {count}",
                why=f"it is {name_of(given.dtype)}{list(given.shape)}",
                hint=f"give whole numbers from 0 to {count - 1}, and the same batch in all inputs",
            )  # fmt: skip
        return np.take(value, given, axis)

    # -- states inside the model

    def _sliced(self, oracle: Hosted, inputs: SliceInputs) -> list[SequenceRun]:
        if self._has_beam:
            raise UnsupportedError(f"verify cannot reorder states by {BEAM_INDEX} if a loop of the model has states")
        found = []
        for name, whole, count in inputs.sequences(self._settings):
            try:
                expected, states = self._parts(oracle.run(whole))
            except IsolatedError as error:
                raise InputError(
                    f"ONNX Runtime does not accept the inputs of {name}", why=brief(error),
                    hint="give the inputs of whole sequences: --input-data FILE.npz",
                ) from None  # fmt: skip
            found.append(SequenceRun(name, [
                StepRun(inputs.step(whole, number), expected, states if number == count - 1 else {}, number, count)
                for number in range(count)
            ]))  # fmt: skip
        return found
