"""Operations of comparison, logic, bits and selection."""


import numpy as np

from mo_loop.graph.types import TensorType, boolean
from mo_loop.ops import values
from mo_loop.ops.arithmetic import Binary, Unary
from mo_loop.ops.base import Elementwise
from mo_loop.ops.infer import elementwise, same_dtype
from mo_loop.ops.ranges import FLOATS, INTEGERS


class Comparison(Binary, abstract=True):
    """Comparison of two tensors of one type; the result is boolean."""

    def infer(self, a, b):
        same_dtype(a, b)
        return elementwise((a, b), boolean, type(self)._rule)


class Equal(Comparison, opset=1, rule=values.equal, numpy=np.equal):
    """Spec: Equal-1."""


class NotEqual(Comparison, opset=1, rule=values.differ, numpy=np.not_equal):
    """Spec: NotEqual-1."""


class Greater(Comparison, opset=1, rule=values.greater, numpy=np.greater):
    """Spec: Greater-1."""


class GreaterEqual(Comparison, opset=1, rule=values.greater_equal, numpy=np.greater_equal):
    """Spec: GreaterEqual-1."""


class Less(Comparison, opset=1, rule=values.less, numpy=np.less):
    """Spec: Less-1."""


class LessEqual(Comparison, opset=1, rule=values.less_equal, numpy=np.less_equal):
    """Spec: LessEqual-1."""


class LogicalBinary(Binary, abstract=True):
    """Two tensors of booleans."""

    def infer(self, a, b):
        self.require(a.dtype is boolean and b.dtype is boolean, "inputs are not boolean")
        return super().infer(a, b)


class LogicalAnd(LogicalBinary, opset=1, rule=values.both, numpy=np.logical_and):
    """Spec: LogicalAnd-1."""


class LogicalOr(LogicalBinary, opset=1, rule=values.either, numpy=np.logical_or):
    """Spec: LogicalOr-1."""


class LogicalXor(LogicalBinary, opset=1, rule=values.differ, numpy=np.logical_xor):
    """Spec: LogicalXor-1."""


class LogicalNot(Unary, opset=1, rule=values.invert, numpy=np.logical_not):
    """Spec: LogicalNot-1."""

    def infer(self, x):
        self.require(x.dtype is boolean, f"{x.dtype} is not boolean")
        return super().infer(x)


class Bitwise(Binary, abstract=True):
    """Two tensors of integers or booleans."""

    def infer(self, a, b):
        self.require(a.dtype.is_integer or a.dtype is boolean, f"{a.dtype} is not of integers")
        return super().infer(a, b)


class BitwiseAnd(Bitwise, opset=13, numpy=np.bitwise_and):
    """Spec: BitwiseAnd-13."""


class BitwiseOr(Bitwise, opset=13, numpy=np.bitwise_or):
    """Spec: BitwiseOr-13."""


class BitwiseXor(Bitwise, opset=13, numpy=np.bitwise_xor):
    """Spec: BitwiseXor-13."""


class BitwiseNot(Unary, opset=13, numpy=np.bitwise_not):
    """Spec: BitwiseNot-13."""


class BitwiseLeftShift(Bitwise, opset=15, types={"a": INTEGERS}, numpy=np.left_shift):
    """Spec: BitwiseLeftShift-15."""


class BitwiseRightShift(Bitwise, opset=15, types={"a": INTEGERS}, numpy=np.right_shift):
    """Spec: BitwiseRightShift-15."""


class Select(Elementwise, opset=1):
    """`then` where the condition holds, `otherwise` elsewhere. Spec: Select-1."""

    auto_broadcast: str = "numpy"

    def infer(self, condition, then, otherwise):
        self.require(condition.dtype is boolean, f"condition of type {condition.dtype}")
        return elementwise((condition, then, otherwise), same_dtype(then, otherwise), values.choose)

    def evaluate(self, *inputs):
        return np.where(*inputs)


class Classification(Elementwise, abstract=True):
    """Tests of each number; the result is boolean."""

    def infer(self, x):
        return TensorType(boolean, x.shape)

    def evaluate(self, *inputs):
        return type(self)._numpy(inputs[0])


class IsNaN(Classification, opset=10, types={"x": FLOATS}, numpy=np.isnan):
    """Spec: IsNaN-10."""


class IsInf(Classification, opset=10, types={"x": FLOATS}):
    """Whether a number is infinite, with the signs that the attributes select. Spec: IsInf-10."""

    detect_negative: bool = True
    detect_positive: bool = True

    def evaluate(self, *inputs):
        (x,) = inputs
        return np.isinf(x) & (((x < 0) & self.detect_negative) | ((x > 0) & self.detect_positive))


class IsFinite(Classification, opset=10, types={"x": FLOATS}, numpy=np.isfinite):
    """Spec: IsFinite-10."""
