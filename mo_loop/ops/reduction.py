"""Reductions over axes."""

from typing import Any, ClassVar

import numpy as np

from mo_loop.ops.base import Op
from mo_loop.ops.infer import reduced, wide
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
        with np.errstate(all="ignore"):
            return np.asarray(type(self)._numpy(wide(x), axis=axis, keepdims=self.keep_dims)).astype(x.dtype)


class Folding(Reduction, abstract=True):
    """Reductions whose result is known where a vector of known integers goes in: shape arithmetic."""

    def infer(self, x: Any, axes: Any) -> Any:
        plain = super().infer(x, axes)
        if x.known is None or axes.integers not in ((0,), (-1,)) or x.known.ndim != 1:
            return plain
        result = self._folded(list(x.known))
        if result is None:
            return plain
        return tensor_of_known(x.dtype, [result] if self.keep_dims else result)

    def _folded(self, items: list[Any]) -> Any:
        """The result for ints and Dims, None where it is not known."""
        raise NotImplementedError


class ReduceSum(Folding, opset=1, index=("axes",)):
    """Sums. Spec: ReduceSum-1."""

    _numpy = staticmethod(np.sum)

    def _folded(self, items: list[Any]) -> Any:
        return sum(items)


class ReduceMean(Reduction, opset=1, index=("axes",)):
    """Means; those of integers are truncated. Spec: ReduceMean-1."""

    def evaluate(self, *inputs: Any) -> Any:
        return NotImplemented if inputs[0].size == 0 else super().evaluate(*inputs)

    _numpy = staticmethod(np.mean)


class Extreme(Folding, abstract=True):
    """The extremes of nothing are the runtime's to say."""

    def evaluate(self, *inputs: Any) -> Any:
        return NotImplemented if inputs[0].size == 0 else super().evaluate(*inputs)


class ReduceMax(Extreme, opset=1, index=("axes",)):
    """The largest values. Spec: ReduceMax-1."""

    _numpy = staticmethod(np.max)

    def _folded(self, items: list[Any]) -> Any:
        return max(items) if items and all(isinstance(item, int) for item in items) else None


class ReduceMin(Extreme, opset=1, index=("axes",)):
    """The smallest values. Spec: ReduceMin-1."""

    _numpy = staticmethod(np.min)

    def _folded(self, items: list[Any]) -> Any:
        return min(items) if items and all(isinstance(item, int) for item in items) else None


class ReduceProd(Folding, opset=1, index=("axes",)):
    """Products. Spec: ReduceProd-1."""

    _numpy = staticmethod(np.prod)

    def _folded(self, items: list[Any]) -> Any:
        product: Any = 1
        for item in items:
            product = product * item
        return product


class ReduceL1(Reduction, opset=4, index=("axes",)):
    """Sums of absolute values. Spec: ReduceL1-4."""

    _numpy = staticmethod(lambda x, axis, keepdims: np.sum(np.abs(x), axis=axis, keepdims=keepdims))


class ReduceL2(Reduction, opset=4, index=("axes",)):
    """Roots of sums of squares. Spec: ReduceL2-4."""

    _numpy = staticmethod(lambda x, axis, keepdims: np.sqrt(np.sum(np.square(x), axis=axis, keepdims=keepdims)))


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
