"""Reductions over axes, and normalisations by their results."""

import functools
import operator
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from mo_loop.graph.dimension import fresh
from mo_loop.graph.shape import merge_dim, normalise_axis
from mo_loop.graph.types import TensorType, boolean, known_array
from mo_loop.ops import values
from mo_loop.ops.base import Op, operation
from mo_loop.ops.infer import reduced, same_dtype, wide
from mo_loop.ops.ranges import FLOATS, NUMBERS, Positive
from mo_loop.ops.values import fitting

_of, _X = partial(operation, module=__name__), {"x": NUMBERS}


class Reduction(Op, abstract=True, index=("axes",), ranks={"axes": (0, 1)}, along="axes"):
    """The input `axes` is a scalar or a vector of axes; an empty vector reduces nothing."""

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


class ReduceSum(Folding, opset=1, types=_X, rule=operator.add, numpy=np.sum):
    """The sums over the axes. Spec: ReduceSum-1."""

    _empty = 0


class ReduceMean(Reduction, opset=1, types=_X, numpy=np.mean):
    """The means over the axes; those of integers are truncated. Spec: ReduceMean-1."""

    def evaluate(self, *inputs):
        return NotImplemented if inputs[0].size == 0 else super().evaluate(*inputs)


class Extreme(Folding, abstract=True):
    """Extremes of no values are not folded: the runtime defines them."""

    def evaluate(self, *inputs):
        return NotImplemented if inputs[0].size == 0 else super().evaluate(*inputs)


ReduceMax = _of(
    "ReduceMax-1", "The largest elements over the axes.", Extreme, types=_X, rule=values.maximum, numpy=np.max,
)
ReduceMin = _of(
    "ReduceMin-1", "The smallest elements over the axes.", Extreme, types=_X, rule=values.minimum, numpy=np.min,
)


class ReduceProd(Folding, opset=1, types=_X, rule=values.multiply, numpy=np.prod):
    """The products over the axes. Spec: ReduceProd-1."""

    _empty = 1


ReduceL1 = _of(
    "ReduceL1-4", "The sums of absolute values over the axes.", Reduction, types=_X,
    numpy=lambda x, **axes: np.sum(np.abs(x), **axes),
)
ReduceL2 = _of(
    "ReduceL2-4", "The square roots of the sums of squares over the axes.", Reduction, types=_X,
    numpy=lambda x, **axes: np.sqrt(np.sum(np.square(x), **axes)),
)


class Logical(Reduction, abstract=True):
    """Base of reductions of booleans."""

    def infer(self, x, axes):
        self.require(x.dtype is boolean, f"the input is {x.dtype}, not boolean")
        return super().infer(x, axes)


ReduceLogicalAnd = _of("ReduceLogicalAnd-1", "Whether all elements over the axes are true.", Logical, numpy=np.all)
ReduceLogicalOr = _of("ReduceLogicalOr-1", "Whether any element over the axes is true.", Logical, numpy=np.any)


class OverAxes(Op, abstract=True, index=("axes",), ranks={"axes": 1}, along="axes", keeps_axes=True):
    """Base of normalisations by numbers that are computed over the axes of an input."""

    def infer(self, x, axes):
        if x.shape is not None and axes.shape:
            count = axes.shape[0]
            self.require(not isinstance(count, int) or count <= len(x.shape), f"{count} axes of rank {len(x.shape)}")
        for axis in axes.integers or () if x.shape is not None else ():
            normalise_axis(axis, len(x.shape))
        return TensorType(x.dtype, x.shape)


class MVN(OverAxes, opset=6):
    """(x - mean) / standard deviation, both over the axes of an input. Spec: MVN-6."""

    normalize_variance: bool = True
    eps: float = 1e-9
    eps_mode: Literal["INSIDE_SQRT", "OUTSIDE_SQRT"] = "INSIDE_SQRT"

    def evaluate(self, *inputs):
        x, axes = wide(inputs[0]), inputs[1]
        axis = tuple(int(each) for each in axes)
        centred = x - np.mean(x, axis=axis, keepdims=True)
        if not self.normalize_variance:
            return centred.astype(inputs[0].dtype)
        variance = np.mean(np.square(centred), axis=axis, keepdims=True)
        inside = self.eps_mode == "INSIDE_SQRT"
        deviation = np.sqrt(variance + self.eps) if inside else np.sqrt(variance) + self.eps
        return (centred / deviation).astype(inputs[0].dtype)


class BatchNormInference(Op, opset=5, types={"x": FLOATS}, keeps_axes=True):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel. Spec: BatchNormInference-5."""

    epsilon: float

    def infer(self, x, gamma, beta, mean, variance):
        same_dtype(x, gamma, beta, mean, variance)
        self.require(x.shape is None or len(x.shape) >= 2, "the input has no dimension of channels")
        channels = x.shape[1] if x.shape is not None else fresh()
        for each in (gamma, beta, mean, variance):
            self.require(each.shape is None or len(each.shape) == 1, f"a statistic is {each}, not a vector")
            channels = channels if each.shape is None else merge_dim(channels, each.shape[0])
        return TensorType(x.dtype, None if x.shape is None else (x.shape[0], channels, *x.shape[2:]))

    def evaluate(self, *inputs):
        x = wide(inputs[0])
        gamma, beta, mean, variance = (wide(each).reshape(-1, *[1] * (x.ndim - 2)) for each in inputs[1:])
        return ((x - mean) / np.sqrt(variance + self.epsilon) * gamma + beta).astype(inputs[0].dtype)


class LRN(OverAxes, opset=1):
    """x / (bias + alpha / size * sum of squares in a window over some axes) ^ beta. Spec: LRN-1."""

    alpha: float
    beta: float
    bias: float
    size: int


class NormalizeL2(OverAxes, opset=1, ranks={"axes": (0, 1)}):
    """x / sqrt(sum of squares over some axes, with eps). Spec: NormalizeL2-1."""

    eps: float
    eps_mode: Literal["add", "max"] = "add"

    def evaluate(self, *inputs):
        x, axes = wide(inputs[0]), inputs[1]
        axis = tuple(int(each) for each in np.atleast_1d(axes))
        squares = np.sum(np.square(x), axis=axis, keepdims=True)
        total = squares + self.eps if self.eps_mode == "add" else np.maximum(squares, self.eps)
        return (x / np.sqrt(total)).astype(inputs[0].dtype)


class GroupNormalization(Op, opset=12, ranks={"scale": 1, "bias": 1}, keeps_axes=True):
    """Normalisation over groups of channels, then a scale and bias for each channel. Spec: GroupNormalization-12.

    The runtime refuses it inside bodies, so translators compose it from other operations."""

    num_groups: Positive
    epsilon: float

    def infer(self, x, scale, bias):
        same_dtype(x, scale, bias)
        self.require(x.shape is None or len(x.shape) >= 2, "the input has no dimension of channels")
        if x.shape is not None and isinstance(x.shape[1], int):
            self.require(x.shape[1] % self.num_groups == 0, f"{x.shape[1]} channels are not {self.num_groups} groups")
        channels = [each.shape[0] for each in (scale, bias) if each.shape is not None]
        functools.reduce(merge_dim, channels, fresh() if x.shape is None else x.shape[1])
        return TensorType(x.dtype, x.shape)
