"""The reductions, ArgMax and ArgMin.

Until opset 17 (ReduceSum: 12), the axes of a reduction are an attribute, later an input. Without axes all dimensions
are reduced, or none with `noop_with_empty_axes`, which still applies the elementwise function of the reduction.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.frontend.ops.arithmetic import divided
from mo_loop.frontend.ops.ranking import Mode, first
from mo_loop.frontend.ops.shared import along_second, known_size, number, ranked, sizes_around
from mo_loop.frontend.vocabulary import Value, ops, translates
from mo_loop.graph import assume_fixed, boolean, element_count, f32, i32, i64, low, normalise_axis, now
from mo_loop.target import Gap

AVOIDS = (
    Gap(
        "reduced-infinities", "`ReduceMax` and `ReduceMin` of infinities give the largest finite number",
        "of halves, doubled", rule="translator of ReduceMax",
    ),
    Gap(
        "reduce-max-i32", "`ReduceMax` of i32 confuses the largest with the smallest number", "composed",
        rule="translator of ReduceMax",
    ),
)
"""The errors of the runtime that these translators avoid."""

Rule = Callable[[Value, Sequence[int], bool], Any]
"""A reduction of a value over axes; without axes, only its elementwise function."""


def _plain(cls) -> Rule:
    def rule(x: Value, axes: Sequence[int], keep: bool):
        return cls(x, axes, keep_dims=keep) if axes else x

    return rule


_sum = _plain(ops.ReduceSum)


def _extreme(cls, logical, *, largest: bool) -> Rule:
    def rule(x: Value, axes: Sequence[int], keep: bool):
        if not axes:
            return x
        if x.dtype is boolean:
            return logical(x, axes, keep_dims=keep)
        if _is_empty(x, axes):
            return _filled(x, axes, keep, _limit(x, largest=not largest))
        if not x.dtype.is_float:
            return _extreme_integer(cls, x, axes, keep, largest=largest)
        # The runtime starts from the largest finite number, and would return it for rows without elements and for
        # rows that contain only the infinity, as in masks. Twice that number is the infinity.
        if _has_elements(x, axes) and _is_bounded(x, below=largest):
            return cls(x, axes, keep_dims=keep)
        return cls(x * number(x, 0.5), axes, keep_dims=keep) * number(x, 2)

    return rule


def _extreme_integer(cls, x: Value, axes: Sequence[int], keep: bool, *, largest: bool):
    """The extreme of the upper 16 bits, and then that of the lower 16 bits of the elements with these upper bits.

    The runtime compares in f32, which is exact for integers of 24 bits: it returns the largest 32-bit integer as the
    smallest. Known values are sizes of tensors, which are smaller."""
    if x.dtype.bits < 32 or x.known is not None:
        return cls(x, axes, keep_dims=keep)
    # f32 represents multiples of 2^16; a shift takes a hundred times as long.
    is_signed = x.dtype in (i32, i64)
    upper = ops.BitwiseAnd(x, number(x, ~_LOWER)) if is_signed else x - ops.BitwiseAnd(x, number(x, _LOWER))
    best = cls(upper, axes, keep_dims=True)
    # Elements with other upper bits become the last ones of those with these.
    among = ops.Maximum(x, best) if largest else ops.Minimum(x, best + number(x, _LOWER))
    lower = cls(among + best * number(x, -1) if is_signed else among - best, axes, keep_dims=True)
    if not _has_elements(x, axes):
        # The extreme of no elements is the limit of the type.
        bound, last = (ops.Maximum, 0) if largest else (ops.Minimum, _LOWER)
        best = bound(best, number(x, (-(2**31) if is_signed else 0) if largest else 2**31 - 1 - _LOWER))
        lower = bound(lower, number(x, last))
    extreme = best + lower
    return extreme if keep else ops.Squeeze(extreme, axes)


_LOWER = 2**16 - 1
"""The lower 16 of 32 bits."""


def _is_empty(x: Value, axes: Sequence[int]) -> bool:
    """Whether there are known to be no elements to reduce."""
    return x.rank is not None and any(x.type.dims[normalise_axis(axis, x.rank)] == 0 for axis in axes)


def _has_elements(x: Value, axes: Sequence[int]) -> bool:
    """Whether there is at least one element to reduce."""
    return x.rank is not None and all(low(x.type.dims[normalise_axis(axis, x.rank)]) > 0 for axis in axes)


def _is_bounded(x: Value, *, below: bool) -> bool:
    """Whether the operation that makes a value excludes minus infinity (else infinity).

    The bounds of a Clamp are finite, see `clipped`."""
    moves = operations.Transpose, operations.Reshape, operations.Unsqueeze, operations.Squeeze, operations.Slice
    node = x.node
    while isinstance(node, moves) and node.inputs[0] is not None:
        node = node.inputs[0].node
    positive = (operations.ReLU, operations.Abs, operations.Exp, operations.Sqrt) if below else ()
    return isinstance(node, (operations.Clamp, operations.Sigmoid, operations.Softmax, operations.Tanh, *positive))


def _limit(x: Value, *, largest: bool):
    if x.dtype.is_float:
        return np.inf if largest else -np.inf
    info = np.iinfo(x.dtype.numpy)
    return info.max if largest else info.min


def _filled(x: Value, axes: Sequence[int], keep: bool, value):
    """A value broadcast to the shape of the reduction."""
    zeros = ops.ReduceSum(x, axes, keep_dims=keep)
    return ops.Broadcast(np.asarray(value, x.dtype.numpy), zeros.sizes)


def _mean(x: Value, axes: Sequence[int], keep: bool):
    if not axes:
        return x
    if x.dtype.is_float:
        return ops.ReduceMean(x, axes, keep_dims=keep)
    # For integers the sum is divided, which truncates; a mean in f32 can be slightly below an integer.
    count = ops.ReduceProd(ops.Gather(x.sizes, axes, 0), [0], keep_dims=False).astype(x.dtype)
    if x.rank is None or any(low(x.type.dims[normalise_axis(axis, x.rank)]) == 0 for axis in axes):
        count = ops.Maximum(count, number(x, 1))
    return divided(_sum(x, axes, keep), count)


def _l2(x: Value, axes: Sequence[int], keep: bool):
    y = x.astype(x.dtype if x.dtype.is_float else f32)
    return (ops.ReduceL2(y, axes, keep_dims=keep) if axes else ops.Abs(y)).astype(x.dtype)


def _log_sum(x: Value, axes: Sequence[int], keep: bool):
    return ops.Log(_sum(x.astype(x.dtype if x.dtype.is_float else f32), axes, keep)).astype(x.dtype)


def _log_sum_exp(x: Value, axes: Sequence[int], keep: bool):
    """log(sum(e^(x - m))) + m, with m the maximum clamped to finite numbers, so that inf - inf does not give NaN."""
    y = x.astype(x.dtype if x.dtype.is_float else f32)
    if not axes:
        return x
    if _is_empty(x, axes):
        return _filled(x, axes, keep, -np.inf if x.dtype.is_float else np.iinfo(x.dtype.numpy).min)
    bound = float(np.finfo(np.float16 if y.dtype.bits == 16 else np.float32).max)
    peak = ops.Clamp(ops.ReduceMax(y, axes, keep_dims=True), min=-bound, max=bound)
    result = ops.Log(ops.ReduceSum(ops.Exp(y - peak), axes, keep_dims=True)) + peak
    if not keep:
        result = ops.Squeeze(result, axes)
    return result.astype(x.dtype)


def _all_axes(x: Value) -> list[int]:
    return list(range(ranked(x)))


def _known_axes(axes: Value | None) -> Sequence[int] | None:
    if axes is None or axes.shape == (0,):
        return ()
    array = axes.constant
    return axes.type.integers if array is None else tuple(int(each) for each in array.reshape(-1))


def _at_run_time(rule: Rule, x: Value, axes: Value, keep: bool, empty_is_none: bool):
    """Axes known only at run time, where the IR requires constants: x becomes a matrix whose rows are reduced. One axis
    becomes the second of three."""
    rank = len(_all_axes(x))
    axes = axes.astype(i64).reshape([-1])
    count = axes.type.dims[0]
    if now(count) == 1 and element_count(x.shape) != 0:
        assume_fixed([count])
        before, _, after = sizes_around(x, axes)
        ones = [np.ones(1, np.int64)] if keep else []
        return ops.Reshape(rule(along_second(x, axes), [1], False), ops.Concat(before, *ones, after, axis=0))
    places = (axes + rank) % rank
    gone = ops.ReduceLogicalOr(ops.Equal(np.arange(rank).reshape(-1, 1), ops.Unsqueeze(places, 0)), [1])
    if not isinstance(count, int) and not empty_is_none:
        gone = gone | ops.Equal(axes.sizes, 0)
    # The dimensions that remain come first; both kinds keep their order.
    _, order = ops.TopK11(gone.astype(i32), rank, axis=0, mode="min", stable=True)
    dims = x.sizes
    kept = ops.Select(gone, np.int64(1), dims)
    rows = ops.ReduceProd(kept, [0], keep_dims=True)
    if element_count(x.shape) == 0:  # then all rows are empty
        nothing = ops.Constant(np.zeros((1, 0), x.dtype.numpy), graph=x.graph, dtype=x.dtype)
        column = ops.Broadcast(rule(nothing, [1], False), rows)
    else:
        columns = ops.ReduceProd(ops.Select(gone, dims, np.int64(1)), [0], keep_dims=True)
        column = rule(ops.Reshape(ops.Transpose(x, order), ops.Concat(rows, columns, axis=0)), [1], False)
    if keep:
        return ops.Reshape(column, kept)
    return ops.Reshape(column, ops.Gather(dims, order[: rank - known_size(count, "the number of axes")], 0))


def _both_forms(op: str, rule: Rule, axes_input_since: int = 18) -> None:
    def by_attribute(x, *, axes: tuple[int, ...] | None = None, keepdims: int = 1):
        return rule(x, axes or _all_axes(x), bool(keepdims))

    def by_input(x, axes=None, *, keepdims: int = 1, noop_with_empty_axes: int = 0):
        given = _known_axes(axes)
        if given == () and not noop_with_empty_axes:
            given = _all_axes(x)
        if given is None:
            return _at_run_time(rule, x, axes, bool(keepdims), bool(noop_with_empty_axes))
        return rule(x, given, bool(keepdims))

    translates(op, since=1)(by_attribute)
    translates(op, since=axes_input_since)(by_input)


_both_forms("ReduceSum", _sum, axes_input_since=13)
for _op, _rule in {
    "ReduceMax": _extreme(ops.ReduceMax, ops.ReduceLogicalOr, largest=True),
    "ReduceMin": _extreme(ops.ReduceMin, ops.ReduceLogicalAnd, largest=False),
    "ReduceProd": _plain(ops.ReduceProd), "ReduceMean": _mean, "ReduceL2": _l2,
    "ReduceL1": lambda x, axes, keep: ops.ReduceL1(x, axes, keep_dims=keep) if axes else ops.Abs(x),
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
    "ReduceLogSum": _log_sum, "ReduceLogSumExp": _log_sum_exp,
}.items():
    _both_forms(_op, _rule)


def _places(op: str, mode: Mode) -> None:
    @translates(op, since=1, without="select_last_index")
    @translates(op, since=12)
    def place(x, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0):
        index = first(x, axis, mode, last=bool(select_last_index))
        return index if keepdims else ops.Squeeze(index, [axis])


_places("ArgMax", "max")
_places("ArgMin", "min")
