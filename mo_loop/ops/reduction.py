"""Reductions over axes."""

import functools
from typing import ClassVar

import numpy as np

from mo_loop.graph.types import TensorType, boolean, known_array
from mo_loop.ops import values
from mo_loop.ops.base import Op
from mo_loop.ops.element_kinds import NUMBERS
from mo_loop.ops.infer import reduced, wide
from mo_loop.ops.values import fitting

_AXES = {"axes": (0, 1)}
"""The ranks of the axes of a reduction."""


class Reduction(Op, abstract=True, along="axes"):
    """Input `axes` is a scalar or vector of axes; an empty one reduces nothing."""

    keep_dims: bool = False

    def infer(self, x, axes):
        return TensorType(x.dtype, reduced(x.shape, axes.integers, self.keep_dims))

    def axis_map(self, port):
        gone = self.along
        if port or gone is None:
            return self._no_axes
        axes = enumerate(self.operands[0].type.dims)
        return tuple(None if axis in gone else axis for axis, _ in axes if self.keep_dims or axis not in gone)

    def evaluate(self, *inputs):
        if self._numpy is None:
            return NotImplemented
        x, axes = inputs
        axis = tuple(int(each) for each in np.atleast_1d(axes))
        with np.errstate(all="ignore"):
            return np.asarray(type(self)._numpy(wide(x), axis=axis, keepdims=self.keep_dims)).astype(x.dtype)


class Folding(Reduction, abstract=True):
    """Reductions whose result is known for a vector of known integers, as in shape arithmetic."""

    _empty: ClassVar[int | None] = None
    """The result for no values."""

    def infer(self, x, axes):
        plain = super().infer(x, axes)
        if x.known is None or axes.integers not in ((0,), (-1,)) or x.known.ndim != 1:
            return plain
        items = list(x.known)
        if not items and self._empty is None:
            return plain
        result = functools.reduce(type(self)._rule, items if self._empty is None else [self._empty, *items])
        known = known_array([result], (1,) if self.keep_dims else ())
        return TensorType(x.dtype, plain.shape, fitting(known, x.dtype))


class ReduceSum(Folding, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, rule=values.add, numpy=np.sum):
    """Sums. Spec: ReduceSum-1."""

    _empty = 0


class ReduceMean(Reduction, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, numpy=np.mean):
    """Means; those of integers are truncated. Spec: ReduceMean-1."""

    def evaluate(self, *inputs):
        return NotImplemented if inputs[0].size == 0 else super().evaluate(*inputs)


class Extreme(Folding, abstract=True):
    """The extremes of no values are not folded: they are those of the runtime."""

    def evaluate(self, *inputs):
        return NotImplemented if inputs[0].size == 0 else super().evaluate(*inputs)


class ReduceMax(
    Extreme, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, rule=values.maximum, numpy=np.max
):
    """The largest values. Spec: ReduceMax-1."""


class ReduceMin(
    Extreme, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, rule=values.minimum, numpy=np.min
):
    """The smallest values. Spec: ReduceMin-1."""


class ReduceProd(
    Folding, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, rule=values.multiply, numpy=np.prod
):
    """Products. Spec: ReduceProd-1."""

    _empty = 1


class ReduceL1(
    Reduction, opset=4, index=("axes",), ranks=_AXES, types={"x": NUMBERS},
    numpy=lambda x, axis, keepdims: np.sum(np.abs(x), axis=axis, keepdims=keepdims),
):
    """Sums of absolute values. Spec: ReduceL1-4."""


class ReduceL2(
    Reduction, opset=4, index=("axes",), ranks=_AXES, types={"x": NUMBERS},
    numpy=lambda x, axis, keepdims: np.sqrt(np.sum(np.square(x), axis=axis, keepdims=keepdims)),
):
    """Roots of sums of squares. Spec: ReduceL2-4."""


class Logical(Reduction, abstract=True):
    """Reductions of booleans."""

    def infer(self, x, axes):
        self.require(x.dtype is boolean, f"{x.dtype} is not boolean")
        return super().infer(x, axes)


class ReduceLogicalAnd(Logical, opset=1, index=("axes",), ranks=_AXES, numpy=np.all):
    """Whether all are true. Spec: ReduceLogicalAnd-1."""


class ReduceLogicalOr(Logical, opset=1, index=("axes",), ranks=_AXES, numpy=np.any):
    """Whether any is true. Spec: ReduceLogicalOr-1."""
