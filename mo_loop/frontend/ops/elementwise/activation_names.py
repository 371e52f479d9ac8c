"""Activation functions that fused operators apply, by their ONNX names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mo_loop.frontend.ops.elementwise import activation as standard
from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.vocabulary import ModelError, Value, ops


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
        if self.name in _PLAIN:
            return _PLAIN[self.name](x)
        if self.name not in DEFAULTS:
            known = ", ".join(sorted(DEFAULTS))
            raise ModelError(f"the activation {self.name!r} is not one of {known}", code="ML227")
        make, defaults = _WITH[self.name]
        given = {name: getattr(self, name) for name in defaults}
        return make(x, *(defaults[name] if value is None else value for name, value in given.items()))


def _scaled_tanh(x: Value, alpha: float, beta: float) -> Any:
    return ops.Tanh(x * number(x, beta)) * number(x, alpha)


def _parametric_softplus(x: Value, alpha: float, beta: float) -> Any:
    return ops.SoftPlus(x * number(x, beta)) * number(x, alpha)


def _affine(x: Value, alpha: float, beta: float) -> Any:
    return x * number(x, alpha) + number(x, beta)


def _selu(x: Value, alpha: float, gamma: float) -> Any:
    return standard.selu(x, alpha=alpha, gamma=gamma)


_PLAIN: Mapping[str, Callable[[Value], Any]] = {
    "Relu": ops.ReLU, "Tanh": ops.Tanh, "Sigmoid": ops.Sigmoid, "HardSwish": ops.HSwish, "Softplus": ops.SoftPlus,
    "Softsign": ops.SoftSign, "Gelu": lambda x: standard.gelu(x), "Mish": ops.Mish,
}  # fmt: skip
_WITH: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "LeakyRelu": (lambda x, alpha: standard.leaky_relu(x, alpha=alpha), {"alpha": 0.01}),
    "Elu": (lambda x, alpha: standard.elu(x, alpha=alpha), {"alpha": 1.0}),
    "Celu": (lambda x, alpha: standard.celu(x, alpha=alpha), {"alpha": 1.0}),
    "ThresholdedRelu": (lambda x, alpha: standard.thresholded_relu(x, alpha=alpha), {"alpha": 1.0}),
    "HardSigmoid": (
        lambda x, alpha, beta: standard.hard_sigmoid(x, alpha=alpha, beta=beta), {"alpha": 0.2, "beta": 0.5}
    ),
    "Selu": (_selu, {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "Clip": (standard.clipped, {"alpha": None, "beta": None}),
    "ScaledTanh": (_scaled_tanh, {"alpha": 1.0, "beta": 1.0}),
    "ParametricSoftplus": (_parametric_softplus, {"alpha": 1.0, "beta": 1.0}),
    "Affine": (_affine, {"alpha": 1.0, "beta": 0.0}),
    "Softmax": (standard.softmax, {"axis": -1}),
    "LogSoftmax": (standard.log_softmax, {"axis": -1}),
}  # fmt: skip
"""Name -> the function, and the defaults of its parameters in their order. Clip has the bounds as alpha and beta."""

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    **{name: {} for name in _PLAIN}, **{name: defaults for name, (_, defaults) in _WITH.items()},
}  # fmt: skip
"""Name -> the defaults of its parameters in their order."""
