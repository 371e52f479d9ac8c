"""Unique. The operation of the runtime crashes for empty tensors, and is wrong along an axis, where it is composed.

Slices along the axis are rows of a matrix r of n rows. Each row is compared with all others:

    first[i] = min{ j : r[j] = r[i] }              the first occurrence of the value of row i
    rank[i]  = |{ j : first[j] = j, r[j] < r[i] }| its place among the values in lexicographic order
"""

from collections.abc import Sequence

import numpy as np

from mo_loop.frontend.ops.shared import converted
from mo_loop.frontend.vocabulary import UnsupportedError, Value, ops
from mo_loop.graph.dimension import low
from mo_loop.graph.shape import element_count, normalise_axis
from mo_loop.graph.types import boolean, i32, i64
from mo_loop.ops.lengths import dimension, joined, vector


def unique_elements(x: Value, in_order: bool) -> Sequence[Value]:
    """Unique elements, the index of the first occurrence of each, the inverse indices, and the counts."""
    if low(element_count(x.shape) or 0) > 0:
        return _found(x, in_order)
    flat = vector(x)
    length = ops.ShapeOf(flat)
    one_if_empty = ops.Maximum(1 - length, 0)
    padded = ops.Pad(flat, [0], one_if_empty, np.zeros((), x.dtype.numpy))
    return [ops.Slice(each, [0], length, [1], [0]) for each in _found(padded, in_order)]


def _found(x: Value, in_order: bool) -> Sequence[Value]:
    """Unique of a tensor that is not empty. Unsorted, the runtime gives wrong values unless the third output is used:
    so it sorts, and the results are reordered by first occurrence."""
    values, first, back, times = ops.Unique(x, sorted=True)
    if in_order:
        return values, first, back, times
    count = ops.Gather(ops.ShapeOf(first), 0, 0)
    places, order = ops.TopK11(first, count, axis=0, mode="min", index_element_type=i64)
    _, rank = ops.TopK11(order, count, axis=0, mode="min", index_element_type=i64)
    found = ops.Gather(values, order, 0), places, ops.Gather(rank, back, 0), ops.Gather(times, order, 0)
    return found


def unique_slices(x: Value, axis: int, in_order: bool) -> Sequence[Value]:
    """Unique slices, the index of the first occurrence of each, the inverse indices, and the counts."""
    if x.rank is None:
        raise UnsupportedError("Unique along an axis of a tensor of unknown rank", code="ML314")
    at = normalise_axis(axis, x.rank)
    rows = _rows(x, at)
    count = dimension(rows, 0)
    lower, differs = _compared(rows)
    same = ~ops.ReduceLogicalOr(differs, [2])
    steps = ops.Range(0, count, 1, graph=rows.graph, output_type=i64)
    first = ops.ReduceMin(ops.Select(same, steps, np.array(count) if isinstance(count, int) else count), [1])
    is_first = ops.Equal(first, steps)
    places = ops.Reshape(ops.NonZero(is_first), [-1])
    times = ops.ReduceSum(ops.Convert(same, destination_type=i64), [1])
    if in_order:
        counted = _precedes(lower, differs) & ops.Unsqueeze(is_first, 1)
        rank = ops.ReduceSum(ops.Convert(counted, destination_type=i64), [0])
        empty = ops.Broadcast(np.array(0), ops.ShapeOf(places), graph=x.graph)
        order = ops.ScatterUpdate(empty, ops.Gather(rank, places, 0), places, 0)
    else:
        before = ops.CumSum(ops.Convert(is_first, destination_type=i64), 0, exclusive=True)
        rank, order = ops.Gather(before, first, 0), places
    return [ops.Gather(x, order, at), order, rank, ops.Gather(times, order, 0)]


def _rows(x: Value, axis: int) -> Value:
    """The slices along `axis` as rows of a matrix."""
    others = [i for i in range(x.rank or 0) if i != axis]
    moved = ops.Transpose(converted(x, i32) if x.dtype is boolean else x, [axis, *others])
    return ops.Reshape(moved, joined([dimension(moved, 0), -1], moved))


def _compared(rows: Value) -> tuple[Value, Value]:
    """For rows i and j and column k: whether r[i,k] < r[j,k], and whether they differ."""
    left, right = ops.Unsqueeze(rows, 1), ops.Unsqueeze(rows, 0)
    if rows.dtype.is_float:
        return left < right, ops.NotEqual(left, right)
    # The runtime compares integers as f32; the sign of their difference is exact.
    difference = ops.Subtract(*(converted(each, i64) for each in (left, right)))
    return difference < 0, ops.NotEqual(difference, 0)


def _precedes(lower: Value, differs: Value) -> Value:
    """Whether row i is before row j in lexicographic order: the first column that differs decides."""
    seen = ops.CumSum(ops.Convert(differs, destination_type=i32), 2, exclusive=True)
    decides = differs & ops.Equal(seen, 0)
    return ops.ReduceLogicalOr(decides & lower, [2])
