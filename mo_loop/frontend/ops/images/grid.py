"""Composes AffineGrid, and GridSample of volumes: reads the corners around each position, weights and sums them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.errors import ModelError, UnsupportedError
from mo_loop.graph import Value
from mo_loop.graph.shape import MOST_DIMENSIONS
from mo_loop.graph.types import f32, i32, i64
from mo_loop.ops.base import Constant
from mo_loop.ops.exact import magnitude


def sampled_at(x: Value, grid: Value, align_corners: bool, nearest: bool, padding_mode: str) -> Value:
    """x [N, C, D...] at the positions of grid [N, d..., count]; the last coordinate is for the first dimension."""
    rank = x.rank if x.rank is not None else grid.rank
    assert rank is not None
    count = rank - 2
    shape = ops.ShapeOf(x)
    sizes = [ops.Gather(shape, 2 + i, 0).output for i in range(count)]
    flat = ops.Reshape(x, ops.Concat(ops.Slice(shape, [0], [2], [1], [0]), _ints(x, [-1]), axis=0)).output
    places = ops.Reshape(grid, [0, -1, count], special_zero=True).output
    columns = [ops.Gather(places, count - 1 - i, 2).output for i in range(count)]  # [N, P] each
    if grid.dtype is not f32:
        columns = [ops.Convert(each, destination_type=f32).output for each in columns]
    whole = [ops.Convert(size, destination_type=f32).output for size in sizes]
    at = [_pixel(g, size, align_corners, padding_mode) for g, size in zip(columns, whole, strict=True)]
    y = _nearest(flat, at, sizes, whole) if nearest else _linear(flat, at, sizes, whole)
    new = ops.Slice(ops.ShapeOf(grid), [1], [1 + count], [1], [0])
    return ops.Reshape(y, ops.Concat(ops.Slice(shape, [0], [2], [1], [0]), new, axis=0)).output


def _ints(x: Value, numbers: list[int]) -> Value:
    return Constant(np.array(numbers, np.int64), graph=x.graph).output


def _pixel(g: Value, size: Value, align_corners: bool, padding_mode: str) -> Value:
    """-1 .. 1 as a coordinate in elements, brought inside as the padding says."""
    last = ops.Subtract(size, 1.0)
    if align_corners:
        at: Any = ops.Multiply(ops.Multiply(ops.Add(g, 1.0), last), 0.5)
    else:
        at = ops.Multiply(ops.Subtract(ops.Multiply(ops.Add(g, 1.0), size), 1.0), 0.5)
    if padding_mode == "reflection":
        low, span = (0.0, last) if align_corners else (-0.5, size)
        # The reflection has the period 2 * span.
        offset = magnitude(ops.Subtract(at, low))
        twice = ops.Maximum(ops.Multiply(span, 2.0), 1e-6)
        within = ops.Subtract(offset, ops.Multiply(ops.Floor(ops.Divide(offset, twice)), twice))
        at = ops.Add(ops.Minimum(within, ops.Subtract(ops.Multiply(span, 2.0), within)), low)
    if padding_mode != "zeros":
        at = ops.Minimum(ops.Maximum(at, 0.0), last)
    return at.output


def _nearest(flat: Value, at: list[Value], sizes: list[Value], whole: list[Value]) -> Value:
    return _picked(flat, [ops.Round(each).output for each in at], sizes, whole)


def _linear(flat: Value, at: list[Value], sizes: list[Value], whole: list[Value]) -> Value:
    floors = [ops.Floor(each).output for each in at]
    parts = [ops.Subtract(a, b).output for a, b in zip(at, floors, strict=True)]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=len(at)):
        weight: Any = None
        for side, part in zip(corner, parts, strict=True):
            share = part if side else ops.Subtract(1.0, part, graph=flat.graph).output
            weight = share if weight is None else ops.Multiply(weight, share)
        positions = [ops.Add(floor, float(side)).output for floor, side in zip(floors, corner, strict=True)]
        weight = ops.Unsqueeze(weight, [1])
        if flat.dtype is not f32:
            weight = ops.Convert(weight, destination_type=flat.dtype)
        piece = ops.Multiply(_picked(flat, positions, sizes, whole), weight)
        total = piece if total is None else ops.Add(total, piece)
    result: Value = total.output
    return result


def _picked(flat: Value, positions: list[Value], sizes: list[Value], whole: list[Value]) -> Value:
    """The elements [N, C, P] at whole coordinates, 0 outside."""
    inside: Any = None
    index: Any = None
    for position, size, length in zip(positions, sizes, whole, strict=True):
        last = ops.Subtract(length, 1.0)
        here = ops.LogicalAnd(ops.GreaterEqual(position, 0.0), ops.LessEqual(position, last))
        inside = here if inside is None else ops.LogicalAnd(inside, here)
        number = ops.Convert(ops.Minimum(ops.Maximum(position, 0.0), last), destination_type=i32)
        if index is None:
            index = number
        else:
            index = ops.Add(ops.Multiply(index, ops.Convert(size, destination_type=i32)), number)
    values = ops.Gather(flat, index, 2, batch_dims=1)
    zero = Constant(np.zeros((), flat.dtype.numpy), graph=flat.graph, dtype=flat.dtype)
    return ops.Select(ops.Unsqueeze(inside, [1]), values, zero).output


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
        length = ops.Gather(shape, axis, 0).output
        place = [1 if other == axis else 0 for other in range(count)]
        line = ops.Unsqueeze(_line(length, align_corners), [i for i, own in enumerate([*place, 0]) if not own])
        columns.append(ops.Broadcast(line, ops.Concat(shape, _ints(theta, [1]), axis=0)))
    one = Constant(np.float32(1), graph=theta.graph)
    columns = [*reversed(columns), ops.Broadcast(one, ops.Concat(shape, _ints(theta, [1]), axis=0))]
    points = ops.Reshape(ops.Concat(*columns, axis=-1), [1, -1, count + 1]).output
    if theta.dtype is not f32:
        points = ops.Convert(points, destination_type=theta.dtype).output
    moved = ops.MatMul(points, theta, transpose_b=True)  # [N, places, count]
    new = ops.Concat(ops.Slice(size, [0], [1], [1], [0]), shape, _ints(theta, [count]), axis=0)
    return ops.Reshape(moved, new).output


def _line(length: Value, align_corners: bool) -> Value:
    """From -1 to 1: the centres of so many pixels, or with the first and last of them at the ends."""
    zero, one = (Constant(np.int64(each), graph=length.graph).output for each in (0, 1))
    numbers = ops.Convert(ops.Range(zero, length, one, output_type=i64), destination_type=f32)
    size = ops.Convert(length, destination_type=f32)
    if align_corners:
        steps = ops.Maximum(ops.Subtract(size, 1.0), 1.0)
        return ops.Subtract(ops.Divide(ops.Multiply(numbers, 2.0), steps), 1.0).output
    return ops.Subtract(ops.Divide(ops.Add(ops.Multiply(numbers, 2.0), 1.0), size), 1.0).output
