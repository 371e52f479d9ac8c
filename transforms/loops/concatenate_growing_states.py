"""States to which every step appends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mo_loop.graph.dimension import Dimension, low
from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.control import Iteration
from mo_loop.ops.lengths import dimension
from mo_loop.ops.port_map import Concatenated, Merged
from mo_loop.transforms.loops.lifted import with_sizes
from mo_loop.transforms.loops.loop_pass import LoopPass
from mo_loop.transforms.port_maps import drop_unused_ports
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.vocabulary import Result, Value, ops


class ConcatenateGrowingStates(LoopPass):
    """for t: s = concat(s, x[t])  ->  for t: X[t] = x[t]; then s = concat(s, X)

    A state that nothing reads but its own concatenation, with a piece of length 1, becomes a concatenated output; so
    does one to which steps prepend. The runtime would copy the state in every step. A piece that is repeated, as
    PyTorch exports repeat_interleave, is one of length 1 and a number K[t]: the step then appends X[t] K[t] times.
    """

    def rewrite(self, node: Iteration) -> bool:
        found = [(entry, first, piece) for entry, first in node.fed if (piece := _appended(node, entry)) is not None]
        if not found:
            return self.refuse(node, "no state is only appended to")
        for entry, first, piece in found:
            _concatenate(node, entry, first, piece)
        drop_unused_ports(node)
        return self.accept(node)


@dataclass(frozen=True)
class _Appended:
    """The value that a step appends or prepends to a state: `value`, of length 1 along `axis`, or that `count` times.
    """

    value: Value
    axis: int
    appends: bool
    count: Value | None = None


def _appended(node: Iteration, entry: object) -> _Appended | None:
    """Return the value that a step appends or prepends to a state that nothing else reads."""
    if not isinstance(entry, Merged):
        return None
    state, made = entry.parameter.output, entry.result.value.node
    if not isinstance(made, ops.Concat) or len(made.operands) != 2 or [use.node for use in state.uses] != [made]:
        return None
    if any(not isinstance(use.node, Result) for use in made.output.uses):
        return None
    if any(each.result.value is made.output and each.result is not entry.result for each in node.output_map):
        return None
    (value,) = (value for value in made.operands if value is not state)
    if value.shape is None:
        return None
    axis, appends = normalise_axis(made.axis, len(value.shape)), made.operands[1] is value
    if value.shape[axis] == 1:
        return _Appended(value, axis, appends)
    return _repeated(value, axis) if appends else None


def _repeated(value: Value, axis: int) -> _Appended | None:
    """A Broadcast along one axis, or its Reshape that moves no element, as a piece of length 1 and its number."""
    dims = value.type.dims
    is_flat = isinstance(value.node, ops.Reshape)
    made = value.node.operands[0].node if is_flat else value.node
    if not isinstance(made, ops.Broadcast) or len(made.operands) != 2 or made.output.shape is None:
        return None
    (row, sizes), whole = made.operands, made.output.shape
    if row.rank != len(whole) or sizes.type.dims != (row.rank,):
        return None
    grown = [place for place, (old, new) in enumerate(zip(row.type.dims, whole, strict=True)) if old != new]
    if len(grown) != 1 or row.type.dims[grown[0]] != 1:
        return None
    if not is_flat:
        return _Appended(row, axis, True, ops.Gather(sizes, grown, 0).output)
    pattern = [1 if place == axis else dim if isinstance(dim, int) else -1 for place, dim in enumerate(dims)]
    if _others(dims, axis) != _others(whole, grown[0]) or pattern.count(-1) > 1:
        return None
    one = ops.Reshape(row, pattern).output
    return _Appended(one, axis, True, ops.Gather(sizes, grown, 0).output)


def _others(dims: Sequence[Dimension], axis: int) -> list[list[Dimension]]:
    """The sizes before an axis and after it, without those of 1."""
    return [[dim for dim in part if dim != 1] for part in (dims[:axis], dims[axis + 1 :])]


def _concatenate(node: Iteration, entry: Merged, first: Value, piece: _Appended) -> None:
    axis, dims = piece.axis, piece.value.type.dims
    result = Result(piece.value)
    new = Concatenated(result, axis) if piece.appends else Concatenated(result, axis, start=-1, end=0, stride=-1)
    finals = [number for number, each in enumerate(node.output_map) if each.result is entry.result]
    added = _output(node, new, piece.value, axis)
    if low(node.count) < 1 and not all(isinstance(dim, int) for at, dim in enumerate(dims) if at != axis):
        added = with_sizes(added, axis, [dimension(first, at) for at in range(len(dims)) if at != axis])
    if piece.count is not None:
        counts = _output(node, Concatenated(Result(piece.count), 0), piece.count, 0)
        added = ops.Gather(added, _places(counts), axis).output
    if first.type.dims[axis] != 0:
        pair = (first, added) if piece.appends else (added, first)
        added = ops.Concat(*pair, axis=axis).output
    for number in finals:
        move_readers(node.outputs[number], added, node.outputs[number].uses)


def _output(node: Iteration, entry: Concatenated, value: Value, axis: int) -> Value:
    """A new output of the values of all steps, which are of length 1 along an axis."""
    node.output_map = (*node.output_map, entry)
    dims = value.type.dims
    return node.graph.add_output(
        node, value.type.with_shape((*dims[:axis], node.count, *dims[axis + 1 :])).without_known()
    )


def _places(counts: Value) -> Value:
    """0 counts[0] times, 1 counts[1] times, ...: how many of the ends are not after each place."""
    ends = ops.CumSum(ops.Concat(np.zeros(1, np.int64), counts, axis=0), 0).output
    total = ops.Gather(ends, [-1], 0).output
    marks = ops.ScatterElementsUpdate12(
        ops.Broadcast(0, ops.Add(total, 1)), ends, ops.Broadcast(1, ops.ShapeOf(ends)), 0, reduction="sum"
    )
    return ops.Subtract(ops.Slice(ops.CumSum(marks, 0), [0], total, [1], [0]), 1).output
