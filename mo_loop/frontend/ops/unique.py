"""Unique. The operation of the runtime crashes for empty tensors, takes n * n steps for indices and counts, and is
wrong along an axis. Elements are sorted, with order[j] as the place of the j-th:

    group[j] = CumSum(v[j] != v[j - 1])            the number of the distinct value
    start    = { j : j = 0 or v[j] != v[j - 1] }   where the groups begin; their lengths are the counts
    back     = group[j] at order[j]                the inverse indices
    first[g] = min{ i : back[i] = g }              the first occurrence of each value

Slices along the axis are rows of a matrix r of n rows. Each row is compared with all others:

    first[i] = min{ j : r[j] = r[i] }              the first occurrence of the value of row i
    rank[i]  = |{ j : first[j] = j, r[j] < r[i] }| its place among the values in lexicographic order
"""

from collections.abc import Sequence

import numpy as np

from mo_loop.frontend.ops.ranking import same, top
from mo_loop.frontend.ops.shared import FAR, converted, counted
from mo_loop.frontend.vocabulary import UnsupportedError, Value, ops
from mo_loop.graph.dimension import low
from mo_loop.graph.shape import element_count, normalise_axis
from mo_loop.graph.types import boolean, i32, i64
from mo_loop.ops.lengths import dimension, joined, vector


def unique_elements(x: Value, in_order: bool, *, values_only: bool = False) -> Sequence[Value]:
    """Unique elements, the index of the first occurrence of each, the inverse indices, and the counts; only the
    elements with `values_only`."""

    def found(x: Value) -> Sequence[Value]:
        return ops.Unique(x, sorted=True)[:1] if in_order and values_only else _found(x, in_order)

    flat = vector(x)
    if low(element_count(x.shape) or 0) > 0:
        return found(flat)
    length = ops.ShapeOf(flat)
    one_if_empty = ops.Maximum(1 - length, 0)
    padded = ops.Pad(flat, [0], one_if_empty, np.zeros((), x.dtype.numpy))
    return [ops.Slice(each, [0], length, [1], [0]) for each in found(padded)]


def _found(x: Value, in_order: bool) -> Sequence[Value]:
    """Unique of a vector that is not empty."""
    count = dimension(x, 0)
    keys = converted(x, i32) if x.dtype is boolean else x
    ordered, order = top(keys, count, 0, "min", places=False)
    differs = ~same(ops.Slice(ordered, [1], [FAR], [1], [0]), ops.Slice(ordered, [0], [-1], [1], [0]))
    group = ops.Concat(np.array([0]), ops.CumSum(ops.Convert(differs, destination_type=i64), 0), axis=0)
    back = ops.ScatterUpdate(_zeros(x), order, group, 0)
    start = ops.Concat(np.array([0]), vector(ops.NonZero(differs)) + 1, axis=0)
    times = ops.Concat(ops.Slice(start, [1], [FAR], [1], [0]), ops.ShapeOf(x), axis=0) - start
    first = ops.ScatterElementsUpdate12(_zeros(start) + count, back, counted(count, x), 0, reduction="min")
    if not in_order:
        is_first = ops.ScatterUpdate(_zeros(x), first, _zeros(first) + 1, 0)
        rank = ops.Gather(ops.CumSum(is_first, 0, exclusive=True), first, 0)
        moved = ops.ScatterUpdate(_zeros(first), rank, counted(dimension(first, 0), x), 0)
        first, back, times = ops.Gather(first, moved, 0), ops.Gather(rank, back, 0), ops.Gather(times, moved, 0)
    return ops.Gather(x, first, 0), first, back, times


def _zeros(x: Value) -> Value:
    """As many zeros of type i64 as a vector has elements."""
    return ops.Broadcast(np.array(0), ops.ShapeOf(x), graph=x.graph)


def unique_slices(x: Value, axis: int, in_order: bool) -> Sequence[Value]:
    """Unique slices, the index of the first occurrence of each, the inverse indices, and the counts."""
    if x.rank is None:
        raise UnsupportedError("Unique along an axis of a tensor of unknown rank", code="ML314")
    at = normalise_axis(axis, x.rank)
    rows = _rows(x, at)
    count = dimension(rows, 0)
    lower, differs = _compared(rows)
    are_equal = ~ops.ReduceLogicalOr(differs, [2])
    steps = counted(count, rows)
    first = ops.ReduceMin(ops.Select(are_equal, steps, np.array(count) if isinstance(count, int) else count), [1])
    is_first = ops.Equal(first, steps)
    places = ops.Reshape(ops.NonZero(is_first), [-1])
    times = ops.ReduceSum(ops.Convert(are_equal, destination_type=i64), [1])
    if in_order:
        before = _precedes(lower, differs) & ops.Unsqueeze(is_first, 1)
        rank = ops.ReduceSum(ops.Convert(before, destination_type=i64), [0])
        order = ops.ScatterUpdate(_zeros(places), ops.Gather(rank, places, 0), places, 0)
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
