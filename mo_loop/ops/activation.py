"""Elementwise activation functions, and softmax along an axis."""

import math
from functools import partial
from typing import Any, Literal

import numpy as np

from mo_loop.graph.shape import broadcast_dim
from mo_loop.graph.types import TensorType
from mo_loop.ops import values
from mo_loop.ops.arithmetic import Unary
from mo_loop.ops.base import Elementwise, Op, operation
from mo_loop.ops.infer import elementwise, wide
from mo_loop.ops.ranges import FLOATS, NUMBERS

_of, _X = partial(operation, module=__name__), {"x": NUMBERS}


ReLU = _of("ReLU-1", "max(x, 0).", Unary, rule=lambda x: values.maximum(x, 0), numpy=lambda x: np.maximum(x, 0))


class PReLU(Elementwise, opset=1):
    """x, or slope * x where x is negative. A vector of slopes has one slope for each channel; slopes of other ranks
    broadcast to x. The runtime repeats x along an unknown dimension if its size is 1. Spec: PReLU-1."""

    def infer(self, x, slope):
        self.require(x.dtype is slope.dtype, f"the slope is {slope.dtype}, and the input {x.dtype}")
        rank = len(x.shape or ())
        if not slope.shape or not 1 < len(slope.shape) <= rank:
            return x
        slopes = (1,) * (rank - len(slope.shape)) + slope.shape
        pairs = zip(x.shape, slopes, strict=True)
        return x.with_shape(tuple(own if isinstance(own, int) else broadcast_dim(own, each) for own, each in pairs))

    def evaluate(self, *inputs):
        x, slope = inputs
        if slope.size == 1:
            slope = slope.reshape(())
        elif slope.ndim == 1 and x.ndim >= 2:
            slope = slope.reshape(-1, *[1] * (x.ndim - 2))
        return np.where(x < 0, x * slope, x)

    def axis_map(self, port):
        return self._no_axes if port else super().axis_map(port)


Sigmoid = _of("Sigmoid-1", "1 / (1 + e^-x).", Unary, types=_X, numpy=lambda x: 1 / (1 + np.exp(-x)))


class Elu(Unary, opset=1):
    """x, or alpha * (e^x - 1) where x is negative. Spec: Elu-1."""

    alpha: float

    def evaluate(self, *inputs):
        (x,) = inputs
        return np.where(x < 0, self.alpha * np.expm1(np.minimum(x, 0)), x).astype(x.dtype)


class Scaled(Elementwise, abstract=True):
    """Base of functions with two more inputs, scalars of the type of x."""

    def infer(self, x, alpha, beta):
        self.require(x.dtype is alpha.dtype and x.dtype is beta.dtype, "the element types differ")
        return x


class Selu(Scaled, opset=1, types={"x": FLOATS}):
    """beta * x, or beta * alpha * (e^x - 1) where x is not positive. Spec: Selu-1."""

    def evaluate(self, *inputs):
        x, alpha, scale = inputs
        return np.asarray(scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))).astype(x.dtype)


class HardSigmoid(Scaled, opset=1, ranks={"alpha": 0, "beta": 0}):
    """min(max(alpha * x + beta, 0), 1). Spec: HardSigmoid-1."""

    def evaluate(self, *inputs):
        x, alpha, beta = inputs
        return np.asarray(np.clip(alpha * x + beta, 0, 1)).astype(x.dtype)


class Clamp(Unary, opset=1, types=_X):
    """min(max(x, min), max). Spec: Clamp-1."""

    min: float
    max: float

    def infer(self, x):
        self.require(self.min <= self.max, f"the bounds {self.min} and {self.max} are in the wrong order")
        if x.known is None or not (self.min.is_integer() and self.max.is_integer()):
            return x
        lo, hi = int(self.min), int(self.max)
        return elementwise((x,), rule=lambda item: values.minimum(values.maximum(item, lo), hi))

    def evaluate(self, *inputs):
        return np.clip(inputs[0], self.min, self.max).astype(inputs[0].dtype)


HSigmoid = _of("HSigmoid-5", "min(max(x + 3, 0), 6) / 6.", Unary, types=_X, numpy=lambda x: np.clip(x + 3, 0, 6) / 6)
HSwish = _of(
    "HSwish-4", "x * min(max(x + 3, 0), 6) / 6.", Unary, types=_X, numpy=lambda x: x * np.clip(x + 3, 0, 6) / 6,
)


class Swish(Elementwise, opset=4, types={"x": FLOATS}):
    """x / (1 + e^(-beta * x)), beta a scalar, 1 if absent. Spec: Swish-4."""

    def infer(self, x, beta=None):
        self.require(beta is None or beta.dtype is x.dtype, "the element types differ")
        return x

    def evaluate(self, *inputs):
        x = inputs[0]
        beta = inputs[1] if len(inputs) > 1 and inputs[1] is not None else 1
        with np.errstate(all="ignore"):
            return np.asarray(x / (1 + np.exp(-beta * x))).astype(x.dtype)


Mish = _of(
    "Mish-4", "x * tanh(log(1 + e^x)).", Unary, types={"x": FLOATS}, numpy=lambda x: x * np.tanh(np.logaddexp(0, x)),
)
SoftPlus = _of("SoftPlus-4", "log(1 + e^x).", Unary, types={"x": FLOATS}, numpy=lambda x: np.logaddexp(0, x))
SoftSign = _of("SoftSign-9", "x / (1 + |x|).", Unary, types={"x": FLOATS}, numpy=lambda x: x / (1 + np.abs(x)))


class Gelu(Unary, opset=7, types={"x": FLOATS}):
    """x * P(X <= x) for a normally distributed X, computed exactly or approximated by tanh. Spec: Gelu-7."""

    approximation_mode: Literal["ERF", "TANH"] = "ERF"

    def evaluate(self, *inputs):
        (x,) = inputs
        if self.approximation_mode == "TANH":
            gate = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        else:
            gate = _erf(x / math.sqrt(2))
        return np.asarray(0.5 * x * (1 + gate)).astype(x.dtype)


_erf = np.vectorize(math.erf, otypes=[np.float64])


class AlongAxis(Op, abstract=True, along="axis", keeps_axes=True):
    """Base of functions of all elements along one axis."""

    axis: int

    def infer(self, x):
        self.require(x.rank is None or -x.rank <= self.axis < x.rank, f"axis {self.axis} is outside rank {x.rank}")
        return TensorType(x.dtype, x.shape)

    def _shifted(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """x minus its maximum, which makes the exponentials safe."""
        x = wide(x)
        return x - np.max(x, axis=self.axis, keepdims=True, initial=-np.inf)


class Softmax(AlongAxis, opset=8, type="SoftMax"):
    """Normalised exponentials along one axis. Spec: SoftMax-8."""

    axis: int = 1

    def evaluate(self, *inputs):
        with np.errstate(all="ignore"):
            powers = np.exp(self._shifted(inputs[0]))
        return (powers / np.sum(powers, axis=self.axis, keepdims=True)).astype(inputs[0].dtype)


class LogSoftmax(AlongAxis, opset=5):
    """The logarithm of normalised exponentials along one axis. Spec: LogSoftmax-5."""

    axis: int = 1

    def evaluate(self, *inputs):
        with np.errstate(all="ignore"):
            shifted = self._shifted(inputs[0])
        return (shifted - np.log(np.sum(np.exp(shifted), axis=self.axis, keepdims=True))).astype(inputs[0].dtype)
