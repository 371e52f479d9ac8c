"""QuantizeLinear, DequantizeLinear, and operators on quantised tensors.

    quantise      y = clamp(round(x / scale) + zero point)          halves to even
    dequantise    y = (x - zero point) * scale

They stay one node each, Quantize, Dequantize, DynamicQuantize and IntegerMatMul, until the passes in
transforms/low_precision choose their form.
"""

from functools import partial

import numpy as np

from mo_loop.frontend.ops.images.convolution import ConvolutionAttributes, Window, channels_first, convolved
from mo_loop.frontend.ops.images.convolution import channels_last as to_channels_last
from mo_loop.frontend.ops.linear import array_of
from mo_loop.frontend.ops.shared import ranked
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph import ElementType, assume_fixed, bf16, f16, f32, from_onnx, now, string, u8, u32
from mo_loop.ops.exact import aligned, as_float, centred, centred_weights, integer_product, largest_sum
from mo_loop.ops.ranges import AtLeast2, NotNegative, One, Vector
from mo_loop.target import ERROR, NEVER, Gap, Processor

NEGATED = "the numbers and the scales are negated"
AVOIDS = (
    Gap(
        "reciprocal-divide",
        "f32 `Divide` multiplies by the reciprocal: quotients can be one unit off before a rounding", "exact steps",
        rule="translator of QuantizeLinear",
    ),
    Gap(
        "fake-quantize-of-16-bits", "a `FakeQuantize` of 65,536 levels is removed, and with it the limits of its range",
        "`Round`, `Clamp` and `Convert`", since="2026.1.0", rule="translator of QuantizeLinear",
    ),
    Gap(
        "weights-scaled-by-row",
        "`MatMul` with 4- or 8-bit weights whose scales or zero points vary along the axis that is summed gives "
        "wrong numbers, or ends the process", NEGATED, since="2025.0.0", on={Processor.SSE41: NEVER},
        rule="translator of DequantizeLinear",
    ),
    Gap(
        "weights-in-blocks-of-columns",
        "`MatMul` with 4- or 8-bit weights in blocks along the axis that is not summed does not compile", NEGATED,
        ERROR, since="2025.2.0", rule="translator of DequantizeLinear",
    ),
    Gap(
        "table-scaled-by-column",
        "`Gather` of rows of a 4- or 8-bit table whose scales or zero points vary along the columns gives wrong "
        "numbers, or ends the process", NEGATED, rule="translator of DequantizeLinear",
    ),
    Gap(
        "transposed-filters-with-zero-points",
        "`ConvolutionBackpropData` of 8-bit activations limits filters to i8 after it subtracts their zero points",
        "i8 without zero points if the numbers fit, else the numbers and the scales are negated",
        rule="translator of DequantizeLinear",
    ),
)
"""The errors of the runtime that these translators avoid."""


IN_F32 = {"precision": f32.onnx}
"""Before opset 23, ONNX does not define the type of the quotient; it is f32, as in ONNX Runtime."""


@translates(
    "QuantizeLinear", since=1, domain=MICROSOFT, without="block_size output_dtype saturate", defaults={"axis": None},
    fixed=IN_F32,
)
@translates("QuantizeLinear", since=10, without="axis block_size output_dtype saturate", fixed=IN_F32)
@translates("QuantizeLinear", since=13, without="block_size output_dtype saturate", fixed=IN_F32)
@translates("QuantizeLinear", since=19, without="block_size output_dtype", fixed=IN_F32)
@translates("QuantizeLinear", since=21, fixed=IN_F32)
@translates("QuantizeLinear", since=23, one_rank="x")
def quantize(
    x, y_scale, y_zero_point=None, *, axis: int | None = 1, block_size: NotNegative = 0, output_dtype: int = 0,
    precision: int = 0, saturate: int = 1,
):
    """One scale for all, one for each slice along an axis, or one for each block of elements along it; without an axis
    there is one scale.

    Only float8 uses `saturate`. The quotient has the type `precision`, or that of the scale.
    """
    to = y_zero_point.dtype if y_zero_point is not None else from_onnx(output_dtype) if output_dtype else u8
    if to.precision is None:
        raise UnsupportedError(f"quantisation to {to}: the IR does not have this type", code="ML301")
    _require_rank(x, y_scale, y_zero_point, block_size)
    kind = from_onnx(precision) if precision else y_scale.dtype
    return ops.Quantize(
        x, y_scale, unless_zero(y_zero_point), to=to, axis=1 if axis is None else axis, block_size=block_size,
        saturate=bool(saturate), precision=kind if kind in (f16, bf16) and to.is_integer else f32,
    )


def _require_rank(x: Value, scale: Value, zero_point: Value | None, block_size: int) -> None:
    vectors = [each.type.dims[0] for each in (scale, zero_point) if each is not None and each.rank == 1]
    assume_fixed(size for size in vectors if now(size) == 1)  # one number is not along the axis
    is_one = scale.rank == 0 or (scale.shape == (1,) and not block_size)
    if not is_one:
        ranked(x)


def unless_zero(zero_point: Value | None) -> Value | None:
    """The zero point; None if it is 0."""
    if zero_point is not None and zero_point.dtype is string:
        raise ModelError("the zero point is a string", code="ML235")
    array = array_of(zero_point)
    return None if array is not None and not np.any(array.astype(np.float32)) else zero_point


@translates("DynamicQuantizeLinear", since=11)
def dynamic_quantize(x):
    """The scale is computed from the range of the elements and 0; it is 1 if all elements are 0."""
    return ops.DynamicQuantize(x)


@translates("DequantizeLinear", since=1, domain=MICROSOFT, without="block_size output_dtype", defaults={"axis": None})
@translates("DequantizeLinear", since=10, without="axis block_size output_dtype")
@translates("DequantizeLinear", since=13, without="block_size output_dtype")
@translates("DequantizeLinear", since=21, without="output_dtype")
@translates("DequantizeLinear", since=23, one_rank="x")
def dequantize(
    x, x_scale, x_zero_point=None, *, axis: int | None = 1, block_size: NotNegative = 0, output_dtype: int = 0
):
    """One scale for all, one for each slice along an axis, or one for each block of elements along it; without an axis
    there is one scale."""
    _require_rank(x, x_scale, x_zero_point, block_size)
    to, at = from_onnx(output_dtype) if output_dtype else x_scale.dtype, 1 if axis is None else axis
    return ops.Dequantize(x, x_scale, unless_zero(x_zero_point), to=to, axis=at, block_size=block_size)


# -- the same of com.amd.quark

QUARK = "com.amd.quark"


@translates("ExtendedQuantizeLinear", since=1, domain=QUARK)
def quark_quantize(x, y_scale, y_zero_point=None, *, axis: int = 1):
    """ONNX's formula; the documentation and the kernels agree on integers of 8 and 16 bits."""
    _require_integers_of_quark(y_zero_point, 8, 16)
    return quantize(x, y_scale, y_zero_point, axis=axis, precision=f32.onnx)


@translates("ExtendedDequantizeLinear", since=1, domain=QUARK)
def quark_dequantize(x, x_scale, x_zero_point=None, *, axis: int = 1):
    """ONNX's formula for integers; those of a bias, of 32 bits, have no zero point."""
    zero = unless_zero(x_zero_point)
    _require_integers_of_quark(x, 8, 16, 32 if zero is None else 16)
    return ops.Dequantize(x, x_scale, zero, to=x_scale.dtype, axis=axis)


def _require_integers_of_quark(value: Value | None, *bits: int) -> None:
    kind = value.dtype if value is not None else u8
    if kind.is_float:
        raise UnsupportedError(
            f"quantisation to {kind}: the runtime computes such tensors in f32, so that nothing would be rounded",
            code="ML317", hint="quantise the model to integers of 8 or 16 bits",
        )
    if kind is u32 or kind.bits not in bits:
        raise UnsupportedError(
            f"quantisation to {kind}: f32, in which the runtime computes, has not all of these integers", code="ML317",
            hint="quantise the model to integers of 8 or 16 bits",
        )


@translates("ConvInteger", since=10, one_rank="x w")
def conv_integer(x: AtLeast2, w: AtLeast2, x_zero_point=None, w_zero_point=None, *, given: ConvolutionAttributes):
    """In i32."""
    return integer_convolution(x, w, x_zero_point, w_zero_point, given.group, given.at(x, w))


def integer_convolution(
    x: Value, w: Value, x_zero: Value | None, w_zero: Value | None, group: int, at: Window
) -> Value:
    x_zero, w_zero = unless_zero(x_zero), unless_zero(w_zero)
    largest = None if w.rank is None else largest_sum(w, w_zero, 0, range(1, w.rank))
    product = partial(convolved, group=group, at=at)
    return integer_product(centred(x, x_zero, 1), centred_weights(w, w_zero, 0), product, largest)


@translates("MatMulInteger", since=10)
def mat_mul_integer(a, b, a_zero_point=None, b_zero_point=None):
    """In i32. The zero points may be one for each row of a and one for each column of b."""
    return ops.IntegerMatMul(a, b, unless_zero(a_zero_point), unless_zero(b_zero_point))


@translates("QLinearConv", since=1, domain=MICROSOFT)
@translates("QLinearConv", since=10, without="channels_last", one_rank="x w")
def qlinear_conv(
    x: AtLeast2, x_scale: One, x_zero_point: One, w: AtLeast2, w_scale, w_zero_point, y_scale: One, y_zero_point: One,
    b: Vector = None, *, channels_last: int = 0, given: ConvolutionAttributes,
):
    """The bias is of type i32; its scale is x_scale * w_scale. With `channels_last` the channels of x and y are their
    last axis."""
    x = channels_first(x) if channels_last else x
    at, group = given.at(x, w), given.group
    numbers = convolved(real(x, x_scale, x_zero_point, 1), real(w, w_scale, w_zero_point, 0), group, at)
    integers = integer_convolution(x, w, x_zero_point, w_zero_point, group, at)
    factor = as_float(x_scale) * as_float(w_scale)
    if b is not None:
        by_channel = [1, -1, *[1] * at.count]
        numbers = numbers + ops.Reshape(real(b, factor, None, 0), by_channel)
        integers = integers + ops.Reshape(b, by_channel)
    factor = aligned(numbers, factor, 1)
    y = requantized(numbers, integers, factor, y_scale, y_zero_point, 1, y_zero_point.dtype)
    return to_channels_last(y) if channels_last else y


@translates("QLinearMatMul", since=10)
def qlinear_mat_mul_10(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    """The scales may be one for each row of a and one for each column of b."""
    if any(each.dtype.is_float for each in (a, b)):
        raise UnsupportedError("QLinearMatMul of float8", code="ML316", hint="use DequantizeLinear and MatMul")
    numbers = real(a, a_scale, a_zero_point, -2) @ real(b, b_scale, b_zero_point, -1)
    integers = ops.IntegerMatMul(a, b, unless_zero(a_zero_point), unless_zero(b_zero_point))
    factor = as_float(aligned(a, a_scale, within(-2, a))) * as_float(aligned(b, b_scale, -1))
    return requantized(numbers, integers, factor, y_scale, y_zero_point, -2, y_zero_point.dtype)


def real(x: Value, scale: Value, zero_point: Value | None, axis: int) -> Value:
    """The dequantised values of the integers x, in f32."""
    return ops.Dequantize(x, as_float(scale), unless_zero(zero_point), to=f32, axis=within(axis, x))


def requantized(
    numbers: Value, integers: Value, factor: Value, scale: Value, zero_point: Value | None, axis: int,
    to: ElementType, *, rounds_sum: bool = False,
) -> Value:
    """`numbers` quantised; they are `integers` * `factor`, where the integers are exact."""
    axis = within(axis, numbers)
    exact = as_float(integers) * (factor / as_float(aligned(numbers, scale, axis)))
    zero = unless_zero(zero_point)
    return ops.Quantize(numbers, as_float(scale), zero, exact, to=to, axis=axis, rounds_sum=rounds_sum)


def within(axis: int, x: Value) -> int:
    """An axis of x: a vector has one."""
    return -1 if x.rank == 1 else axis
