"""Operators on tensors of 8 bits that have one scale and one zero point: the numbers are computed and quantised again.

    y = clamp(round(f((x - x_zero_point) * x_scale) / y_scale) + y_zero_point)

The kernels for QLinearAdd, QLinearMul and QLinearAveragePool round after adding the zero point (`rounds_sum`).
"""

from dataclasses import replace
from typing import Any

from mo_loop.frontend.ops.elementwise.activation import flattened, leaky_relu, softmax
from mo_loop.frontend.ops.images.channels import channels_first
from mo_loop.frontend.ops.images.channels import channels_last as to_channels_last
from mo_loop.frontend.ops.images.pooling import averaged, global_average_pool, spatial_axes
from mo_loop.frontend.ops.images.windows import WindowAttributes
from mo_loop.frontend.ops.quantization.quantization import dequantize, quantize, real, requantized, unless_zero
from mo_loop.frontend.ops.weight_layout import reshaped
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, Value, ops, translates
from mo_loop.graph.dimension import now
from mo_loop.graph.shape import assume_fixed
from mo_loop.graph.types import ElementType
from mo_loop.ops.base import Constant
from mo_loop.ops.exact import as_float, centred
from mo_loop.ops.lengths import scalar
from mo_loop.ops.ranges import AtLeast3, Needed, One, Positives

Ints = tuple[int, ...]


@translates("QuantizeLinear", since=1, domain=MICROSOFT)
def contrib_quantize(x, y_scale, y_zero_point=None, *, axis: int | None = None):
    """As ONNX's, for 4 to 16 bits. Without an axis there is one scale."""
    return quantize(x, y_scale, y_zero_point, axis=1 if axis is None else axis)


@translates("DequantizeLinear", since=1, domain=MICROSOFT)
def contrib_dequantize(x, x_scale, x_zero_point=None, *, axis: int | None = None):
    """As ONNX's, for 4 to 32 bits. Without an axis there is one scale."""
    return dequantize(x, x_scale, x_zero_point, axis=1 if axis is None else axis)


def one(parameter: Value | None) -> Any:
    """A scale or zero point as a scalar; None stays None."""
    if parameter is None or parameter.rank == 0:
        return parameter
    return reshaped(parameter, []) if isinstance(parameter.node, Constant) else scalar(parameter)


def _numbers(x: Value, scale: Value, zero_point: Value | None) -> Value:
    return real(x, one(scale), one(zero_point), 0)


def _quantized(
    x: Value, scale: Value, zero_point: Value | None, to: ElementType, exact: Any = None, *, rounds_sum: bool = False
) -> Value:
    """`exact` is x / scale as the kernel computes it, where that differs from the quotient."""
    parameter: Any = one(scale)
    return ops.Quantize(x, parameter, unless_zero(one(zero_point)), exact, to=to, axis=0, rounds_sum=rounds_sum)


# -- element by element


@translates("QLinearAdd", since=1, domain=MICROSOFT)
def qlinear_add(
    a, a_scale: One, a_zero_point: One = None, b: Needed = None, b_scale: Needed | One = None,
    b_zero_point: One = None, c_scale: Needed | One = None, c_zero_point: One = None,
):  # fmt: skip
    """The sum. The kernel divides the scales, so that halves stay halves: erf(x) + 1 of GELU has many of them."""
    terms = (a, a_scale, a_zero_point), (b, b_scale, b_zero_point)
    total = ops.Add(*(_numbers(*term) for term in terms))
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
):  # fmt: skip
    """The product. That of the integers is exact."""
    numbers = _numbers(a, a_scale, a_zero_point) * _numbers(b, b_scale, b_zero_point)
    integers = centred(a, unless_zero(one(a_zero_point)), 0) * centred(b, unless_zero(one(b_zero_point)), 0)
    factor = one(a_scale) * one(b_scale)
    return requantized(numbers, integers, factor, one(c_scale), one(c_zero_point), 0, a.dtype, rounds_sum=True)


@translates("QLinearSigmoid", since=1, domain=MICROSOFT)
def qlinear_sigmoid(x, x_scale: One, x_zero_point: One = None, y_scale: Needed | One = None, y_zero_point: One = None):
    """1 / (1 + exp(-x))."""
    return _quantized(ops.Sigmoid(_numbers(x, x_scale, x_zero_point)), y_scale, y_zero_point, x.dtype)


@translates("QLinearLeakyRelu", since=1, domain=MICROSOFT)
def qlinear_leaky_relu(
    x, x_scale: One, x_zero_point: One = None, y_scale: Needed | One = None, y_zero_point: One = None, *,
    alpha: float = 0.01,
):  # fmt: skip
    """x, or alpha * x below 0."""
    y = leaky_relu(_numbers(x, x_scale, x_zero_point), alpha=alpha)
    return _quantized(y, y_scale, y_zero_point, x.dtype)


@translates("QLinearWhere", since=1, domain=MICROSOFT)
def qlinear_where(
    condition, x, x_scale: One, x_zero_point: One, y, y_scale: One, y_zero_point: One, z_scale: One,
    z_zero_point: One,
):  # fmt: skip
    """x where the condition is true, else y."""
    chosen = ops.Select(condition, _numbers(x, x_scale, x_zero_point), _numbers(y, y_scale, y_zero_point))
    return _quantized(chosen, z_scale, z_zero_point, x.dtype)


@translates("QLinearConcat", since=1, domain=MICROSOFT)
def qlinear_concat(y_scale: One, y_zero_point: One, *inputs, axis: int):
    """`inputs` are a tensor, its scale and its zero point, for each part."""
    if not inputs or len(inputs) % 3:
        raise ModelError(f"QLinearConcat has {len(inputs)} inputs for its parts, not three for each", code="ML227")
    parts = [_numbers(*inputs[first : first + 3]) for first in range(0, len(inputs), 3)]
    return _quantized(ops.Concat(*parts, axis=axis), y_scale, y_zero_point, y_zero_point.dtype)


# -- along axes


@translates("QLinearSoftmax", since=1, domain=MICROSOFT)
def qlinear_softmax(
    x, x_scale: One, x_zero_point: One = None, y_scale: Needed | One = None, y_zero_point: One = None, *,
    axis: int = -1, opset: int,
):  # fmt: skip
    """Softmax of the `opset`: before 13 over all axes from `axis` on. The kernel multiplies by the whole part of
    1 / y_scale, which is 254 for the f32 that is nearest to 1 / 255."""
    numbers = _numbers(x, x_scale, x_zero_point)
    y = softmax(numbers, axis) if opset >= 13 else flattened(numbers, axis, softmax)
    scale: Any = one(y_scale)
    steps = ops.Floor(1 / as_float(scale))
    return _quantized(y, scale, y_zero_point, x.dtype, y * steps)


@translates("QLinearReduceMean", since=1, domain=MICROSOFT)
def qlinear_reduce_mean(
    data, data_scale: One, data_zero_point: One = None, reduced_scale: Needed | One = None,
    reduced_zero_point: One = None, *, axes: Ints, keepdims: int,
):  # fmt: skip
    """The mean along axes."""
    mean = ops.ReduceMean(_numbers(data, data_scale, data_zero_point), list(axes), keep_dims=bool(keepdims))
    return _quantized(mean, reduced_scale, reduced_zero_point, data.dtype)


@translates("QLinearAveragePool", since=1, domain=MICROSOFT, without="dilations")
def qlinear_average_pool(
    x: AtLeast3, x_scale: One, x_zero_point: One = None, y_scale: Needed | One = None, y_zero_point: One = None, *,
    ceil_mode: int = 0, channels_last: int = 0, count_include_pad: int = 0, kernel_shape: Positives,
    given: WindowAttributes,
):  # fmt: skip
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
    numbers = _numbers(channels_first(x) if channels_last else x, x_scale, x_zero_point)
    y = averaged(numbers, kernel_shape, at, count_include_pad, ceil_mode)
    y = _quantized(y, y_scale, y_zero_point, x.dtype, rounds_sum=True)
    return to_channels_last(y) if channels_last else y


@translates("QLinearGlobalAveragePool", since=1, domain=MICROSOFT)
def qlinear_global_average_pool(
    x: AtLeast3, x_scale: One, x_zero_point: One, y_scale: One, y_zero_point: One, *, channels_last: int = 0,
):  # fmt: skip
    """The mean of each channel. The sum of the integers is exact."""
    x = channels_first(x) if channels_last else x
    axes = spatial_axes(x)
    total = ops.ReduceSum(centred(x, unless_zero(one(x_zero_point)), 0), axes, keep_dims=True)
    count = ops.ReduceProd(ops.Gather(ops.ShapeOf(x), axes, 0), [0], keep_dims=False)
    factor = one(x_scale) / as_float(count)
    numbers = global_average_pool(_numbers(x, x_scale, x_zero_point))
    scale: Any = one(y_scale)
    y = requantized(numbers, total, factor, scale, one(y_zero_point), 0, x.dtype)
    return to_channels_last(y) if channels_last else y
