"""One step of an optimiser, compared with the formulas of ONNX's text in numpy."""

from typing import Any

import numpy as np
import pytest

from tests.harness import refusal

from .test_features import check, ml_model

DOMAIN = "ai.onnx.preview.training"
COEFFICIENTS = {"norm_coefficient": 0.125, "epsilon": 1e-2}


def tensors(count: int, kinds: int, dtype: Any) -> list[Any]:
    """`count` tensors of different shapes, then `kinds` - 1 times as many of the same shapes; none is negative."""
    rng = np.random.default_rng(count)
    shapes = [(2, 3), (4,), ()][:count]
    return [rng.uniform(0.1, 2, shape).astype(dtype) for _ in range(kinds) for shape in shapes]


def stepped(op: str, r: float, t: int, parts: list[Any], attributes: dict[str, Any]) -> list[Any]:
    """The new tensor and its accumulated values."""
    x, gradient, *rest = parts
    alpha, beta, epsilon = (attributes.get(name, 0.0) for name in ("alpha", "beta", "epsilon"))
    g = attributes["norm_coefficient"] * x + gradient
    if op == "Adagrad":
        h = rest[0] + g * g
        return [x - r / (1 + t * attributes["decay_factor"]) * g / (np.sqrt(h) + epsilon), h]
    if op == "Adam":
        v, h = alpha * rest[0] + (1 - alpha) * g, beta * rest[1] + (1 - beta) * g * g
        rate = r * np.sqrt(1 - beta**t) / (1 - alpha**t) if t > 0 else r
        return [(1 - attributes["norm_coefficient_post"]) * (x - rate * v / (np.sqrt(h) + epsilon)), v, h]
    v = alpha * rest[0] + (beta if t > 0 else 1) * g
    return [x - r * (g + alpha * v if attributes["mode"] == "nesterov" else v), v]


CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "Adagrad": (3, {**COEFFICIENTS, "decay_factor": 0.25}),
    "Adam": (4, {**COEFFICIENTS, "alpha": 0.75, "beta": 0.875, "norm_coefficient_post": 0.25}),
    "Momentum": (3, {"alpha": 0.75, "beta": 0.5, "mode": "standard", "norm_coefficient": 0.125}),
    "Nesterov": (3, {"alpha": 0.75, "beta": 0.5, "mode": "nesterov", "norm_coefficient": 0.0}),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_a_step(case: str, count: int, dtype: Any) -> None:
    """The first update and a later one, of tensors of several shapes at once."""
    kinds, attributes = CASES[case]
    op = "Momentum" if case == "Nesterov" else case
    for t in (0, 3):
        given = tensors(count, kinds, dtype)
        groups = [stepped(op, 0.5, t, given[i::count], attributes) for i in range(count)]
        expected = [np.asarray(each, dtype) for kind in zip(*groups, strict=True) for each in kind]
        inputs = [np.array(0.5, dtype), np.array(t), *given]
        check(op, inputs, attributes, domain=DOMAIN, outputs=len(expected), dynamic=t > 0, expected=expected)


def test_tensors_that_do_not_belong_together() -> None:
    inputs = [np.float32(0.5), np.array(1), *tensors(1, 3, np.float32)[:2]]
    assert refusal(ml_model("Momentum", inputs, CASES["Momentum"][1], domain=DOMAIN)).code == "ML227"
