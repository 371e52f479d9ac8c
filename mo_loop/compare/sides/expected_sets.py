"""The inputs of a verification, and the expected outputs: from files, or from ONNX Runtime.

    found = ExpectedSets(Path("model.onnx"), model, settings, notes, shapes_of(converted))
    found.sets, found.expected, found.oracle

Without given inputs, sets are generated that ONNX Runtime accepts, and whose values are the same in two runs.

    found = ExpectedSequences(path, source, model, target, converted, settings, notes)
    found.sequences, found.oracle                  # the steps for an IR with states

Two kinds of variables give two kinds of sequences (mo_loop/compare/stepping/state_variables.py):

- The caller of the ONNX model carries the states: ONNX Runtime runs once for each step, and gets its own outputs back.
- The ONNX model has a loop over a sequence: ONNX Runtime runs it once, and the IR gets slices of its inputs.

Expected values come first, all of them, then the IR runs: both models are not in memory at once. Each sequence begins
with a reset, and runs a second time after the others, so that a state that a reset does not clear becomes a difference.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.isolated import Hosted, IsolatedError, brief, isolated
from mo_loop.compare.execution.runtime import initial_states
from mo_loop.compare.input_sets.accepted_sets import SetSearch, sizes_in
from mo_loop.compare.input_sets.generated import Generator, Known, shapes_of, sizes_text
from mo_loop.compare.input_sets.given import input_names, read_outputs, read_sets, take_outputs
from mo_loop.compare.oracle.checked_oracle import Oracle, UnstableError, misshapen_by
from mo_loop.compare.oracle.oracle import ONNX_RUNTIME
from mo_loop.compare.results.array_comparison import Named, compare_all
from mo_loop.compare.results.report import InputSet, Row, shape_in, type_text
from mo_loop.compare.results.verify_settings import Feeds, VerifyOptions
from mo_loop.compare.stepping.state_variables import StateVariable, state_variables
from mo_loop.compare.stepping.step_inputs import PLANS, CacheInputs, CacheStep, SliceInputs
from mo_loop.converted_model import Model
from mo_loop.errors import InputError, NotComparableError, UnsupportedError
from mo_loop.frontend.model import OnnxModel
from mo_loop.graph.types import name_of
from mo_loop.transforms.states.port_names import BEAM_INDEX

GIVEN = "the given outputs"
"""The source of expected values that come from files."""


def oracle_of(source: Path, settings: VerifyOptions, notes: list[str], hint: str, named: Path | None = None) -> Hosted:
    """ONNX Runtime in a process, or who computes in its place, with a note. NotComparableError with the `hint` if it
    does not run the model `source`, which the message calls `named`."""
    try:
        libraries = [os.fspath(each) for each in settings.custom_ops]
        oracle = Hosted(Oracle, str(source), libraries, limit=settings.limit)
    except IsolatedError as error:
        text = f"ONNX Runtime does not run {named or source}"
        raise NotComparableError(text, why=brief(error), hint=hint) from None
    name, reason = oracle.facts
    if reason:
        notes.append(f"the expected values are those of {name}: {reason}")
    return oracle


class ExpectedSets:
    """`sets` are (name, arrays), `expected` their outputs, `oracle` is the source of them."""

    def __init__(
        self, source: Path, model: OnnxModel, settings: VerifyOptions, notes: list[str],
        shapes: Mapping[str, Sequence[Known] | None],
    ) -> None:  # fmt: skip
        """`source` is the file of `model`; `shapes` are those of the inputs of the IR.

        Raises:
            NotComparableError: ONNX Runtime does not run the model, and no outputs are given; or it accepts none
                of the generated sets, or never gives values twice.
            InputError: it does not accept the given sets.
        """
        self._source, self._model, self._settings, self._notes = source, model, settings, notes
        self.sets: list[tuple[str, Feeds]] = []
        self.expected: list[Named] = []
        self.oracle = GIVEN
        self.sizes: list[Mapping[str, int]] = []
        """Those of the dynamic dimensions of generated sets; `search` finds others."""
        if settings.inputs:
            self._take_given()
            return
        with closing(self.hosted()) as oracle:
            self.search = SetSearch(Generator(model, shapes, settings.seed), sizes_in(model))
            try:
                found = self.search.accepted(settings.sets, oracle.run)
            except NotComparableError as error:
                raise self._of_sizes(error) from None
        self.sets, self.expected, self.sizes = found.sets, found.expected, found.sizes
        unstable = {name: text for name, error in found.missing.items() if (text := unstable_text(error))}
        notes += [f"{name} is left out: {text}" for name, text in unstable.items()]
        if refused := ", ".join(name for name in found.missing if name not in unstable):
            notes.append(f"ONNX Runtime does not accept these inputs, which were left out: {refused}")

    def hosted(self) -> Hosted:
        """ONNX Runtime in a process. NotComparableError if it does not run the model."""
        hint = "give the expected outputs (--expected FILE), or the library of its operators (--custom-ops LIB)"
        oracle = oracle_of(self._source, self._settings, self._notes, hint)
        self.oracle = oracle.facts[0]
        return oracle

    # -- given sets

    def _take_given(self) -> None:
        """The given sets, with the outputs that files have for them, else those of ONNX Runtime."""
        sets = read_sets(self._settings.inputs, self._model)
        given = [take_outputs(name, feeds, self._model) for name, feeds in sets]
        if self._settings.expected:
            given = read_outputs(self._settings.expected, self._model, len(sets))
        oracle: Hosted | None = None
        try:
            oracle = self.hosted()
        except NotComparableError as error:
            if not all(given):
                raise
            self._notes.append(f"ONNX Runtime does not run the model: {error.why}")
        if all(given):
            self.oracle = GIVEN
        with nullcontext() if oracle is None else closing(oracle):
            for (name, feeds), outputs in zip(sets, given, strict=True):
                self._add(name, feeds, outputs, oracle)
        if not self.sets:
            raise NotComparableError("no set of inputs can be compared", why=self._notes[-1], hint="give other inputs")

    def _add(self, name: str, feeds: Feeds, outputs: Feeds, oracle: Hosted | None) -> None:
        """A set, unless the values of ONNX Runtime change."""
        computed: Named = []
        try:
            computed = oracle.run(feeds) if oracle is not None else []
        except IsolatedError as error:
            if unstable_text(error):
                self._notes.append(f"{name} is left out: {unstable_text(error)}")
                return
            if not outputs:
                raise self._of_sizes(InputError(
                    f"ONNX Runtime does not accept the inputs {name}", why=brief(error),
                    hint="check their shapes and types",
                )) from None  # fmt: skip
            self._notes.append(f"ONNX Runtime does not run {name}: {brief(error)}")
        both = [(output, value) for output, value in computed if output in outputs]
        for result in compare_all([(each, outputs[each]) for each, _ in both], both):
            if not result:
                self._notes.append(f"ONNX Runtime differs from the given outputs of {name}: {result}")
        self.sets.append((name, feeds))
        self.expected.append([*outputs.items(), *(each for each in computed if each[0] not in outputs)])

    def _of_sizes(self, error: InputError) -> InputError:
        """The error for inputs that ONNX Runtime refuses: with --sizes, their sizes are the first thing to question."""
        sizes = self._settings.sizes
        if not sizes:
            return error
        text = ",".join(f"{name}{sizes_text(each)}" for name, each in sizes.items())
        return error.at(
            message=f"ONNX Runtime does not run the model with the sizes {text}: the model itself cannot have them",
            hint="give sizes that fit the weights and constants of the model, or inputs: --input-data FILE.npz",
        )  # fmt: skip

    # -- values that are not ONNX's

    def leave_out_misshapen(self, differing: Iterable[Row]) -> bool:
        """Leave out the sets of these rows for which ONNX infers the shape that OpenVINO gives, and not that of ONNX
        Runtime; whether there are any."""
        shapes: dict[int, dict[str, list[int]]] = {}
        for row in differing if self.oracle == ONNX_RUNTIME else ():
            shapes.setdefault(row.set, {})[row.output] = shape_in(row.found)
        wrong: dict[int, str] = {}
        for number, other in shapes.items():
            feeds, expected = self.sets[number][1], self.expected[number]
            try:
                wrong[number] = isolated(misshapen_by, str(self._source), feeds, expected, other)
            except IsolatedError:  # the inference of onnx fails: the shapes may still be right
                continue
        kept = [number for number in range(len(self.sets)) if not wrong.get(number)]
        self._notes += [f"{self.sets[number][0]} is left out: {text}" for number, text in wrong.items() if text]
        changed = len(kept) < len(self.sets)
        self.sets = [self.sets[number] for number in kept]
        self.expected = [self.expected[number] for number in kept]
        return changed


def unstable_text(error: IsolatedError) -> str:
    """The sentence of an UnstableError; empty for another error."""
    return str(error).partition(": ")[2].partition("\n")[0] if error.error == UnstableError.__name__ else ""


# -- steps of an IR with states


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
        with closing(oracle_of(source, settings, notes, "there is nothing to compare with", path)) as self._oracle:
            self.oracle = self._oracle.facts[0]
            if is_sliced:
                self.sequences = self._sliced(SliceInputs(model, converted, self._caches, settings.seed))
            else:
                inputs = CacheInputs(model, known, self._caches, settings.seed, has_beam=self._has_beam)
                self.sequences = self._given(inputs) if settings.inputs else self._generated(inputs)

    # -- states that the caller carries

    def _generated(self, inputs: CacheInputs) -> list[SequenceRun]:
        """Sequences of the usual sizes; with larger ones, each on its own, if ONNX Runtime does not run those."""

        def sequence(number: int, *plan: bool) -> SequenceRun:
            first = inputs.first(number, *plan)
            return self._carried(f"sequence {number + 1}", inputs.drawn(first, self._settings.steps), inputs, first)

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

    def _given(self, inputs: CacheInputs) -> list[SequenceRun]:
        """The given sets are the steps of one sequence."""
        sets = read_sets(self._settings.inputs, self._model, self._needed)
        carried = {each.input for each in self._caches}
        draws = [{name: value for name, value in feeds.items() if name not in carried} for _, feeds in sets]
        first = inputs.first(0, *PLANS[0])
        for feeds in draws:
            inputs.reorder(first, feeds)
        try:
            return [self._carried("the given steps", draws, inputs, first)]
        except IsolatedError as error:
            raise InputError("ONNX Runtime does not accept the given steps", why=brief(error)) from None

    def _carried(self, name: str, draws: Sequence[Feeds], inputs: CacheInputs, first: CacheStep) -> SequenceRun:
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
            outputs = self._oracle.run({**feeds, **states})
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

    def _sliced(self, inputs: SliceInputs) -> list[SequenceRun]:
        if self._has_beam:
            raise UnsupportedError(f"verify cannot reorder states by {BEAM_INDEX} if a loop of the model has states")
        found = []
        for name, whole, count in inputs.sequences(self._settings):
            try:
                expected, states = self._parts(self._oracle.run(whole))
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
