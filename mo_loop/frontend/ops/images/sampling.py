"""Composes resizing from simple operations, axis by axis: coordinates in the input, Gather, weights, sums.

    y[.., i, ..] = sum over k of  weight_k[i] * x[.., index_k[i], ..]

This is exact for every mode of Resize, for sizes known only at run time as well. All arithmetic is in f32 and in the
order of the formulas of the ONNX documentation: another order can change how a coordinate is rounded.

AffineGrid and GridSample of volumes read the corners around each position, weight and sum them.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from mo_loop.frontend.ops.shared import MOST_COUNTED, constant_like, counted, first_numbers, known_size, ranked
from mo_loop.frontend.vocabulary import Graph, ModelError, Value, ops, translates
from mo_loop.graph.shape import MOST_DIMENSIONS
from mo_loop.graph.types import f32, i32, i64
from mo_loop.ops.exact import magnitude, quotient
from mo_loop.ops.lengths import joined
from mo_loop.ops.ranges import Integers, Rank3, Vector


@dataclass(frozen=True)
class Sampling:
    """The attributes of Resize."""

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    exclude_outside: bool
    antialias: bool
    extrapolation: float


@dataclass(frozen=True)
class Axis:
    """One axis: sizes before and after, the scale, and the region of interest as fractions of the size.

    Each is a number, or a scalar tensor (sizes in i64, the others in f32) if it is known only at run time.
    """

    number: int
    size: Any
    new: Any
    scale: Any
    start: Any = 0.0
    end: Any = 1.0


def sampled(x: Value, axes: Sequence[Axis], how: Sampling) -> Value:
    """x resized along `axes`; its rank must be known."""
    rank = ranked(x)
    outside: Value | None = None
    y = x
    for axis in axes:
        at = _coordinates(x.graph, axis, how)
        y = _along(y, axis, at, how)
        if how.coordinates == "tf_crop_and_resize":
            last = float_of(x.graph, axis.size - 1)
            beyond = (at < 0.0) | (at > last)
            beyond = _placed(beyond, axis.number, rank)
            outside = beyond if outside is None else outside | beyond
    if outside is None:
        return y
    filler = ops.Constant(np.array(how.extrapolation, y.dtype.numpy), graph=x.graph, dtype=y.dtype)
    return ops.Select(outside, filler, y)


def float_of(graph: Graph, number) -> Value:
    """A number or scalar tensor as a scalar of f32."""
    return number.astype(f32) if isinstance(number, Value) else ops.Constant(np.array(number, np.float32), graph=graph)


def _numbers(graph: Graph, count) -> Value:
    """0, 1, ... count - 1 in f32."""
    if isinstance(count, int) and count <= MOST_COUNTED:
        return ops.Constant(first_numbers(count, np.float32), graph=graph)
    return ops.Range(0, count, 1, graph=graph, output_type=i64).astype(f32)


def _placed(vector: Value, axis: int, rank: int) -> Value:
    """[n] with dimensions of 1 appended, so that it broadcasts along `axis` of a tensor of that rank."""
    later = list(range(1, rank - axis))
    return ops.Unsqueeze(vector, later) if later else vector


def _coordinates(graph: Graph, axis: Axis, how: Sampling) -> Value:
    """[new]: the coordinate in the input of each element of the output."""
    size, new, scale = (float_of(graph, each) for each in (axis.size, axis.new, axis.scale))
    zero = ops.Constant(np.float32(0), graph=graph)
    x = _numbers(graph, axis.new)
    mode = how.coordinates
    if mode == "asymmetric":
        return quotient(x, scale)
    if mode == "align_corners":
        return quotient(x * (size - 1.0), ops.Maximum(new - 1.0, 1.0))
    if mode == "tf_half_pixel_for_nn":
        return ops.Select(ops.Equal(scale, 1.0), x, quotient(x + 0.5, scale))
    if mode == "tf_crop_and_resize":
        start, end, last = float_of(graph, axis.start), float_of(graph, axis.end), size - 1.0
        step = x * (end - start) * last
        many = start * last + quotient(step, ops.Maximum(new - 1.0, 1.0))
        single = (start + end) * 0.5 * last
        return ops.Select(new > 1.0, many, single)
    half = quotient(x + 0.5, scale) - 0.5
    if mode == "pytorch_half_pixel":
        return ops.Select(new > 1.0, half, zero)
    if mode == "half_pixel_symmetric":
        share = quotient(new, scale * size)
        return size / 2.0 * ops.Subtract(1.0, share, graph=graph) + half
    return half


def _along(y: Value, axis: Axis, at: Value, how: Sampling) -> Value:
    if how.mode == "nearest":
        return ops.Gather(y, _index(_rounded(at, axis, how), axis), axis.number)
    if how.antialias:
        return _smoothed(y, axis, at, how)
    assert y.rank is not None
    total: Any = None
    for position, weight in _taps(at, axis, how):
        piece = ops.Gather(y, _index(position, axis), axis.number)
        piece = piece * _placed(weight, axis.number, y.rank).astype(y.dtype)
        total = piece if total is None else total + piece
    return total


def _index(position, axis: Axis) -> Value:
    """Integer coordinates as indices, clamped to the border."""
    last = float_of(position.graph, axis.size - 1)
    return ops.Minimum(ops.Maximum(position, 0.0), last).astype(i32)


def _rounded(at: Value, axis: Axis, how: Sampling):
    if how.nearest == "simple":
        return ops.Select(float_of(at.graph, axis.scale) < 1.0, ops.Ceiling(at), ops.Floor(at))
    if how.nearest == "round_prefer_floor":
        return ops.Ceiling(at - 0.5)
    if how.nearest == "round_prefer_ceil":
        return ops.Floor(at + 0.5)
    return ops.Floor(at) if how.nearest == "floor" else ops.Ceiling(at)


def _taps(at: Value, axis: Axis, how: Sampling) -> list[tuple[Any, Value]]:
    """The integer coordinates around each coordinate, and their weights."""
    base = ops.Floor(at)
    offsets = (0, 1) if how.mode == "linear" else (-1, 0, 1, 2)
    positions = [base + float(offset) for offset in offsets]
    weights = [_filter(magnitude(each - at), how) for each in positions]
    if how.mode == "cubic" and how.exclude_outside:
        last = float_of(at.graph, axis.size - 1)
        weights = [
            weight * ((each >= 0.0) & (each <= last)).astype(f32)
            for each, weight in zip(positions, weights, strict=True)
        ]
        total = reduce(add, weights)
        weights = [each / total for each in weights]
    return list(zip(positions, weights, strict=True))


def _smoothed(y: Value, axis: Axis, at: Value, how: Sampling) -> Value:
    """Applies the antialiasing filter, which is wider for smaller scales, as a matrix of weights [new, size].

    Without `exclude_outside` the border elements are repeated for the width of the filter.
    """
    graph, rank = y.graph, y.rank
    assert rank is not None
    shrink = ops.Minimum(float_of(graph, axis.scale), 1.0)
    elements: Any = _numbers(graph, axis.size)
    if not how.exclude_outside:
        radius = ops.Constant(np.float32(1 if how.mode == "linear" else 2), graph=graph)
        beyond = ops.Ceiling(radius / shrink).astype(i64)
        elements = _numbers(graph, beyond * 2 + axis.size) - beyond.astype(f32)
        y = ops.Gather(y, _index(elements, axis), axis.number)
    weights = _filter(magnitude(elements - at[:, None]) * shrink, how)
    weights = (weights / ops.ReduceSum(weights, [1], keep_dims=True)).astype(y.dtype)
    if axis.number == rank - 1:
        return ops.MatMul(y, weights, transpose_b=True)
    order = list(range(rank))
    order[axis.number], order[-1] = order[-1], order[axis.number]
    return ops.Transpose(ops.MatMul(ops.Transpose(y, order), weights, transpose_b=True), order)


def _filter(distance, how: Sampling):
    """The weight at a distance: a triangle, or Keys' cubic."""
    if how.mode == "linear":
        return ops.Maximum(ops.Subtract(1.0, distance, graph=distance.graph), 0.0)
    a = how.cubic

    def polynomial(*coefficients: float):
        result: Any = distance * coefficients[0]
        for each in coefficients[1:-1]:
            result = (result + each) * distance
        return result + coefficients[-1]

    near = polynomial(a + 2, -(a + 3), 0.0, 1.0)
    far = polynomial(a, -5 * a, 8 * a, -4 * a)
    zero = ops.Constant(np.float32(0), graph=distance.graph)
    return ops.Select(distance <= 1.0, near, ops.Select(distance < 2.0, far, zero))


def sampled_at(x: Value, grid: Value, align_corners: bool, nearest: bool, padding_mode: str) -> Value:
    """x [N, C, D...] at the positions of grid [N, d..., count]; the last coordinate is for the first dimension."""
    rank = x.rank if x.rank is not None else grid.rank
    assert rank is not None
    count = rank - 2
    shape = x.sizes
    sizes = [ops.Gather(shape, 2 + i, 0) for i in range(count)]
    flat = ops.Reshape(x, ops.Concat(shape[:2], joined([-1], x), axis=0))
    places = grid.reshape([None, -1, count])
    columns = [ops.Gather(places, count - 1 - i, 2).astype(f32) for i in range(count)]  # [N, P] each
    whole = [size.astype(f32) for size in sizes]
    at = [_pixel(g, size, align_corners, padding_mode) for g, size in zip(columns, whole, strict=True)]
    y = _picked(flat, [ops.Round(each) for each in at], sizes, whole) if nearest else _linear(flat, at, sizes, whole)
    new = grid.sizes[1 : 1 + count]
    return ops.Reshape(y, ops.Concat(shape[:2], new, axis=0))


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
        weight = weight[:, None].astype(flat.dtype)
        piece = _picked(flat, positions, sizes, whole) * weight
        total = piece if total is None else total + piece
    return total


def _picked(flat: Value, positions: list[Value], sizes: list[Value], whole: list[Value]) -> Value:
    """The elements [N, C, P] at whole coordinates, 0 outside."""
    inside: Any = None
    index: Any = None
    for position, size, length in zip(positions, sizes, whole, strict=True):
        last = length - 1.0
        here = (position >= 0.0) & (position <= last)
        inside = here if inside is None else inside & here
        number = ops.Minimum(ops.Maximum(position, 0.0), last).astype(i32)
        index = number if index is None else index * size.astype(i32) + number
    values, zero = ops.Gather(flat, index, 2, batch_dims=1), constant_like(flat, 0)
    return ops.Select(inside[:, None], values, zero)


@translates("AffineGrid", since=20)
def affine_grid(theta: Rank3, size: Vector | Integers, *, align_corners: int = 0):
    """The grid that GridSample reads, [N, d..., count]: where an affine map [N, count, count + 1] sends each place of
    an image of that size."""
    count = theta.shape[1] if theta.shape is not None else None
    if not isinstance(count, int) and size.rank == 1 and isinstance(size.type.dims[0], int):
        count = size.type.dims[0] - 2
    count = known_size(count, "the number of dimensions of the image")
    if not 0 < count < MOST_DIMENSIONS - 1:
        raise ModelError(f"the image has {count} spatial dimensions", code="ML235")
    shape = size[2 : 2 + count]
    columns = []
    for axis in range(count):
        length = ops.Gather(shape, axis, 0)
        others = [other for other in range(count + 1) if other != axis]
        line = ops.Unsqueeze(_line(length, bool(align_corners)), others)
        columns.append(ops.Broadcast(line, ops.Concat(shape, joined([1], theta), axis=0)))
    one = ops.Constant(np.float32(1), graph=theta.graph)
    columns = [*reversed(columns), ops.Broadcast(one, ops.Concat(shape, joined([1], theta), axis=0))]
    points = ops.Concat(*columns, axis=-1).reshape([1, -1, count + 1])
    moved = ops.MatMul(points.astype(theta.dtype), theta, transpose_b=True)  # [N, places, count]
    return ops.Reshape(moved, ops.Concat(size[:1], shape, joined([count], theta), axis=0))


def _line(length: Value, align_corners: bool) -> Value:
    """From -1 to 1: the centres of so many pixels, or with the first and last of them at the ends."""
    numbers = counted(length, length).astype(f32)
    size = length.astype(f32)
    if align_corners:
        steps = ops.Maximum(size - 1.0, 1.0)
        return numbers * 2.0 / steps - 1.0
    return (numbers * 2.0 + 1.0) / size - 1.0
