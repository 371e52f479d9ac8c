"""Col2Im for any number of dimensions and for shapes known only at run time.

In each dimension, the element at position b of block l belongs to position l * stride + b * dilation of the padded
image. Elements with the same position are summed, and the pads are removed.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.frontend.ops.images.windows import Window
from mo_loop.frontend.ops.shared import as_i64
from mo_loop.graph import Value
from mo_loop.graph.types import i64


def scattered_images(columns: Value, image_shape: Value, block_shape: Value, at: Window) -> Value:
    """[N, C, image...] of columns [N, C * block elements, windows]."""
    count = len(at.strides)
    sizes, blocks = (_items(each, count) for each in (image_shape, block_shape))
    padded = [ops.Add(size, low + high).output for size, low, high in zip(sizes, at.begin, at.end, strict=True)]
    place: Any = None
    for axis in range(count):
        reach = ops.Multiply(ops.Subtract(blocks[axis], 1), at.dilations[axis])
        span = ops.Subtract(ops.Subtract(padded[axis], 1), reach)
        windows = ops.Add(ops.Divide(span, at.strides[axis]), 1).output
        steps = ops.Multiply(_numbers(windows), at.strides[axis])
        offsets = ops.Multiply(_numbers(blocks[axis]), at.dilations[axis])
        here = ops.Add(_along(offsets, axis, 2 * count), _along(steps, count + axis, 2 * count))
        place = here if place is None else ops.Add(ops.Multiply(place, padded[axis]), here)
    places = ops.Reshape(place, [1, 1, -1]).output
    batch = ops.Slice(ops.ShapeOf(columns), [0], [1], [1], [0])
    of_block = _vector(reduce(lambda a, b: ops.Multiply(a, b).output, blocks))
    channels = ops.Divide(ops.Slice(ops.ShapeOf(columns), [1], [2], [1], [0]), of_block)
    rows = ops.Concat(batch, channels, axis=0).output
    values = ops.Reshape(columns, ops.Concat(rows, ops.Slice(ops.ShapeOf(places), [2], [3], [1], [0]), axis=0)).output
    area = _vector(reduce(lambda a, b: ops.Multiply(a, b).output, padded))
    empty = ops.Broadcast(np.zeros((), columns.dtype.numpy), ops.Concat(rows, area, axis=0))
    every = ops.Broadcast(places, ops.ShapeOf(values))
    flat = ops.ScatterElementsUpdate12(empty, every, values, 2, reduction="sum")
    whole = ops.Reshape(flat, ops.Concat(rows, *(_vector(each) for each in padded), axis=0))
    first = np.array(at.begin, np.int64)
    last = ops.Add(as_i64(image_shape), first)
    return ops.Slice(whole, first, last, [1] * count, list(range(2, 2 + count))).output


def _items(shape: Value, count: int) -> list[Value]:
    return [ops.Gather(as_i64(shape), axis, 0).output for axis in range(count)]


def _vector(scalar: Value) -> Value:
    return ops.Unsqueeze(scalar, 0).output


def _numbers(count: Value) -> Value:
    return ops.Range(0, count, 1, graph=count.graph, output_type=i64).output


def _along(numbers, axis: int, rank: int) -> Value:
    """A vector reshaped to a rank, with its elements along one axis."""
    return ops.Unsqueeze(numbers, [other for other in range(rank) if other != axis]).output
