"""Quantised tensors: FakeQuantize of the IR, and Quantize and Dequantize, which passes lower."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.errors import TypeError_
from mo_loop.graph import Value, broadcast, normalise_axis, require_computable
from mo_loop.graph.types import ElementType, TensorType, f8e4m3, f8e5m2, f32, i32, u8
from mo_loop.ops.base import Constant, Elementwise, Op
from mo_loop.ops.linear import product_shape
from mo_loop.ops.values import range_of

Array = np.ndarray[Any, Any]

LARGEST = {f8e4m3: 448.0, f8e5m2: 57344.0}
"""The largest finite values of the 8-bit floating-point types."""

MOST_OF_PAIR = 128
"""The largest |a + b| with which 255 * a + 255 * b fits into 16 bits."""

PAIRS_AT_ONCE = 1 << 14
"""Weights that are searched for such pairs at once."""


def limits(dtype: ElementType) -> tuple[int, int]:
    """The least and the largest value of an integer type of less than 32 bits."""
    least, most = range_of(dtype)
    if most is None:
        raise TypeError_(f"a tensor cannot be quantised to {dtype}", code="ML235")
    return int(least), most


def require_parameters(x: TensorType, parameters: Sequence[TensorType | None], axis: int, block_size: int) -> None:
    """Raise TypeError_ unless each scale or zero point is a scalar, a vector along the axis, or of the rank of x."""
    for each in parameters:
        if each is None or each.shape is None or x.shape is None or len(each.shape) in (0, len(x.shape)):
            continue
        if block_size or len(each.shape) != 1:
            raise TypeError_(f"the scale or zero point {each} does not fit {x}", code="ML235")
        size, own = x.shape[normalise_axis(axis, len(x.shape))], each.shape[0]
        if isinstance(size, int) and isinstance(own, int) and own not in (1, size):
            raise TypeError_(f"the scale or zero point {each} does not fit {x} along axis {axis}", code="ML235")


class Quantize(Op, keeps_axes=True):
    """y = clamp(round(x / scale) + zero point) in the type `to`, halves to even. As QuantizeLinear-23 of ONNX.

    With `rounds_sum` y = clamp(round(x / scale + zero point)), as some kernels of ONNX Runtime compute it: halves
    differ by one step if the zero point is odd.

    The scale and the zero point are one number, one number for each slice along `axis` (with a `block_size`, for each
    block of so many elements along it), or tensors of the rank of x. `exact` is x / scale computed from integers, where
    ONNX demands it (QLinearConv, QLinearMatMul): it replaces the quotient if the node is lowered to simple operations.
    `precision` is the type to which the quotient is rounded before it is rounded to an integer.
    """

    to: ElementType
    axis: int = 1
    block_size: int = 0
    saturate: bool = True
    precision: ElementType = f32
    rounds_sum: bool = False

    def infer(self, x, scale, zero_point=None, exact=None):
        require_parameters(x, (scale, zero_point), self.axis, self.block_size)
        return TensorType(self.to, x.shape)

    def evaluate(self, *inputs):
        x, scale, zero = (*inputs, None)[:3]
        if self.to.bits > 16 or len(inputs) > 3:
            return NotImplemented
        quotient = x.astype(np.float32) / spread(scale, self.axis, x.shape, self.block_size).astype(np.float32)
        if self.to.is_float:
            largest = LARGEST.get(self.to, np.inf) if self.saturate else np.inf
            return np.clip(quotient, -largest, largest).astype(self.to.numpy)
        divided = quotient.astype(self.precision.numpy).astype(np.float32)
        place = 0 if zero is None else spread(zero, self.axis, x.shape, self.block_size).astype(np.float32)
        y = np.rint(divided + place) if self.rounds_sum else np.rint(divided) + place
        return np.clip(np.nan_to_num(y, posinf=np.inf), *limits(self.to)).astype(self.to.numpy)


class Dequantize(Op, keeps_axes=True):
    """y = (x - zero point) * scale in the type `to`. As DequantizeLinear-23 of ONNX; attributes as in Quantize.

    The runtime sees an `expanded` constant as one of the type `to`: if it recognises weights of 8 bits, it may round
    the other factor of the product. A `divided` stack of matrices [B, K, N] is written as [B, 1, K, N], and reshaped.
    """

    to: ElementType = f32
    axis: int = 1
    block_size: int = 0
    expanded: bool = False
    divided: bool = False

    def infer(self, x, scale, zero_point=None):
        require_parameters(x, (scale, zero_point), self.axis, self.block_size)
        return TensorType(self.to, x.shape)


class DynamicQuantize(Op):
    """Integers of u8, their scale and zero point, from the range of x and 0. As DynamicQuantizeLinear-11 of ONNX."""

    def infer(self, x):
        return TensorType(u8, x.shape), TensorType(f32, ()), TensorType(u8, ())


class IntegerMatMul(Op):
    """(a - zero point of a) x (b - zero point of b) in i32. As MatMulInteger-10 of ONNX."""

    def infer(self, a, b, a_zero_point=None, b_zero_point=None):
        if a.shape is None or b.shape is None:
            return TensorType(i32, None)
        self.require(a.shape and b.shape, "a scalar has no rows and columns")
        return TensorType(i32, product_shape(a.shape, b.shape))


class RoundedOrExact(Op, keeps_axes=True):
    """One value computed in two ways: `rounded`, which is faster, and `exact`. The mode of quantisation selects one.

    They may differ by a rounding error. An integer that nodes other than Convert read is `exact`.
    """

    def infer(self, rounded, exact):
        return exact


class FakeQuantize(Elementwise, opset=1):
    """x clamped to a range and rounded to `levels` values in it, mapped to another range. Spec: FakeQuantize-1."""

    levels: int
    auto_broadcast: str = "numpy"

    def infer(self, x, input_low, input_high, output_low, output_high):
        broadcast(x.shape, *(each.shape for each in (input_low, input_high, output_low, output_high)))
        return x


def quantised_constant(value: Value) -> Constant | None:
    """The constant of at most 8 bits that weights are decompressed from; None if `value` is something else."""
    decompressing = (ops.Reshape, ops.Transpose, ops.Multiply, ops.Subtract, ops.Add, ops.Negative, ops.Convert)
    node = value.node
    while isinstance(node, decompressing) and node.inputs[0] is not None:
        node = node.inputs[0].node
    is_narrow = isinstance(node, Constant) and node.output.type.dtype.bits <= 8
    return node if is_narrow and isinstance(node, Constant) else None


def pairs_exceed(columns: Array) -> bool:
    """Whether two weights of one sign in one of `columns` [N, K] sum to more than MOST_OF_PAIR in size.

    Processors without VNNI add two products of u8 and s8 in 16 bits: such a sum saturates.
    """
    step = max(1, PAIRS_AT_ONCE // max(1, columns.shape[1]))  # most weights that exceed do so in the first columns
    pieces = (columns[start : start + step].astype(np.int16) for start in range(0, len(columns), step))
    return any(_has_pair(signed) for each in pieces for signed in (each, -each))


def _has_pair(columns: Array) -> bool:
    if columns.shape[1] < 2 or 2 * columns.max() <= MOST_OF_PAIR:
        return False
    return bool(np.partition(columns, -2)[:, -2:].clip(0).sum(1).max() > MOST_OF_PAIR)


def spread(parameter: Array, axis: int, shape: Sequence[int], block_size: int = 0) -> Array:
    """A scale or zero point of a tensor of `shape`, with the rank of the tensor."""
    if block_size and parameter.size > 1:
        at = normalise_axis(axis, len(shape))
        require_computable(shape[at])
        if parameter.ndim <= at or parameter.shape[at] * block_size < shape[at]:
            raise TypeError_(f"parameters {parameter.shape} do not fit blocks of {block_size} in {shape}", code="ML235")
        return np.take(parameter, np.arange(shape[at]) // block_size, at)
    if parameter.ndim == len(shape):
        return parameter
    if parameter.size == 1:
        return parameter.reshape([1] * len(shape))
    at = normalise_axis(axis, len(shape))
    return parameter.reshape([parameter.size if each == at else 1 for each in range(len(shape))])
