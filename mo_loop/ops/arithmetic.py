"""Elementwise arithmetic, and cumulative sums."""

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from mo_loop.graph.shape import normalise_axis
from mo_loop.ops import values
from mo_loop.ops.base import Op
from mo_loop.ops.element_kinds import NUMBERS
from mo_loop.ops.infer import elementwise, wide

_NUMBERS = {"a": NUMBERS, "b": NUMBERS}


class Binary(Op, abstract=True):
    """Two tensors of the same element type, broadcast as in numpy."""

    auto_broadcast: Literal["numpy", "none"] = "numpy"

    _rule: ClassVar[Callable[..., Any] | None] = None
    """One value of the result from one of each input; None if shape arithmetic does not use the operation."""
    _numpy: ClassVar[Any] = None

    def infer(self, a, b):
        return elementwise((a, b), rule=type(self)._rule)

    def evaluate(self, *inputs):
        if self._numpy is None:
            return NotImplemented
        with np.errstate(all="ignore"):
            return type(self)._numpy(*inputs)


class Add(Binary, opset=1, types=_NUMBERS):
    """a + b. Spec: Add-1."""

    _rule = staticmethod(values.add)
    _numpy = staticmethod(np.add)


class Subtract(Binary, opset=1, types=_NUMBERS):
    """a - b. Spec: Subtract-1."""

    _rule = staticmethod(values.subtract)
    _numpy = staticmethod(np.subtract)


class Multiply(Binary, opset=1, types=_NUMBERS):
    """a * b. Spec: Multiply-1."""

    _rule = staticmethod(values.multiply)
    _numpy = staticmethod(np.multiply)


class Divide(Binary, opset=1, types=_NUMBERS):
    """a / b. For integers `m_pythondiv` rounds down, else towards zero. Spec: Divide-1."""

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


class FloorMod(Binary, opset=1, types=_NUMBERS):
    """The remainder with the sign of the divisor. Spec: FloorMod-1."""

    _rule = staticmethod(values.remainder_down)

    def evaluate(self, *inputs):
        return np.mod(*inputs) if np.all(inputs[1]) else NotImplemented


class Mod(Binary, opset=1, types=_NUMBERS):
    """The remainder with the sign of the dividend. Spec: Mod-1."""

    _rule = staticmethod(values.remainder)

    def evaluate(self, *inputs):
        return np.fmod(*inputs) if np.all(inputs[1]) else NotImplemented


class Power(Binary, opset=1, types=_NUMBERS):
    """a to the power b. Spec: Power-1."""

    _rule = staticmethod(values.power)
    _numpy = staticmethod(np.power)

    def evaluate(self, *inputs):
        if np.issubdtype(inputs[0].dtype, np.integer) and np.any(inputs[1] < 0):
            return NotImplemented
        return super().evaluate(*inputs)


class Maximum(Binary, opset=1, types=_NUMBERS):
    """The larger of both. Spec: Maximum-1."""

    _rule = staticmethod(values.maximum)
    _numpy = staticmethod(np.maximum)


class Minimum(Binary, opset=1, types=_NUMBERS):
    """The smaller of both. Spec: Minimum-1."""

    _rule = staticmethod(values.minimum)
    _numpy = staticmethod(np.minimum)


class SquaredDifference(Binary, opset=1, types=_NUMBERS):
    """(a - b)^2. Spec: SquaredDifference-1."""

    _numpy = staticmethod(lambda a, b: np.square(a - b))


class Unary(Op, abstract=True):
    """One input; the output has the same type and shape."""

    _rule: ClassVar[Callable[..., Any] | None] = None
    """One value of the result from one of x; None if shape arithmetic does not use the operation."""
    _numpy: ClassVar[Any] = None

    def infer(self, x):
        rule = type(self)._rule
        return x if rule is None or x.known is None else elementwise((x,), rule=rule)

    def evaluate(self, *inputs):
        if self._numpy is None:
            return NotImplemented
        with np.errstate(all="ignore"):
            return np.asarray(type(self)._numpy(inputs[0])).astype(inputs[0].dtype)


class Negative(Unary, opset=1):
    """-x. Spec: Negative-1."""

    _rule = staticmethod(values.negate)
    _numpy = staticmethod(np.negative)


class Abs(Unary, opset=1):
    """|x|. Spec: Abs-1."""

    _rule = staticmethod(values.absolute)
    _numpy = staticmethod(np.abs)


class Ceiling(Unary, opset=1, types={"x": NUMBERS}):
    """x rounded up. Spec: Ceiling-1."""

    _rule = staticmethod(values.same)

    _numpy = staticmethod(np.ceil)


class Floor(Unary, opset=1, types={"x": NUMBERS}):
    """x rounded down. Spec: Floor-1."""

    _rule = staticmethod(values.same)

    _numpy = staticmethod(np.floor)


class Sign(Unary, opset=1):
    """-1, 0 or 1. Spec: Sign-1."""

    _rule = staticmethod(values.sign)
    _numpy = staticmethod(np.sign)


class Sqrt(Unary, opset=1, types={"x": NUMBERS}):
    """The square root. Spec: Sqrt-1."""

    _numpy = staticmethod(np.sqrt)


class Exp(Unary, opset=1, types={"x": NUMBERS}):
    """e^x. Spec: Exp-1."""

    _numpy = staticmethod(np.exp)


class Log(Unary, opset=1, types={"x": NUMBERS}):
    """The natural logarithm. Spec: Log-1."""

    _numpy = staticmethod(np.log)


class Sin(Unary, opset=1, types={"x": NUMBERS}):
    """Spec: Sin-1."""

    _numpy = staticmethod(np.sin)


class Cos(Unary, opset=1, types={"x": NUMBERS}):
    """Spec: Cos-1."""

    _numpy = staticmethod(np.cos)


class Tan(Unary, opset=1, types={"x": NUMBERS}):
    """Spec: Tan-1."""

    _numpy = staticmethod(np.tan)


class Asin(Unary, opset=1, types={"x": NUMBERS}):
    """Spec: Asin-1."""

    _numpy = staticmethod(np.arcsin)


class Acos(Unary, opset=1, types={"x": NUMBERS}):
    """Spec: Acos-1."""

    _numpy = staticmethod(np.arccos)


class Atan(Unary, opset=1, types={"x": NUMBERS}):
    """Spec: Atan-1."""

    _numpy = staticmethod(np.arctan)


class Sinh(Unary, opset=1, types={"x": NUMBERS}):
    """Spec: Sinh-1."""

    _numpy = staticmethod(np.sinh)


class Cosh(Unary, opset=1, types={"x": NUMBERS}):
    """Spec: Cosh-1."""

    _numpy = staticmethod(np.cosh)


class Tanh(Unary, opset=1, types={"x": NUMBERS}):
    """Spec: Tanh-1."""

    _numpy = staticmethod(np.tanh)


class Asinh(Unary, opset=4, types={"x": NUMBERS}):
    """Spec: Asinh-4."""

    _numpy = staticmethod(np.arcsinh)


class Acosh(Unary, opset=4, types={"x": NUMBERS}):
    """Spec: Acosh-4."""

    _numpy = staticmethod(np.arccosh)


class Atanh(Unary, opset=4, types={"x": NUMBERS}):
    """Spec: Atanh-4."""

    _numpy = staticmethod(np.arctanh)


class Erf(Unary, opset=1, types={"x": NUMBERS}):
    """The Gauss error function. Spec: Erf-1."""

    _numpy = staticmethod(np.vectorize(math.erf, otypes=[np.float64]))


class Round(Unary, opset=5):
    """Rounded to the nearest integer, halves to even or away from zero. Spec: Round-5."""

    mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even"

    def evaluate(self, *inputs):
        (x,) = inputs
        if self.mode == "half_to_even":
            return np.rint(x).astype(x.dtype)
        return (np.sign(x) * np.floor(np.abs(x) + 0.5)).astype(x.dtype)


class CumSum(Op, opset=3, index=("axis",)):
    """Cumulative sums along an axis, a scalar input. Spec: CumSum-3."""

    exclusive: bool = False
    reverse: bool = False

    def infer(self, x, axis):
        self.require(axis.shape is None or len(axis.shape) == 0, f"axis of shape {axis.shape}, not a scalar")
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
