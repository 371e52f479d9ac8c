"""Composes RoiAlign with mode max from simple operations.

ONNX computes the maximum of the weighted corners of all samples, the runtime that of the interpolated samples.
"""

from typing import Any

import numpy as np

from mo_loop.frontend.arrays import first_numbers
from mo_loop.frontend.ops.shared import converted
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.graph.types import f32, i32
from mo_loop.ops.exact import quotient


def largest_corners(
    x: Value, rois: Value, images: Value, cells: tuple[int, int], samples: int, scale: float, shifted: bool
) -> Value:
    """[R, C, h, w] from x [N, C, H, W], regions [R, 4] and images [R], with samples * samples in each cell. In f32."""
    dtype = x.dtype
    x, rois = converted(x, f32), converted(rois, f32)
    shape = ops.ShapeOf(x)
    sizes = [ops.Gather(shape, axis, 0) for axis in (2, 3)]
    pixels = ops.Reshape(ops.Transpose(x, [0, 2, 3, 1]), ops.Concat(_ints(x, [-1]), ops.Gather(shape, [1], 0), axis=0))
    sides = []
    for axis, (size, count) in enumerate(zip(sizes, cells, strict=True)):
        at = _places(rois, 1 - axis, count, samples, scale, shifted)
        sides.append(_corners(at, ops.Convert(size, destination_type=f32)))
    image = ops.Unsqueeze(ops.Convert(images, destination_type=i32), [1, 2])
    height, width = (ops.Convert(size, destination_type=i32) for size in sizes)
    best: Any = None
    for row, row_weight in sides[0]:
        for column, column_weight in sides[1]:
            line = image * height + ops.Unsqueeze(row, [2])
            index = line * width + ops.Unsqueeze(column, [1])
            weight = ops.Unsqueeze(row_weight, [2]) * ops.Unsqueeze(column_weight, [1])
            value = ops.Gather(pixels, index, 0) * ops.Unsqueeze(weight, [3])  # [R, h * s, w * s, C]
            best = value if best is None else ops.Maximum(best, value)
    # Not -1 for the channels, which is ambiguous if there are no regions.
    pattern = ops.Concat(_ints(x, [0, cells[0], samples, cells[1], samples]), ops.Gather(shape, [1], 0), axis=0)
    grouped = ops.Reshape(best, pattern, special_zero=True)
    found = ops.Transpose(ops.ReduceMax(grouped, [2, 4], keep_dims=False), [0, 3, 1, 2])
    return converted(found, dtype)


def _ints(x: Value, numbers: list[int]) -> Value:
    return ops.Constant(np.array(numbers, np.int64), graph=x.graph)


def _places(rois: Value, first: int, count: int, samples: int, scale: float, shifted: bool) -> Value:
    """[R, count * samples]: coordinates of the samples along one axis."""
    offset = 0.5 if shifted else 0.0
    start, end = (ops.Gather(rois, [column], 1) * scale - offset for column in (first, first + 2))
    length: Any = end - start
    if not shifted:
        length = ops.Maximum(length, 1.0)
    fractions = (first_numbers(count * samples, np.float32) + np.float32(0.5)) / np.float32(samples)
    cell = quotient(length, ops.Constant(np.float32(count), graph=rois.graph))
    return start + cell * fractions


def _corners(at: Value, size: Value) -> list[tuple[Any, Any]]:
    """The pixels before and after each coordinate, and their weights: 0 if it is more than one pixel outside."""
    last = size - 1.0
    inside = (at >= -1.0) & (at <= size)
    live = ops.Convert(inside, destination_type=f32)
    clipped = ops.Minimum(ops.Maximum(at, 0.0), last)
    before = ops.Floor(clipped)
    after = ops.Minimum(before + 1.0, last)
    part = clipped - before
    near, far = ops.Subtract(1.0, part, graph=at.graph) * live, part * live
    return [
        (ops.Convert(before, destination_type=i32), near),
        (ops.Convert(after, destination_type=i32), far),
    ]
