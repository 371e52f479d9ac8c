"""Steps of a model that takes a whole sequence, where the IR takes one step of it in each inference.

    inputs = SliceInputs(model, converted, states.caches, seed=0)
    whole = inputs.draw(0, steps=4)                      # for ONNX Runtime, which runs once
    inputs.step(whole, 2)                                # for the third inference of the IR
    wanted_after(expected, found, step=2, steps=4)       # what the IR has to give after it

The sequence is the axis along which the IR has 1 and the ONNX model a dynamic dimension, or a longer one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop.api import Model
from mo_loop.compare.input_sets.generated import Generator, bound_sizes, shapes_of, size_of
from mo_loop.compare.input_sets.roles import COUNT, LENGTH, Input, possible
from mo_loop.compare.results.array_comparison import Named
from mo_loop.compare.stepping.state_variables import Carried
from mo_loop.errors import InputError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import operator_of
from mo_loop.graph import Use, Value
from mo_loop.support.reached import reached

_WORDS = ("seq", "time", "step", "frame", "len", "t")
"""Parts of names of the dimension of a sequence; the last one is a whole name."""

_WHOLE = "give whole sequences, of one step or more: --input-data FILE.npz"

_VIEWS = ("Squeeze", "Unsqueeze", "Reshape", "Transpose", "Convert")

_RECURRENT = ("LSTM", "GRU", "RNN")


class SliceInputs:
    """Inputs of whole sequences, and their slices."""

    def __init__(self, model: OnnxModel, converted: Model, caches: Sequence[Carried], seed: int) -> None:
        known = shapes_of(converted)
        self._given = set(known)
        used = [each for each in converted.graph.parameters if _is_read(each.output)]
        read = {name for each in used for name in (each.name, *each.output.names)}
        self._empty = {each.input: each.variable.grows or () for each in caches}
        declared = {each.name: each for each in Generator(model, {}, seed).inputs}
        self.axes = _axes(model, declared, known)
        """The axis of the sequence, by the name of the input."""
        self._ranks = {name: len(declared[name].dims) for name in self.axes}
        for name, axis in self.axes.items():
            known[name] = tuple(None if place == axis else size for place, size in enumerate(known[name] or ()))
        self._generator = Generator(model, known, seed)
        self._inputs = self._generator.inputs
        self._unread = {each.name for each in self._inputs if each.name not in read}
        """Inputs whose elements the IR does not read: initial states, in place of which its variables have zeros."""
        lengths = [each.dims[self.axes[each.name]] for each in self._inputs if each.name in self.axes]
        self._fixed = next((each for each in lengths if isinstance(each, int)), None if lengths else 1)
        self._symbols = {each for each in lengths if isinstance(each, str)}

    def length(self, wanted: int) -> int:
        """The steps that a sequence can have: those of the ONNX model, if it has a fixed number."""
        return self._fixed or wanted

    def draw(self, sequence: int, steps: int) -> dict[str, Any]:
        """The inputs of ONNX Runtime for one sequence."""
        sizes = self._generator.sizes(sequence) | dict.fromkeys(self._symbols, steps)
        return {each.name: self._value(each, sizes, sequence, steps) for each in self._inputs}

    def steps_of(self, whole: Mapping[str, Any]) -> int:
        """The number of steps of given inputs."""
        return next((np.shape(whole[name])[axis] for name, axis in self.axes.items()), 1)

    def require_steps(self, name: str, whole: Mapping[str, Any]) -> None:
        """InputError unless the set `name` of given inputs is one sequence of at least one step."""
        lengths: dict[str, int] = {}
        for key, axis in self.axes.items():
            shape = list(np.shape(whole[key]))
            if len(shape) != self._ranks[key]:
                raise InputError(
                    f"{name}: {key!r} has the shape {shape}", why=f"the model has {self._ranks[key]} dimensions there",
                    hint=_WHOLE,
                )  # fmt: skip
            lengths[key] = shape[axis]
        if len(set(lengths.values())) > 1:
            why = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
            raise InputError(f"{name}: its inputs have different numbers of steps", why=why, hint=_WHOLE)
        if 0 in lengths.values():
            raise InputError(f"{name} is a sequence of 0 steps", hint=_WHOLE)

    @property
    def needed(self) -> list[str]:
        """The inputs that given sets have to have: those of the IR."""
        return [each.name for each in self._inputs if each.name in self._given]

    def completed(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Given inputs, with values for those that the IR lacks."""
        steps = self.steps_of(feeds)
        sizes = self._generator.sizes(0) | bound_sizes(self._inputs, feeds)
        return {each.name: feeds.get(each.name, self._value(each, sizes, 0, steps)) for each in self._inputs}

    def step(self, whole: Mapping[str, Any], number: int) -> dict[str, Any]:
        """The inputs of the IR for one step: slices, and the inputs that all steps share."""
        found = {}
        for each in self._inputs:
            if each.name not in self._given:
                continue
            value, axis = whole[each.name], self.axes.get(each.name)
            if axis is not None:
                value = np.take(value, [number], axis)
            elif each.role.kind in (COUNT, LENGTH):
                value = np.ones_like(value)
            found[each.name] = value
        return found

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


def wanted_after(expected: Named, found: Named, step: int, steps: int) -> Named:
    """The outputs that can be compared after a step: slices of those with the axis of the sequence, the others at last.

    `expected` are the outputs of the whole sequence; `found`, under the same names, those of the IR after this step.
    """
    sizes = {name: np.shape(array) for name, array in found}
    wanted: Named = []
    for name, array in expected:
        shape = np.shape(array)
        small = sizes.get(name, shape)
        axes = [axis for axis, (a, b) in enumerate(zip(shape, small, strict=False)) if a != b]
        if len(shape) == len(small) and len(axes) == 1 and (shape[axes[0]], small[axes[0]]) == (steps, 1):
            wanted.append((name, np.take(array, [step], axes[0])))
        elif step == steps - 1:
            wanted.append((name, array))
    return wanted


def _is_read(value: Value) -> bool:
    """Whether something depends on the elements of a value, and not on its shape alone."""
    views = reached([value], lambda each: [out for use in each.uses if _is(use, _VIEWS) for out in use.node.outputs])
    return any(not _is(use, ("ShapeOf", *_VIEWS)) for each in views for use in each.uses)


def _is(use: Use, kinds: Collection[str]) -> bool:
    return getattr(use.node, "type", "") in kinds


def _axes(model: OnnxModel, declared: Mapping[str, Input], known: Mapping[str, Any]) -> dict[str, int]:
    """The axis of the sequence for each input that has it."""
    found: list[tuple[str, int, int | str]] = []
    for name, each in declared.items():
        shape = known.get(name)
        if shape is None or len(shape) != len(each.dims) or each.role.kind in (COUNT, LENGTH):
            continue
        sizes = enumerate(zip(each.dims, shape, strict=True))
        found += [(name, axis, dim) for axis, (dim, size) in sizes if size == 1 and dim != 1]
    chosen = _sequence(model, declared, found)
    # The first axis of an input is kept: two dimensions of one size can both fit.
    return {name: axis for name, axis, dim in reversed(found) if dim == chosen}


def _sequence(model: OnnxModel, declared: Mapping[str, Input], found: list[tuple[str, int, int | str]]) -> Any:
    """The dimension of the sequence among those in which the IR has 1: others can be those of the batch.

    It is the one that a recurrent operator steps through, else one with such a name, else the first.
    """
    stepped = [dim for name, axis, dim in found if axis == _stepped_axis(model, declared[name])]
    named = [dim for _, _, dim in found if _is_word(str(dim).lower())]
    return next(iter((*stepped, *named, *(dim for _, _, dim in found))), None)


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


def _is_word(name: str) -> bool:
    return any(word in name for word in _WORDS[:-1]) or name == _WORDS[-1]
