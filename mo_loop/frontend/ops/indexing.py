"""Operators that read and write elements by index: Gather*, *Scatter*, NonZero, OneHot, TopK, Compress, Unique.

The operation Unique of the runtime crashes for empty tensors, takes n * n steps for indices and counts, and is
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

from mo_loop import ops as operations
from mo_loop.frontend.ops.ranking import Mode, same, top
from mo_loop.frontend.ops.shared import counted, number, ranked, require_choice
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph import assume_least, boolean, element_count, high, i32, i64, low, normalise_axis
from mo_loop.ops.exact import is_not_negative
from mo_loop.ops.lengths import as_i64, joined, scalar, vector
from mo_loop.ops.ranges import AtLeast1, Vector
from mo_loop.target import CRASH, Gap


def unique_elements(x: Value, in_order: bool, *, values_only: bool = False) -> Sequence[Value]:
    """Unique elements, the index of the first occurrence of each, the inverse indices, and the counts; only the
    elements with `values_only`."""

    def found(x: Value) -> Sequence[Value]:
        return ops.Unique(x, sorted=True)[:1] if in_order and values_only else _found(x, in_order)

    flat = vector(x)
    if low(element_count(x.shape) or 0) > 0:
        return found(flat)
    length = flat.sizes
    padded = ops.Pad(flat, [0], ops.Maximum(1 - length, 0), number(x, 0))
    return [each[:length] for each in found(padded)]


def _found(x: Value, in_order: bool) -> Sequence[Value]:
    """Unique of a vector that is not empty."""
    count = x.size(0)
    keys = x.astype(i32) if x.dtype is boolean else x
    ordered, order = top(keys, count, 0, "min", places=False)
    differs = ~same(ordered[1:], ordered[:-1])
    group = ops.Concat(np.array([0]), ops.CumSum(differs.astype(i64), 0), axis=0)
    back = ops.ScatterUpdate(_zeros(x), order, group, 0)
    start = ops.Concat(np.array([0]), vector(ops.NonZero(differs)) + 1, axis=0)
    times = ops.Concat(start[1:], x.sizes, axis=0) - start
    first = ops.ScatterElementsUpdate12(_zeros(start) + count, back, counted(count, x), 0, reduction="min")
    if not in_order:
        is_first = ops.ScatterUpdate(_zeros(x), first, _zeros(first) + 1, 0)
        rank = ops.Gather(ops.CumSum(is_first, 0, exclusive=True), first, 0)
        moved = ops.ScatterUpdate(_zeros(first), rank, counted(first.size(0), x), 0)
        first, back, times = ops.Gather(first, moved, 0), ops.Gather(rank, back, 0), ops.Gather(times, moved, 0)
    return ops.Gather(x, first, 0), first, back, times


def _zeros(x: Value) -> Value:
    """As many zeros of type i64 as a vector has elements."""
    return ops.Broadcast(np.array(0), x.sizes, graph=x.graph)


def unique_slices(x: Value, axis: int, in_order: bool) -> Sequence[Value]:
    """Unique slices, the index of the first occurrence of each, the inverse indices, and the counts."""
    ranked(x)
    at = normalise_axis(axis, x.rank)
    others = [i for i in range(x.rank or 0) if i != at]
    moved = ops.Transpose(x.astype(i32) if x.dtype is boolean else x, [at, *others])
    rows = moved.reshape([moved.size(0), -1])
    count = rows.size(0)
    lower, differs = _compared(rows)
    are_equal = ~ops.ReduceLogicalOr(differs, [2])
    steps = counted(count, rows)
    first = ops.ReduceMin(ops.Select(are_equal, steps, np.array(count) if isinstance(count, int) else count), [1])
    is_first = ops.Equal(first, steps)
    places = ops.NonZero(is_first).reshape([-1])
    times = ops.ReduceSum(are_equal.astype(i64), [1])
    if in_order:
        # Row i is before row j in lexicographic order: the first column that differs decides.
        decides = differs & ops.Equal(ops.CumSum(differs.astype(i32), 2, exclusive=True), 0)
        before = ops.ReduceLogicalOr(decides & lower, [2]) & ops.Unsqueeze(is_first, 1)
        rank = ops.ReduceSum(before.astype(i64), [0])
        order = ops.ScatterUpdate(_zeros(places), ops.Gather(rank, places, 0), places, 0)
    else:
        before = ops.CumSum(is_first.astype(i64), 0, exclusive=True)
        rank, order = ops.Gather(before, first, 0), places
    return [ops.Gather(x, order, at), order, rank, ops.Gather(times, order, 0)]


def _compared(rows: Value) -> tuple[Value, Value]:
    """For rows i and j and column k: whether r[i,k] < r[j,k], and whether they differ."""
    left, right = ops.Unsqueeze(rows, 1), ops.Unsqueeze(rows, 0)
    if rows.dtype.is_float:
        return left < right, ops.NotEqual(left, right)
    # The runtime compares integers as f32; the sign of their difference is exact.
    difference = ops.Subtract(*(each.astype(i64) for each in (left, right)))
    return difference < 0, ops.NotEqual(difference, 0)


AVOIDS = (
    Gap(
        "top-none", "`TopK` with a k of 0 at run time corrupts memory", "one element more, removed afterwards", CRASH,
        rule="translator of TopK",
    ),
)
"""The errors of the runtime that these translators avoid."""


@translates("Gather", since=1)
def gather(data, indices, *, axis: int = 0):
    """Slices along an axis; negative indices count from the end."""
    return ops.Gather(data, indices, axis)


@translates("GatherElements", since=11, one_rank="data indices")
def gather_elements(data, indices, *, axis: int = 0):
    """One element for each index. In the IR the other dimensions are equal; in ONNX the indices may have less."""
    if data.rank is not None and indices.rank == data.rank:
        at = normalise_axis(axis, data.rank)
        for i in range(data.rank):
            if i != at and data.type.dims[i] != indices.type.dims[i]:
                # Not Slice: the runtime removes a Slice before GatherElements, and then refuses the shapes.
                data = ops.VariadicSplit(data, i, joined([indices.size(i), -1], data))[0]
    if isinstance(data.node, operations.Slice):
        # The runtime also removes a Slice along the axis, on which the meaning of negative indices depends.
        data = ops.VariadicSplit(data, axis, [-1, 0])[0]
    return ops.GatherElements(data, indices, axis=axis)


@translates("GatherND", since=1, domain=MICROSOFT, without="batch_dims")
@translates("GatherND", since=11, without="batch_dims")
@translates("GatherND", since=12)
def gather_nd(data, indices, *, batch_dims: int = 0):
    """Slices at several coordinates; the first dimensions may be batch dimensions."""
    return ops.GatherND(data, indices, batch_dims=batch_dims)


@translates("Scatter", since=9, without="reduction")
@translates("ScatterElements", since=11, without="reduction")
@translates("ScatterElements", since=16, one_rank="data indices updates")
def scatter_elements(data, indices, updates, *, axis: int = 0, reduction: str = "none"):
    """Elements replaced, or combined with the new ones. Scatter is the old name."""
    if reduction == "none":
        return ops.ScatterElementsUpdate(data, indices, updates, axis)
    return ops.ScatterElementsUpdate12(data, indices, updates, axis, reduction=_reduction(reduction))


@translates("ScatterND", since=11, without="reduction")
@translates("ScatterND", since=16, one_rank="data")
def scatter_nd(data, indices, updates, *, reduction: str = "none"):
    """Slices replaced, or combined with the new ones."""
    if reduction == "none":
        return ops.ScatterNDUpdate(data, indices, updates)
    return ops.ScatterNDUpdate15(data, indices, updates, reduction=_reduction(reduction))


@translates("TensorScatter", since=24)
def tensor_scatter(
    past_cache: AtLeast1, update: AtLeast1, write_indices: Vector = None, *, axis: int = -2, mode: str = "linear",
):
    """For each batch entry the update is written along the axis from its index on; `circular` wraps around."""
    require_choice("mode", mode, ("linear", "circular"))
    if past_cache.rank is None or update.rank != past_cache.rank:
        raise UnsupportedError("the cache and the update do not have the same known rank", code="ML314")
    at = normalise_axis(axis, past_cache.rank)
    if at == 0:
        raise ModelError("the axis is 0, which is that of the batch", code="ML227")
    length = update.size(at)
    if write_indices is None:
        return ops.Concat(update, past_cache.cut(at, length), axis=at)
    places = write_indices[:, None] + counted(length, update)[None]
    if mode == "circular":
        places = places % past_cache.size(at)
    if past_cache.type.dims[0] == 1:
        return ops.ScatterUpdate(past_cache, vector(places), update, at)
    if at < past_cache.rank - 1:
        return ops.ScatterNDUpdate(past_cache, _coordinates(update, places, at), update)
    places = places.reshape([places.size(0), *[1] * (at - 1), length])
    return ops.ScatterElementsUpdate(past_cache, ops.Broadcast(places, update.sizes), update, at)


def _coordinates(x: Value, places: Value, axis: int) -> Value:
    """The indices of all slices x[b, i, ..., s] with the axis as the last one: (b, i, ..., places[b, s])."""
    lengths = [x.size(i) for i in range(axis + 1)]
    shape = joined(lengths, x)
    alone = [counted(lengths[i], x).reshape([*[1] * i, -1, *[1] * (axis - i)]) for i in range(axis)]
    alone.append(places.reshape([lengths[0], *[1] * (axis - 1), lengths[-1]]))
    return ops.Concat(*(ops.Broadcast(each, shape)[..., None] for each in alone), axis=axis + 1)


def _reduction(name: str) -> str:
    names = {"add": "sum", "mul": "prod", "min": "min", "max": "max"}
    require_choice("reduction", name, ("none", *names))
    return names[name]


@translates("NonZero", since=9)
def non_zero(x):
    """The indices of elements that are not 0, one column each."""
    return ops.NonZero(x)


@translates("Compress", since=9)
def compress(input, condition, *, axis: int | None = None):
    """The slices (without axis: elements) at which the condition holds. It may be shorter or longer than the axis."""
    x, at = (vector(input), 0) if axis is None else (input, axis)
    holds = vector(condition)
    longest = high(holds.type.dims[0])
    size = None if x.rank is None else x.type.dims[normalise_axis(at, x.rank)]
    if size is not None and holds.constant is not None:
        longest = int(np.max(np.flatnonzero(holds.constant), initial=-1)) + 1
        assume_least([(size, longest)])  # else the runtime computes a constant without elements
    if size is not None and (longest is None or longest > low(size)):
        holds = holds[: x.size(at)]
    return ops.Gather(x, vector(ops.NonZero(holds)), at)


@translates("OneHot", since=9)
def one_hot(indices, depth, values, *, axis: int = -1):
    """`values` are off and on; a negative index counts from the end, an index out of range gives only off."""
    size = scalar(as_i64(depth))
    places = as_i64(indices)
    if not is_not_negative(places):
        places = ops.Select(places < 0, places + size, places)
    off, on = (ops.Gather(values, i, 0) for i in (0, 1))
    return ops.OneHot(places, size, on, off, axis=axis)


@translates("TopK", since=1)
def top_k_1(x, *, k: int, axis: int = -1, node: Context):
    """k is an attribute."""
    return _top_k(x, k, axis, True, node)


@translates("TopK", since=10, without="largest sorted")
@translates("TopK", since=11, ignored="sorted", one_rank="x")
def top_k(x, k, *, axis: int = -1, largest: int = 1, sorted: int = 1, node: Context):
    """k is an input. The results are sorted even if `sorted` is 0."""
    return _top_k(x, scalar(k), axis, bool(largest), node)


def _top_k(x: Value, k, axis: int, largest: bool, node: Context):
    mode: Mode = "max" if largest else "min"
    places = node.wants(1)
    if not isinstance(k, Value) or (k.known is not None and low(k.known.item()) > 0) or x.rank is None:
        return top(x, k, axis, mode, places=places)
    # The runtime crashes for k = 0 of a non-empty axis: one element is selected, and then sliced off.
    length = x.size(normalise_axis(axis, x.rank))
    least = min(length, 1) if isinstance(length, int) else ops.Minimum(length, 1)
    taken = top(x, ops.Maximum(k, least), axis, mode, places=places)
    return [each.cut(axis, 0, k.reshape([1])) for each in taken]


@translates("Unique", since=11)
def unique(x, *, axis: int | None = None, sorted: int = 1, node: Context):
    """Unique values, the index of the first occurrence of each, the inverse indices, and the counts."""
    if axis is None or x.rank == 1:
        outputs = unique_elements(x, bool(sorted), values_only=not any(map(node.wants, (1, 2, 3))))
    else:
        outputs = unique_slices(x, axis, bool(sorted))
    return outputs[: len(node.outputs)]
