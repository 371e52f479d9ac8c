"""Steps of a model that takes a whole sequence, where the IR takes one step of it in each inference.

    inputs = SliceInputs(model, converted, states, seed=0)
    for name, whole, count in inputs.sequences(settings):      # for ONNX Runtime, which runs each at once
        inputs.step(whole, 2)                                  # for the third inference of the IR

The sequence is the axis along which the IR has 1 and the ONNX model a dynamic dimension, or a longer one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.api import Model
from mo_loop.compare.input_sets.generated import Generator, bound_sizes, shapes_of, size_of
from mo_loop.compare.input_sets.given import read_sets
from mo_loop.compare.input_sets.roles import COUNT, LENGTH, Input, possible
from mo_loop.compare.results.verify_settings import Feeds, VerifyOptions
from mo_loop.compare.stepping.state_variables import StateVariable
from mo_loop.errors import InputError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import operator_of
from mo_loop.graph import Value
from mo_loop.support.reached import reached

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
        return {
            name: given[name] if name in given else self._value(each, sizes, sequence, steps)
            for name, each in self._inputs.items()
        }

    def _value(self, each: Input, sizes: Mapping[str, int], sequence: int, steps: int) -> Any:
        shape = tuple(
            0 if axis in self._empty.get(each.name, ()) else dim if isinstance(dim, int) else size_of(dim, sizes)
            for axis, dim in enumerate(each.dims)
        )
        with possible(each.name):
            if each.role.kind in (COUNT, LENGTH) and each.dtype.is_integer:
                return np.full(shape, steps, each.dtype.numpy)
            if each.name in self._unread and each.dtype.is_float:
                return np.zeros(shape, each.dtype.numpy)
        return self._generator.array(each, shape, sequence)


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
