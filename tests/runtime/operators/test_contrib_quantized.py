"""Operators of com.microsoft on integers and with packed weights."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from mo_loop import MoLoopError
from mo_loop.api import convert_model, save_model
from mo_loop.errors import ConversionErrors
from tests.harness import check, check_node, node_model

# -- Operators on tensors of 8 bits: roundings of ONNX Runtime's kernels, and operators without a kernel


RANDOM = np.random.default_rng(18)


def number(value, kind=np.float32):
    return np.array(value, kind)


def numbers(*shape, kind=np.uint8):
    info = np.iinfo(kind)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(kind)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_halves_are_rounded_after_adding_the_zero_point(op):
    """0.5 + 1 is 2, and not 0 + 1."""
    a = np.arange(12, dtype=np.uint8)
    parameters = {"a_scale": number(1), "a_zero": number(0, np.uint8)}
    other = {"b": number([1], np.uint8), "b_scale": number(1),
             "b_zero": number(0 if op == "QLinearMul" else 1, np.uint8)}
    last = {"c_scale": number(2), "c_zero": number(1, np.uint8)}
    (found,) = check_node(f"com.microsoft::{op}", {"a": a, **parameters, **other, **last}, opset=1,
                          constants=[*parameters, *other, *last], dynamic=True)
    assert found[1] == 2


def test_halves_of_a_sum_of_other_scales():
    """erf(x) + 1 in a quantised GELU: each sum is a half of a step, which the products with the scales would miss."""
    a = np.arange(256, dtype=np.uint8)
    given = {"a": a, "a_scale": number(2 / 255), "a_zero": number(127, np.uint8)}
    given |= {"b": number([255], np.uint8), "b_scale": number(1 / 255), "b_zero": number(0, np.uint8)}
    given |= {"c_scale": number(2 / 255), "c_zero": number(0, np.uint8)}
    (found,) = check_node("com.microsoft::QLinearAdd", given, opset=1, constants=list(given)[1:], dynamic=True)
    assert np.array_equal(found, np.rint(a + 0.5).clip(0, 255))


def test_softmax_counts_whole_steps():
    """1 / y_scale is 254.99998 in f32, of which ONNX Runtime's kernel takes 254."""
    given = {"x": number([[255, 0]], np.uint8), "x_scale": number(1), "x_zero": number(0, np.uint8)}
    given |= {"y_scale": number(1 / 255), "y_zero": number(0, np.uint8)}
    (found,) = check_node("com.microsoft::QLinearSoftmax", given, {"axis": -1, "opset": 13}, opset=1,
                          constants=list(given)[1:])
    assert found.tolist() == [[254, 0]]


@pytest.mark.parametrize(("count", "expected"), [(2, 1), (3, 2)])
def test_halves_of_means(count, expected):
    """The kernel for windows rounds after adding the zero point, that for one window with all elements before."""
    given = {"x": np.array([[[0, 1, 0]]], np.uint8)[..., :count], "x_scale": number(1), "x_zero": number(0, np.uint8)}
    given |= {"y_scale": number(1), "y_zero": number(1, np.uint8)}
    (found,) = check_node("com.microsoft::QLinearAveragePool", given, {"kernel_shape": [2]}, opset=1,
                          constants=list(given)[1:])
    assert found[0, 0, 0] == expected


def test_means_of_windows_that_begin_behind_the_data():
    """Rounding up adds no window that has none of it."""
    given = {"x": numbers(1, 2, 3), "x_scale": number(1), "x_zero": number(0, np.uint8)}
    given |= {"y_scale": number(1), "y_zero": number(1, np.uint8)}
    attributes = {"kernel_shape": [1], "strides": [3], "ceil_mode": 1, "count_include_pad": 1}
    (found,) = check_node("com.microsoft::QLinearAveragePool", given, attributes, opset=1, constants=list(given)[1:],
                          dynamic=True)
    assert found.shape == (1, 2, 1)


def test_absent_zero_points():
    """The schema allows it, ONNX Runtime's kernel does not."""
    x = numbers(2, 3)
    given = {"a": x, "a_scale": number(0.5), "a_zero": None, "b": x.T.copy().reshape(2, 3), "b_scale": number(0.25)}
    given |= {"b_zero": None, "c_scale": number(1)}
    total = given["a"] * 0.5 + given["b"] * 0.25
    check_node("com.microsoft::QLinearAdd", given, opset=1, constants=["a_scale", "b_scale", "c_scale"],
               expected=[np.rint(total).clip(0, 255).astype(np.uint8)])


@pytest.mark.parametrize("keepdims", [0, 1])
def test_mean_along_axes(keepdims):
    """ONNX Runtime has no kernel for it."""
    x = numbers(2, 3, 4, kind=np.int8)
    given = {"x": x, "x_scale": number(0.5), "x_zero": number(3, np.int8), "y_scale": number(0.3)}
    given["y_zero"] = number(-2, np.int8)
    mean = ((x.astype(np.float64) - 3) * 0.5).mean((0, 2), keepdims=bool(keepdims))
    check_node("com.microsoft::QLinearReduceMean", given, {"axes": [0, -1], "keepdims": keepdims}, opset=1,
               dynamic=["x"], constants=list(given)[1:],
               expected=[(np.rint(mean / np.float64(given["y_scale"])) - 2).clip(-128, 127).astype(np.int8)])


# -- Sums of products of integers: operators without a kernel, exact sums, models that ONNX Runtime's quantiser makes


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


# -- Matrix products and lookups with packed weights


def bits_of(packed, bits, length):
    """The integers in bytes, the first in the lowest bits."""
    shifts = np.arange(8 // bits) * bits
    cells = (packed[..., None] >> shifts) & ((1 << bits) - 1)
    return cells.reshape(*packed.shape[:-1], -1)[..., :length]


def product(a, b, scales, zero, groups, bits):
    """a * W in f64; `zero` has a number for each block."""
    integers = bits_of(b.reshape(len(b), -1), bits, a.shape[-1]).astype(np.float64)
    return a.astype(np.float64) @ ((integers - zero[:, groups]) * scales[:, groups]).T


def inputs(length, block, bits, rows=5):
    blocks = -(-length // block)
    return {"a": RANDOM.standard_normal((2, 3, length)).astype(np.float32),
            "b": RANDOM.integers(0, 256, (rows, blocks, block * bits // 8)).astype(np.uint8),
            "scales": RANDOM.uniform(-0.2, 0.2, (rows, blocks)).astype(np.float32)}


WEIGHTS = ("b", "scales", "zero_points", "g_idx", "bias")


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("constants", [WEIGHTS, ()])
def test_packed_zero_points_and_a_shorter_last_block(bits, constants):
    given = inputs(40, 16, bits)
    given["zero_points"] = RANDOM.integers(0, 256, (5, -(-3 * bits // 8))).astype(np.uint8)
    given["g_idx"], given["bias"] = None, np.arange(5, dtype=np.float32)
    zero = bits_of(given["zero_points"], bits, 3)
    expected = product(given["a"], given["b"], given["scales"], zero, np.arange(40) // 16, bits) + given["bias"]
    check_node("com.microsoft::MatMulNBits", given, {"K": 40, "N": 5, "bits": bits, "block_size": 16}, opset=1,
               constants=[name for name in constants if given[name] is not None], dynamic=["a"],
               expected=[expected.astype(np.float32)], atol=1e-4)


@pytest.mark.parametrize("order", ["blocks", "any"])
@pytest.mark.parametrize("bits", [2, 4])
def test_groups_with_packed_zero_points(order, bits):
    """ONNX Runtime ignores the zero points here, and reads weights of 2 bits as weights of 4 bits."""
    given = inputs(40, 16, bits)
    groups = RANDOM.permutation(np.arange(40) // 16) if order == "blocks" else RANDOM.integers(0, 3, 40)
    given["zero_points"] = RANDOM.integers(0, 256, (5, -(-3 * bits // 8))).astype(np.uint8)
    given["g_idx"] = groups.astype(np.int32)
    zero = bits_of(given["zero_points"], bits, 3)
    expected = product(given["a"], given["b"], given["scales"], zero, groups, bits)
    check_node("com.microsoft::MatMulNBits", given, {"K": 40, "N": 5, "bits": bits, "block_size": 16}, opset=1,
               constants=WEIGHTS[:4], expected=[expected.astype(np.float32)], atol=1e-4)


def test_absent_weights():
    given = {"a": np.ones((2, 32), np.float32), "b": np.zeros((4, 0, 16), np.uint8), "scales": np.zeros(0, np.float32),
             "zero_points": None, "g_idx": None, "bias": np.arange(4, dtype=np.float32)}
    check_node("com.microsoft::MatMulNBits", given, {"K": 32, "N": 4, "block_size": 32}, opset=1,
               constants=["b", "scales", "bias"], expected=[np.tile(given["bias"], (2, 1))])


def test_weights_stay_four_bits_in_the_file(tmp_path: Path):
    given = inputs(1000, 32, 4, rows=64)
    model = node_model("com.microsoft::MatMulNBits", given, {"K": 1000, "N": 64, "block_size": 32}, opset=1,
                       constants=["b", "scales"])
    save_model(convert_model(model), tmp_path / "model.xml")
    weights = given["b"].nbytes + given["scales"].nbytes
    assert weights <= (tmp_path / "model.bin").stat().st_size < weights + 200


def test_indices_outside_the_data():
    """They give zeros."""
    table = RANDOM.integers(0, 256, (6, 16)).astype(np.uint8)
    scales = RANDOM.uniform(0.1, 0.2, (6, 1)).astype(np.float32)
    places = np.array([[0, 5, 6], [-1, -7, 40]], np.int64)
    rows = np.concatenate([(bits_of(table, 4, 32) - 8.0) * scales, np.zeros((1, 32))])
    expected = rows[np.where((places < -6) | (places > 5), 6, places % 6)].astype(np.float32)
    check_node("com.microsoft::GatherBlockQuantized", {"data": table, "indices": places, "scales": scales},
               {"block_size": 32}, opset=1, constants=["data", "scales"], dynamic=True, expected=[expected])


def test_training_form_of_a_table_of_weights():
    """The kernel reads elements of other rows here."""
    given = {"a": np.ones((1, 4), np.float32), "b": np.zeros(8, np.uint8), "absmax": np.ones(1, np.float32)}
    attributes = {"K": 4, "N": 4, "block_size": 16, "quant_type": 1, "transB": 0}
    model = node_model("com.microsoft::MatMulBnb4", given, attributes, opset=1, constants=["b", "absmax"])
    with pytest.raises(ConversionErrors, match="transB 0"):
        convert_model(model)


# -- Mixtures of experts in forms that the CPU kernel of ONNX Runtime does not have, and the size of their weights


EXPERTS, HIDDEN, INNER = 3, 8, 4


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def mixture(x, logits, layer, weights, count):
    """The sum over the `count` largest logits; `layer` is the activated result for a token and an expert."""
    total = np.zeros((len(x), HIDDEN))
    shares = np.exp(logits.astype(np.float64))
    shares /= shares.sum(-1, keepdims=True)
    for at, token in enumerate(x):
        for expert in np.argsort(-logits[at])[:count]:
            total[at] += shares[at, expert] * (weights[expert].astype(np.float64) @ layer(token, expert))
    return total.astype(np.float32)


@pytest.mark.parametrize("fusion", [0, 2])
@pytest.mark.parametrize("attributes", [
    {}, {"swiglu_limit": 0.5, "activation_beta": 1.0}, {"swiglu_limit": 0.5, "swiglu_limit_after_activation": 1},
])
def test_gates_apart(fusion, attributes):
    """A third layer, or the gate in the first half of the first layer; factors beyond the limit on both sides."""
    limit, is_after = attributes.get("swiglu_limit", np.inf), "swiglu_limit_after_activation" in attributes
    x, logits, second = normal(5, HIDDEN), normal(5, EXPERTS), normal(EXPERTS, HIDDEN, INNER)
    gate, up = normal(EXPERTS, INNER, HIDDEN), normal(EXPERTS, INNER, HIDDEN)

    def layer(token, expert):
        g, u = gate[expert] @ token, np.clip(up[expert] @ token, -limit, limit)
        g = g if is_after else np.minimum(g, limit)
        y = np.minimum(g / (1 + np.exp(-g)), limit if is_after else np.inf)
        return y * (u + attributes.get("activation_beta", 0))

    first = gate if fusion == 0 else np.concatenate([gate, up], 1)
    given = {"x": x, "logits": logits, "fc1": first, "b1": None, "fc2": second, "b2": None}
    given["fc3"] = up if fusion == 0 else None
    check_node("com.microsoft::MoE", given, {"k": 2, "activation_type": "swiglu", "swiglu_fusion": fusion} | attributes,
               opset=1, constants=[name for name in ("fc1", "fc2", "fc3") if given[name] is not None],
               dynamic=["x", "logits"], expected=[mixture(x, logits, layer, second, 2)])


def quantised(bits, *shape):
    """Packed integers with a scale for each row, and the numbers that they encode."""
    integers = RANDOM.integers(0, 1 << bits, shape).astype(np.uint8)
    scales = RANDOM.uniform(0.5, 1, shape[:2]).astype(np.float32) / (1 << bits)
    parts = integers.reshape(*shape[:2], -1, 8 // bits) << (bits * np.arange(8 // bits)).astype(np.uint8)
    real = (integers - np.float32(1 << (bits - 1))) * scales[..., None]
    return np.bitwise_or.reduce(parts, -1), scales, real


def test_layers_of_different_widths():
    """The kernel does not have them."""
    x, logits = normal(5, HIDDEN), normal(5, EXPERTS)
    fc1, s1, first = quantised(8, EXPERTS, INNER, HIDDEN)
    fc2, s2, second = quantised(4, EXPERTS, HIDDEN, INNER)
    given = {"x": x, "logits": logits, "fc1": fc1, "s1": s1, "b1": None, "fc2": fc2, "s2": s2}
    check_node("com.microsoft::QMoE", given, {"fc1_expert_weight_bits": 8, "activation_type": "identity"}, opset=1,
               constants=["fc1", "s1", "fc2", "s2"], dynamic=["x", "logits"], atol=0.02,
               expected=[of_the_largest(x, logits, first, second)])


def of_the_largest(x, logits, first, second):
    """One expert for each token, with the weight 1."""
    return np.stack(
        [second[expert] @ (first[expert] @ token) for token, expert in zip(x, logits.argmax(1), strict=True)]
    )


LOGITS = np.array([[1, 1, 0], [2, 2, 2], [0, 3, 3], [3, 0, 3], [-np.inf, 0, 0]], np.float32)


@pytest.mark.parametrize("normalised", [0, 1])
def test_the_last_of_equal_logits_is_chosen(normalised):
    given = {"x": normal(5, HIDDEN), "logits": LOGITS, "fc1": normal(EXPERTS, INNER, HIDDEN), "b1": None}
    given |= {"fc2": normal(EXPERTS, HIDDEN, INNER), "b2": normal(EXPERTS, HIDDEN)}
    check_node("com.microsoft::MoE", given, {"k": 1, "normalize_routing_weights": normalised}, opset=1,
               constants=["fc1", "fc2", "b2"], dynamic=["x", "logits"])


def q_moe(**changed):
    """Inputs of QMoE, in the order of the schema."""
    fc1, s1, _ = quantised(4, EXPERTS, INNER, HIDDEN)
    fc2, s2, _ = quantised(4, EXPERTS, HIDDEN, INNER)
    given = {"x": normal(5, HIDDEN), "logits": normal(5, EXPERTS), "fc1": fc1, "s1": s1, "b1": normal(3, INNER)}
    given |= {"fc2": fc2, "s2": s2, "b2": normal(3, HIDDEN)}
    return given | dict.fromkeys(("fc3", "s3", "b3", "z1", "z2", "z3", "weights")) | changed


def test_weights_whose_sum_is_zero_are_not_normalised():
    weights = np.array([[0, 0, 0], [1, -1, 1], [2, 1, 1], [0, 0, 1], [np.inf, 1, 1]], np.float32)
    logits = np.array([[1, 2, 3], [2, 3, 1], [1, 2, 3], [1, 3, 2], [0, 1, 2]], np.float32)
    check_node("com.microsoft::QMoE", q_moe(logits=logits, weights=weights), {"k": 2, "normalize_routing_weights": 1},
               opset=1, constants=["fc1", "s1", "b1", "fc2", "s2", "b2"], dynamic=["x", "logits", "weights"], atol=0.02)


@pytest.mark.parametrize("constant", ["x", "logits", "weights"])
def test_one_input_is_constant(constant):
    """The runtime computes what depends on constants alone once, and would overwrite it."""
    given = q_moe(weights=np.abs(normal(5, EXPERTS)))
    check_node("com.microsoft::QMoE", given, {"k": 2, "activation_type": "silu"}, opset=1,
               constants=["fc1", "s1", "b1", "fc2", "s2", "b2", constant], atol=0.02)


@pytest.mark.parametrize(("attributes", "message"), [
    ({"use_sparse_mixer": 1}, "use_sparse_mixer"),
    ({"activation_type": "swiglu"}, "swiglu"),
    ({"activation_type": "silu", "k": 4}, "k is 4, but there are 3 experts"),
    ({"quant_type": "fp8"}, "fp8"),
    ({"weights_prepacked": 1}, "layout of one device"),
    ({"expert_weight_bits": 3}, "3 bits"),
])
def test_refused(attributes, message):
    with pytest.raises(MoLoopError, match=message):
        convert_model(node_model("com.microsoft::QMoE", q_moe(), attributes, opset=1))


def test_weights_of_experts_stay_four_bits_in_the_file(tmp_path: Path):
    packed = [RANDOM.integers(0, 256, (4, 64, 32)).astype(np.uint8) for _ in range(2)]
    scales = [RANDOM.uniform(0.1, 0.2, (4, 64, 2)).astype(np.float32) for _ in range(2)]
    given = {"x": normal(5, 64), "logits": normal(5, 4), "fc1": packed[0], "s1": scales[0], "b1": None}
    given |= {"fc2": packed[1], "s2": scales[1]}
    model = node_model("com.microsoft::QMoE", given, {"k": 2, "block_size": 32}, opset=1,
                       constants=["fc1", "s1", "fc2", "s2"])
    save_model(convert_model(model), tmp_path / "model.xml")
    size = sum(each.nbytes for each in (*packed, *scales))
    assert size <= (tmp_path / "model.bin").stat().st_size < size + 400
