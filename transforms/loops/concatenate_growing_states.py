"""States to which every step appends."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import low
from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.base import Result
from mo_loop.ops.control import Iteration
from mo_loop.ops.lengths import dimension
from mo_loop.ops.port_map import Concatenated, Merged
from mo_loop.transforms.loops.lifted import with_sizes
from mo_loop.transforms.loops.loop_pass import LoopPass
from mo_loop.transforms.port_maps import drop_unused_ports
from mo_loop.transforms.replace import move_readers


class ConcatenateGrowingStates(LoopPass):
    """for t: s = concat(s, x[t])  ->  for t: X[t] = x[t]; then s = concat(s, X)

    A state that nothing reads but its own concatenation, with a piece of length 1, becomes a concatenated output; so
    does one to which steps prepend. The runtime would copy the state in every step.
    """

    def rewrite(self, node: Iteration) -> bool:
        found = [(entry, first, piece) for entry, first in node.fed if (piece := _piece(node, entry)) is not None]
        if not found:
            return self.refuse(node, "no state is only appended to")
        for entry, first, piece in found:
            _concatenate(node, entry, first, piece)
        drop_unused_ports(node)
        return self.accept(node)


def _piece(node: Iteration, entry: object) -> Value | None:
    """What a step appends or prepends to a state that nothing else reads."""
    if not isinstance(entry, Merged):
        return None
    state, made = entry.parameter.output, entry.result.value.node
    if not isinstance(made, ops.Concat) or len(made.operands) != 2 or [use.node for use in state.uses] != [made]:
        return None
    if any(not isinstance(use.node, Result) for use in made.output.uses):
        return None
    (piece,) = (value for value in made.operands if value is not state)
    shared = any(each.result.value is made.output and each.result is not entry.result for each in node.output_map)
    is_one = piece.rank is not None and piece.type.dims[normalise_axis(made.axis, piece.rank)] == 1
    return piece if is_one and not shared else None


def _concatenate(node: Iteration, entry: Merged, first: Value, piece: Value) -> None:
    made = entry.result.value.node
    assert isinstance(made, ops.Concat)
    dims = piece.type.dims
    axis = normalise_axis(made.axis, len(dims))
    appends = made.operands[1] is piece
    result = Result(piece)
    new = Concatenated(result, axis) if appends else Concatenated(result, axis, start=-1, end=0, stride=-1)
    finals = [number for number, each in enumerate(node.output_map) if each.result is entry.result]
    node.output_map = (*node.output_map, new)
    whole = piece.type.with_shape((*dims[:axis], node.count, *dims[axis + 1 :])).without_known()
    added = node.graph.add_output(node, whole)
    if low(node.count) < 1 and not all(isinstance(dim, int) for at, dim in enumerate(dims) if at != axis):
        added = with_sizes(added, axis, [dimension(first, at) for at in range(len(dims)) if at != axis])
    if first.type.dims[axis] != 0:
        pair = (first, added) if appends else (added, first)
        added = ops.Concat(*pair, axis=axis).output
    for number in finals:
        move_readers(node.outputs[number], added, node.outputs[number].uses)
