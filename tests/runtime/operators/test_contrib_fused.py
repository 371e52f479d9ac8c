"""Operators of com.microsoft with fused sums, activations and gates, compared with numpy: they have no kernels for
CPUs."""

import math
from typing import Any

import numpy as np
import onnx.reference
import pytest

from tests.harness import check_node, node_model, refusal

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


def test_channels_last() -> None:
    """The transformers tool stores the filters with their channels last, too."""
    x, w, b = floats(2, 4, 6, 7), floats(6, 2, 3, 2), floats(6)
    check_node("com.microsoft::NhwcConv", {"x": x.transpose(0, 2, 3, 1), "w": w.transpose(0, 2, 3, 1), "b": b},
               ATTRIBUTES, opset=1, constants=("w", "b"), dynamic=["x"],
               expected=[convolved(x, w, b, ATTRIBUTES).transpose(0, 2, 3, 1)], atol=1e-4)


def test_channels_last_with_a_sum_and_an_activation() -> None:
    """The filters are those of Conv."""
    x, w, b = floats(2, 4, 6, 7), floats(6, 2, 3, 2), floats(6)
    y = convolved(x, w, b, ATTRIBUTES)
    z = floats(*y.shape)
    check_node("com.microsoft::NhwcFusedConv",
               {"x": x.transpose(0, 2, 3, 1), "w": w, "b": b, "z": z.transpose(0, 2, 3, 1)},
               {**ATTRIBUTES, "activation": "LeakyRelu", "activation_params": [0.25]}, opset=1, constants=("w", "b"),
               expected=[np.where(y + z < 0, (y + z) * np.float32(0.25), y + z).transpose(0, 2, 3, 1)], atol=1e-4)


def test_product_then_softmax() -> None:
    a, b = floats(3, 2, 5), floats(2, 5, 4)
    product = 0.5 * np.matmul(a.transpose(1, 0, 2), b)
    powers = np.exp(product - product.max(1, keepdims=True))
    check_node("com.microsoft::FusedMatMulActivation", {"a": a, "b": b},
               {"transBatchA": 1, "alpha": 0.5, "activation": "Softmax", "activation_axis": 1}, opset=1, dynamic=True,
               expected=[powers / powers.sum(1, keepdims=True)], atol=1e-5)


def test_product_of_nothing_is_zero() -> None:
    a, b = floats(0, 5), floats(0, 3)
    check_node("com.microsoft::TransposeMatMul", {"a": a, "b": b}, {"transA": 1}, opset=1, constants=("b",),
               expected=[np.zeros((5, 3), np.float32)])


@pytest.mark.parametrize("turned", [{"transA": 1}, {"transB": 1}])
def test_stack_of_constant_matrices(turned: dict[str, int]) -> None:
    """The runtime multiplies a constant of three dimensions with as many matrices only."""
    a, b = floats(4, 4), floats(3, 4, 4)
    left, right = a.T if "transA" in turned else a, b.transpose(0, 2, 1) if "transB" in turned else b
    check_node("com.microsoft::FusedMatMul", {"a": a, "b": b}, turned, opset=1, constants=("b",), dynamic=["a"],
               expected=[left @ right], atol=1e-5)


def test_product_then_gelu() -> None:
    x, w, bias = floats(2, 3, 4), floats(4, 5), floats(5)
    y = x @ w + bias
    expected = 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
    check_node("com.microsoft::GemmFastGelu", {"x": x, "w": w, "bias": bias}, opset=1, constants=("w", "bias"),
               expected=[expected.astype(np.float32)], atol=1e-5)


def test_sums() -> None:
    x, bias, skip = floats(2, 3, 8), floats(8), floats(2, 3, 8)
    check_node("com.microsoft::BiasAdd", {"x": x, "bias": bias, "skip": skip}, opset=1, dynamic=True,
               expected=[x + bias + skip])
    left, right = np.split(x + bias, 2, -1)
    check_node("com.microsoft::BiasSplitGelu", {"x": x, "bias": bias}, opset=1, dynamic=["x"],
               expected=[(left * gelu(right)).astype(np.float32)], atol=1e-5)


def test_sums_of_halves() -> None:
    x, bias, skip = (floats(*shape).astype(np.float16) for shape in ((2, 3, 8), (8,), (2, 3, 8)))
    total = x.astype(np.float32) + bias
    left, right = np.split(total, 2, -1)
    check_node("com.microsoft::BiasAdd", {"x": x, "bias": bias, "skip": skip}, opset=1, dynamic=True,
               expected=[(total + skip).astype(np.float16)], atol=1e-2)
    check_node("com.microsoft::BiasSplitGelu", {"x": x, "bias": bias}, opset=1, dynamic=["x"],
               expected=[(left * gelu(right)).astype(np.float16)], atol=1e-2)


@pytest.mark.parametrize(("axis", "inner", "shape"), [(3, 1, (2, 1, 1, 5)), (2, 0, (1, 1, 4, 5)), (3, 0, (4, 5))])
def test_masked_softmax(axis: int, inner: int, shape: tuple[int, ...]) -> None:
    """All dimensions from the axis on are normalised together."""
    data, bias = floats(2, 3, 4, 5), floats(*shape)
    powers = np.exp(data + bias)
    check_node("com.microsoft::BiasSoftmax", {"data": data, "bias": bias}, {"axis": axis, "is_inner_broadcast": inner},
               opset=1, dynamic=["data"], expected=[powers / powers.sum(tuple(range(axis, 4)), keepdims=True)],
               atol=1e-5)


def test_nothing_is_dropped_without_training() -> None:
    data, bias, residual = floats(2, 3), floats(3), floats(2, 3)
    check_node("com.microsoft::BiasDropout",
               {"data": data, "bias": bias, "residual": residual, "ratio": np.float32(0.5)}, opset=1, outputs=2,
               constants=("ratio",), expected=[data + bias + residual, np.ones((2, 3), bool)])


@pytest.mark.parametrize("is_split", [False, True])
def test_gated_linear_unit(is_split: bool) -> None:
    """The limit bounds the gate from above only."""
    both = 3 * floats(2, 3, 8)
    gate, up = np.split(both, 2, -1)
    low, high = np.minimum(gate, 2), np.clip(up, -2, 2)
    expected = low * sigmoid(1.7 * low) * (high + 1)
    check_node("com.microsoft::SwiGLU", {"gate": gate, "up": up} if is_split else {"gate": both},
               {"activation_alpha": 1.7, "activation_beta": 1.0, "limit": 2.0}, opset=1, dynamic=True,
               expected=[expected.astype(np.float32)], atol=1e-5)


def test_gate_with_a_projection() -> None:
    x, y, gate, weight = floats(2, 3, 4), floats(2, 3, 4), floats(2, 3, 5), floats(5, 1)
    check_node("com.microsoft::GatedAdd", {"x": x, "y": y, "gate": gate, "weight": weight}, opset=1,
               expected=[x + y * sigmoid(gate @ weight)], atol=1e-5)


def test_unknown_activation() -> None:
    inputs = {"a": floats(2, 3), "b": floats(3, 4)}
    model = node_model("com.microsoft::FusedGemm", inputs, {"activation": "Swish9"}, opset=1)
    assert "the activation 'Swish9' is not one of Affine, Celu" in str(refusal(model))
