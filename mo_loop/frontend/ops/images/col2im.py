"""Col2Im for any number of dimensions and for shapes known only at run time.

In each dimension, the element at position b of block l belongs to position l * stride + b * dilation of the padded
image. Elements with the same position are summed, and the pads are removed.
"""

from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.ops.images.windows import Window
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.ops.lengths import as_i64


def scattered_images(columns: Value, image_shape: Value, block_shape: Value, at: Window) -> Value:
    """[N, C, image...] of columns [N, C * block elements, windows]."""
    count = at.count
    sizes, blocks = (_items(each, count) for each in (image_shape, block_shape))
    padded = [size + (low + high) for size, low, high in zip(sizes, at.begin, at.end, strict=True)]
    place: Any = None
    for axis in range(count):
        reach = (blocks[axis] - 1) * at.dilations[axis]
        span = padded[axis] - 1 - reach
        windows = span // at.strides[axis] + 1
        steps = counted(windows, windows) * at.strides[axis]
        offsets = counted(blocks[axis], blocks[axis]) * at.dilations[axis]
        here = _along(offsets, axis, 2 * count) + _along(steps, count + axis, 2 * count)
        place = here if place is None else place * padded[axis] + here
    places = ops.Reshape(place, [1, 1, -1])
    batch = ops.Slice(ops.ShapeOf(columns), [0], [1], [1], [0])
    of_block = _vector(reduce(lambda a, b: a * b, blocks))
    channels = ops.Slice(ops.ShapeOf(columns), [1], [2], [1], [0]) // of_block
    rows = ops.Concat(batch, channels, axis=0)
    values = ops.Reshape(columns, ops.Concat(rows, ops.Slice(ops.ShapeOf(places), [2], [3], [1], [0]), axis=0))
    area = _vector(reduce(lambda a, b: a * b, padded))
    empty = ops.Broadcast(np.zeros((), columns.dtype.numpy), ops.Concat(rows, area, axis=0))
    every = ops.Broadcast(places, ops.ShapeOf(values))
    flat = ops.ScatterElementsUpdate12(empty, every, values, 2, reduction="sum")
    whole = ops.Reshape(flat, ops.Concat(rows, *(_vector(each) for each in padded), axis=0))
    first = np.array(at.begin, np.int64)
    last = as_i64(image_shape) + first
    return ops.Slice(whole, first, last, [1] * count, list(range(2, 2 + count)))


def _items(shape: Value, count: int) -> list[Value]:
    return [ops.Gather(as_i64(shape), axis, 0) for axis in range(count)]


def _vector(scalar: Value) -> Value:
    return ops.Unsqueeze(scalar, 0)


def _along(numbers, axis: int, rank: int) -> Value:
    """A vector reshaped to a rank, with its elements along one axis."""
    return ops.Unsqueeze(numbers, [other for other in range(rank) if other != axis])
