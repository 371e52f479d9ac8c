"""Reductions over axes, and normalisations by their results."""

import functools
import operator
from typing import ClassVar, Literal

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.graph.dimension import fresh
from mo_loop.graph.shape import merge_dim, normalise_axis
from mo_loop.graph.types import TensorType, boolean, known_array
from mo_loop.ops import values
from mo_loop.ops.base import Op
from mo_loop.ops.infer import reduced, same_dtype, wide
from mo_loop.ops.ranges import FLOATS, NUMBERS, Positive
from mo_loop.ops.values import fitting

_AXES = {"axes": (0, 1)}
"""The ranks of the axes of a reduction."""


class Reduction(Op, abstract=True, along="axes"):
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


class ReduceSum(Folding, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, rule=operator.add, numpy=np.sum):
    """The sums over the axes. Spec: ReduceSum-1."""

    _empty = 0


class ReduceMean(Reduction, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, numpy=np.mean):
    """The means over the axes; those of integers are truncated. Spec: ReduceMean-1."""

    def evaluate(self, *inputs):
        return NotImplemented if inputs[0].size == 0 else super().evaluate(*inputs)


class Extreme(Folding, abstract=True):
    """Extremes of no values are not folded: the runtime defines them."""

    def evaluate(self, *inputs):
        return NotImplemented if inputs[0].size == 0 else super().evaluate(*inputs)


class ReduceMax(
    Extreme, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, rule=values.maximum, numpy=np.max
):
    """The largest elements over the axes. Spec: ReduceMax-1."""


class ReduceMin(
    Extreme, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, rule=values.minimum, numpy=np.min
):
    """The smallest elements over the axes. Spec: ReduceMin-1."""


class ReduceProd(
    Folding, opset=1, index=("axes",), ranks=_AXES, types={"x": NUMBERS}, rule=values.multiply, numpy=np.prod
):
    """The products over the axes. Spec: ReduceProd-1."""

    _empty = 1


class ReduceL1(
    Reduction, opset=4, index=("axes",), ranks=_AXES, types={"x": NUMBERS},
    numpy=lambda x, axis, keepdims: np.sum(np.abs(x), axis=axis, keepdims=keepdims),
):
    """The sums of absolute values over the axes. Spec: ReduceL1-4."""


class ReduceL2(
    Reduction, opset=4, index=("axes",), ranks=_AXES, types={"x": NUMBERS},
    numpy=lambda x, axis, keepdims: np.sqrt(np.sum(np.square(x), axis=axis, keepdims=keepdims)),
):
    """The square roots of the sums of squares over the axes. Spec: ReduceL2-4."""


class Logical(Reduction, abstract=True):
    """Base of reductions of booleans."""

    def infer(self, x, axes):
        self.require(x.dtype is boolean, f"the input is {x.dtype}, not boolean")
        return super().infer(x, axes)


class ReduceLogicalAnd(Logical, opset=1, index=("axes",), ranks=_AXES, numpy=np.all):
    """Whether all elements over the axes are true. Spec: ReduceLogicalAnd-1."""


class ReduceLogicalOr(Logical, opset=1, index=("axes",), ranks=_AXES, numpy=np.any):
    """Whether any element over the axes is true. Spec: ReduceLogicalOr-1."""


def _require_axes(x, axes) -> None:
    if x.shape is not None and axes.shape:
        count = axes.shape[0]
        if isinstance(count, int) and count > len(x.shape):
            raise TypeError_(f"{count} axes of rank {len(x.shape)}", code="ML235")
    for axis in axes.integers or () if x.shape is not None else ():
        normalise_axis(axis, len(x.shape))


class MVN(Op, opset=6, index=("axes",), ranks={"axes": 1}, along="axes", keeps_axes=True):
    """(x - mean) / standard deviation, both over the axes of an input. Spec: MVN-6."""

    normalize_variance: bool = True
    eps: float = 1e-9
    eps_mode: Literal["INSIDE_SQRT", "OUTSIDE_SQRT"] = "INSIDE_SQRT"

    def infer(self, x, axes):
        _require_axes(x, axes)
        return TensorType(x.dtype, x.shape)

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


class LRN(Op, opset=1, index=("axes",), ranks={"axes": 1}, along="axes", keeps_axes=True):
    """x / (bias + alpha / size * sum of squares in a window over some axes) ^ beta. Spec: LRN-1."""

    alpha: float
    beta: float
    bias: float
    size: int

    def infer(self, x, axes):
        _require_axes(x, axes)
        return TensorType(x.dtype, x.shape)


class NormalizeL2(Op, opset=1, index=("axes",), ranks={"axes": (0, 1)}, along="axes", keeps_axes=True):
    """x / sqrt(sum of squares over some axes, with eps). Spec: NormalizeL2-1."""

    eps: float
    eps_mode: Literal["add", "max"] = "add"

    def infer(self, x, axes):
        _require_axes(x, axes)
        return TensorType(x.dtype, x.shape)

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
