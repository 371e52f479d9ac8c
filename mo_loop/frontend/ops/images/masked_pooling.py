"""MaxpoolWithMask: the largest elements of windows, whose rows end at their first masked element.

x       3  1  4  1  5        kernel 3: y = 3  1  5        (a mask of 0 ends the rows of the first two windows)
mask    1  1  0  1  1
"""

from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.ops.images.windows import Window, WindowAttributes
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.ops.shared import FAR
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, Value, ops, translates
from mo_loop.graph.types import f32, i64
from mo_loop.ops.lengths import joined
from mo_loop.ops.ranges import AtLeast3, Fews

Ints = tuple[int, ...]

_LOWEST = np.finfo(np.float32).min


@translates("MaxpoolWithMask", since=1, domain=MICROSOFT, without="dilations", ignored="storage_order")
def max_pool_with_mask(
    x: AtLeast3, mask: AtLeast3, *, kernel_shape: Fews | None = None, storage_order: int = 0, given: WindowAttributes
):
    """A window without elements gives the lowest number; NaN is never the largest."""
    if kernel_shape is None:
        raise ModelError("MaxpoolWithMask needs the attribute kernel_shape", code="ML227")
    rank = ranked(x, "MaxpoolWithMask")
    if len(kernel_shape) != rank - 2 or 0 in kernel_shape:
        raise ModelError(f"a kernel {list(kernel_shape)} for a tensor of rank {rank}", code="ML227")
    at = given.over(len(kernel_shape))
    kept = ops.NotEqual(_of_channels(mask, x), 0)
    if rank > 3:  # the kernel of ONNX Runtime ignores the mask of the first element
        kept = kept | ops.Equal(_places(x), 0)
    numbers = ops.Select(ops.Less(_LOWEST, x), x, _LOWEST)
    row = _largest_of_rows(numbers, kept, kernel_shape[-1], at)
    if rank == 3:
        return row
    return ops.MaxPool(
        row, kernel=(*kernel_shape[:-1], 1), strides=(*at.strides[:-1], 1), pads_begin=(*at.begin[:-1], 0),
        pads_end=(*at.end[:-1], 0), auto_pad=at.auto_pad,
    )  # fmt: skip


def _count(x: Value, first: int, end: int) -> Value:
    """The number of elements in some of the dimensions, at least 1."""
    return ops.Maximum(ops.ReduceProd(ops.Slice(ops.ShapeOf(x), [first], [end], [1], [0]), [0]), 1)


def _range(count: Value) -> Value:
    return ops.Range(0, count, 1, output_type=i64)


def _places(x: Value) -> Value:
    """The position of each element in its channel."""
    spatial = ops.Slice(ops.ShapeOf(x), [2], [FAR], [1], [0])
    return ops.Reshape(_range(_count(x, 2, FAR)), spatial)


def _of_channels(mask: Value, x: Value) -> Value:
    """The mask that each channel of x reads: one for all, or elements from (channel * its size) modulo the number of
    masks on, as the kernel of ONNX Runtime counts."""
    if mask.type.dims[:2] == (1, 1):
        return mask
    masks, size = _count(mask, 0, 2), _count(x, 2, FAR)
    # The remainder is taken first: the runtime computes it in f32.
    first = _range(_count(x, 0, 2)) * (size % masks) % masks
    at = ops.Unsqueeze(first, [1]) + _range(size)
    return ops.Reshape(ops.Gather(ops.Reshape(mask, [-1]), at, 0), ops.ShapeOf(x))


def _pads(x: Value, length: int, at: Window) -> tuple[Any, Any]:
    """The number of elements before and after a row."""
    if at.auto_pad == "explicit":
        return at.begin[-1], at.end[-1]
    size = ops.Gather(ops.ShapeOf(x), -1, 0)
    # The last of ceil(size / stride) windows starts `rest` elements before the end.
    rest = (size - 1) % at.strides[-1] + 1
    total = ops.Maximum(length - rest, 0)
    less = total / 2
    more = total - less
    return (less, more) if at.auto_pad == "same_upper" else (more, less)


def _largest_of_rows(x: Value, kept: Value, length: int, at: Window) -> Value:
    """The largest element of each window along the last dimension, before its first element that is not kept."""
    axis, stride = ranked(x, "MaxpoolWithMask") - 1, at.strides[-1]
    begin, end = (joined([*[0] * axis, pad], x) for pad in _pads(x, length, at))
    x = ops.Pad(x, begin, end, _LOWEST)
    kept = ops.Pad(ops.Convert(kept, destination_type=f32), begin, end, np.float32(1))
    alive: Any = None
    shown: list[Value] = []
    for first in range(length):
        last = first - length + 1
        elements, flags = (ops.Slice(each, [first], [last or FAR], [stride], [axis]) for each in (x, kept))
        alive = flags if alive is None else ops.Minimum(alive, flags)
        shown.append(ops.Select(alive > 0, elements, _LOWEST))
    return reduce(lambda a, b: ops.Maximum(a, b), shown)
