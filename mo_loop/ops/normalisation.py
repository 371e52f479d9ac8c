"""Operations of normalisation."""

import functools
from typing import Literal

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.graph.dimension import fresh
from mo_loop.graph.shape import merge_dim, normalise_axis
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Op
from mo_loop.ops.element_kinds import FLOATS
from mo_loop.ops.infer import same_dtype, wide
from mo_loop.ops.ranges import Positive


def _require_axes(x, axes) -> None:
    if x.shape is not None and axes.shape:
        count = axes.shape[0]
        if isinstance(count, int) and count > len(x.shape):
            raise TypeError_(f"{count} axes of rank {len(x.shape)}", code="ML235")
    for axis in axes.integers or () if x.shape is not None else ():
        normalise_axis(axis, len(x.shape))


class MVN(Op, opset=6, index=("axes",), ranks={"axes": 1}, along="axes", keeps_axes=True):
    """(x - mean) / deviation over some axes. Spec: MVN-6."""

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
        self.require(x.shape is None or len(x.shape) >= 2, "no dimension of channels")
        channels = x.shape[1] if x.shape is not None else fresh()
        for each in (gamma, beta, mean, variance):
            self.require(each.shape is None or len(each.shape) == 1, f"statistics of shape {each.shape}")
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
        self.require(x.shape is None or len(x.shape) >= 2, "no dimension of channels")
        if x.shape is not None and isinstance(x.shape[1], int):
            self.require(x.shape[1] % self.num_groups == 0, f"{x.shape[1]} channels in {self.num_groups} groups")
        channels = [each.shape[0] for each in (scale, bias) if each.shape is not None]
        functools.reduce(merge_dim, channels, fresh() if x.shape is None else x.shape[1])
        return TensorType(x.dtype, x.shape)
