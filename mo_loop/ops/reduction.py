"""Reductions over axes."""

from typing import Any, ClassVar

import numpy as np

from mo_loop.ops.base import Op
from mo_loop.ops.infer import reduced
from mo_loop.types import TensorType, boolean, tensor_of_known


class Reduction(Op, abstract=True):
    """Input `axes` is a scalar or vector of axes; an empty one reduces nothing."""

    keep_dims: bool = False

    _numpy: ClassVar[Any] = None

    def infer(self, x: Any, axes: Any) -> Any:
        return TensorType(x.dtype, reduced(x.shape, axes.integers, self.keep_dims))

    def evaluate(self, *inputs: Any) -> Any:
        if self._numpy is None:
            return NotImplemented
        x, axes = inputs
        axis = tuple(int(each) for each in np.atleast_1d(axes))
        return np.asarray(type(self)._numpy(x, axis=axis, keepdims=self.keep_dims)).astype(x.dtype)


class ReduceSum(Reduction, opset=1, index=("axes",)):
    """Sums. Spec: ReduceSum-1."""

    _numpy = staticmethod(np.sum)


class ReduceMean(Reduction, opset=1, index=("axes",)):
    """Means. Spec: ReduceMean-1."""


class ReduceMax(Reduction, opset=1, index=("axes",)):
    """The largest values. Spec: ReduceMax-1."""


class ReduceMin(Reduction, opset=1, index=("axes",)):
    """The smallest values. Spec: ReduceMin-1."""


class ReduceProd(Reduction, opset=1, index=("axes",)):
    """Products. Spec: ReduceProd-1."""

    _numpy = staticmethod(np.prod)

    def infer(self, x: Any, axes: Any) -> Any:
        plain = super().infer(x, axes)
        if x.known is None or axes.integers not in ((0,), (-1,)) or x.known.ndim != 1:
            return plain
        product: Any = 1
        for item in x.known:
            product = product * item
        return tensor_of_known(x.dtype, [product] if self.keep_dims else product)


class ReduceL1(Reduction, opset=4, index=("axes",)):
    """Sums of absolute values. Spec: ReduceL1-4."""


class ReduceL2(Reduction, opset=4, index=("axes",)):
    """Roots of sums of squares. Spec: ReduceL2-4."""


class Logical(Reduction, abstract=True):
    """Reductions of booleans."""

    def infer(self, x: Any, axes: Any) -> Any:
        self.require(x.dtype is boolean, f"{x.dtype} is not boolean")
        return super().infer(x, axes)


class ReduceLogicalAnd(Logical, opset=1, index=("axes",)):
    """Whether all are true. Spec: ReduceLogicalAnd-1."""

    _numpy = staticmethod(np.all)


class ReduceLogicalOr(Logical, opset=1, index=("axes",)):
    """Whether any is true. Spec: ReduceLogicalOr-1."""

    _numpy = staticmethod(np.any)
