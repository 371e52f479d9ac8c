"""Operations of comparison, logic, bits and selection."""

from typing import Any, ClassVar

import numpy as np

from mo_loop.graph.types import TensorType, boolean
from mo_loop.ops import values
from mo_loop.ops.arithmetic import Binary, Unary
from mo_loop.ops.base import Op
from mo_loop.ops.element_kinds import FLOATS, INTEGERS
from mo_loop.ops.infer import elementwise, same_dtype


class Comparison(Binary, abstract=True):
    """Comparison of two tensors of one type; the result is boolean."""

    def infer(self, a, b):
        same_dtype(a, b)
        return elementwise((a, b), boolean, type(self)._rule)


class Equal(Comparison, opset=1):
    """Spec: Equal-1."""

    _rule = staticmethod(values.equal)
    _numpy = staticmethod(np.equal)


class NotEqual(Comparison, opset=1):
    """Spec: NotEqual-1."""

    _rule = staticmethod(values.differ)
    _numpy = staticmethod(np.not_equal)


class Greater(Comparison, opset=1):
    """Spec: Greater-1."""

    _rule = staticmethod(values.greater)
    _numpy = staticmethod(np.greater)


class GreaterEqual(Comparison, opset=1):
    """Spec: GreaterEqual-1."""

    _rule = staticmethod(values.greater_equal)
    _numpy = staticmethod(np.greater_equal)


class Less(Comparison, opset=1):
    """Spec: Less-1."""

    _rule = staticmethod(values.less)
    _numpy = staticmethod(np.less)


class LessEqual(Comparison, opset=1):
    """Spec: LessEqual-1."""

    _rule = staticmethod(values.less_equal)
    _numpy = staticmethod(np.less_equal)


class LogicalBinary(Binary, abstract=True):
    """Two tensors of booleans."""

    def infer(self, a, b):
        self.require(a.dtype is boolean and b.dtype is boolean, "inputs are not boolean")
        return super().infer(a, b)


class LogicalAnd(LogicalBinary, opset=1):
    """Spec: LogicalAnd-1."""

    _rule = staticmethod(values.both)
    _numpy = staticmethod(np.logical_and)


class LogicalOr(LogicalBinary, opset=1):
    """Spec: LogicalOr-1."""

    _rule = staticmethod(values.either)
    _numpy = staticmethod(np.logical_or)


class LogicalXor(LogicalBinary, opset=1):
    """Spec: LogicalXor-1."""

    _rule = staticmethod(values.differ)
    _numpy = staticmethod(np.logical_xor)


class LogicalNot(Unary, opset=1):
    """Spec: LogicalNot-1."""

    _rule = staticmethod(values.invert)
    _numpy = staticmethod(np.logical_not)

    def infer(self, x):
        self.require(x.dtype is boolean, f"{x.dtype} is not boolean")
        return super().infer(x)


class Bitwise(Binary, abstract=True):
    """Two tensors of integers or booleans."""

    def infer(self, a, b):
        self.require(a.dtype.is_integer or a.dtype is boolean, f"{a.dtype} is not of integers")
        return super().infer(a, b)


class BitwiseAnd(Bitwise, opset=13):
    """Spec: BitwiseAnd-13."""

    _numpy = staticmethod(np.bitwise_and)


class BitwiseOr(Bitwise, opset=13):
    """Spec: BitwiseOr-13."""

    _numpy = staticmethod(np.bitwise_or)


class BitwiseXor(Bitwise, opset=13):
    """Spec: BitwiseXor-13."""

    _numpy = staticmethod(np.bitwise_xor)


class BitwiseNot(Unary, opset=13):
    """Spec: BitwiseNot-13."""

    _numpy = staticmethod(np.bitwise_not)


class BitwiseLeftShift(Bitwise, opset=15, types={"a": INTEGERS}):
    """Spec: BitwiseLeftShift-15."""

    _numpy = staticmethod(np.left_shift)


class BitwiseRightShift(Bitwise, opset=15, types={"a": INTEGERS}):
    """Spec: BitwiseRightShift-15."""

    _numpy = staticmethod(np.right_shift)


class Select(Op, opset=1):
    """`then` where the condition holds, `otherwise` elsewhere. Spec: Select-1."""

    auto_broadcast: str = "numpy"

    def infer(self, condition, then, otherwise):
        self.require(condition.dtype is boolean, f"condition of type {condition.dtype}")
        return elementwise((condition, then, otherwise), same_dtype(then, otherwise), values.choose)

    def evaluate(self, *inputs):
        return np.where(*inputs)


class Classification(Op, abstract=True):
    """Tests of each number; the result is boolean."""

    _numpy: ClassVar[Any] = None

    def infer(self, x):
        return TensorType(boolean, x.shape)

    def evaluate(self, *inputs):
        return type(self)._numpy(inputs[0])


class IsNaN(Classification, opset=10, types={"x": FLOATS}):
    """Spec: IsNaN-10."""

    _numpy = staticmethod(np.isnan)


class IsInf(Classification, opset=10, types={"x": FLOATS}):
    """Whether a number is infinite, with the signs that the attributes select. Spec: IsInf-10."""

    detect_negative: bool = True
    detect_positive: bool = True

    def evaluate(self, *inputs):
        (x,) = inputs
        return np.isinf(x) & (((x < 0) & self.detect_negative) | ((x > 0) & self.detect_positive))


class IsFinite(Classification, opset=10, types={"x": FLOATS}):
    """Spec: IsFinite-10."""

    _numpy = staticmethod(np.isfinite)
