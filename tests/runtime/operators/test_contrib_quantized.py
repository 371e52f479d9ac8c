"""Operators of com.microsoft on integers and with packed weights."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from mo_loop.api import convert_model, save_model
from tests.cases import read_cases
from tests.harness import check, check_node, node_model

# -- Operators on tensors of 8 bits: roundings of ONNX Runtime's kernels, and operators without a kernel


RANDOM = np.random.default_rng(18)


def number(value, kind=np.float32):
    return np.array(value, kind)


def numbers(*shape, kind=np.uint8):
    info = np.iinfo(kind)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(kind)


# -- Sums of products of integers: operators without a kernel, exact sums, models that ONNX Runtime's quantiser makes


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


def test_weights_stay_four_bits_in_the_file(tmp_path: Path):
    given = inputs(1000, 32, 4, rows=64)
    model = node_model("com.microsoft::MatMulNBits", given, {"K": 1000, "N": 64, "block_size": 32}, opset=1,
                       constants=["b", "scales"])
    save_model(convert_model(model), tmp_path / "model.xml")
    weights = given["b"].nbytes + given["scales"].nbytes
    assert weights <= (tmp_path / "model.bin").stat().st_size < weights + 200


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


def of_the_largest(x, logits, first, second):
    """One expert for each token, with the weight 1."""
    return np.stack(
        [second[expert] @ (first[expert] @ token) for token, expert in zip(x, logits.argmax(1), strict=True)]
    )


LOGITS = np.array([[1, 1, 0], [2, 2, 2], [0, 3, 3], [3, 0, 3], [-np.inf, 0, 0]], np.float32)


def q_moe(**changed):
    """Inputs of QMoE, in the order of the schema."""
    fc1, s1, _ = quantised(4, EXPERTS, INNER, HIDDEN)
    fc2, s2, _ = quantised(4, EXPERTS, HIDDEN, INNER)
    given = {"x": normal(5, HIDDEN), "logits": normal(5, EXPERTS), "fc1": fc1, "s1": s1, "b1": normal(3, INNER)}
    given |= {"fc2": fc2, "s2": s2, "b2": normal(3, HIDDEN)}
    return given | dict.fromkeys(("fc3", "s3", "b3", "z1", "z2", "z3", "weights")) | changed


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


read_cases(globals())
