"""Inputs of the steps of a model with states, of two kinds.

    inputs = CacheInputs(model, known, states, seed=0, has_beam=False)
    first = inputs.first(0, *PLANS[0])              # the first step of sequence 0
    steps = inputs.drawn(first, 4)                  # for each step: tokens, masks, positions
    states = inputs.initial(first, steps[0], {})    # empty caches

CacheInputs are for a model whose caller carries states: caches of a decoder, or the states of a recurrent model. Sizes
and values of the inputs have to agree with the states: a mask is as long as all tokens so far, positions continue where
the last step ended. The names of dimensions show which ones these are; where they do not, the plan of the steps has an
assumption. The first step of a sequence can have several tokens (a prompt), the others have one.

    inputs = SliceInputs(model, converted, states, seed=0)
    for name, whole, count in inputs.sequences(settings):      # for ONNX Runtime, which runs each at once
        inputs.step(whole, 2)                                  # for the third inference of the IR

SliceInputs are for a model that takes a whole sequence, where the IR takes one step of it in each inference. The
sequence is the axis along which the IR has 1 and the ONNX model a dynamic dimension, or a longer one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.compare.input_sets.generated import (
    UNNAMED,
    Generator,
    bound_sizes,
    expression_in,
    input_of,
    shapes_of,
    size_of,
)
from mo_loop.compare.input_sets.given import read_sets
from mo_loop.compare.input_sets.roles import CHOICE, COUNT, INDEX, LENGTH, MASK, Input, possible
from mo_loop.compare.results.verify_settings import Feeds, VerifyOptions
from mo_loop.compare.stepping.state_variables import StateVariable
from mo_loop.converted_model import Model
from mo_loop.errors import InputError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import all_graphs, operator_of
from mo_loop.graph import Value
from mo_loop.support.traversal import reached
from mo_loop.transforms.states.port_names import BEAM_INDEX

PLANS = tuple(product((True, False), repeat=2))
"""The forms of the steps in the order in which they are tried: whether the first has a prompt of several tokens, and
whether masks are as long as all tokens so far."""

PROMPTS = (3, 1, 4)
"""The tokens of the first step of the sequences, in turn."""

TOTAL = "tokens so far"
"""The name of a dimension that has the length of all tokens."""

_APART = 1000
"""Steps of one sequence draw other numbers than the next sequence."""


@dataclass(frozen=True)
class CacheStep:
    """The position in a sequence: the number of earlier tokens, and of the tokens of this step. `has_total` is that of
    its plan."""

    sequence: int
    has_total: bool
    tokens: int
    number: int = 0
    past: int = 0


@dataclass
class _Cache:
    """A state, the input that takes it, and the dimensions of the output that returns it; it grows along axes."""

    state: StateVariable
    input: Input
    after: tuple[int | str, ...]
    grows: tuple[int, ...]


class CacheInputs:
    """The inputs of a model step by step. `known` are the shapes that the IR declares; with `has_beam`, it alone has
    the input `beam_idx`."""

    def __init__(
        self, model: OnnxModel, known: Mapping[str, Sequence[int | None] | None], states: Sequence[StateVariable],
        seed: int, *, has_beam: bool,
    ) -> None:  # fmt: skip
        self.generator = Generator(model, known, seed)
        self.larger: Mapping[str, int] = {}
        """The sizes of dimensions that are not those of tokens and caches, where they are not the usual ones."""
        self._has_beam = has_beam
        declared = {each.name: each for each in self.generator.inputs}
        outputs = {each.name: each for each in model.proto.graph.output}
        self._caches = [_cache(each, declared.pop(each.input), outputs[each.output]) for each in states]
        self._inputs = list(declared.values())
        operators = {operator_of(node) for graph in all_graphs(model) for node in graph.nodes}
        self._is_padded = not any(each.startswith("com.") for each in operators)
        """Operators of other domains may need masks without padding, and leave memory unwritten where there is some."""
        new = {
            each.dims[axis] for state in states for names, axis in state.by for each in self._inputs
            if each.name in names and axis < len(each.dims)
        }  # fmt: skip
        if not new and any(each.grows for each in self._caches):  # the IR does not show it: rows of tables are tokens
            indices = [each for each in self._inputs if each.role.kind == INDEX and not each.role.is_position]
            new = {each.dims[-1] for each in indices if each.dims}
        self._new = {each for each in new if isinstance(each, str)}
        """The dimensions of new tokens, and their size if it is fixed."""
        self._fixed = next((each for each in new if isinstance(each, int)), None)

    # -- the course of a sequence

    def first(self, sequence: int, has_prompt: bool, has_total: bool) -> CacheStep:
        """The first step of a sequence."""
        tokens = PROMPTS[sequence % len(PROMPTS)] if has_prompt and self._new else 1
        return CacheStep(sequence, has_total, self._fixed or tokens)

    def drawn(self, step: CacheStep, count: int) -> list[Feeds]:
        """The inputs of `count` steps, without the states. All but the first have one token."""
        found: list[Feeds] = []
        for _ in range(count):
            sizes = self._sizes(step)
            found.append({})
            for each in self._inputs:
                dims = [*each.dims[:-1], TOTAL] if step.has_total and self._is_total(each) else each.dims
                with possible(each.name):
                    shape = tuple(size_of(dim, sizes) for dim in dims)
                    found[-1][each.name] = self._value(each, shape, step)
            self.reorder(step, found[-1])
            step = replace(step, number=step.number + 1, past=step.past + step.tokens, tokens=self._fixed or 1)
        return found

    def initial(self, step: CacheStep, feeds: Feeds, computed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The states before the first step, which has the inputs `feeds`: zeros, of length 0 where they grow.

        `computed` are the initial values of the IR by the ids of its variables: only the IR has sizes that the ONNX
        model leaves open. Other sizes are those of the other inputs.
        """
        sizes = self._sizes(step) | bound_sizes(self._inputs, feeds)
        found = {}
        for each in self._caches:
            dims, value = each.input.dims, computed.get(each.state.id)
            if each.state.grows is None and value is not None:
                each.grows = tuple(axis for axis, size in enumerate(value.shape) if not size)
            shape = [
                dim if isinstance(dim, int) else 0 if axis in each.grows
                else value.shape[axis] if value is not None and value.ndim == len(dims) else size_of(dim, sizes)
                for axis, dim in enumerate(dims)
            ]  # fmt: skip
            with possible(each.input.name):
                found[each.input.name] = np.zeros(shape, each.input.dtype.numpy)
        return found

    def reorder(self, step: CacheStep, feeds: Feeds) -> None:
        """Add `beam_idx`, if the IR has it: all rows in their places, rotated, or one of them twice, in turn."""
        if not self._has_beam:
            return
        dim = self._caches[0].input.dims[self._caches[0].state.batch or 0]
        sizes = self._sizes(step) | bound_sizes(self._inputs, feeds)
        rows = np.arange(size_of(dim, sizes), dtype=np.int32)
        orders = np.maximum(rows - 1, 0) if step.number else rows, np.roll(rows, 1), rows
        feeds.setdefault(BEAM_INDEX, orders[step.number % 3])

    # -- sizes

    def _sizes(self, step: CacheStep) -> dict[str, int]:
        total = step.past + step.tokens
        sizes = {**self.generator.sizes(step.sequence), **self.larger}
        for each in self._caches:
            for axis in each.grows:
                if axis < len(each.after) and isinstance(after := each.after[axis], str):
                    sizes[after] = total
                sizes[str(each.input.dims[axis])] = step.past
        return sizes | dict.fromkeys(self._new, step.tokens) | {TOTAL: total}

    def _is_total(self, each: Input) -> bool:
        """Whether the last dimension of a mask may be that of all tokens: no other input has one of this name."""
        last = each.dims[-1] if each.dims else 0
        if each.role.kind != MASK or isinstance(last, int) or expression_in(last) is not None:
            return False
        others = (*self._inputs, *(cache.input for cache in self._caches))
        return last.startswith(UNNAMED) or all(last not in other.dims for other in others if other.role.kind != MASK)

    # -- values

    def _value(self, each: Input, shape: tuple[int, ...], step: CacheStep) -> Any:
        total, name = step.past + step.tokens, each.name.lower()
        is_number = each.dtype.kind in ("int", "uint")
        if each.role.is_position and is_number:
            # They continue where the last step ended, below the length of the table that they select from.
            last = step.past + np.arange(shape[-1] if shape else 1)
            return np.resize(last % each.role.below if each.role.below else last, shape).astype(each.dtype.numpy)
        if each.role.kind == MASK and (is_number or each.dtype.kind == "bool"):
            mask = np.ones(shape, each.dtype.numpy)
            # In every other sequence the first place of the first row is padding, in all of its steps.
            if self._is_padded and step.sequence % 2 == 0 and len(shape) == 2 and min(shape) > 1:
                mask[0, 0] = 0
            return mask
        if is_number and "seqlens_k" in name:  # of GroupQueryAttention: the last place of each row
            return np.full(shape, total - 1, each.dtype.numpy)
        if is_number and "total_sequence_length" in name:
            return np.full(shape, total, each.dtype.numpy)
        if each.role.kind == CHOICE:  # all steps of a sequence have the same
            return self.generator.array(each, shape, step.sequence)
        return self.generator.array(each, shape, step.sequence * _APART + step.number)


def _cache(state: StateVariable, entry: Input, output: Any) -> _Cache:
    """It grows along the axes of the IR, or those that ONNX names otherwise after the model. The model may not declare
    the type of an output."""
    dims, after = entry.dims, input_of(output).dims if output.type.WhichOneof("value") else ()
    if state.grows is not None:
        return _Cache(state, entry, after, tuple(axis for axis in state.grows if axis < len(dims)))
    pairs = enumerate(zip(dims, after, strict=True)) if len(dims) == len(after) else ()
    return _Cache(state, entry, after, tuple(axis for axis, (a, b) in pairs if isinstance(a, str) and a != b))


# -- slices of whole sequences

_NAMED = re.compile("seq|time|step|frame|len|^t$", re.IGNORECASE)
"""The names of the dimension of a sequence."""

_WHOLE = "give whole sequences, of one step or more: --input-data FILE.npz"

_VIEWS = (ops.Squeeze, ops.Unsqueeze, ops.Reshape, ops.Transpose, ops.Convert)

_RECURRENT = ("LSTM", "GRU", "RNN")


class SliceInputs:
    """Inputs of whole sequences, and their slices."""

    def __init__(self, model: OnnxModel, converted: Model, states: Sequence[StateVariable], seed: int) -> None:
        known = shapes_of(converted)
        self._model, self._given = model, set(known)
        used = [each for each in converted.graph.parameters if _is_read(each.output)]
        read = {name for each in used for name in (each.name, *each.output.names)}
        self._empty = {each.input: each.grows or () for each in states}
        declared = {each.name: each for each in Generator(model, {}, seed).inputs}
        self._axes = _axes(model, declared, known)
        """The axis of the sequence, by the name of the input."""
        for name, axis in self._axes.items():
            known[name] = tuple(None if place == axis else size for place, size in enumerate(known[name] or ()))
        self._generator = Generator(model, known, seed)
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
        sizes |= bound_sizes(self._inputs.values(), given)
        found = dict(given)
        for name, each in self._inputs.items():
            if name in given:
                continue
            empty = self._empty.get(name, ())
            shape = tuple(0 if axis in empty else size_of(dim, sizes) for axis, dim in enumerate(each.dims))
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
    ])  # fmt: skip
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
