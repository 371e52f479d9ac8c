"""Sums of products of integers: matrix products, convolutions and recurrent layers on quantised tensors.

Results in floating point are products of Dequantize where the scales are constant, which the runtime computes with
integers after a FakeQuantize; else the exact sum of the integers times the scales.
"""

from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.frontend.ops.images.channels import channels_first
from mo_loop.frontend.ops.images.channels import channels_last as to_channels_last
from mo_loop.frontend.ops.images.convolution import ConvolutionAttributes
from mo_loop.frontend.ops.quantization.quantization import qlinear_conv, real, requantized, unless_zero
from mo_loop.frontend.ops.recurrent.recurrent import RecurrentAttributes, recurrent_outputs
from mo_loop.frontend.ops.weight_layout import array_of, rearranged, reshaped
from mo_loop.frontend.vocabulary import MICROSOFT, Context, Value, ops, translates
from mo_loop.graph.shape import element_count
from mo_loop.graph.types import f32, i16, i32, u32
from mo_loop.ops.base import Constant
from mo_loop.ops.exact import aligned, as_float, centred, integer_product
from mo_loop.ops.ranges import AtLeast1, AtLeast2, Matrix, Needed, One, Rank3, Vector

Ints = tuple[int, ...]
Floats = tuple[float, ...]
Strings = tuple[str, ...]


# -- matrix products


@translates("MatMulIntegerToFloat", since=1, domain=MICROSOFT)
def mat_mul_integer_to_float(
    a: AtLeast1, b: AtLeast1, a_scale, b_scale, a_zero_point=None, b_zero_point=None, bias=None,
):  # fmt: skip
    """The product of the dequantised a and b; b may have one scale for each column."""
    if array_of(a_scale) is not None:
        y = ops.MatMul(real(a, a_scale, a_zero_point, -1), real(b, b_scale, b_zero_point, -1))
    else:
        y = _scaled(a, b, a_scale, b_scale, a_zero_point, b_zero_point)
    y = y if y.dtype is a_scale.dtype else ops.Convert(y, destination_type=a_scale.dtype)
    return y if bias is None else y + bias


@translates("DynamicQuantizeMatMul", since=1, domain=MICROSOFT)
def dynamic_quantize_mat_mul(a: AtLeast1, b: AtLeast1, b_scale, b_zero_point=None, bias=None):
    """a is quantised as by DynamicQuantizeLinear; b may have one scale for each column."""
    integers, scale, zero = ops.DynamicQuantize(a)
    y = _scaled(integers, b, scale, b_scale, zero, b_zero_point)
    return y if bias is None else y + bias


def _scaled(
    a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value | None, b_zero: Value | None
) -> Value:  # fmt: skip
    """The sum of the integers in f32, times both scales."""
    integers = ops.IntegerMatMul(a, b, unless_zero(a_zero), unless_zero(b_zero))
    factor = as_float(a_scale) * as_float(aligned(b, b_scale, -1))
    return ops.Convert(integers, destination_type=f32) * factor


@translates("QGemm", since=1, domain=MICROSOFT)
def q_gemm(
    a: Matrix, a_scale: One, a_zero_point: One, b: Matrix, b_scale, b_zero_point, c=None, y_scale=None,
    y_zero_point=None, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
):  # fmt: skip
    """alpha * a * b + c, quantised if there is a `y_scale`; the scale of c is alpha * a_scale * b_scale."""
    left, right = real(a, a_scale, a_zero_point, 0), real(b, b_scale, b_zero_point, 0 if transB else 1)
    numbers = ops.MatMul(left, right, transpose_a=bool(transA), transpose_b=bool(transB))
    factor = as_float(a_scale) * as_float(b_scale)
    if alpha != 1:
        numbers, factor = (each * alpha for each in (numbers, factor))
    if c is not None:
        numbers = numbers + as_float(c) * factor
    if y_scale is None:
        return numbers
    a, b = (_transposed(each) if turned else each for each, turned in ((a, transA), (b, transB)))
    integers = ops.IntegerMatMul(a, b, unless_zero(a_zero_point), unless_zero(b_zero_point))
    integers = integers if c is None else integers + c
    return requantized(numbers, integers, factor, y_scale, y_zero_point, 1, a.dtype)


def _transposed(x: Value) -> Value:
    """The transposed matrix; a constant stays one."""
    made = rearranged(x, lambda array: array.T)
    return made if made is not None else ops.Transpose(x, [1, 0])


@translates("MatMulInteger16", since=1, domain=MICROSOFT)
def mat_mul_integer_16(a, b):
    """In 32 bits, where sums may overflow. b = 256 * high + low, and a in the same way: their products fit f32."""
    to = i32 if a.dtype is i16 and b.dtype is i16 else u32
    parts = [_bytes_of(each) for each in (a, b)]
    high, low = (_products(part, parts[1]) for part in parts[0])
    y = high * 256 + low
    return y if to is i32 else ops.Convert(y, destination_type=to)


def _bytes_of(x: Value) -> tuple[Value, Value]:
    """The multiple of 256 and the rest, in f32."""
    number = as_float(x)
    high = ops.Floor(number * (1 / 256))
    return high, number - high * 256


def _products(a: Value, parts: tuple[Value, Value]) -> Value:
    """a times a number in two parts, in i32."""
    length = a.type.dims[-1] if a.rank else None
    largest = 256 * length if isinstance(length, int) else None
    high, low = (integer_product(a, part, lambda x, y: x @ y, largest) for part in parts)
    return high * 256 + low


# -- elements and sums


@translates("MulInteger", since=1, domain=MICROSOFT)
def mul_integer(a, a_zero_point: One = None, b: Needed = None, b_zero_point: One = None):
    """Products of single integers, in i32."""
    left, right = (centred(x, unless_zero(zero), 0) for x, zero in ((a, a_zero_point), (b, b_zero_point)))
    return ops.Convert(left * right, destination_type=i32)


@translates("ReduceSumInteger", since=1, domain=MICROSOFT)
def reduce_sum_integer(data, *, axes: Ints, keepdims: int):
    """Sums of integers of 8 bits, in 32 bits of the same kind."""
    total = ops.ReduceSum(ops.Convert(data, destination_type=i32), list(axes), keep_dims=bool(keepdims))
    return total if data.dtype.kind == "int" else ops.Convert(total, destination_type=u32)


# -- convolutions and recurrent layers


@translates("QLinearConv", since=1, domain=MICROSOFT)
def contrib_qlinear_conv(
    x: AtLeast2, x_scale: One, x_zero_point: One, w: AtLeast2, w_scale, w_zero_point, y_scale: One, y_zero_point: One,
    b: Vector = None, *, channels_last: int = 0, given: ConvolutionAttributes,
):  # fmt: skip
    """As ONNX's; with `channels_last` the channels of x and y are their last axis."""
    y = qlinear_conv(
        channels_first(x) if channels_last else x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale,
        y_zero_point, b, given=given,
    )  # fmt: skip
    return to_channels_last(y) if channels_last else y


@translates("DynamicQuantizeLSTM", since=1, domain=MICROSOFT)
def dynamic_quantize_lstm(
    x: Rank3, w: Rank3, r: Rank3, b: Matrix = None, sequence_lens: Vector = None, initial_h: Rank3 = None,
    initial_c: Rank3 = None, p: Matrix = None, w_scale: Needed | Vector | Matrix = None,
    w_zero_point: Needed | Vector | Matrix = None, r_scale: Needed | Vector | Matrix = None,
    r_zero_point: Needed | Vector | Matrix = None, *, input_forget: int = 0, given: RecurrentAttributes, node: Context,
):  # fmt: skip
    """x and, at each step, the state are quantised dynamically; weights are [directions, inputs, 4 * hidden].

    The rounded form multiplies them as they are, so that the runtime has the whole layer as one operation.
    """
    directions = 2 if given.direction == "bidirectional" else 1
    weights = _gates(w, w_scale, w_zero_point, directions)
    recurrence = _gates(r, r_scale, r_zero_point, directions)
    rounded, exact = (
        recurrent_outputs(
            node, x, weights, recurrence, b, sequence_lens, (initial_h, initial_c), p, kind="LSTM", given=given,
            input_forget=input_forget, is_quantised=is_quantised,
        )
        for is_quantised in (False, True)
    )  # fmt: skip
    pairs = zip(rounded, exact, strict=True)
    return [None if first is None else ops.RoundedOrExact(first, second) for first, second in pairs]


def _gates(w: Value, scale: Value, zero_point: Value, directions: int) -> Value:
    """Weights as [directions, 4 * hidden, inputs]. The scales are one for each direction, or for each gate."""
    given, _, width = w.type.dims
    if isinstance(given, int) and given != directions:
        raise TypeError_(f"the weights {w.type} are those of {given} directions, not {directions}", code="ML233")
    for each in (scale, zero_point):
        count = element_count(each.shape)
        if isinstance(count, int) and isinstance(width, int) and count not in (directions, directions * width):
            raise TypeError_(f"{each.type} is not one number for each direction or each row of {w.type}", code="ML233")
    if all(isinstance(each.node, Constant) for each in (w, scale, zero_point)) and isinstance(width, int):

        def by_row(array: Any) -> Any:
            shape = (directions, width, 1)
            return np.ascontiguousarray(np.broadcast_to(array.reshape(directions, -1, 1), shape))

        integers = rearranged(w, lambda array: array.transpose(0, 2, 1))
        parameters = [rearranged(each, by_row) for each in (scale, unless_zero(zero_point)) if each is not None]
        return ops.Dequantize(integers, *parameters, axis=-1, expanded=True)
    spread: list[Any] = [as_float(reshaped(each, [directions, 1, -1])) for each in (zero_point, scale)]
    numbers = (as_float(w) - spread[0]) * spread[1]
    return ops.Transpose(numbers, [0, 2, 1])
