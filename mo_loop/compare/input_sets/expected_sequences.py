"""The steps for an IR with states, and what ONNX Runtime expects of them.

    found = ExpectedSequences(path, source, model, target, converted, settings, notes)
    found.sets, found.oracle                       # the steps for an IR with states

Two kinds of variables give two kinds of sequences (mo_loop/compare/input_sets/step_inputs.py):

- The caller of the ONNX model carries the states: ONNX Runtime runs once for each step, and gets its own outputs back.
- The ONNX model has a loop over a sequence: ONNX Runtime runs it once, and the IR gets slices of its inputs.

Expected values come first, all of them, then the IR runs: both models are not in memory at once. Each sequence begins
with a reset, and runs a second time after the others, so that a state that a reset does not clear becomes a difference.

    inputs = SliceInputs(model, converted, states, seed=0)
    for name, whole, count in inputs.sequences(settings):      # for ONNX Runtime, which runs each at once
        inputs.step(whole, 2)                                  # for the third inference of the IR

SliceInputs are for a model that takes a whole sequence, where the IR takes one step of it in each inference. The
sequence is the axis along which the IR has 1 and the ONNX model a dynamic dimension, or a longer one.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.compare.execution.isolated import IsolatedError, brief, isolated
from mo_loop.compare.execution.runtime import initial_states
from mo_loop.compare.input_sets import generated
from mo_loop.compare.input_sets.expected_sets import ExpectedSet, SetSearch, StepRun, oracle_of, sizes_in
from mo_loop.compare.input_sets.given import input_names, read_sets
from mo_loop.compare.input_sets.roles import COUNT, LENGTH, Input, possible
from mo_loop.compare.input_sets.step_inputs import PLANS, CacheInputs, CacheStep, StateVariable, state_variables
from mo_loop.compare.results.array_comparison import Named
from mo_loop.compare.verify_options import Feeds, VerifyOptions
from mo_loop.converted_model import Model
from mo_loop.errors import InputError, NotComparableError, UnsupportedError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import operator_of
from mo_loop.graph import Value, name_of
from mo_loop.support.traversal import reached
from mo_loop.transforms.states.pairing import BEAM_INDEX

# -- steps of an IR with states


class ExpectedSequences:
    """`sets` are the sequences to run, `oracle` is the source of their expected values."""

    has_states = True

    def __init__(
        self, path: Path, source: Path, model: OnnxModel, target: Path, converted: Model, settings: VerifyOptions,
        notes: list[str],
    ) -> None:
        """`source` is the file that ONNX Runtime runs, `model` its contents, `path` that of the whole model; `target`
        is the file of the IR."""
        self._model, self._target, self._settings, self._notes = model, target, settings, notes
        known, names = generated.shapes_of(converted), input_names(model)
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
                )
        self._needed = [name for name in names if name not in [each.input for each in self._caches]]
        is_sliced = len(self._caches) < len(states)
        lost = [name for name in absent if name in self._needed and not is_sliced]
        if lost:
            notes.append(f"the IR has neither an input nor a state for these inputs: {', '.join(lost)}")
        with closing(oracle_of(source, settings, notes, "there is nothing to compare with", path)) as self._oracle:
            self.oracle = self._oracle.facts[0]
            if is_sliced:
                self.sets = self._sliced(SliceInputs(model, converted, self._caches, settings.seed))
            else:
                inputs = CacheInputs(model, known, self._caches, settings.seed, has_beam=self._has_beam)
                self.sets = self._given(inputs) if settings.inputs else self._generated(inputs)

    # -- states that the caller carries

    def _generated(self, inputs: CacheInputs) -> list[ExpectedSet]:
        """Sequences of the usual sizes; with larger ones, each on its own, if ONNX Runtime does not run those."""

        def sequence(number: int, *plan: bool) -> ExpectedSet:
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
        )

    def _given(self, inputs: CacheInputs) -> list[ExpectedSet]:
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

    def _carried(self, name: str, draws: Sequence[Feeds], inputs: CacheInputs, first: CacheStep) -> ExpectedSet:
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
        return ExpectedSet(name, steps)

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
            )
        return np.take(value, given, axis)

    # -- states inside the model

    def _sliced(self, inputs: "SliceInputs") -> list[ExpectedSet]:
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
                ) from None
            found.append(ExpectedSet(name, [
                StepRun(inputs.step(whole, number), expected, states if number == count - 1 else {}, number, count)
                for number in range(count)
            ]))
        return found


# -- slices of whole sequences


_NAMED = re.compile("seq|time|step|frame|len|^t$", re.IGNORECASE)
"""The names of the dimension of a sequence."""

_WHOLE = "give whole sequences, of one step or more: --input-data FILE.npz"

_VIEWS = (ops.Squeeze, ops.Unsqueeze, ops.Reshape, ops.Transpose, ops.Convert)

_RECURRENT = ("LSTM", "GRU", "RNN")


class SliceInputs:
    """Inputs of whole sequences, and their slices."""

    def __init__(self, model: OnnxModel, converted: Model, states: Sequence[StateVariable], seed: int) -> None:
        known = generated.shapes_of(converted)
        self._model, self._given = model, set(known)
        used = [each for each in converted.graph.parameters if _is_read(each.output)]
        read = {name for each in used for name in (each.name, *each.output.names)}
        self._empty = {each.input: each.grows or () for each in states}
        declared = {each.name: each for each in generated.Generator(model, {}, seed).inputs}
        self._axes = _axes(model, declared, known)
        """The axis of the sequence, by the name of the input."""
        for name, axis in self._axes.items():
            known[name] = tuple(None if place == axis else size for place, size in enumerate(known[name] or ()))
        self._generator = generated.Generator(model, known, seed)
        self._inputs = {each.name: each for each in self._generator.inputs}
        self._unread = self._inputs.keys() - read
        """Inputs whose elements the IR does not read: initial states, in place of which its variables have zeros."""
        lengths = [self._inputs[name].dims[axis] for name, axis in self._axes.items()]
        self._fixed = next((each for each in lengths if isinstance(each, int)), None if lengths else 1)
        """The number of steps of a sequence, if the ONNX model has a fixed one."""
        self._symbols = {each for each in lengths if isinstance(each, str)}

    def sequences(self, settings: VerifyOptions) -> list[tuple[str, Feeds, int]]:
        """The name, the inputs of ONNX Runtime and the number of steps of each sequence, given or generated.

        InputError unless each set of given inputs is one sequence of at least one step.
        """
        if settings.inputs:
            given = read_sets(settings.inputs, self._model, [name for name in self._inputs if name in self._given])
            found = [(name, feeds, self._steps_of(name, feeds)) for name, feeds in given]
        else:
            counts = [self._fixed or settings.steps] * settings.sets
            if not self._fixed and settings.steps > 1:
                counts.append(1)  # the first step alone
            found = [(f"sequence {number + 1}", {}, count) for number, count in enumerate(counts)]
        return [(name, self._whole(place, each, count), count) for place, (name, each, count) in enumerate(found)]

    def step(self, whole: Mapping[str, Any], number: int) -> Feeds:
        """The inputs of the IR for one step: slices, and the inputs that all steps share."""
        found = {}
        for name, each in self._inputs.items():
            if name in self._given:
                value = whole[name]
                if name in self._axes:
                    value = np.take(value, [number], self._axes[name])
                elif each.role.kind in (COUNT, LENGTH):
                    value = np.ones_like(value)
                found[name] = value
        return found

    def _steps_of(self, name: str, whole: Mapping[str, Any]) -> int:
        """The number of steps of the set `name` of given inputs."""
        lengths: dict[str, int] = {}
        for key, axis in self._axes.items():
            shape, rank = list(np.shape(whole[key])), len(self._inputs[key].dims)
            if len(shape) != rank:
                raise InputError(
                    f"{name}: {key!r} has the shape {shape}", why=f"the model has {rank} dimensions there", hint=_WHOLE
                )
            lengths[key] = shape[axis]
        if len(set(lengths.values())) > 1:
            why = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
            raise InputError(f"{name}: its inputs have different numbers of steps", why=why, hint=_WHOLE)
        if 0 in lengths.values():
            raise InputError(f"{name} is a sequence of 0 steps", hint=_WHOLE)
        return next(iter(lengths.values()), 1)

    def _whole(self, sequence: int, given: Feeds, steps: int) -> Feeds:
        """The inputs of one sequence: those that are given, and values for the others."""
        sizes = self._generator.sizes(sequence) | dict.fromkeys(self._symbols, steps)
        sizes |= generated.bound_sizes(self._inputs.values(), given)
        found = dict(given)
        for name, each in self._inputs.items():
            if name in given:
                continue
            empty = self._empty.get(name, ())
            shape = tuple(0 if axis in empty else generated.size_of(dim, sizes) for axis, dim in enumerate(each.dims))
            with possible(name):
                if each.role.kind in (COUNT, LENGTH) and each.dtype.is_integer:
                    found[name] = np.full(shape, steps, each.dtype.numpy)
                elif name in self._unread and each.dtype.is_float:
                    found[name] = np.zeros(shape, each.dtype.numpy)
                else:
                    found[name] = self._generator.array(each, shape, sequence)
        return found


def _is_read(value: Value) -> bool:
    """Whether something depends on the elements of a value, and not on its shape alone."""
    views = reached([value], lambda each: [
        out for use in each.uses if isinstance(use.node, _VIEWS) for out in use.node.outputs
    ])
    return any(not isinstance(use.node, (ops.ShapeOf, *_VIEWS)) for each in views for use in each.uses)


def _axes(model: OnnxModel, declared: Mapping[str, Input], known: Mapping[str, Any]) -> dict[str, int]:
    """The axis of the sequence for each input that has it.

    The IR has 1 there, as it can have for the batch too. The dimension is the one that a recurrent operator steps
    through, else one with such a name, else the first.
    """
    found: list[tuple[str, int, int | str]] = []
    for name, each in declared.items():
        shape = known.get(name)
        if shape is None or len(shape) != len(each.dims) or each.role.kind in (COUNT, LENGTH):
            continue
        sizes = enumerate(zip(each.dims, shape, strict=True))
        found += [(name, axis, dim) for axis, (dim, size) in sizes if size == 1 and dim != 1]
    stepped = [dim for name, axis, dim in found if axis == _stepped_axis(model, declared[name])]
    named = [dim for _, _, dim in found if _NAMED.search(str(dim))]
    chosen = next(iter((*stepped, *named, *(dim for _, _, dim in found))), None)
    # The first axis of an input is kept: two dimensions of one size can both fit.
    return {name: axis for name, axis, dim in reversed(found) if dim == chosen}


def _stepped_axis(model: OnnxModel, each: Input) -> int | None:
    """The axis that a recurrent operator which reads the input steps through."""
    for node in model.proto.graph.node:
        settings = {entry.name: entry for entry in node.attribute}
        if operator_of(node) in _RECURRENT and node.input[0] == each.name:
            return settings["layout"].i if "layout" in settings else 0
        if operator_of(node) == "Scan" and each.name in node.input:
            place = list(node.input).index(each.name) - (len(node.input) - settings["num_scan_inputs"].i)
            if place >= 0:
                sliced = list(settings["scan_input_axes"].ints) if "scan_input_axes" in settings else []
                return sliced[place] % len(each.dims) if sliced else 0
    return None
