"""A Loop or TensorIterator of the IR, run iteration by iteration by its port map.

loop = IrLoop(frame, node)
while loop.goes_on():
    inner = loop.begin()            # a frame of the body, with slices, states and invariant inputs
    ...
    loop.end(inner)                 # the next states, and the parts of concatenated outputs
loop.finish()                       # the outputs are values of `frame`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop.compare.layers.ir_side import IrFrame, IrRunError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.origin import Origin
from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Control, If, Iteration, Loop
from mo_loop.ops.port_map import Concatenated, Invariant, Merged, Sliced


class IrLoop:
    """One run of a loop."""

    def __init__(self, frame: IrFrame, node: Iteration) -> None:
        self.frame = frame
        self.node = node
        self.count = 0
        frame.need([value for value in node.inputs if value is not None])
        arrays = [(entry, frame.get(value)) for entry, value in node.fed]
        self._whole = {entry.parameter: array for entry, array in arrays if isinstance(entry, Invariant)}
        self._states = {entry: array for entry, array in arrays if isinstance(entry, Merged)}
        self._pieces = {entry: _Pieces(entry, array) for entry, array in arrays if isinstance(entry, Sliced)}
        self._initial = {entry.result: array for entry, array in self._states.items()}
        self._parts: dict[int, list[Any]] = {
            number: [] for number, entry in enumerate(node.output_map) if isinstance(entry, Concatenated)
        }
        self._last: dict[Any, Any] = {}
        self._limit, self._goes = self._limits()

    def _limits(self) -> tuple[int, bool]:
        """The largest number of iterations (-1: unlimited), and whether the first one runs."""
        if not isinstance(self.node, Loop):
            counts = [len(each) for each in self._pieces.values()]
            return (counts[0] if counts else 1), True
        trip, condition = self.node.inputs[0], self.node.inputs[1]
        assert trip is not None and condition is not None
        limit = int(np.asarray(self.frame.get(trip)).reshape(-1)[0])
        return max(limit, -1), bool(np.asarray(self.frame.get(condition)).reshape(-1)[0])

    def goes_on(self) -> bool:
        """Whether there is another iteration."""
        return self._goes and (self._limit < 0 or self.count < self._limit)

    def begin(self) -> IrFrame:
        """The frame of the next iteration."""
        node = self.node
        values = {parameter.output: array for parameter, array in self._whole.items()}
        values |= {entry.parameter.output: array for entry, array in self._states.items()}
        for entry, pieces in self._pieces.items():
            if self.count >= len(pieces):
                raise IrRunError("run", f"iteration {self.count} has no slice: the input has {len(pieces)}")
            values[entry.parameter.output] = pieces[self.count]
        if isinstance(node, Loop) and node.iteration is not None:
            kind = node.iteration.output.type
            values[node.iteration.output] = np.full((1,) * (kind.rank or 0), self.count, kind.dtype.numpy)
        return IrFrame(self.frame.side, node.body, values, self.frame)

    def end(self, inner: IrFrame) -> None:
        """Take the results of an iteration."""
        node = self.node
        inner.need([result.value for result in node.body.results])
        results = {result: inner.get(result.value) for result in node.body.results}
        self._states = {entry: results[entry.result] for entry in self._states}
        for number, parts in self._parts.items():
            parts.append(results[node.output_map[number].result])
        self._last = {entry.result: results[entry.result] for entry in node.output_map}
        self._goes = not isinstance(node, Loop) or bool(np.asarray(results[node.condition]).reshape(-1)[0])
        self.count += 1

    def state(self, entry: Merged) -> Any:
        """The value with which a state begins the next iteration."""
        return self._states[entry]

    def set_state(self, entry: Merged, value: Any) -> None:
        """Let a state begin the next iteration, or end, with the numbers of `value`."""
        array = np.asarray(self._states[entry])
        fitting = np.asarray(value).astype(array.dtype).reshape(array.shape)
        self._states[entry] = fitting
        if entry.result in self._last:
            self._last[entry.result] = fitting

    def finish(self) -> None:
        """Make the outputs."""
        self.frame.set_outputs(self.node, [self._output(number) for number in range(len(self.node.output_map))])

    def _output(self, number: int) -> Any:
        entry = self.node.output_map[number]
        if not isinstance(entry, Concatenated):
            if self.count:
                return self._last[entry.result]
            return self._initial[entry.result] if entry.result in self._initial else self._empty(number)
        parts = self._parts.pop(number)
        if entry.stride < 0:
            parts.reverse()
        try:
            return np.concatenate(parts, entry.axis) if parts else self._empty(number, entry)
        except ValueError as error:
            raise IrRunError("run", f"the values of the iterations cannot be concatenated: {error}") from error

    def _empty(self, number: int, entry: Concatenated | None = None) -> Any:
        """An output of no iterations: undefined, or without elements along the axis."""
        kind = self.node.outputs[number].type
        dims = [dim if isinstance(dim, int) else 0 for dim in kind.shape or ()]
        if entry is not None and dims:
            dims[normalise_axis(entry.axis, len(dims))] = 0
        return np.zeros(dims, kind.dtype.numpy)


def as_element(value: Value, array: Any, expected: Any) -> Any:
    """The array of a body Parameter as the tensor of ONNX.

    A slice has an axis of one element more than the element that Scan gives, and a value that a loop slices or carries
    can have one more leading dimension of 1 (AddLeadingDimension).
    """
    shape, wanted = np.shape(array), np.shape(expected)
    if len(shape) <= len(wanted) or not isinstance(value.node, Parameter):
        return array
    longer = [dim for dim in shape if dim != 1] == [dim for dim in wanted if dim != 1]
    return np.reshape(array, wanted) if longer else array


class _Pieces:
    """The slices of an array, each made when it is read."""

    def __init__(self, entry: Sliced, array: Any) -> None:
        self._array = array
        self._axis = normalise_axis(entry.axis, array.ndim)
        length = array.shape[self._axis]
        first, last = (each + length + 1 if each < 0 else each for each in (entry.start, entry.end))
        low, high, size = min(first, last), max(first, last), entry.part_size
        if entry.stride < 0:
            self._starts = [start - size for start in range(high, low + size - 1, entry.stride)]
        else:
            self._starts = list(range(low, high - size + 1, entry.stride))
        self._size = size

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> Any:
        start = self._starts[number]
        return self._array[(*(slice(None),) * self._axis, slice(start, start + self._size))]


def counterpart(
    ir: IrFrame, origin: Origin, kind: type[Control], *, several: bool = False
) -> tuple[IrFrame, Control] | None:
    """A node that was not driven yet, with its frame: `ir`, the branches taken in it, or a frame around it.

    With `several` it is a loop with several steps in each iteration, else one with one.

    A loop can be in a branch of an If that the conversion made for it: then the If is entered.
    """
    frame: IrFrame | None = ir
    while frame is not None:
        found = _in_frame(frame, origin, kind, several)
        if found is not None:
            return found
        frame = frame.outer
    return None


def _in_frame(
    frame: IrFrame, origin: Origin, kind: type[Control], several: bool
) -> tuple[IrFrame, Control] | None:
    guards = []
    for node in sorted(frame.side.controls(frame.graph), key=lambda each: _rank(each, origin)):
        if node in frame.driven or not is_for(node, origin):
            continue
        if isinstance(node, kind) and _has_steps(node, several):
            return frame, node
        if isinstance(node, If) and any(_holds(body, origin, kind, several) for body in node.bodies):
            guards.append(node)
    for branch in (*map(frame.enter, guards), *frame.branches.values()):
        found = _in_frame(branch, origin, kind, several)
        if found is not None:
            return found
    return None


def loops_for(graph: Graph, origin: Origin) -> int:
    """The number of loops that were made for an ONNX node."""
    nodes = (node for each in graph.scopes() for node in each.nodes_with_bodies())
    return sum(isinstance(node, Iteration) and is_for(node, origin) for node in nodes)


def is_for(node: Node, origin: Origin) -> bool:
    """Whether a layer was made for an ONNX node."""
    return any(each.scope == origin.scope and each.node == origin.node for each in node.origins)


def _rank(node: Node, origin: Origin) -> int:
    """The place of an origin among those of a node: its own comes first, merged ones follow."""
    own = (place for place, each in enumerate(node.origins) if each[:2] == origin[:2])
    return next(own, len(node.origins))


def _holds(graph: Graph, origin: Origin, kind: type[Control], several: bool) -> bool:
    """Whether a graph or a body in it has a node of the kind for an ONNX node."""
    nodes = (node for each in graph.scopes() for node in each.nodes_with_bodies())
    return any(isinstance(node, kind) and _has_steps(node, several) and is_for(node, origin) for node in nodes)


def _has_steps(node: Control, several: bool) -> bool:
    """Whether an iteration is one of the model, or has several."""
    return not isinstance(node, Iteration) or (node.steps > 1) == several
