"""QuantizeLinear, DequantizeLinear, and operators on quantised tensors, as compositions of simple operations.

    quantise      y = clamp(round(x / scale) + zero point)          halves to even
    dequantise    y = (x - zero point) * scale

FakeQuantize differs: it rounds after adding the zero point, so that results of halves differ by 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.errors import UnsupportedError
from mo_loop.frontend.ops.convolution import convolved, spatial_rank
from mo_loop.frontend.ops.exact import quotient, steps
from mo_loop.frontend.ops.weight_layout import array_of, reshaped
from mo_loop.frontend.ops.windows import Window, window
from mo_loop.frontend.registry import translates
from mo_loop.graph import Value
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import ElementType, f8e4m3, f8e5m2, f32, from_onnx, i32, i64, u8
from mo_loop.ops.base import Constant

Ints = tuple[int, ...]

_LARGEST = {f8e4m3: 448.0, f8e5m2: 57344.0}
EXACT = 1 << 24
"""Integers below this are exact in f32."""


# -- QuantizeLinear


@translates("QuantizeLinear", since=10, without="axis block_size output_dtype precision saturate")
@translates("QuantizeLinear", since=13, without="block_size output_dtype precision saturate")
@translates("QuantizeLinear", since=19, without="block_size output_dtype precision")
@translates("QuantizeLinear", since=21, without="precision")
@translates("QuantizeLinear", since=23)
def quantize(
    x,
    y_scale,
    y_zero_point=None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
):
    """One scale for all, one for each slice along an axis, or one for each block of elements along it.

    Only float8 uses `saturate`. The division is in f32, at least as precise as `precision` requires.
    """
    return _quantized(
        x, y_scale, y_zero_point, axis=axis, saturate=saturate, block_size=block_size, output_dtype=output_dtype
    )


def _quantized(
    x: Value,
    scale: Value,
    zero_point: Value | None,
    *,
    axis: int,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    to = zero_point.dtype if zero_point is not None else from_onnx(output_dtype) if output_dtype else u8
    numbers, divisor = as_float(x), as_float(aligned(x, scale, axis, block_size))
    divided = steps(numbers, divisor) if to.is_integer and to.bits <= 8 else ops.Divide(numbers, divisor).output
    zero = None
    if zero_point is not None and not _is_zero(zero_point):
        zero = aligned(x, zero_point, axis, block_size)
    return rounded_to(to, divided, zero, saturate=bool(saturate))


def rounded_to(to: ElementType, divided: Value, zero: Value | None, *, saturate: bool = True) -> Value:
    """clamp(round(divided) + zero point) in the type `to`; floating-point types are not rounded to integers."""
    if to.precision is None:
        raise UnsupportedError(f"quantisation to {to}: the IR does not have this type", code="ML301")
    y: Any = divided if to.is_float else ops.Round(divided)
    if zero is not None:
        y = ops.Add(y, as_float(zero))
    if to.is_integer:
        y = ops.Clamp(y, min=float(_least(to)), max=float(_most(to)))
    elif saturate and to in _LARGEST:
        y = ops.Clamp(y, min=-_LARGEST[to], max=_LARGEST[to])
    return ops.Convert(y, destination_type=to).output


def _least(to: ElementType) -> int:
    return -(1 << (to.bits - 1)) if to.kind == "int" else 0


def _most(to: ElementType) -> int:
    return (1 << (to.bits - (to.kind == "int"))) - 1


def as_float(x: Value) -> Value:
    """The value in f32."""
    return x if x.dtype is f32 else ops.Convert(x, destination_type=f32).output


def _is_zero(value: Value | None) -> bool:
    array = None if value is None else array_of(value)
    return value is None or (array is not None and not np.any(array.astype(np.float32)))


def aligned(x: Value, scale: Value, axis: int, block_size: int = 0) -> Value:
    """A scale or zero point in a shape that broadcasts to x: one for all, one for each slice, or one for each block."""
    if scale.rank == 0 or (scale.shape == (1,) and x.rank != 0 and not block_size):
        return scale
    if x.rank is None:
        raise UnsupportedError("quantisation along an axis of a tensor of unknown rank", code="ML314")
    if x.rank == 0:
        return reshaped(scale, [])
    at = normalise_axis(axis, x.rank)
    if not block_size:
        behind = x.rank - 1 - at
        return reshaped(scale, [-1] + [1] * behind) if behind else scale
    assert x.shape is not None
    size = x.shape[at]
    if isinstance(size, int):
        blocks = Constant(np.arange(size) // block_size, graph=x.graph).output
    else:
        zero, one = (Constant(np.int64(each), graph=x.graph) for each in (0, 1))
        numbers = ops.Range(zero, ops.Gather(ops.ShapeOf(x), at, 0), one, output_type=i64)
        blocks = ops.Divide(numbers, block_size).output
    return ops.Gather(scale, blocks, at).output


@translates("DynamicQuantizeLinear", since=11)
def dynamic_quantize(x):
    """The scale is computed from the range of the elements and 0; it is 1 if all elements are 0."""
    axes = list(range(x.rank)) if x.rank is not None else _every_axis(x)
    largest = ops.Maximum(ops.ReduceMax(x, axes, keep_dims=False), 0)
    least = ops.Minimum(ops.ReduceMin(x, axes, keep_dims=False), 0)
    scale = quotient(ops.Subtract(largest, least), Constant(np.float32(255), graph=x.graph).output)
    # ONNX's definition divides by a scale of 0 here; ONNX Runtime uses 1.
    scale = ops.Select(ops.Equal(scale, 0), np.float32(1), scale).output
    zero = ops.Round(ops.Clamp(steps(ops.Negative(least).output, scale), min=0.0, max=255.0))
    y = rounded_to(u8, steps(x, scale), zero.output)
    return y, scale, ops.Convert(zero, destination_type=u8)


def _every_axis(x: Value) -> Value:
    zero, one = (Constant(np.int64(each), graph=x.graph) for each in (0, 1))
    rank = ops.Squeeze(ops.ShapeOf(ops.ShapeOf(x)), [0])
    return ops.Range(zero, rank, one, output_type=i64).output


# -- DequantizeLinear


@translates("DequantizeLinear", since=10, without="axis block_size output_dtype")
@translates("DequantizeLinear", since=13, without="block_size output_dtype")
@translates("DequantizeLinear", since=21, without="output_dtype")
@translates("DequantizeLinear", since=23)
def dequantize(x, x_scale, x_zero_point=None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0):
    """One scale for all, one for each slice along an axis, or one for each block of elements along it."""
    return _dequantized(x, x_scale, x_zero_point, axis=axis, block_size=block_size, output_dtype=output_dtype)


def _dequantized(
    x: Value, scale: Value, zero_point: Value | None, *, axis: int, block_size: int = 0, output_dtype: int = 0
) -> Value:
    to = from_onnx(output_dtype) if output_dtype else scale.dtype
    y: Any = as_float(x)
    if not _is_zero(zero_point):
        assert zero_point is not None
        y = ops.Subtract(y, as_float(aligned(x, zero_point, axis, block_size)))
    y = ops.Multiply(y, as_float(aligned(x, scale, axis, block_size))).output
    return y if to is f32 else ops.Convert(y, destination_type=to).output


# -- products of integers


@translates("ConvInteger", since=10)
def conv_integer(
    x,
    w,
    x_zero_point=None,
    w_zero_point=None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
):
    """In i32."""
    count = spatial_rank(x, w, kernel_shape)
    at = window(count, strides=strides, pads=pads, dilations=dilations, auto_pad=auto_pad)
    return _integer_convolution(x, w, x_zero_point, w_zero_point, group, at)


def _integer_convolution(
    x: Value, w: Value, x_zero: Value | None, w_zero: Value | None, group: int, at: Window
) -> Value:
    terms = None
    if w.shape is not None and all(isinstance(dim, int) for dim in w.shape[1:]):
        terms = math.prod(int(str(dim)) for dim in w.shape[1:])
    data, filters = _centred(x, x_zero, 1), _centred(w, w_zero, 0)
    return _exactly(data, filters, terms, lambda a, b: convolved(a, b, group, at))


@translates("MatMulInteger", since=10)
def mat_mul_integer(a, b, a_zero_point=None, b_zero_point=None):
    """In i32. The zero points may be one for each row of a and one for each column of b."""
    return _integer_product(a, b, a_zero_point, b_zero_point)


def _integer_product(a: Value, b: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    inner = a.shape[-1] if a.shape else None
    terms = inner if isinstance(inner, int) else None
    left, right = _centred(a, None if a_zero is None else _by_row(a, a_zero), None), _centred(b, b_zero, None)
    return _exactly(left, right, terms, lambda x, y: ops.MatMul(x, y).output)


def _by_row(a: Value, parameter: Value) -> Value:
    """A scale or zero point [M] of the rows of a as [M, 1]; other shapes broadcast unchanged."""
    if parameter.rank != 1 or parameter.shape == (1,) or a.rank == 1:
        return parameter
    return reshaped(parameter, [-1, 1])


def _centred(x: Value, zero_point: Value | None, axis: int | None) -> Value:
    if _is_zero(zero_point):
        return as_float(x)
    assert zero_point is not None
    zero = zero_point if axis is None else aligned(x, zero_point, axis)
    return ops.Subtract(as_float(x), as_float(zero)).output


def _exactly(a: Value, b: Value, terms: int | None, product) -> Value:
    """A product of integers up to 255 in i32. It is computed in f32, with a = 16 * high + low if the sums of the whole
    product may not be exact."""
    if terms is not None and terms * 255 * 255 < EXACT:
        return ops.Convert(product(a, b), destination_type=i32).output
    high = ops.Floor(ops.Multiply(a, 1 / 16)).output
    low = ops.Subtract(a, ops.Multiply(high, 16)).output
    upper, lower = (ops.Convert(product(each, b), destination_type=i32) for each in (high, low))
    return ops.Add(ops.Multiply(upper, 16), lower).output


@translates("QLinearConv", since=10)
def qlinear_conv(
    x,
    x_scale,
    x_zero_point,
    w,
    w_scale,
    w_zero_point,
    y_scale,
    y_zero_point,
    b=None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
):
    """The bias is of type i32; its scale is x_scale * w_scale."""
    count = spatial_rank(x, w, kernel_shape)
    at = window(count, strides=strides, pads=pads, dilations=dilations, auto_pad=auto_pad)
    total = _integer_convolution(x, w, x_zero_point, w_zero_point, group, at)
    if b is not None:
        total = ops.Add(total, reshaped(b, [1, -1, *[1] * count])).output
    if w_scale.rank == 1 and w_scale.shape != (1,):
        w_scale = reshaped(w_scale, [1, -1, *[1] * count])
    return _requantized(total, x_scale, w_scale, y_scale, y_zero_point)


@translates("QLinearMatMul", since=10)
def qlinear_mat_mul_10(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    """The scales may be one for each row of a and one for each column of b."""
    if any(each.dtype.is_float for each in (a, b)):
        raise UnsupportedError("QLinearMatMul of float8", code="ML303", hint="use DequantizeLinear and MatMul")
    total = _integer_product(a, b, a_zero_point, b_zero_point)
    return _requantized(total, _by_row(a, a_scale), b_scale, _by_row(a, y_scale), _by_row(a, y_zero_point))


def _requantized(total: Value, a_scale: Value, b_scale: Value, y_scale: Value, y_zero: Value) -> Value:
    factor = ops.Divide(ops.Multiply(as_float(a_scale), as_float(b_scale)), as_float(y_scale))
    return rounded_to(y_zero.dtype, ops.Multiply(as_float(total), factor).output, None if _is_zero(y_zero) else y_zero)
