"""Functions of elements: arithmetic, comparison, logic, selection, and changes of element type."""

import math
import operator
from functools import partial
from typing import Literal

import numpy as np

from mo_loop.graph import ElementType, TensorType, boolean, normalise_axis
from mo_loop.ops import values
from mo_loop.ops.base import Elementwise, Op, operation
from mo_loop.ops.infer import elementwise, same_dtype, wide
from mo_loop.ops.ranges import FLOATS, INTEGERS, NUMBERS
from mo_loop.ops.values import each, fitting, truth

_of, _X, _NUMBERS = partial(operation, module=__name__), {"x": NUMBERS}, {"a": NUMBERS, "b": NUMBERS}


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


Add = _of("Add-1", "a + b.", Binary, types=_NUMBERS, rule=operator.add, numpy=np.add)
Subtract = _of("Subtract-1", "a - b.", Binary, types=_NUMBERS, rule=operator.sub, numpy=np.subtract)
Multiply = _of("Multiply-1", "a * b.", Binary, types=_NUMBERS, rule=values.multiply, numpy=np.multiply)


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
            return floored if self.m_pythondiv else floored + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


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


Maximum = _of("Maximum-1", "The larger of both.", Binary, types=_NUMBERS, rule=values.maximum, numpy=np.maximum)
Minimum = _of("Minimum-1", "The smaller of both.", Binary, types=_NUMBERS, rule=values.minimum, numpy=np.minimum)
SquaredDifference = _of(
    "SquaredDifference-1", "(a - b)^2.", Binary, types=_NUMBERS, numpy=lambda a, b: np.square(a - b),
)


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


Negative = _of("Negative-1", "-x.", Unary, rule=operator.neg, numpy=np.negative)
Abs = _of("Abs-1", "|x|.", Unary, rule=values.absolute, numpy=np.abs)
Ceiling = _of("Ceiling-1", "x rounded up.", Unary, types=_X, rule=values.same, numpy=np.ceil)
Floor = _of("Floor-1", "x rounded down.", Unary, types=_X, rule=values.same, numpy=np.floor)
Sign = _of("Sign-1", "-1, 0 or 1.", Unary, rule=values.sign, numpy=np.sign)
Sqrt = _of("Sqrt-1", "The square root.", Unary, types=_X, numpy=np.sqrt)
Exp = _of("Exp-1", "e^x.", Unary, types=_X, numpy=np.exp)
Log = _of("Log-1", "The natural logarithm.", Unary, types=_X, numpy=np.log)
Sin = _of("Sin-1", "The sine of x, in radians.", Unary, types=_X, numpy=np.sin)
Cos = _of("Cos-1", "The cosine of x, in radians.", Unary, types=_X, numpy=np.cos)
Tan = _of("Tan-1", "The tangent of x, in radians.", Unary, types=_X, numpy=np.tan)
Asin = _of("Asin-1", "The arc sine of x, in radians.", Unary, types=_X, numpy=np.arcsin)
Acos = _of("Acos-1", "The arc cosine of x, in radians.", Unary, types=_X, numpy=np.arccos)
Atan = _of("Atan-1", "The arc tangent of x, in radians.", Unary, types=_X, numpy=np.arctan)
Sinh = _of("Sinh-1", "The hyperbolic sine of x.", Unary, types=_X, numpy=np.sinh)
Cosh = _of("Cosh-1", "The hyperbolic cosine of x.", Unary, types=_X, numpy=np.cosh)
Tanh = _of("Tanh-1", "The hyperbolic tangent of x.", Unary, types=_X, numpy=np.tanh)
Asinh = _of("Asinh-4", "The inverse hyperbolic sine of x.", Unary, types=_X, numpy=np.arcsinh)
Acosh = _of("Acosh-4", "The inverse hyperbolic cosine of x.", Unary, types=_X, numpy=np.arccosh)
Atanh = _of("Atanh-4", "The inverse hyperbolic tangent of x.", Unary, types=_X, numpy=np.arctanh)
Erf = _of("Erf-1", "The Gauss error function.", Unary, types=_X, numpy=np.vectorize(math.erf, otypes=[np.float64]))


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


Equal = _of("Equal-1", "a = b.", Comparison, rule=values.equal, numpy=np.equal)
NotEqual = _of("NotEqual-1", "a != b.", Comparison, rule=values.differ, numpy=np.not_equal)
Greater = _of("Greater-1", "a > b.", Comparison, rule=values.greater, numpy=np.greater)
GreaterEqual = _of("GreaterEqual-1", "a >= b.", Comparison, rule=values.greater_equal, numpy=np.greater_equal)
Less = _of("Less-1", "a < b.", Comparison, rule=values.less, numpy=np.less)
LessEqual = _of("LessEqual-1", "a <= b.", Comparison, rule=values.less_equal, numpy=np.less_equal)


class LogicalBinary(Binary, abstract=True):
    """Base of functions of two tensors of booleans."""

    def infer(self, a, b):
        self.require(a.dtype is boolean and b.dtype is boolean, "the inputs are not boolean")
        return super().infer(a, b)


LogicalAnd = _of("LogicalAnd-1", "Whether a and b are true.", LogicalBinary, rule=values.minimum, numpy=np.logical_and)
LogicalOr = _of("LogicalOr-1", "Whether a or b is true.", LogicalBinary, rule=values.maximum, numpy=np.logical_or)
LogicalXor = _of(
    "LogicalXor-1", "Whether one of a and b is true, not both.", LogicalBinary, rule=values.differ,
    numpy=np.logical_xor,
)


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


BitwiseAnd = _of("BitwiseAnd-13", "a & b.", Bitwise, numpy=np.bitwise_and)
BitwiseOr = _of("BitwiseOr-13", "a | b.", Bitwise, numpy=np.bitwise_or)
BitwiseXor = _of("BitwiseXor-13", "a ^ b.", Bitwise, numpy=np.bitwise_xor)
BitwiseNot = _of("BitwiseNot-13", "~x.", Unary, numpy=np.bitwise_not)
BitwiseLeftShift = _of("BitwiseLeftShift-15", "a << b.", Bitwise, types={"a": INTEGERS}, numpy=np.left_shift)
BitwiseRightShift = _of("BitwiseRightShift-15", "a >> b.", Bitwise, types={"a": INTEGERS}, numpy=np.right_shift)


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


IsNaN = _of("IsNaN-10", "Whether a number is NaN.", Classification, types={"x": FLOATS}, numpy=np.isnan)


class IsInf(Classification, opset=10, types={"x": FLOATS}):
    """Whether a number is infinite, with the signs that the attributes select. Spec: IsInf-10."""

    detect_negative: bool = True
    detect_positive: bool = True

    def evaluate(self, *inputs):
        (x,) = inputs
        return np.isinf(x) & (((x < 0) & self.detect_negative) | ((x > 0) & self.detect_positive))


IsFinite = _of(
    "IsFinite-10", "Whether a number is neither infinite nor NaN.", Classification, types={"x": FLOATS},
    numpy=np.isfinite,
)
