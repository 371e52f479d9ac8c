"""Operators on tensors of 8 bits that have one scale and one zero point: the numbers are computed and quantised again.

    y = clamp(round(f((x - x_zero_point) * x_scale) / y_scale) + y_zero_point)

The kernels for QLinearAdd, QLinearMul and QLinearAveragePool round after adding the zero point (`rounds_sum`).

Matrix products, convolutions and recurrent layers on quantised tensors are sums of products of integers. Results in
floating point are products of Dequantize where the scales are constant, which the runtime computes with integers after
a FakeQuantize; else the exact sum of the integers times the scales.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.frontend.ops.activation import flattened, leaky_relu, softmax
from mo_loop.frontend.ops.images.convolution import WindowAttributes, channels_first
from mo_loop.frontend.ops.images.convolution import channels_last as to_channels_last
from mo_loop.frontend.ops.images.pooling import averaged, global_average_pool, spatial_axes
from mo_loop.frontend.ops.linear import array_of, rearranged, reshaped
from mo_loop.frontend.ops.quantization.quantization import real, requantized, unless_zero
from mo_loop.frontend.ops.recurrent import RecurrentAttributes, recurrent_outputs
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, Value, ops, translates
from mo_loop.graph import ElementType, assume_fixed, element_count, f32, i16, i32, now, u32
from mo_loop.ops.base import Constant
from mo_loop.ops.exact import aligned, as_float, centred, integer_product
from mo_loop.ops.lengths import scalar
from mo_loop.ops.ranges import AtLeast1, AtLeast3, Ints, Matrix, Needed, One, Positives, Rank3, Vector


def one(parameter: Value | None) -> Any:
    """A scale or zero point as a scalar; None stays None."""
    if parameter is None or parameter.rank == 0:
        return parameter
    return reshaped(parameter, []) if isinstance(parameter.node, Constant) else scalar(parameter)


def numbers_of(x: Value, scale: Value, zero_point: Value | None) -> Value:
    return real(x, one(scale), one(zero_point), 0)


def _quantized(
    x: Value, scale: Value, zero_point: Value | None, to: ElementType, exact: Any = None, *, rounds_sum: bool = False
) -> Value:
    """`exact` is x / scale as the kernel computes it, where that differs from the quotient."""
    parameter: Any = one(scale)
    return ops.Quantize(x, parameter, unless_zero(one(zero_point)), exact, to=to, axis=0, rounds_sum=rounds_sum)


@translates("QLinearAdd", since=1, domain=MICROSOFT)
def qlinear_add(
    a, a_scale: One, a_zero_point: One = None, b: Needed = None, b_scale: Needed | One = None,
    b_zero_point: One = None, c_scale: Needed | One = None, c_zero_point: One = None,
):
    """The sum. The kernel divides the scales, so that halves stay halves: erf(x) + 1 of GELU has many of them."""
    terms = (a, a_scale, a_zero_point), (b, b_scale, b_zero_point)
    total = ops.Add(*(numbers_of(*term) for term in terms))
    exact = ops.Add(*(_in_steps_of(c_scale, *term) for term in terms))
    return _quantized(total, c_scale, c_zero_point, a.dtype, exact, rounds_sum=True)


def _in_steps_of(target: Any, x: Value, scale: Any, zero_point: Value | None) -> Value:
    """(x - zero point) * (scale / target)"""
    scale, target = one(scale), one(target)
    ratio = as_float(scale) / as_float(target)
    return as_float(centred(x, unless_zero(one(zero_point)), 0)) * ratio


@translates("QLinearMul", since=1, domain=MICROSOFT)
def qlinear_mul(
    a, a_scale: One, a_zero_point: One = None, b: Needed = None, b_scale: Needed | One = None,
    b_zero_point: One = None, c_scale: Needed | One = None, c_zero_point: One = None,
):
    """The product. That of the integers is exact."""
    numbers = numbers_of(a, a_scale, a_zero_point) * numbers_of(b, b_scale, b_zero_point)
    integers = centred(a, unless_zero(one(a_zero_point)), 0) * centred(b, unless_zero(one(b_zero_point)), 0)
    factor = one(a_scale) * one(b_scale)
    return requantized(numbers, integers, factor, one(c_scale), one(c_zero_point), 0, a.dtype, rounds_sum=True)


@translates("QLinearSigmoid", since=1, domain=MICROSOFT)
def qlinear_sigmoid(x, x_scale: One, x_zero_point: One = None, y_scale: Needed | One = None, y_zero_point: One = None):
    """1 / (1 + exp(-x))."""
    return _quantized(ops.Sigmoid(numbers_of(x, x_scale, x_zero_point)), y_scale, y_zero_point, x.dtype)


@translates("QLinearLeakyRelu", since=1, domain=MICROSOFT)
def qlinear_leaky_relu(
    x, x_scale: One, x_zero_point: One = None, y_scale: Needed | One = None, y_zero_point: One = None, *,
    alpha: float = 0.01,
):
    """x, or alpha * x below 0."""
    return _quantized(leaky_relu(numbers_of(x, x_scale, x_zero_point), alpha=alpha), y_scale, y_zero_point, x.dtype)


@translates("QLinearWhere", since=1, domain=MICROSOFT)
def qlinear_where(
    condition, x, x_scale: One, x_zero_point: One, y, y_scale: One, y_zero_point: One, z_scale: One, z_zero_point: One
):
    """x where the condition is true, else y."""
    chosen = ops.Select(condition, numbers_of(x, x_scale, x_zero_point), numbers_of(y, y_scale, y_zero_point))
    return _quantized(chosen, z_scale, z_zero_point, x.dtype)


@translates("QLinearConcat", since=1, domain=MICROSOFT)
def qlinear_concat(y_scale: One, y_zero_point: One, *inputs, axis: int):
    """`inputs` are a tensor, its scale and its zero point, for each part."""
    if not inputs or len(inputs) % 3:
        raise ModelError(f"there are {len(inputs)} inputs for its parts, not three for each", code="ML227")
    parts = [numbers_of(*inputs[first : first + 3]) for first in range(0, len(inputs), 3)]
    return _quantized(ops.Concat(*parts, axis=axis), y_scale, y_zero_point, y_zero_point.dtype)


@translates("QLinearSoftmax", since=1, domain=MICROSOFT)
def qlinear_softmax(
    x, x_scale: One, x_zero_point: One = None, y_scale: Needed | One = None, y_zero_point: One = None, *,
    axis: int = -1, opset: int,
):
    """Softmax of the `opset`: before 13 over all axes from `axis` on. The kernel multiplies by the whole part of
    1 / y_scale, which is 254 for the f32 that is nearest to 1 / 255."""
    numbers = numbers_of(x, x_scale, x_zero_point)
    y = softmax(numbers, axis) if opset >= 13 else flattened(numbers, axis, softmax)
    scale: Any = one(y_scale)
    return _quantized(y, scale, y_zero_point, x.dtype, y * ops.Floor(1 / as_float(scale)))


@translates("QLinearReduceMean", since=1, domain=MICROSOFT)
def qlinear_reduce_mean(
    data, data_scale: One, data_zero_point: One = None, reduced_scale: Needed | One = None,
    reduced_zero_point: One = None, *, axes: Ints, keepdims: int,
):
    """The mean along axes."""
    mean = ops.ReduceMean(numbers_of(data, data_scale, data_zero_point), list(axes), keep_dims=bool(keepdims))
    return _quantized(mean, reduced_scale, reduced_zero_point, data.dtype)


@translates("QLinearAveragePool", since=1, domain=MICROSOFT, without="dilations")
def qlinear_average_pool(
    x: AtLeast3, x_scale: One, x_zero_point: One = None, y_scale: Needed | One = None, y_zero_point: One = None, *,
    ceil_mode: int = 0, channels_last: int = 0, count_include_pad: int = 0, kernel_shape: Positives,
    given: WindowAttributes,
):
    """The mean of each window. With `count_include_pad` the kernel also counts the elements that rounding up adds.

    For one window with all elements the kernel of QLinearGlobalAveragePool is used, which rounds differently.
    """
    at = given.over(len(kernel_shape))
    sizes = () if x.shape is None else x.shape[1:-1] if channels_last else x.shape[2:]
    if tuple(map(now, sizes)) == tuple(kernel_shape) and not any((*at.begin, *at.end)):
        assume_fixed(sizes)
        return qlinear_global_average_pool(x, x_scale, x_zero_point, y_scale, y_zero_point, channels_last=channels_last)
    if count_include_pad and ceil_mode and at.auto_pad == "explicit":
        more = zip(at.end, at.strides, kernel_shape, strict=True)
        ends = tuple(min(end + stride - 1, max(end, size - 1)) for end, stride, size in more)  # each window has data
        at, ceil_mode = replace(at, end=ends), 0
    numbers = numbers_of(channels_first(x) if channels_last else x, x_scale, x_zero_point)
    y = averaged(numbers, kernel_shape, at, count_include_pad, ceil_mode)
    y = _quantized(y, y_scale, y_zero_point, x.dtype, rounds_sum=True)
    return to_channels_last(y) if channels_last else y


@translates("QLinearGlobalAveragePool", since=1, domain=MICROSOFT)
def qlinear_global_average_pool(
    x: AtLeast3, x_scale: One, x_zero_point: One, y_scale: One, y_zero_point: One, *, channels_last: int = 0,
):
    """The mean of each channel. The sum of the integers is exact."""
    x = channels_first(x) if channels_last else x
    axes = spatial_axes(x)
    total = ops.ReduceSum(centred(x, unless_zero(one(x_zero_point)), 0), axes, keep_dims=True)
    count = ops.ReduceProd(ops.Gather(x.sizes, axes, 0), [0], keep_dims=False)
    factor = one(x_scale) / as_float(count)
    numbers = global_average_pool(numbers_of(x, x_scale, x_zero_point))
    scale: Any = one(y_scale)
    y = requantized(numbers, total, factor, scale, one(y_zero_point), 0, x.dtype)
    return to_channels_last(y) if channels_last else y


@translates("MatMulIntegerToFloat", since=1, domain=MICROSOFT)
def mat_mul_integer_to_float(
    a: AtLeast1, b: AtLeast1, a_scale, b_scale, a_zero_point=None, b_zero_point=None, bias=None,
):
    """The product of the dequantised a and b; b may have one scale for each column."""
    if array_of(a_scale) is not None:
        y = ops.MatMul(real(a, a_scale, a_zero_point, -1), real(b, b_scale, b_zero_point, -1))
    else:
        y = _scaled(a, b, a_scale, b_scale, a_zero_point, b_zero_point)
    y = y.astype(a_scale.dtype)
    return y if bias is None else y + bias


@translates("DynamicQuantizeMatMul", since=1, domain=MICROSOFT)
def dynamic_quantize_mat_mul(a: AtLeast1, b: AtLeast1, b_scale, b_zero_point=None, bias=None):
    """a is quantised as by DynamicQuantizeLinear; b may have one scale for each column."""
    integers, scale, zero = ops.DynamicQuantize(a)
    y = _scaled(integers, b, scale, b_scale, zero, b_zero_point)
    return y if bias is None else y + bias


def _scaled(a: Value, b: Value, a_scale: Value, b_scale: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    """The sum of the integers in f32, times both scales."""
    integers = ops.IntegerMatMul(a, b, unless_zero(a_zero), unless_zero(b_zero))
    factor = as_float(a_scale) * as_float(aligned(b, b_scale, -1))
    return integers.astype(f32) * factor


@translates("QGemm", since=1, domain=MICROSOFT)
def q_gemm(
    a: Matrix, a_scale: One, a_zero_point: One, b: Matrix, b_scale, b_zero_point, c=None, y_scale=None,
    y_zero_point=None, *, alpha: float = 1.0, transA: int = 0, transB: int = 0,
):
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
    return y if to is i32 else y.astype(to)


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


@translates("MulInteger", since=1, domain=MICROSOFT)
def mul_integer(a, a_zero_point: One = None, b: Needed = None, b_zero_point: One = None):
    """Products of single integers, in i32."""
    left, right = (centred(x, unless_zero(zero), 0) for x, zero in ((a, a_zero_point), (b, b_zero_point)))
    return (left * right).astype(i32)


@translates("ReduceSumInteger", since=1, domain=MICROSOFT)
def reduce_sum_integer(data, *, axes: Ints, keepdims: int):
    """Sums of integers of 8 bits, in 32 bits of the same kind."""
    total = ops.ReduceSum(data.astype(i32), list(axes), keep_dims=bool(keepdims))
    return total if data.dtype.kind == "int" else total.astype(u32)


@translates("DynamicQuantizeLSTM", since=1, domain=MICROSOFT)
def dynamic_quantize_lstm(
    x: Rank3, w: Rank3, r: Rank3, b: Matrix = None, sequence_lens: Vector = None, initial_h: Rank3 = None,
    initial_c: Rank3 = None, p: Matrix = None, w_scale: Needed | Vector | Matrix = None,
    w_zero_point: Needed | Vector | Matrix = None, r_scale: Needed | Vector | Matrix = None,
    r_zero_point: Needed | Vector | Matrix = None, *, input_forget: int = 0, given: RecurrentAttributes, node: Context,
):
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
    )
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
