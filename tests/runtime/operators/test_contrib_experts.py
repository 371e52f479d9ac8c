"""Mixtures of experts in forms that the CPU kernel of ONNX Runtime does not have, and the size of their weights."""

from pathlib import Path

import numpy as np
import pytest

from mo_loop import MoLoopError, convert_model, save_model
from tests.harness import check_node, node_model

RANDOM = np.random.default_rng(21)
EXPERTS, HIDDEN, INNER = 3, 8, 4


def numbers(*shape):
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
    x, logits, second = numbers(5, HIDDEN), numbers(5, EXPERTS), numbers(EXPERTS, HIDDEN, INNER)
    gate, up = numbers(EXPERTS, INNER, HIDDEN), numbers(EXPERTS, INNER, HIDDEN)

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
    x, logits = numbers(5, HIDDEN), numbers(5, EXPERTS)
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
    given = {"x": numbers(5, HIDDEN), "logits": LOGITS, "fc1": numbers(EXPERTS, INNER, HIDDEN), "b1": None}
    given |= {"fc2": numbers(EXPERTS, HIDDEN, INNER), "b2": numbers(EXPERTS, HIDDEN)}
    check_node("com.microsoft::MoE", given, {"k": 1, "normalize_routing_weights": normalised}, opset=1,
               constants=["fc1", "fc2", "b2"], dynamic=["x", "logits"])


def q_moe(**changed):
    """Inputs of QMoE, in the order of the schema."""
    fc1, s1, _ = quantised(4, EXPERTS, INNER, HIDDEN)
    fc2, s2, _ = quantised(4, EXPERTS, HIDDEN, INNER)
    given = {"x": numbers(5, HIDDEN), "logits": numbers(5, EXPERTS), "fc1": fc1, "s1": s1, "b1": numbers(3, INNER)}
    given |= {"fc2": fc2, "s2": s2, "b2": numbers(3, HIDDEN)}
    return given | dict.fromkeys(("fc3", "s3", "b3", "z1", "z2", "z3", "weights")) | changed


def test_weights_whose_sum_is_zero_are_not_normalised():
    weights = np.array([[0, 0, 0], [1, -1, 1], [2, 1, 1], [0, 0, 1], [np.inf, 1, 1]], np.float32)
    logits = np.array([[1, 2, 3], [2, 3, 1], [1, 2, 3], [1, 3, 2], [0, 1, 2]], np.float32)
    check_node("com.microsoft::QMoE", q_moe(logits=logits, weights=weights), {"k": 2, "normalize_routing_weights": 1},
               opset=1, constants=["fc1", "s1", "b1", "fc2", "s2", "b2"], dynamic=["x", "logits", "weights"], atol=0.02)


@pytest.mark.parametrize("constant", ["x", "logits", "weights"])
def test_one_input_is_constant(constant):
    """The runtime computes what depends on constants alone once, and would overwrite it."""
    given = q_moe(weights=np.abs(numbers(5, EXPERTS)))
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


def test_weights_stay_four_bits_in_the_file(tmp_path: Path):
    packed = [RANDOM.integers(0, 256, (4, 64, 32)).astype(np.uint8) for _ in range(2)]
    scales = [RANDOM.uniform(0.1, 0.2, (4, 64, 2)).astype(np.float32) for _ in range(2)]
    given = {"x": numbers(5, 64), "logits": numbers(5, 4), "fc1": packed[0], "s1": scales[0], "b1": None}
    given |= {"fc2": packed[1], "s2": scales[1]}
    model = node_model("com.microsoft::QMoE", given, {"k": 2, "block_size": 32}, opset=1,
                       constants=["fc1", "s1", "fc2", "s2"])
    save_model(convert_model(model), tmp_path / "model.xml")
    size = sum(each.nbytes for each in (*packed, *scales))
    assert size <= (tmp_path / "model.bin").stat().st_size < size + 400
