"""Functions of elements: arithmetic, comparison, logic, selection, and changes of element type."""

import math
import operator
from typing import Literal

import numpy as np

from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import ElementType, TensorType, boolean
from mo_loop.ops import values
from mo_loop.ops.base import Elementwise, Op
from mo_loop.ops.infer import elementwise, same_dtype, wide
from mo_loop.ops.ranges import FLOATS, INTEGERS, NUMBERS
from mo_loop.ops.values import each, fitting, truth

_NUMBERS = {"a": NUMBERS, "b": NUMBERS}


class Binary(Elementwise, abstract=True):
    """Base of functions of two tensors of the same element type, broadcast as in numpy."""

    auto_broadcast: Literal["numpy", "none"] = "numpy"

    def infer(self, a, b):
        return elementwise((a, b), rule=type(self)._rule)

    def evaluate(self, *inputs):
        if self._numpy is None:
            return NotImplemented
        with np.errstate(all="ignore"):
            return type(self)._numpy(*inputs)


class Add(Binary, opset=1, types=_NUMBERS, rule=operator.add, numpy=np.add):
    """a + b. Spec: Add-1."""


class Subtract(Binary, opset=1, types=_NUMBERS, rule=operator.sub, numpy=np.subtract):
    """a - b. Spec: Subtract-1."""


class Multiply(Binary, opset=1, types=_NUMBERS, rule=values.multiply, numpy=np.multiply):
    """a * b. Spec: Multiply-1."""


class Divide(Binary, opset=1, types=_NUMBERS):
    """a / b. Quotients of integers are rounded down if `m_pythondiv` is set, else towards zero. Spec: Divide-1."""

    m_pythondiv: bool = True

    def infer(self, a, b):
        return elementwise((a, b), rule=values.divide_down if self.m_pythondiv else values.divide)

    def evaluate(self, *inputs):
        a, b = inputs
        with np.errstate(all="ignore"):
            if not np.issubdtype(a.dtype, np.integer):
                return a / b
            if not np.all(b):
                return NotImplemented
            floored = a // b
            if self.m_pythondiv:
                return floored
            return floored + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


class FloorMod(Binary, opset=1, types=_NUMBERS, rule=values.remainder_down):
    """The remainder with the sign of the divisor. Spec: FloorMod-1."""

    def evaluate(self, *inputs):
        return np.mod(*inputs) if np.all(inputs[1]) else NotImplemented


class Mod(Binary, opset=1, types=_NUMBERS, rule=values.remainder):
    """The remainder with the sign of the dividend. Spec: Mod-1."""

    def evaluate(self, *inputs):
        return np.fmod(*inputs) if np.all(inputs[1]) else NotImplemented


class Power(Binary, opset=1, types=_NUMBERS, rule=values.power, numpy=np.power):
    """a to the power b. Spec: Power-1."""

    def evaluate(self, *inputs):
        if np.issubdtype(inputs[0].dtype, np.integer) and np.any(inputs[1] < 0):
            return NotImplemented
        return super().evaluate(*inputs)


class Maximum(Binary, opset=1, types=_NUMBERS, rule=values.maximum, numpy=np.maximum):
    """The larger of both. Spec: Maximum-1."""


class Minimum(Binary, opset=1, types=_NUMBERS, rule=values.minimum, numpy=np.minimum):
    """The smaller of both. Spec: Minimum-1."""


class SquaredDifference(Binary, opset=1, types=_NUMBERS, numpy=lambda a, b: np.square(a - b)):
    """(a - b)^2. Spec: SquaredDifference-1."""


class Unary(Elementwise, abstract=True):
    """Base of functions of one input; the output has the same type and shape."""

    def infer(self, x):
        rule = type(self)._rule
        return x if rule is None or x.known is None else elementwise((x,), rule=rule)

    def evaluate(self, *inputs):
        if self._numpy is None:
            return NotImplemented
        with np.errstate(all="ignore"):
            return np.asarray(type(self)._numpy(inputs[0])).astype(inputs[0].dtype)


class Negative(Unary, opset=1, rule=operator.neg, numpy=np.negative):
    """-x. Spec: Negative-1."""


class Abs(Unary, opset=1, rule=values.absolute, numpy=np.abs):
    """|x|. Spec: Abs-1."""


class Ceiling(Unary, opset=1, types={"x": NUMBERS}, rule=values.same, numpy=np.ceil):
    """x rounded up. Spec: Ceiling-1."""


class Floor(Unary, opset=1, types={"x": NUMBERS}, rule=values.same, numpy=np.floor):
    """x rounded down. Spec: Floor-1."""


class Sign(Unary, opset=1, rule=values.sign, numpy=np.sign):
    """-1, 0 or 1. Spec: Sign-1."""


class Sqrt(Unary, opset=1, types={"x": NUMBERS}, numpy=np.sqrt):
    """The square root. Spec: Sqrt-1."""


class Exp(Unary, opset=1, types={"x": NUMBERS}, numpy=np.exp):
    """e^x. Spec: Exp-1."""


class Log(Unary, opset=1, types={"x": NUMBERS}, numpy=np.log):
    """The natural logarithm. Spec: Log-1."""


class Sin(Unary, opset=1, types={"x": NUMBERS}, numpy=np.sin):
    """The sine of x, in radians. Spec: Sin-1."""


class Cos(Unary, opset=1, types={"x": NUMBERS}, numpy=np.cos):
    """The cosine of x, in radians. Spec: Cos-1."""


class Tan(Unary, opset=1, types={"x": NUMBERS}, numpy=np.tan):
    """The tangent of x, in radians. Spec: Tan-1."""


class Asin(Unary, opset=1, types={"x": NUMBERS}, numpy=np.arcsin):
    """The arc sine of x, in radians. Spec: Asin-1."""


class Acos(Unary, opset=1, types={"x": NUMBERS}, numpy=np.arccos):
    """The arc cosine of x, in radians. Spec: Acos-1."""


class Atan(Unary, opset=1, types={"x": NUMBERS}, numpy=np.arctan):
    """The arc tangent of x, in radians. Spec: Atan-1."""


class Sinh(Unary, opset=1, types={"x": NUMBERS}, numpy=np.sinh):
    """The hyperbolic sine of x. Spec: Sinh-1."""


class Cosh(Unary, opset=1, types={"x": NUMBERS}, numpy=np.cosh):
    """The hyperbolic cosine of x. Spec: Cosh-1."""


class Tanh(Unary, opset=1, types={"x": NUMBERS}, numpy=np.tanh):
    """The hyperbolic tangent of x. Spec: Tanh-1."""


class Asinh(Unary, opset=4, types={"x": NUMBERS}, numpy=np.arcsinh):
    """The inverse hyperbolic sine of x. Spec: Asinh-4."""


class Acosh(Unary, opset=4, types={"x": NUMBERS}, numpy=np.arccosh):
    """The inverse hyperbolic cosine of x. Spec: Acosh-4."""


class Atanh(Unary, opset=4, types={"x": NUMBERS}, numpy=np.arctanh):
    """The inverse hyperbolic tangent of x. Spec: Atanh-4."""


class Erf(Unary, opset=1, types={"x": NUMBERS}, numpy=np.vectorize(math.erf, otypes=[np.float64])):
    """The Gauss error function. Spec: Erf-1."""


class Round(Unary, opset=5):
    """x rounded to the nearest integer, halves to even or away from zero. Spec: Round-5."""

    mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even"

    def evaluate(self, *inputs):
        (x,) = inputs
        if self.mode == "half_to_even":
            return np.rint(x).astype(x.dtype)
        return (np.sign(x) * np.floor(np.abs(x) + 0.5)).astype(x.dtype)


class CumSum(Op, opset=3, index=("axis",), along="axis", keeps_axes=True):
    """Cumulative sums along an axis, which is a scalar input. Spec: CumSum-3."""

    exclusive: bool = False
    reverse: bool = False

    def infer(self, x, axis):
        self.require(axis.shape is None or len(axis.shape) == 0, f"the axis is {axis}, not a scalar")
        if axis.integers is not None and x.shape is not None:
            normalise_axis(axis.integers[0], len(x.shape))
        return x

    def evaluate(self, *inputs):
        x, axis = wide(inputs[0]), int(inputs[1])
        ordered = np.flip(x, axis) if self.reverse else x
        sums = np.cumsum(ordered, axis=axis, dtype=x.dtype)
        if self.exclusive:
            sums = np.roll(sums, 1, axis)
            sums[(slice(None),) * (axis % x.ndim) + (slice(0, 1),)] = 0
        return (np.flip(sums, axis) if self.reverse else sums).astype(inputs[0].dtype)


class Convert(Elementwise, opset=1):
    """The same values in another element type. Spec: Convert-1."""

    destination_type: ElementType

    def infer(self, x):
        to = self.destination_type
        if x.known is None or not (to.is_integer or to is boolean):
            return TensorType(to, x.shape)
        known = each(truth)(x.known) if to is boolean else x.known
        return TensorType(to, x.shape, fitting(known, to))

    def evaluate(self, *inputs):
        with np.errstate(all="ignore"):
            return inputs[0].astype(self.destination_type.numpy)


class Comparison(Binary, abstract=True):
    """Base of comparisons of two tensors of one type; the result is boolean."""

    def infer(self, a, b):
        same_dtype(a, b)
        return elementwise((a, b), boolean, type(self)._rule)


class Equal(Comparison, opset=1, rule=values.equal, numpy=np.equal):
    """a = b. Spec: Equal-1."""


class NotEqual(Comparison, opset=1, rule=values.differ, numpy=np.not_equal):
    """a != b. Spec: NotEqual-1."""


class Greater(Comparison, opset=1, rule=values.greater, numpy=np.greater):
    """a > b. Spec: Greater-1."""


class GreaterEqual(Comparison, opset=1, rule=values.greater_equal, numpy=np.greater_equal):
    """a >= b. Spec: GreaterEqual-1."""


class Less(Comparison, opset=1, rule=values.less, numpy=np.less):
    """a < b. Spec: Less-1."""


class LessEqual(Comparison, opset=1, rule=values.less_equal, numpy=np.less_equal):
    """a <= b. Spec: LessEqual-1."""


class LogicalBinary(Binary, abstract=True):
    """Base of functions of two tensors of booleans."""

    def infer(self, a, b):
        self.require(a.dtype is boolean and b.dtype is boolean, "the inputs are not boolean")
        return super().infer(a, b)


class LogicalAnd(LogicalBinary, opset=1, rule=values.minimum, numpy=np.logical_and):
    """Whether a and b are true. Spec: LogicalAnd-1."""


class LogicalOr(LogicalBinary, opset=1, rule=values.maximum, numpy=np.logical_or):
    """Whether a or b is true. Spec: LogicalOr-1."""


class LogicalXor(LogicalBinary, opset=1, rule=values.differ, numpy=np.logical_xor):
    """Whether one of a and b is true, not both. Spec: LogicalXor-1."""


class LogicalNot(Unary, opset=1, rule=values.invert, numpy=np.logical_not):
    """Whether x is false. Spec: LogicalNot-1."""

    def infer(self, x):
        self.require(x.dtype is boolean, f"the input is {x.dtype}, not boolean")
        return super().infer(x)


class Bitwise(Binary, abstract=True):
    """Base of functions of two tensors of integers or booleans."""

    def infer(self, a, b):
        self.require(a.dtype.is_integer or a.dtype is boolean, f"the input is {a.dtype}, not integers")
        return super().infer(a, b)


class BitwiseAnd(Bitwise, opset=13, numpy=np.bitwise_and):
    """a & b. Spec: BitwiseAnd-13."""


class BitwiseOr(Bitwise, opset=13, numpy=np.bitwise_or):
    """a | b. Spec: BitwiseOr-13."""


class BitwiseXor(Bitwise, opset=13, numpy=np.bitwise_xor):
    """a ^ b. Spec: BitwiseXor-13."""


class BitwiseNot(Unary, opset=13, numpy=np.bitwise_not):
    """~x. Spec: BitwiseNot-13."""


class BitwiseLeftShift(Bitwise, opset=15, types={"a": INTEGERS}, numpy=np.left_shift):
    """a << b. Spec: BitwiseLeftShift-15."""


class BitwiseRightShift(Bitwise, opset=15, types={"a": INTEGERS}, numpy=np.right_shift):
    """a >> b. Spec: BitwiseRightShift-15."""


class Select(Elementwise, opset=1):
    """`then` where the condition holds, `otherwise` elsewhere. Spec: Select-1."""

    auto_broadcast: str = "numpy"

    def infer(self, condition, then, otherwise):
        self.require(condition.dtype is boolean, f"the condition is {condition.dtype}, not boolean")
        return elementwise((condition, then, otherwise), same_dtype(then, otherwise), values.choose)

    def evaluate(self, *inputs):
        return np.where(*inputs)


class Classification(Elementwise, abstract=True):
    """Base of tests of each number; the result is boolean."""

    def infer(self, x):
        return TensorType(boolean, x.shape)

    def evaluate(self, *inputs):
        return type(self)._numpy(inputs[0])


class IsNaN(Classification, opset=10, types={"x": FLOATS}, numpy=np.isnan):
    """Whether a number is NaN. Spec: IsNaN-10."""


class IsInf(Classification, opset=10, types={"x": FLOATS}):
    """Whether a number is infinite, with the signs that the attributes select. Spec: IsInf-10."""

    detect_negative: bool = True
    detect_positive: bool = True

    def evaluate(self, *inputs):
        (x,) = inputs
        return np.isinf(x) & (((x < 0) & self.detect_negative) | ((x > 0) & self.detect_positive))


class IsFinite(Classification, opset=10, types={"x": FLOATS}, numpy=np.isfinite):
    """Whether a number is neither infinite nor NaN. Spec: IsFinite-10."""
