"""Pooling operators: MaxPool, MaxUnpool, AveragePool, LpPool, and the global ones."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mo_loop.frontend.ops.images.convolution import Window, WindowAttributes, convolved
from mo_loop.frontend.ops.shared import constant_like, number, ones
from mo_loop.frontend.vocabulary import Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph import Dimension, assume_least, f32, i64, low, now
from mo_loop.ops.lengths import FAR
from mo_loop.ops.ranges import AboveZero, AtLeast3, Ints, NotNegative, Positive, Positives
from mo_loop.target import NEVER, Gap, Processor

AVOIDS = (
    Gap(
        "mean-of-channels", "`ReduceMean` adds equal channels in different orders",
        "`AvgPool` over a known size, else the mean of rows", on={Processor.SSE41: NEVER},
        rule="translator of GlobalAveragePool",
    ),
)
"""The errors of the runtime that these translators avoid."""


_BLOCK = 16
"""The most channels that the runtime computes together."""

_FEW = 16
"""Up to so many places of a window, slices find the largest element and its index."""


@translates("MaxPool", since=1, without="dilations")
def max_pool_1(x: AtLeast3, *, kernel_shape: Positives, given: WindowAttributes):
    """The largest element of each window."""
    return _largest(x, kernel_shape, given.over(len(kernel_shape)))


@translates("MaxPool", since=8, without="ceil_mode dilations")
@translates("MaxPool", since=10, one_rank="x")
def max_pool(
    x: AtLeast3, *, ceil_mode: int = 0, kernel_shape: Positives, storage_order: int = 0, given: WindowAttributes,
    node: Context,
):
    """From opset 8 on, the second output has the indices."""
    kernel = kernel_shape
    at = _rounded(given.over(len(kernel)), kernel, ceil_mode)
    if not node.wants(1):
        return _largest(x, kernel, at), None
    at = _padded_by_number(x, kernel, at)
    dtype = x.dtype
    if dtype.is_integer:
        # The runtime starts from the smallest integer, and does not find an element equal to it.
        x = x.astype(f32)
    if math.prod(kernel) <= _FEW:
        values, within = _largest_and_places(x, kernel, at)
        indices = within if storage_order else within + _first_places(x, len(kernel))
    else:
        axis = 2 if storage_order else 0
        values, indices = ops.MaxPool8(x, kernel=kernel, dilations=at.dilations, axis=axis, **at.attributes())
    values = values.astype(dtype)
    return values, _column_major(x, indices, len(kernel)) if storage_order else indices


def _largest_and_places(x: Value, kernel: Ints, at: Window) -> tuple[Value, Value]:
    """The largest element of each window and its index within its channel, from a slice for each place in the window.

    The runtime's operation with indices takes tens of times as long, but refuses a window longer than its input."""
    count = len(kernel)
    padding = map(sum, zip(at.begin, at.end, strict=True))
    shortest = [reach - more for reach, more in zip(at.reach(kernel), padding, strict=True)]
    assume_least(zip(x.type.dims[2:] if x.rank else (), shortest, strict=False))
    sizes = x.sizes[2 : 2 + count]
    numbers = ops.Range(0, ops.ReduceProd(sizes, [0]), 1, output_type=i64)
    places = ops.Reshape(numbers, ops.Concat(ops.Constant([1, 1], graph=x.graph), sizes, axis=0))
    if any((*at.begin, *at.end)):
        begin, end = (0, 0, *at.begin), (0, 0, *at.end)
        x, places = ops.Pad(x, begin, end, number(x, -np.inf)), ops.Pad(places, begin, end, number(places, 0))
    axes = list(range(2, 2 + count))
    best: tuple[Value, Value] | None = None
    for place in itertools.product(*map(range, kernel)):
        starts = [i * step for i, step in zip(place, at.dilations, strict=True)]
        ends = [start + 1 - reach or FAR for start, reach in zip(starts, at.reach(kernel), strict=True)]
        value, index = (ops.Slice(each, starts, ends, at.strides, axes) for each in (x, places))
        if best is None:
            best = value, index
        else:  # of equal ones the first
            best = ops.Maximum(best[0], value), ops.Select(best[0] < value, index, best[1])
    assert best is not None
    return best[0], ops.Broadcast(best[1], best[0].sizes) if math.prod(kernel) == 1 else best[1]


def _padded_by_number(x: Value, kernel: Ints, at: Window) -> Window:
    """Explicit pads instead of auto_pad, which the runtime ignores in a MaxPool with indices."""
    if at.auto_pad == "explicit":
        return at
    dims = (None,) * len(kernel) if x.rank is None else x.type.dims[2:]
    totals = []
    for dim, stride, reach in zip(dims, at.strides, at.reach(kernel), strict=True):
        if stride != 1 and not isinstance(dim, int):
            raise UnsupportedError(
                "MaxPool with indices whose padding depends on a size known only at run time", code="ML316",
                hint="give the model inputs static shapes",
            )
        # The last of ceil(dim / stride) windows starts `rest` elements before the end.
        rest = 1 if stride == 1 else dim % stride or stride
        totals.append(max(reach - rest, 0))
    return at.cropped(totals)


def _column_major(x: Value, within: Value, count: int) -> Value:
    """Row-major indices within a channel as indices of the whole tensor whose channels are stored column by column."""
    shape = x.sizes
    sizes = [ops.Gather(shape, 2 + i, 0) for i in range(count)]
    index: Any = None
    rest: Any = within
    place: list[Any] = [None] * count
    for i in reversed(range(1, count)):
        place[i] = rest % sizes[i]
        rest = rest // sizes[i]
    place[0] = rest
    for i in reversed(range(count)):
        index = place[i] if index is None else index * sizes[i] + place[i]
    return index + _first_places(x, count)


def _first_places(x: Value, count: int) -> Value:
    """The index of the first element of each channel in the whole tensor."""
    shape = x.sizes
    channels = ops.ReduceProd(shape[:2], [0], keep_dims=False)
    size = ops.ReduceProd(shape[2 : 2 + count], [0], keep_dims=False)
    numbers = ops.Range(0, channels, 1, output_type=i64)
    leading = ops.Concat(shape[:2], ops.Constant(np.ones(count, np.int64), graph=x.graph), axis=0)
    return ops.Reshape(numbers * size, leading)


def _largest(x: Value, kernel: Ints, at: Window) -> Value:
    if at.is_dilated:
        return ops.MaxPool8(x, kernel=kernel, dilations=at.dilations, **at.attributes())[0]
    return ops.MaxPool(x, kernel=kernel, **at.attributes())


def _rounded(at: Window, kernel: Ints, ceil_mode: int) -> Window:
    """The window padded at the end so that rounding down gives the number of places of rounding up.

        ceil((size + begin + end - reach) / stride) = floor((size + begin + end + stride - 1 - reach) / stride)

    No place starts in the end padding: with padding of reach - 1, the last one covers the last element. A window
    longer than its input has one place, which the runtime refuses if the operation rounds up.
    """
    if not ceil_mode or at.auto_pad != "explicit":
        return at
    more = zip(at.end, at.strides, at.reach(kernel), strict=True)
    return replace(at, end=tuple(min(end + stride - 1, reach - 1) for end, stride, reach in more))


@translates("AveragePool", since=1, without="ceil_mode dilations", fixed={"count_include_pad": 1})
@translates("AveragePool", since=7, without="ceil_mode dilations")
@translates("AveragePool", since=10, without="dilations")
@translates("AveragePool", since=19, one_rank="x")
def average_pool(
    x: AtLeast3, *, ceil_mode: int = 0, count_include_pad: int = 0, kernel_shape: Positives, given: WindowAttributes,
):
    """The mean of each window. Before opset 7 the mean includes the padding, as in ONNX's version converter."""
    return averaged(x, kernel_shape, given.over(len(kernel_shape)), count_include_pad, ceil_mode)


def averaged(x: Value, kernel: Ints, at: Window, count_include_pad: int, ceil_mode: int) -> Value:
    """The mean of each window."""
    wide = _rounded(at, kernel, ceil_mode)
    # The mean includes the padding, but not the elements that rounding up adds: no single operation does both.
    is_mixed = count_include_pad and wide != at and any((*at.begin, *at.end))
    if at.is_dilated or is_mixed:
        return _average_by_sums(x, kernel, at, wide, bool(count_include_pad))
    exclude = wide != at or not count_include_pad
    return ops.AvgPool(x, kernel=kernel, exclude_pad=exclude, **wide.attributes())


def _average_by_sums(x: Value, kernel: Ints, at: Window, wide: Window, count_padding: bool) -> Value:
    """The sum of each window divided by the number of its elements."""
    count = len(kernel)
    total = _window_sum(x, kernel, wide)
    if count_padding and wide == at:
        return total / math.prod(kernel)
    shape = x.sizes
    one = constant_like(x, 1)
    ones = ops.Broadcast(one, ops.Concat(ops.Constant([1, 1], graph=x.graph), shape[2 : 2 + count], axis=0))
    if count_padding:
        end = tuple(map(min, at.end, wide.end))
        ones = ops.Pad(ones, [0, 0, *at.begin], [0, 0, *end], 1)
        added = tuple(more - counted for more, counted in zip(wide.end, end, strict=True))
        wide = replace(wide, begin=(0,) * count, end=added)
    return total / _window_sum(ones, kernel, wide)


def _window_sum(x: Value, kernel: Ints, at: Window) -> Value:
    """The sum of each window: of a dilated one, a convolution of each channel with ones."""
    if not at.is_dilated:
        mean = ops.AvgPool(x, kernel=kernel, exclude_pad=False, **at.attributes())
        return mean * math.prod(kernel)
    count = len(kernel)
    shape = x.sizes
    alone = ops.Concat(ops.Constant([-1, 1], graph=x.graph), shape[2 : 2 + count], axis=0)
    summed = ops.Constant(ones((1, 1, *kernel), x.dtype.numpy), graph=x.graph, dtype=x.dtype)
    y = convolved(ops.Reshape(x, alone), summed, 1, at)
    return ops.Reshape(y, ops.Concat(shape[:2], y.sizes[2 : 2 + count], axis=0))


@translates("LpPool", since=1, without="dilations")
def lp_pool_1(x: AtLeast3, *, kernel_shape: Positives | None = None, p: AboveZero = 2.0, given: WindowAttributes):
    """The p-norm of each window."""
    if kernel_shape is None:
        raise ModelError("it needs the attribute kernel_shape", code="ML227")
    return _root(_window_sum(_power(x, p), kernel_shape, given.over(len(kernel_shape))), p)


@translates("LpPool", since=2, without="ceil_mode dilations")
@translates("LpPool", since=18, one_rank="x")
def lp_pool(x: AtLeast3, *, ceil_mode: int = 0, kernel_shape: Positives, p: Positive = 2, given: WindowAttributes):
    """From opset 2 on p is an integer."""
    at = _rounded(given.over(len(kernel_shape)), kernel_shape, ceil_mode)
    return _root(_window_sum(_power(x, p), kernel_shape, at), p)


def _power(x: Value, p: float) -> Value:
    if p == 2:
        return x * x
    size = ops.Abs(x)
    return size if p == 1 else ops.Power(size, float(p))


def _root(x: Value, p: float) -> Value:
    if p == 2:
        return ops.Sqrt(x)
    return x if p == 1 else ops.Power(x, 1 / p)


@translates("GlobalAveragePool", since=1, one_rank="x")
def global_average_pool(x):
    """The mean of each channel."""
    # ReduceMean of several axes adds in another order in the runtime's last, incomplete block of channels: then equal
    # channels have different means, which a Softmax of large values turns into different classes.
    dims: Sequence[Dimension] = x.shape or ()
    size = dims[2:]
    if 1 <= len(size) <= 3 and all(isinstance(dim, int) and dim > 0 for dim in size):
        none = (0,) * len(size)
        return ops.AvgPool(x, kernel=size, strides=(1,) * len(size), pads_begin=none, pads_end=none, exclude_pad=True)
    has_whole_blocks = len(dims) > 1 and isinstance(dims[1], int) and dims[1] % _BLOCK == 0
    if len(size) < 2 or has_whole_blocks or not all((now(dim) or low(dim)) > 0 for dim in dims):
        return ops.ReduceMean(x, spatial_axes(x), keep_dims=True)
    rows = x.reshape([None, None, -1])
    return ops.Unsqueeze(ops.ReduceMean(rows, [2], keep_dims=True), list(range(3, len(dims))))


@translates("GlobalMaxPool", since=1, one_rank="x")
def global_max_pool(x):
    """The largest element of each channel."""
    return ops.ReduceMax(x, spatial_axes(x), keep_dims=True)


@translates("GlobalLpPool", since=1)
def global_lp_pool_1(x, *, p: AboveZero = 2.0):
    """The p-norm of each channel."""
    axes = spatial_axes(x)
    if p in (1, 2):
        return (ops.ReduceL1 if p == 1 else ops.ReduceL2)(x, axes, keep_dims=True)
    return _root(ops.ReduceSum(_power(x, p), axes, keep_dims=True), p)


@translates("GlobalLpPool", since=2, one_rank="x")
def global_lp_pool_2(x, *, p: NotNegative = 2):
    """From opset 2 on p is an integer. For p = 0 it counts elements other than zero, as OpenVINO's front end does."""
    if p:
        return global_lp_pool_1(x, p=p)
    return ops.ReduceSum(ops.NotEqual(x, number(x, 0)).astype(x.dtype), spatial_axes(x), keep_dims=True)


def spatial_axes(x: Value):
    """The axes after the second, as a list or a tensor."""
    if x.rank is not None:
        return list(range(2, x.rank))
    return ops.Range(2, ops.Squeeze(x.sizes.sizes, [0]), 1, output_type=i64)


@translates("MaxUnpool", since=9, without="auto_pad dilations")
def max_unpool(x: AtLeast3, i, output_shape=None, *, kernel_shape: Positives, given: WindowAttributes):
    """Zeros in the shape of the pool's input, with the elements at their indices, padded to `output_shape`."""
    count = len(kernel_shape)
    at = given.over(count)
    sizes = x.sizes[2 : 2 + count]
    more = [k - s - b - e for k, s, b, e in zip(kernel_shape, at.strides, at.begin, at.end, strict=True)]
    spatial = sizes * list(at.strides) + more
    shape = ops.Concat(x.sizes[:2], spatial, axis=0)
    zero = constant_like(x, 0)
    empty = ops.Broadcast(zero, ops.ReduceProd(shape, [0], keep_dims=True))
    y = ops.Reshape(ops.ScatterElementsUpdate(empty, i.reshape([-1]), x.reshape([-1]), 0), shape)
    if output_shape is None:
        return y
    return ops.Pad(y, ops.Constant([0] * (2 + count), graph=x.graph), output_shape - shape, zero)
