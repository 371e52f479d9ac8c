"""Operators of com.microsoft with fused parts: sums, activations, gates, normalisations, rotations, pools."""

import math
from typing import Any

import numpy as np
import onnx.reference

from tests.cases import read_cases
from tests.harness import node_model, refusal

# -- Operators of com.microsoft with fused sums, activations and gates, compared with numpy: they have no kernels for
# CPUs.


RNG = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def convolved(x: Any, w: Any, b: Any, attributes: dict[str, Any]) -> Any:
    model = node_model("Conv", {"x": x, "w": w, "b": b}, attributes, opset=17)
    return onnx.reference.ReferenceEvaluator(model).run(None, {"x": x, "w": w, "b": b})[0]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def gelu(x: Any) -> Any:
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


ATTRIBUTES = {"pads": [1, 0, 1, 2], "strides": [2, 1], "group": 2}


def test_unknown_activation() -> None:
    inputs = {"a": floats(2, 3), "b": floats(3, 4)}
    model = node_model("com.microsoft::FusedGemm", inputs, {"activation": "Swish9"}, opset=1)
    assert "the attribute 'activation' is 'Swish9', and must be one of Affine, Celu" in str(refusal(model))


# -- Operators of com.microsoft that fuse normalisations. Those without a kernel for CPUs are compared with numpy


def group_norm(x: Any, gamma: Any, beta: Any, groups: int, epsilon: float, silu: int) -> Any:
    """Over channels in the last dimension."""
    rows = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    mean, variance = rows.mean((1, 3), keepdims=True), rows.var((1, 3), keepdims=True)
    y = ((rows - mean) / np.sqrt(variance + epsilon)).reshape(x.shape) * gamma + beta
    return y / (1 + np.exp(-y)) if silu else y


# -- MaxpoolWithMask: a window's row ends at its first masked element


X = np.array([[[3, 1, 4, 1, 5, 9, 2, np.nan]]], np.float32)
MASK = np.array([[[1, 1, 0, 1, 1, 1, 1, 1]]], np.int32)
LOWEST = np.finfo(np.float32).min


read_cases(globals())
