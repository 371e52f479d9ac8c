"""States that hold values of the last steps: delay lines, buffers of a causal convolution.

    s' = concat(s[p:], x[t])       s[t] = V[t p : t p + K], with V = concat(s[0], x[0], x[1], ...) and s of size K
    s' = concat(x[t], s[:-1])      s[t] = V[T - t : T - t + K], with V = concat(.., x[1], x[0], s[0])
"""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import i64
from mo_loop.ops.lengths import as_value
from mo_loop.ops.movement import FAR
from mo_loop.transforms.loops.closed_forms import Solved, State
from mo_loop.transforms.loops.lifted import moved, unsqueezed
from mo_loop.transforms.port_maps import reversed_along
from mo_loop.transforms.total_operations import fit_beside


def solved_as_window(state: State) -> Solved | None:
    """The values of a state in all steps, if it is of this kind."""
    made, shape = state.next.node, state.initial.shape
    if not isinstance(made, ops.Concat) or len(made.operands) != 2 or not shape:
        return None
    if not shape == state.entry.parameter.output.shape == state.next.shape:
        return None
    axis = normalise_axis(made.axis, len(shape))
    appends = state.lifting[made.operands[1]] is not None
    kept, new = made.operands if appends else made.operands[::-1]
    x, size = state.lifting[new], shape[axis]
    if x is None or x.rank != len(shape) or not isinstance(size, int) or not fit_beside([shape, x.dims], axis):
        return None
    part = x.dims[axis]
    if not isinstance(part, int) or not 0 < part < size or (part > 1 and not appends):
        return None
    if _part(kept, state.entry.parameter.output, axis, size) != ((part, size) if appends else (0, size - part)):
        return None
    pieces = state.steps.along(x, axis)
    pair = (state.initial, pieces) if appends else (reversed_along(pieces, axis), state.initial)
    every = ops.Concat(*pair, axis=axis).output
    if state.reads_only_last(kept.node):
        ends = ([-size], [FAR]) if appends else ([0], [size])
        return Solved(None, None, ops.Slice(every, *ends, [1], [axis]).output)
    count, graph = state.steps.count, state.initial.graph
    numbers = ops.Range(*(as_value(each, graph) for each in (0, count + 1, 1)), output_type=i64).output
    firsts = ops.Multiply(numbers, part) if appends else ops.Subtract(as_value(count, graph), numbers)
    places = ops.Add(unsqueezed(firsts.output, [1]), np.arange(size)).output
    return state.all_of(moved(ops.Gather(every, places, axis).output, axis, 0))


def _part(value: Value, state: Value, axis: int, size: int) -> tuple[int, int] | None:
    """The start and the end along an axis of the part of the state that a value is."""
    node = value.node
    if not node.inputs or node.operands[0] is not state:
        return None
    known = [each.type.integers for each in node.operands[1:]]
    if isinstance(node, ops.Slice) and len(known) == 4:
        bounds = [each[0] for each in known if each is not None and len(each) == 1]
        if len(bounds) < 4 or normalise_axis(bounds[3], state.type.rank) != axis or bounds[2] != 1:
            return None
        start, stop, _ = slice(*bounds[:2]).indices(size)
        return start, stop
    if isinstance(node, ops.Gather) and known[0] and known[1] and not node.batch_dims:
        places = [each % size for each in known[0]]
        is_range = places == list(range(places[0], places[0] + len(places)))
        is_along = normalise_axis(known[1][0], state.type.rank) == axis and node.operands[1].rank == 1
        return (places[0], places[-1] + 1) if is_range and is_along else None
    if isinstance(node, ops.Split | ops.VariadicSplit) and known[0]:
        if normalise_axis(known[0][0], state.type.rank) != axis:
            return None
        sizes = [each.type.dims[axis] for each in node.outputs]
        if all(isinstance(each, int) for each in sizes):
            first = sum(each for each in sizes[: value.index] if isinstance(each, int))
            return first, first + int(sizes[value.index])
    return None
