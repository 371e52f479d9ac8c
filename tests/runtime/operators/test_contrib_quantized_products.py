"""Sums of products of integers: operators without a kernel, exact sums, models that ONNX Runtime's quantiser makes."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from mo_loop import convert_model
from tests.harness import check, check_node

RANDOM = np.random.default_rng(19)


def numbers(*shape, kind=np.uint8):
    info = np.iinfo(kind)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(kind)


def test_products_of_16_bits_are_exact():
    """2,000 products of 15 bits have 41 bits in sum: the result has its low 32 bits."""
    a, b = (RANDOM.integers(-30000, 30000, shape).astype(np.int16) for shape in ((3, 2000), (2000, 4)))
    expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    check_node("com.microsoft::MatMulInteger16", {"a": a, "b": b}, opset=1, constants=["b"], expected=[expected])


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_products_of_single_integers(kind):
    """ONNX Runtime has no kernel for it."""
    a, b = numbers(3, 4, kind=kind), numbers(4, kind=kind)
    zeros = np.array(5, kind), np.array(3, kind)
    check_node("com.microsoft::MulInteger", {"a": a, "a_zero": zeros[0], "b": b, "b_zero": zeros[1]}, opset=1,
               dynamic=["a"], constants=["a_zero", "b_zero"],
               expected=[(a.astype(np.int32) - 5) * (b.astype(np.int32) - 3)])


@pytest.mark.parametrize(("kind", "wide"), [(np.uint8, np.uint32), (np.int8, np.int32)])
def test_sums_of_integers(kind, wide):
    """ONNX Runtime has no kernel for it."""
    x = numbers(2, 3, 5, kind=kind)
    check_node("com.microsoft::ReduceSumInteger", {"x": x}, {"axes": [0, -1], "keepdims": 1}, opset=1, dynamic=True,
               expected=[x.astype(wide).sum((0, 2), keepdims=True, dtype=wide)])


@pytest.mark.parametrize("quantization", ["fast", "exact"])
def test_dynamically_quantised_product(quantization):
    """The rounded activations take part in the result: it is not that of the floating-point product."""
    a = RANDOM.uniform(-1, 1, (4, 64)).astype(np.float32)
    b, scale = RANDOM.integers(-64, 64, (64, 8)).astype(np.int8), np.float32(0.01)  # exact without VNNI, too
    inputs = [helper.make_tensor_value_info("a", TensorProto.FLOAT, ["N", 64])]
    constants = [helper.make_tensor("b", TensorProto.INT8, b.shape, b.tobytes(), raw=True)]
    constants.append(helper.make_tensor("s", TensorProto.FLOAT, [], [scale]))
    node = helper.make_node("DynamicQuantizeMatMul", ["a", "b", "s"], ["y"], domain="com.microsoft")
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])]
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    # a result moves by at most 127 * 0.01 / 128 for each rounding that ends at the next step
    check(model, {"a": a}, quantization=quantization, atol=1e-4 if quantization == "exact" else 0.05)
    made = {type(each).__name__ for each in convert_model(model, quantization=quantization).graph.ordered()}
    assert ("FakeQuantize" in made) == (quantization == "fast")


@pytest.mark.parametrize("weights", ["constant", "an input"])
def test_scales_of_the_layers_direction(weights):
    """Weights of both directions of an LSTM have scales of their own, also weights that are inputs of the model.

    Weights of 7 bits: with larger ones that are inputs, ONNX Runtime saturates on CPUs without VNNI.
    """
    hidden, features = 3, 4
    w, r = (RANDOM.integers(-64, 64, (2, n, 4 * hidden)).astype(np.int8) for n in (features, hidden))
    scales = [np.array([0.002, 0.004], np.float32), np.array([0.003, 0.001], np.float32)]
    zeros = np.zeros(2, np.int8)
    given = {"x": RANDOM.standard_normal((5, 2, features)).astype(np.float32), "w": w, "r": r, "b": None}
    given |= {"lengths": None, "h": None, "c": None, "p": None}
    given |= {"w_scale": scales[0], "w_zero": zeros, "r_scale": scales[1], "r_zero": zeros}
    check_node("com.microsoft::DynamicQuantizeLSTM", given, {"hidden_size": hidden, "direction": "bidirectional"},
               opset=1, outputs=3, atol=0.02, dynamic=["x", "r"],
               constants=["w_scale", "w_zero", "r_scale", "r_zero", *(["w", "r"] if weights == "constant" else [])])
