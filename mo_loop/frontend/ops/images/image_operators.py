"""Operators on images: regions resized to one size, transposed convolutions whose pads are an input, windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.errors import ModelError, UnsupportedError
from mo_loop.frontend.context import Context
from mo_loop.frontend.contrib_schemas import MICROSOFT
from mo_loop.frontend.input_forms import AtLeast3, Integers, Matrix, Rank4, Vector
from mo_loop.frontend.ops.elementwise.arithmetic import as_type, number
from mo_loop.frontend.ops.images.channels import channels_first, channels_last
from mo_loop.frontend.ops.images.convolution import biased, conv_transpose, spatial_rank
from mo_loop.frontend.ops.images.pooling import max_pool
from mo_loop.frontend.ops.shared import as_i64, dimension, joined
from mo_loop.frontend.ranges import Indices, NotNegatives, Positive, Positives
from mo_loop.frontend.registry import translates
from mo_loop.graph import Value
from mo_loop.graph.types import f32, i64

Ints = tuple[int, ...]


# -- regions


@translates("CropAndResize", since=1, domain=MICROSOFT)
def crop_and_resize(
    x: Rank4, rois: Matrix, batch_indices: Vector | Integers, crop_size: Vector | Integers, *,
    extrapolation_value: float = 0.0, mode: str = "bilinear",
):  # fmt: skip
    """Each region [y1, x1, y2, x2], where 1 is the last row or column, read at evenly spaced positions from one corner
    to the other; a single position lies in the middle. Positions outside of the image have `extrapolation_value`."""
    if mode not in ("bilinear", "nearest"):
        raise ModelError(f"mode {mode!r}: the operator has bilinear and nearest", code="ML227")
    height, width = (_scalar(x, dimension(x, axis)) for axis in (2, 3))
    rows = _positions(rois, 0, height, ops.Gather(crop_size, 0, 0).output)
    columns = _positions(rois, 1, width, ops.Gather(crop_size, 1, 0).output)
    table = ops.Reshape(ops.Transpose(x, [0, 2, 3, 1]), joined([-1, dimension(x, 1)], x)).output
    first = ops.Multiply(as_i64(batch_indices), height)  # the row of each image in the table

    def read(row: Value, column: Value) -> Any:
        """The channels [R, h, w, C] at rows [R, h] and columns [R, w]."""
        line = ops.Multiply(ops.Add(ops.Unsqueeze(first, 1), _index(row, height)), width)
        return ops.Gather(table, ops.Add(ops.Unsqueeze(line, 2), ops.Unsqueeze(_index(column, width), 1)), 0)

    if mode == "nearest":
        y = read(*(ops.Round(each, mode="half_away_from_zero").output for each in (rows, columns)))
    else:
        above, left = ops.Floor(rows).output, ops.Floor(columns).output
        below, right = ops.Ceiling(rows).output, ops.Ceiling(columns).output
        down = as_type(ops.Unsqueeze(ops.Subtract(rows, above), [2, 3]).output, x.dtype)
        across = as_type(ops.Unsqueeze(ops.Subtract(columns, left), [1, 3]).output, x.dtype)
        top, bottom = (_between(read(line, left), read(line, right), across) for line in (above, below))
        y = _between(top, bottom, down)
    is_inside = ops.LogicalAnd(
        ops.Unsqueeze(_is_inside(rows, height), [2, 3]), ops.Unsqueeze(_is_inside(columns, width), [1, 3])
    )
    return ops.Transpose(ops.Select(is_inside, y, number(x, extrapolation_value)), [0, 3, 1, 2])


def _scalar(like: Value, size: Any) -> Value:
    return size if isinstance(size, Value) else ops.Constant(np.array(size, np.int64), graph=like.graph).output


def _positions(rois: Value, column: int, size: Value, count: Value) -> Value:
    """Positions [R, count] along one dimension of `size` elements, in f32."""
    start, end = (as_type(ops.Gather(rois, [at], 1).output, f32) for at in (column, column + 2))  # [R, 1]
    last = ops.Subtract(as_type(size, f32), 1.0)
    is_one = ops.LessEqual(count, number(count, 1))
    gaps = ops.Maximum(ops.Subtract(as_type(count, f32), 1.0), 1.0)
    step = ops.Divide(ops.Multiply(ops.Subtract(end, start), last), gaps)
    middle = ops.Multiply(ops.Multiply(ops.Add(start, end), 0.5), last)
    origin = ops.Select(is_one, middle, ops.Multiply(start, last))
    places = ops.Range(0, as_i64(count), 1, output_type=i64).output
    return ops.Add(origin, ops.Multiply(ops.Unsqueeze(as_type(places, f32), 0), step)).output


def _index(position: Value, size: Value) -> Value:
    """A whole position as an index inside of the image."""
    return ops.Maximum(ops.Minimum(as_i64(position), ops.Subtract(size, 1)), 0).output


def _is_inside(position: Value, size: Value) -> Value:
    last = ops.Subtract(as_type(size, f32), 1.0)
    return ops.LogicalAnd(ops.GreaterEqual(position, 0.0), ops.LessEqual(position, last)).output


def _between(a: Any, b: Any, share: Value) -> Any:
    return ops.Add(a, ops.Multiply(ops.Subtract(b, a), share))


# -- pads


@translates("ConvTransposeWithDynamicPads", since=1, domain=MICROSOFT)
def conv_transpose_with_dynamic_pads(
    x: AtLeast3, w: AtLeast3, pads: Vector = None, b: Vector = None,
    *, auto_pad: str = "NOTSET", dilations: Positives | None = None, group: Positive = 1,
    kernel_shape: Positives | None = None,
    output_padding: NotNegatives | None = None, strides: Positives | None = None,
):  # fmt: skip
    """ConvTranspose whose pads are an input: they are cut off the result without pads."""
    if pads is None:
        raise ModelError("ConvTransposeWithDynamicPads needs the input Pads", code="ML227")
    if auto_pad not in ("NOTSET", "", "VALID"):
        raise UnsupportedError(
            f"ConvTransposeWithDynamicPads with auto_pad {auto_pad}", code="ML303", hint="use ConvTranspose instead"
        )
    count = spatial_rank(x, w, kernel_shape)
    whole = conv_transpose(
        x, w, auto_pad="NOTSET", dilations=dilations, group=group, kernel_shape=kernel_shape,
        output_padding=output_padding, strides=strides,
    )  # fmt: skip
    begin, end = ops.Split(pads, 0, num_splits=2).outputs
    sizes = ops.Slice(ops.ShapeOf(whole), [2], [2 + count], [1], [0])
    axes = list(range(2, 2 + count))
    cut = ops.Slice(whole, begin, ops.Subtract(sizes, end), [1] * count, axes).output
    return biased(cut, b, count)


# -- windows of images whose channels are last


@translates("NhwcMaxPool", since=1, domain=MICROSOFT)
def nhwc_max_pool(
    x, *, auto_pad: str = "NOTSET", ceil_mode: int = 0, dilations: Positives | None = None, kernel_shape: Positives,
    pads: Indices | None = None, strides: Positives | None = None, node: Context,
):  # fmt: skip
    """MaxPool of integers of 8 bits."""
    y, _ = max_pool(
        channels_first(x), auto_pad=auto_pad, ceil_mode=ceil_mode, dilations=dilations, kernel_shape=kernel_shape,
        pads=pads, strides=strides, node=node,
    )  # fmt: skip
    return channels_last(y)
