"""Loop, Scan and If of ONNX, driven from Python."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import numpy as np

from mo_loop.compare.layers.onnx_pieces import OnnxError, Piece
from mo_loop.compare.layers.onnx_side import OnnxFrame, OnnxPlan


class OnnxLoop:
    """One run of a Loop or Scan, as `IrLoop` (ir_loops.py) is of a loop of the IR."""

    def __init__(self, frame: OnnxFrame, place: int) -> None:
        self.frame = frame
        self.node = frame.plan.nodes[place]
        self.plan: OnnxPlan = frame.plan.body(place, "body")
        self.count = 0
        self._before: OnnxFrame | None = None
        self._goes = True
        self._is_scan = self.node.op_type == "Scan"
        given = [frame.get(name) if name else None for name in self.node.input]
        if self._is_scan:
            self._set_scan(given)
        else:
            self._set_loop(given)
        self._parts: list[list[Any]] = [[] for _ in self.plan.graph.output_names[self.first_part :]]

    def _set_loop(self, given: list[Any]) -> None:
        trip, go = (*given, None, None)[:2]
        self._limit = None if trip is None else int(np.asarray(trip).reshape(-1)[0])
        self._goes = go is None or bool(np.asarray(go).reshape(-1)[0])
        self.states = given[2:]
        self._pieces: list[tuple[Any, int, bool]] = []
        self.first_part = 1 + len(self.states)

    def _set_scan(self, given: list[Any]) -> None:
        count = len(given) - _attribute(self.node, "num_scan_inputs", 0)
        self.states = given[:count]
        arrays = given[count:]
        axes = self._per_item("scan_input_axes", arrays)
        directions = self._per_item("scan_input_directions", arrays)
        self._pieces = [
            (array, axis % max(array.ndim, 1), bool(backward))
            for array, axis, backward in zip(arrays, axes, directions, strict=True)
        ]
        self._limit = int(self._pieces[0][0].shape[self._pieces[0][1]])
        self.first_part = count

    def _per_item(self, name: str, items: list[Any]) -> list[int]:
        """An attribute with an integer for each item, 0 by default."""
        return _attribute(self.node, name, []) or [0] * len(items)

    @property
    def output_axes(self) -> list[int]:
        """The axis of each concatenated output."""
        return self._per_item("scan_output_axes", self._parts)

    def goes_on(self) -> bool:
        """Whether there is another iteration."""
        return self._goes and (self._limit is None or self.count < self._limit)

    def begin(self) -> OnnxFrame:
        """The frame of the next iteration."""
        names = self.plan.graph.input_names
        if self._is_scan:
            given = [*self.states, *(self._slice(*each) for each in self._pieces)]
        else:
            number = np.full(self._declared_shape(0), self.count, np.int64)
            given = [number, np.full(self._declared_shape(1), True), *self.states]
        return OnnxFrame(self.plan, dict(zip(names, given, strict=False)), self.frame)

    @property
    def state_names(self) -> list[str]:
        """The inputs of the body that are states."""
        first = 0 if self._is_scan else 2
        return self.plan.graph.input_names[first : first + len(self.states)]

    def resumed(self, states: list[Any], count: int) -> OnnxLoop:
        """The same loop before iteration `count`, with these states and without outputs."""
        other = copy.copy(self)
        other.states, other.count, other._goes, other._parts = states, count, True, [[] for _ in self._parts]
        other._before = None
        return other

    def sources(self) -> dict[str, tuple[OnnxFrame, str]]:
        """The tensors that the states of the next iteration are: outputs of the last one, or inputs of the node."""
        first = 0 if self._is_scan else 2
        names = self.state_names
        if self._before is None:
            pairs = zip(names, self.node.input[first:], strict=False)
            return {name: (self.frame, outer) for name, outer in pairs if outer}
        results = self.plan.graph.output_names[0 if self._is_scan else 1 :]
        return {name: (self._before, result) for name, result in zip(names, results, strict=False)}

    def _declared_shape(self, place: int) -> tuple[int, ...]:
        """The iteration number and the condition are scalars, unless the body declares another rank."""
        inputs = self.plan.graph.proto.input
        kind = inputs[place].type.tensor_type if place < len(inputs) else None
        return (1,) * len(kind.shape.dim) if kind is not None and kind.HasField("shape") else ()

    def _slice(self, array: Any, axis: int, backward: bool) -> Any:
        place = array.shape[axis] - 1 - self.count if backward else self.count
        return np.take(array, place, axis)

    def end(self, inner: OnnxFrame) -> None:
        """Take the results of an iteration."""
        results = [inner.get(name) for name in self.plan.graph.output_names]
        if self._is_scan:
            self.states = results[: self.first_part]
        else:
            self._goes = bool(np.asarray(results[0]).reshape(-1)[0])
            self.states = results[1 : self.first_part]
        for parts, value in zip(self._parts, results[self.first_part :], strict=True):
            parts.append(value)
        self._before = inner
        self.count += 1

    def outputs(self) -> list[Any]:
        """The final states and the stacked outputs, after at least one iteration."""
        axes, directions = self.output_axes, self._per_item("scan_output_directions", self._parts)
        stacked = []
        for parts, axis, backward in zip(self._parts, axes, directions, strict=True):
            stacked.append(np.stack(parts[::-1] if backward else parts, axis))
        return [*self.states, *stacked]


def outputs_of_no_iterations(frame: OnnxFrame, place: int, loop: OnnxLoop, found: list[Any]) -> list[Any]:
    """The outputs of a Loop or Scan that does not run: the initial states, and empty tensors.

    The shapes of these come from ONNX Runtime. It divides by zero in a Scan of length 0, and does not run some nodes
    alone: then they have the shapes of `found`, the outputs of the IR, or else the declared ones.
    """
    states = loop.states
    if loop.node.op_type == "Loop" and not any(state is None or isinstance(state, list) for state in states):
        with suppress(OnnxError):
            values = Piece(frame.plan, frame, range(place, place + 1)).run(frame)
            return [values.get(name) for name in loop.node.output]
    declared = loop.plan.graph.proto.output[loop.first_part :]
    axes = loop.output_axes
    pairs = zip(declared, found[len(states) :], axes, strict=True)
    return [*states, *(_empty(proto, like, axis) for proto, like, axis in pairs)]


def _empty(declared: Any, like: Any, axis: int) -> Any:
    from onnx import helper

    if like is not None:
        dims = list(like.shape)
        dims[axis] = 0
        return np.zeros(dims, like.dtype)
    kind = declared.type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type) if kind.elem_type else np.dtype(np.float32)
    dims = [dim.dim_value for dim in kind.shape.dim]
    dims.insert(axis if axis >= 0 else axis + len(dims) + 1, 0)
    return np.zeros(dims, dtype)


class OnnxMap:
    """One run of a SequenceMap, driven as a loop is: an iteration for each element."""

    def __init__(self, frame: OnnxFrame, place: int) -> None:
        self.frame = frame
        self.node = frame.plan.nodes[place]
        self.plan: OnnxPlan = frame.plan.body(place, "body")
        self.count = 0
        self._given = [frame.get(name) for name in self.node.input]
        self._rows: list[list[Any]] = []

    def sources(self) -> dict[str, tuple[OnnxFrame, str]]:
        """No tensor of another frame: the elements of a sequence have none in the IR."""
        return {}

    def goes_on(self) -> bool:
        """Whether there is another element."""
        return self.count < len(self._given[0])

    def begin(self) -> OnnxFrame:
        """The frame of the next element."""
        values = [each[self.count] if isinstance(each, list) else each for each in self._given]
        return OnnxFrame(self.plan, dict(zip(self.plan.graph.input_names, values, strict=True)), self.frame)

    def end(self, inner: OnnxFrame) -> None:
        """Take the results of an element."""
        self._rows.append([inner.get(name) for name in self.plan.graph.output_names])
        self.count += 1

    def outputs(self) -> list[Any]:
        """The sequences."""
        return [[row[column] for row in self._rows] for column in range(len(self.plan.graph.output_names))]


def branch_of(frame: OnnxFrame, place: int) -> str:
    """The attribute of the branch that an If takes."""
    condition = frame.get(frame.plan.nodes[place].input[0])
    return "then_branch" if np.asarray(condition).reshape(-1)[0] else "else_branch"


def _attribute(node: Any, name: str, default: Any) -> Any:
    """The value of an attribute: an integer, or a list of them."""
    for each in node.attribute:
        if each.name == name:
            return list(each.ints) if isinstance(default, list) else each.i
    return default
