"""One step of an optimiser. X are the tensors, G their gradients, V and H the accumulated values;
G' = norm_coefficient * X + G and r is the learning rate at update T.

    Adagrad     H' = H + G'^2                  X' = X - r G' / (sqrt(H') + epsilon)
    Adam        V' = alpha V + (1 - alpha) G'   H' = beta H + (1 - beta) G'^2
                X' = (1 - norm_coefficient_post) (X - r V' / (sqrt(H') + epsilon))
    Momentum    V' = alpha V + beta G'         X' = X - r V'        or, Nesterov's, X - r (G' + alpha V')
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.ops.shared import converted
from mo_loop.frontend.vocabulary import ModelError, Value, ops, translates
from mo_loop.graph.types import ElementType
from mo_loop.ops.lengths import scalar

DOMAIN = "ai.onnx.preview.training"


@translates("Adagrad", since=1, domain=DOMAIN)
def adagrad(r, t, *inputs, decay_factor: float = 0.0, epsilon: float = 1e-6, norm_coefficient: float = 0.0):
    """The learning rate decreases with the number of updates."""
    made: list[list[Any]] = []
    for x, g, h in _tuples("Adagrad", inputs, 3):
        rate, count = _scalars(x.dtype, r, t)
        rate = rate / (count * decay_factor + 1)
        gradient = _regularized(x, g, norm_coefficient)
        squares = h + gradient * gradient
        made.append([_moved(x, rate, gradient / _root(squares, epsilon)), squares])
    return _in_turn(made)


@translates("Adam", since=1, domain=DOMAIN)
def adam(
    r, t, *inputs, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0,
):  # fmt: skip
    """The learning rate corrects the bias of the accumulated means, whose initial value is 0."""
    made: list[list[Any]] = []
    for x, g, v, h in _tuples("Adam", inputs, 4):
        rate, count = _scalars(x.dtype, r, t)
        one = _number(x, 1)
        fading = [one - ops.Power(_number(x, each), count) for each in (alpha, beta)]
        adjusted = rate * ops.Sqrt(fading[1]) / fading[0]
        rate = ops.Select(count > 0, adjusted, rate)
        gradient = _regularized(x, g, norm_coefficient)
        mean = v * alpha + gradient * (1 - alpha)
        squares = h * beta + gradient * gradient * (1 - beta)
        new = _moved(x, rate, mean / _root(squares, epsilon))
        made.append([new * (1 - norm_coefficient_post) if norm_coefficient_post else new, mean, squares])
    return _in_turn(made)


@translates("Momentum", since=1, domain=DOMAIN)
def momentum(r, t, *inputs, alpha: float, beta: float, mode: str, norm_coefficient: float):
    """The first update does not scale the gradient by beta."""
    if mode not in ("standard", "nesterov"):
        raise ModelError(f"mode {mode!r} is neither standard nor nesterov", code="ML227")
    made: list[list[Any]] = []
    for x, g, v in _tuples("Momentum", inputs, 3):
        rate, count = _scalars(x.dtype, r, t)
        share = ops.Select(count > 0, _number(x, beta), _number(x, 1))
        gradient = _regularized(x, g, norm_coefficient)
        new = v * alpha + gradient * share
        step: Any = new
        if mode == "nesterov":
            step = gradient + new * alpha
        made.append([_moved(x, rate, step), new])
    return _in_turn(made)


def _tuples(op: str, inputs: Sequence[Value], size: int) -> list[tuple[Value, ...]]:
    """The inputs of each tensor; in the operator all tensors come first, then all gradients, and so on."""
    count, rest = divmod(len(inputs), size)
    if rest or not count:
        raise ModelError(f"{op} has {len(inputs)} inputs after r and t, not {size} for each tensor", code="ML227")
    return [tuple(inputs[i::count]) for i in range(count)]


def _in_turn(made: Sequence[Sequence[Any]]) -> list[Any]:
    """The outputs: all new tensors, then all accumulated values of the first kind, and so on."""
    return [each for kind in zip(*made, strict=True) for each in kind]


def _scalars(dtype: ElementType, *values: Value) -> list[Value]:
    return [scalar(converted(each, dtype)) for each in values]


def _number(like: Value, number: float) -> Value:
    return ops.Constant(np.array(number, like.dtype.numpy), graph=like.graph)


def _regularized(x: Value, gradient: Value, coefficient: float) -> Value:
    return x * coefficient + gradient if coefficient else gradient


def _root(squares: Value, epsilon: float):
    return ops.Sqrt(squares) + epsilon


def _moved(x: Value, rate: Value, step) -> Value:
    return x - step * rate
