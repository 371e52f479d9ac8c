"""Composes AffineGrid, and GridSample of volumes: reads the corners around each position, weights and sums them."""

import itertools
from typing import Any

import numpy as np

from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import ModelError, UnsupportedError, Value, ops
from mo_loop.graph.shape import MOST_DIMENSIONS
from mo_loop.graph.types import f32, i32
from mo_loop.ops.exact import magnitude


def sampled_at(x: Value, grid: Value, align_corners: bool, nearest: bool, padding_mode: str) -> Value:
    """x [N, C, D...] at the positions of grid [N, d..., count]; the last coordinate is for the first dimension."""
    rank = x.rank if x.rank is not None else grid.rank
    assert rank is not None
    count = rank - 2
    shape = ops.ShapeOf(x)
    sizes = [ops.Gather(shape, 2 + i, 0) for i in range(count)]
    flat = ops.Reshape(x, ops.Concat(ops.Slice(shape, [0], [2], [1], [0]), _ints(x, [-1]), axis=0))
    places = ops.Reshape(grid, [0, -1, count], special_zero=True)
    columns = [ops.Gather(places, count - 1 - i, 2) for i in range(count)]  # [N, P] each
    if grid.dtype is not f32:
        columns = [ops.Convert(each, destination_type=f32) for each in columns]
    whole = [ops.Convert(size, destination_type=f32) for size in sizes]
    at = [_pixel(g, size, align_corners, padding_mode) for g, size in zip(columns, whole, strict=True)]
    y = _nearest(flat, at, sizes, whole) if nearest else _linear(flat, at, sizes, whole)
    new = ops.Slice(ops.ShapeOf(grid), [1], [1 + count], [1], [0])
    return ops.Reshape(y, ops.Concat(ops.Slice(shape, [0], [2], [1], [0]), new, axis=0))


def _ints(x: Value, numbers: list[int]) -> Value:
    return ops.Constant(np.array(numbers, np.int64), graph=x.graph)


def _pixel(g: Value, size: Value, align_corners: bool, padding_mode: str) -> Value:
    """-1 .. 1 as a coordinate in elements, brought inside by the rule of the padding."""
    last = size - 1.0
    if align_corners:
        at: Any = (g + 1.0) * last * 0.5
    else:
        at = ((g + 1.0) * size - 1.0) * 0.5
    if padding_mode == "reflection":
        low, span = (0.0, last) if align_corners else (-0.5, size)
        # The reflection has the period 2 * span.
        offset = magnitude(at - low)
        twice = ops.Maximum(span * 2.0, 1e-6)
        within = offset - ops.Floor(offset / twice) * twice
        at = ops.Minimum(within, span * 2.0 - within) + low
    if padding_mode != "zeros":
        at = ops.Minimum(ops.Maximum(at, 0.0), last)
    return at


def _nearest(flat: Value, at: list[Value], sizes: list[Value], whole: list[Value]) -> Value:
    return _picked(flat, [ops.Round(each) for each in at], sizes, whole)


def _linear(flat: Value, at: list[Value], sizes: list[Value], whole: list[Value]) -> Value:
    floors = [ops.Floor(each) for each in at]
    parts = [a - b for a, b in zip(at, floors, strict=True)]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=len(at)):
        weight: Any = None
        for side, part in zip(corner, parts, strict=True):
            share = part if side else ops.Subtract(1.0, part, graph=flat.graph)
            weight = share if weight is None else weight * share
        positions = [floor + float(side) for floor, side in zip(floors, corner, strict=True)]
        weight = ops.Unsqueeze(weight, [1])
        if flat.dtype is not f32:
            weight = ops.Convert(weight, destination_type=flat.dtype)
        piece = _picked(flat, positions, sizes, whole) * weight
        total = piece if total is None else total + piece
    result: Value = total
    return result


def _picked(flat: Value, positions: list[Value], sizes: list[Value], whole: list[Value]) -> Value:
    """The elements [N, C, P] at whole coordinates, 0 outside."""
    inside: Any = None
    index: Any = None
    for position, size, length in zip(positions, sizes, whole, strict=True):
        last = length - 1.0
        here = (position >= 0.0) & (position <= last)
        inside = here if inside is None else inside & here
        number = ops.Convert(ops.Minimum(ops.Maximum(position, 0.0), last), destination_type=i32)
        if index is None:
            index = number
        else:
            index = index * ops.Convert(size, destination_type=i32) + number
    values = ops.Gather(flat, index, 2, batch_dims=1)
    zero = ops.Constant(np.zeros((), flat.dtype.numpy), graph=flat.graph, dtype=flat.dtype)
    return ops.Select(ops.Unsqueeze(inside, [1]), values, zero)


def affine(theta: Value, size: Value, align_corners: bool) -> Value:
    """[N, d..., count]: where an affine map [N, count, count + 1] sends each place of an image of that size."""
    count = theta.shape[1] if theta.shape is not None else None
    if not isinstance(count, int) and size.rank == 1 and isinstance(size.type.dims[0], int):
        count = size.type.dims[0] - 2
    if isinstance(count, int) and not 0 < count < MOST_DIMENSIONS - 1:
        raise ModelError(f"AffineGrid of {count} dimensions", code="ML235")
    if not isinstance(count, int):
        raise UnsupportedError("AffineGrid of an unknown number of dimensions", code="ML314")
    shape = ops.Slice(size, [2], [2 + count], [1], [0])
    columns = []
    for axis in range(count):
        length = ops.Gather(shape, axis, 0)
        place = [1 if other == axis else 0 for other in range(count)]
        line = ops.Unsqueeze(_line(length, align_corners), [i for i, own in enumerate([*place, 0]) if not own])
        columns.append(ops.Broadcast(line, ops.Concat(shape, _ints(theta, [1]), axis=0)))
    one = ops.Constant(np.float32(1), graph=theta.graph)
    columns = [*reversed(columns), ops.Broadcast(one, ops.Concat(shape, _ints(theta, [1]), axis=0))]
    points = ops.Reshape(ops.Concat(*columns, axis=-1), [1, -1, count + 1])
    if theta.dtype is not f32:
        points = ops.Convert(points, destination_type=theta.dtype)
    moved = ops.MatMul(points, theta, transpose_b=True)  # [N, places, count]
    new = ops.Concat(ops.Slice(size, [0], [1], [1], [0]), shape, _ints(theta, [count]), axis=0)
    return ops.Reshape(moved, new)


def _line(length: Value, align_corners: bool) -> Value:
    """From -1 to 1: the centres of so many pixels, or with the first and last of them at the ends."""
    numbers = ops.Convert(counted(length, length), destination_type=f32)
    size = ops.Convert(length, destination_type=f32)
    if align_corners:
        steps = ops.Maximum(size - 1.0, 1.0)
        return numbers * 2.0 / steps - 1.0
    return (numbers * 2.0 + 1.0) / size - 1.0
