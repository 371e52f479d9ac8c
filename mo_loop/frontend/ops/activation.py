"""Activations: functions of one element, those normalised along an axis, GELU and its approximations, with and without
a bias, and the activations that fused operators apply, by their ONNX names.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.frontend.ops.ranking import first, first_of_any_length, is_row_of_any_length
from mo_loop.frontend.ops.shared import number, require_choice
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, Value, one_to_one, ops, translates
from mo_loop.graph import assume_equal, assume_fixed, element_count, f32, i64, normalise_axis, now
from mo_loop.ops.lengths import scalar

one_to_one({"Sigmoid": ops.Sigmoid, "Softplus": ops.SoftPlus, "Softsign": ops.SoftSign})
one_to_one({"HardSwish": ops.HSwish}, since=14)
one_to_one({"Mish": ops.Mish}, since=18)


@translates("Relu", since=1, elementwise=True)
def relu(x):
    """max(x, 0); of integers by Maximum, which is exact."""
    return ops.ReLU(x) if x.dtype.is_float else ops.Maximum(x, 0)


@translates("LeakyRelu", since=1, elementwise=True)
def leaky_relu(x, *, alpha: float = 0.01):
    """A fixed slope."""
    return ops.PReLU(x, np.full(1, alpha, x.dtype.numpy))


@translates("PRelu", since=1, elementwise=True)
def prelu_1(x, slope):
    """Until opset 6 the slope is one number, or one number for each channel."""
    return ops.PReLU(x, slope)


@translates("PRelu", since=7, elementwise=True, one_rank="x")
def prelu_7(x, slope):
    """The slope is broadcast as in numpy; in PReLU-1 a vector has one number for each channel."""
    if x.dtype.is_float and element_count(slope.shape) == 1:
        return ops.PReLU(x, slope if slope.rank == 1 else slope.reshape([1]))
    if not x.dtype.is_float or x.rank is None or slope.rank is None or not 0 < slope.rank <= x.rank:
        return ops.Select(x < 0, x * slope, x)
    dims = (1,) * (x.rank - slope.rank) + slope.type.dims
    pairs = [pair for pair in zip(x.type.dims, dims, strict=True) if pair[1] != 1]
    assume_equal(*(tuple(pair[place] for pair in pairs) for place in (0, 1)))
    assume_fixed(size for pair in pairs if now(pair[0]) != now(pair[1]) for size in pair)
    if any(own == 1 != each for own, each in zip(x.type.dims, dims, strict=True)):  # ONNX Runtime repeats x
        return ops.Select(x < 0, x * slope, x)
    is_vector = x.rank > 1 and all(dim == 1 for i, dim in enumerate(dims) if i != 1)
    if is_vector and isinstance(dims[1], int) and dims[1] == x.type.dims[1]:
        return ops.PReLU(x, slope.reshape([-1]))
    return ops.PReLU(x, slope[None] if slope.rank == 1 < x.rank else slope)


@translates("Elu", since=1, elementwise=True)
def elu(x, *, alpha: float = 1.0):
    """x, or alpha * (e^x - 1) where x is negative."""
    return ops.Elu(x, alpha=alpha)


@translates("Celu", since=12, elementwise=True)
def celu(x, *, alpha: float = 1.0):
    """max(0, x) + min(0, alpha * (e^(x / alpha) - 1)), which is Elu with both axes scaled."""
    if alpha > 0:
        return ops.Elu(x / alpha, alpha=1.0) * alpha if alpha != 1 else ops.Elu(x, alpha=1.0)
    curve = (ops.Exp(x / alpha) - 1) * alpha
    return ops.Maximum(x, 0) + ops.Minimum(curve, 0)


@translates("Selu", since=1, defaults={"alpha": 1.6732, "gamma": 1.0507}, elementwise=True)
@translates("Selu", since=6, elementwise=True)
def selu(x, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875):
    """gamma * x, or gamma * alpha * (e^x - 1) where x is not positive."""
    return ops.Selu(x, alpha, gamma)


@translates("ThresholdedRelu", since=1, elementwise=True)
@translates("ThresholdedRelu", since=10, elementwise=True)
def thresholded_relu(x, *, alpha: float = 1.0):
    """x where it is above alpha, else 0."""
    return ops.Select(ops.Less(alpha, x), x, number(x, 0))


@translates("HardSigmoid", since=1, elementwise=True)
def hard_sigmoid(x, *, alpha: float = 0.2, beta: float = 0.5):
    """alpha * x + beta between 0 and 1."""
    return ops.HardSigmoid(x, alpha, beta)


@translates("Gelu", since=1, domain=MICROSOFT, fixed={"approximate": "none"})
@translates("Gelu", since=20, elementwise=True)
def gelu(x, *, approximate: str = "none"):
    """Exact, x * (1 + erf(x / sqrt(2))) / 2, or by tanh."""
    require_choice("approximate", approximate, ("none", "tanh"))
    return ops.Gelu(x, approximation_mode="ERF" if approximate == "none" else "TANH")


@translates("QuickGelu", since=1, domain=MICROSOFT, defaults={"alpha": 1.702})
@translates("Swish", since=24, elementwise=True)
def swish(x, *, alpha: float = 1.0):
    """x * sigmoid(alpha * x)."""
    return ops.Swish(x) if alpha == 1 else ops.Swish(x, alpha)


@translates("Shrink", since=9, elementwise=True)
def shrink(x, *, bias: float = 0.0, lambd: float = 0.5):
    """x + bias below -lambd, else x - bias above lambd, else 0; integers by way of f32."""
    y = x if x.dtype.is_float else x.astype(f32)
    high = ops.Select(ops.Less(lambd, y), y - bias, number(y, 0))
    return ops.Select(y < -lambd, y + bias, high).astype(x.dtype)


_FLOAT_MAX = float(np.finfo(np.float32).max)


@translates("Clip", since=1)
def clip_1(x, *, min: float | None = None, max: float | None = None):
    """Bounds are attributes, and may be absent."""
    return clipped(x, min, max)


@translates("Clip", since=6)
def clip_6(x, *, min: float = -_FLOAT_MAX, max: float = _FLOAT_MAX):
    """The default bounds do not limit any value."""
    return clipped(x, None if min <= -_FLOAT_MAX else min, None if max >= _FLOAT_MAX else max)


@translates("Clip", since=11, one_rank="x")
def clip_11(x, min=None, max=None):
    """Bounds are inputs, and may be absent."""
    low, high = _number(x, min), _number(x, max)
    if low is not None and high is not None:
        return clipped(x, low, high)
    if min is not None:
        x = ops.Maximum(scalar(min), x)
    return ops.Minimum(scalar(max), x) if max is not None else x


def clipped(x: Value, low: float | None, high: float | None):
    """min(max(x, low), high): one Clamp where both bounds are given and in order.

    Maximum and Minimum give the second input where one of both is NaN, so x comes second."""
    if low is not None and high is not None and low <= high and math.isfinite(low) and math.isfinite(high):
        return ops.Clamp(x, min=low, max=high)
    if low is not None:
        x = ops.Maximum(low, x)
    return ops.Minimum(high, x) if high is not None else x


def _number(x: Value, bound: Value | None) -> float | None:
    """A constant bound of a float tensor: Clamp holds its bounds in f32, which is not exact for integers."""
    if bound is None or not x.dtype.is_float:
        return None
    array = bound.constant
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def flattened(x: Value, axis: int, make: Callable[[Value, int], Any]):
    """Apply `make` to all dimensions from `axis` on, flattened to one (opsets before 13)."""
    if x.rank is not None and x.rank > 0:
        axis = axis + x.rank if axis < 0 else axis
        if axis == x.rank - 1 or (all(dim == 1 for dim in x.type.dims[axis + 1 :]) and axis < x.rank):
            return make(x, axis)
    if axis < 0:
        raise ModelError(f"the axis is {axis}, and the rank of the tensor is unknown", code="ML227")
    return ops.Reshape(make(ops.Reshape(x, [0] * axis + [-1], special_zero=True), axis), x.sizes)


def hardmax(x: Value, axis: int):
    """1 at the first maximum along the axis, 0 elsewhere; an empty axis gives an empty tensor."""
    if element_count(x.shape) == 0:
        return x
    if x.rank is not None:
        axis = normalise_axis(axis, x.rank)
        if is_row_of_any_length(x, axis):
            return first_of_any_length(x, "max")[2].astype(x.dtype)
    indices = first(x, axis, "max")
    places = ops.Range(0, ops.Gather(x.sizes, axis, 0), 1, output_type=i64)
    later = (x.rank - 1 - axis) if x.rank is not None else -1 - axis
    if later:
        places = ops.Unsqueeze(places, list(range(1, later + 1)))
    return ops.Equal(places, indices).astype(x.dtype)


def softmax(x: Value, axis: int):
    """Normalised exponentials; a scalar is treated as one element."""
    return ops.Softmax(x, axis=axis)


def log_softmax(x: Value, axis: int):
    """The logarithms of the normalised exponentials."""
    return ops.LogSoftmax(x, axis=axis)


def _both_forms(op: str, make: Callable[[Value, int], Any]) -> None:
    def before_13(x, *, axis: int = 1):
        return flattened(x, axis, make)

    def from_13(x, *, axis: int = -1):
        return make(x, axis)

    translates(op, since=1)(before_13)
    translates(op, since=13, one_rank="x")(from_13)


for _op, _make in {"Softmax": softmax, "LogSoftmax": log_softmax, "Hardmax": hardmax}.items():
    _both_forms(_op, _make)


@dataclass(frozen=True)
class Activation:
    """The name of a function and its parameters; those that are None have ONNX's defaults."""

    name: str | None
    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None
    axis: int | None = None

    def of(self, x: Value) -> Any:
        """The function of `x`; `x` if there is no name."""
        if not self.name:
            return x
        require_choice("activation", self.name, sorted(FUNCTIONS))
        make, defaults = FUNCTIONS[self.name]
        given = {name: getattr(self, name) for name in defaults}
        return make(x, **{name: defaults[name] if value is None else value for name, value in given.items()})


FUNCTIONS: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "Relu": (ops.ReLU, {}), "Tanh": (ops.Tanh, {}), "Sigmoid": (ops.Sigmoid, {}), "HardSwish": (ops.HSwish, {}),
    "Softplus": (ops.SoftPlus, {}), "Softsign": (ops.SoftSign, {}), "Gelu": (gelu, {}), "Mish": (ops.Mish, {}),
    "LeakyRelu": (leaky_relu, {"alpha": 0.01}), "Elu": (elu, {"alpha": 1.0}), "Celu": (celu, {"alpha": 1.0}),
    "ThresholdedRelu": (thresholded_relu, {"alpha": 1.0}), "HardSigmoid": (hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "Selu": (selu, {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "Clip": (lambda x, alpha, beta: clipped(x, alpha, beta), {"alpha": None, "beta": None}),
    "ScaledTanh": (
        lambda x, alpha, beta: ops.Tanh(x * number(x, beta)) * number(x, alpha), {"alpha": 1.0, "beta": 1.0}
    ),
    "ParametricSoftplus": (
        lambda x, alpha, beta: ops.SoftPlus(x * number(x, beta)) * number(x, alpha), {"alpha": 1.0, "beta": 1.0}
    ),
    "Affine": (lambda x, alpha, beta: x * number(x, alpha) + number(x, beta), {"alpha": 1.0, "beta": 0.0}),
    "Softmax": (softmax, {"axis": -1}), "LogSoftmax": (log_softmax, {"axis": -1}),
}
"""Name -> the function, and the defaults of its parameters in their order. Clip has the bounds as alpha and beta."""


@translates("BiasGelu", since=1, domain=MICROSOFT)
def bias_gelu(a, b):
    """Gelu of a + b."""
    return ops.Gelu(a + b, approximation_mode="ERF")


@translates("FastGelu", since=1, domain=MICROSOFT)
def fast_gelu(x, bias=None):
    """The approximation by tanh, of x + bias."""
    return ops.Gelu(x if bias is None else x + bias, approximation_mode="TANH")
