"""Linear attention: rules of the state, heads that share a state, and states that are carried on."""

import numpy as np
import onnx
import pytest

from tests.harness import check_model, check_node, every, need_onnxruntime, node_model, refusal

RNG = np.random.default_rng(3)
LINEAR = "com.microsoft::LinearAttention"


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def tokens(count, heads=2, states=2, keys=None, size=3, width=4, per_key=False, dtype=np.float32):
    """The inputs for `count` tokens of two sequences."""
    return {
        "q": floats(2, count, heads * size, dtype=dtype),
        "k": floats(2, count, (keys or states) * size, dtype=dtype) / 2,
        "v": floats(2, count, states * width, dtype=dtype), "past": floats(2, states, size, width, dtype=dtype),
        "decay": -np.abs(floats(2, count, states * (size if per_key else 1), dtype=dtype)),
        "beta": np.abs(floats(2, count, states, dtype=dtype)) / 3,
    }


def check(inputs, heads=2, states=2, dynamic=False, **attributes):
    attributes |= {"q_num_heads": heads, "kv_num_heads": states}
    check_node(LINEAR, inputs, attributes, opset=1, outputs=["y", "state"], dynamic=dynamic, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta"])
def test_rules_of_the_state(rule):
    check(tokens(5), update_rule=rule, dynamic=True)


@every(dynamic=[False, True])
def test_the_first_state_is_zeros(dynamic):
    check(tokens(3) | {"past": None}, dynamic=dynamic)


@every(count=[0, 1, 37], dynamic=[False, True])
def test_no_tokens_one_and_several_chunks(count, dynamic):
    check(tokens(count), dynamic=dynamic)


def test_equal_keys_without_decay():
    """The worst case of the inverse inside a chunk: each token replaces what the one before wrote."""
    inputs = tokens(20)
    inputs["k"] = np.tile(np.float32([0.6, 0, 0.8]), (2, 20, 2))
    check(inputs | {"decay": None, "beta": np.ones((2, 20, 2), np.float32)}, update_rule="delta")


def test_a_decay_of_minus_infinity_clears_the_state():
    inputs = tokens(20)
    inputs["decay"][:, 7] = -np.inf
    check(inputs)


@every(dynamic=[False, True])
def test_a_decay_for_each_element_of_a_key(dynamic):
    check(tokens(4, per_key=True), dynamic=dynamic)


@pytest.mark.parametrize(("heads", "states", "keys"), [(4, 2, 2), (2, 4, 4), (4, 4, 2), (1, 3, 1)])
def test_heads_that_share(heads, states, keys):
    check(tokens(3, heads, states, keys), heads, states, dynamic=True)


def test_states_of_another_type():
    inputs = tokens(3, dtype=np.float16)
    check({**inputs, "past": inputs["past"].astype(np.float32)})


def test_a_window_of_states_is_refused():
    inputs = tokens(3)
    attributes = {"q_num_heads": 2, "kv_num_heads": 2, "state_window": 2}
    assert "ML316" in str(refusal(node_model(LINEAR, inputs, attributes, opset=1, outputs=["y", "state"])))


IN_A_LOOP = """
<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
main (int64 n, {type}[2,T,6] q, {type}[2,T,6] k, {type}[2,T,8] v, {type}[2,T,2] decay, {type}[2,T,2] beta,
      {type}[2,3,8] conv_past, {type}[8,1,4] w, {type}[2,2,3,4] past)
  => ({type}[2,2,3,4] state, {type}[2,3,8] conv_state, {type}[N,2,T,8] y)
{{
  go = Constant <value = bool {{1}}> ()
  state, conv_state, y = Loop (n, go, past, conv_past) <body = step (
      int64 i, bool cond, {type}[2,2,3,4] held, {type}[2,3,8] before)
    => (bool next, {type}[2,2,3,4] after, {type}[2,3,8] behind, {type}[2,T,8] read)
  {{
    next = Identity (cond)
    mixed, behind = com.microsoft.CausalConvWithState <channels_last = 1, activation = "silu"> (v, w, , before)
    read, after = com.microsoft.LinearAttention <q_num_heads = 2, kv_num_heads = 2> (q, k, mixed, held, decay, beta)
  }}>
}}"""


@pytest.mark.parametrize("kind", ["float", "float16"])
def test_states_are_carried_by_a_loop(kind):
    dtype = np.float32 if kind == "float" else np.float16
    inputs = tokens(3, dtype=dtype)
    inputs |= {"conv_past": floats(2, 3, 8, dtype=dtype), "w": floats(8, 1, 4, dtype=dtype), "n": np.int64(3)}
    model = onnx.parser.parse_model(IN_A_LOOP.format(type=kind))
    rtol = 1e-4 if dtype == np.float32 else 2e-2
    check_model(model, inputs, {**inputs, **tokens(1, dtype=dtype), "n": np.int64(2)}, rtol=rtol, atol=rtol)


# -- GatedDeltaNet

NET = "com.microsoft::GatedDeltaNet"


def packed(ends, heads=2, states=4, size=3, width=2, per_key=False):
    """Tokens of sequences that end at these places."""
    count = ends[-1]
    return {
        "q": floats(count, heads, size), "k": floats(count, heads, size) / 2, "v": floats(count, states, width),
        "ends": np.array([0, *ends], np.int32), "decay": -np.abs(floats(count, states, *([size] if per_key else []))),
        "beta": np.abs(floats(count, states)) / 3, "state": floats(len(ends), states, width, size),
    }


def check_net(inputs, attributes=None, outputs=("y", "final"), dynamic=False):
    need_onnxruntime("1.32")
    check_node(NET, inputs, attributes, opset=1, outputs=outputs, dynamic=dynamic, rtol=1e-4, atol=1e-4)


@every(ends=[[2, 3, 7], [0, 4, 4]], dynamic=[False, True])
def test_sequences_of_different_lengths(ends, dynamic):
    check_net(packed(ends), dynamic=dynamic)


@every(gate=["softplus", "sigmoid"], dynamic=[False, True])
def test_gates_and_keys_of_length_one(gate, dynamic):
    """The kernel adds another number to the squares of short keys if the gate is a sigmoid."""
    inputs = packed([3, 5], per_key=True) | {"a": floats(4), "dt": floats(12)}
    inputs |= {"q": inputs["q"] / 100, "k": inputs["k"] / 100}
    attributes = {"gate_activation": gate, "beta_activation": "sigmoid", "qk_l2_norm": 1}
    names = ["q", "k", "v", "ends", "decay", "beta", "state"] if dynamic else False
    check_net(inputs, attributes, dynamic=names)


@every(dynamic=[False, True])
def test_queries_keys_and_values_side_by_side(dynamic):
    inputs = packed([3, 6])
    parts = [inputs[name].reshape(6, -1) for name in ("q", "k", "v")]
    inputs |= {"q": np.concatenate(parts, axis=1), "k": None, "v": None, "ends": None}
    check_net(inputs, dynamic=["decay", "beta"] if dynamic else False)


@every(active=[0, 1], dynamic=[False, True])
def test_the_first_changes_are_captured(active, dynamic):
    inputs = packed([1, 3, 6]) | {"a": None, "dt": None, "count": np.array([2, 1, -1], np.int32)}
    inputs["active"] = np.array([active], np.int32)
    check_net(inputs, {"state_update_capacity": 2}, ["y", "final", "update"], dynamic)


def test_values_with_heads_known_at_run_time():
    """A Transpose of chunks of one batch, between two Reshapes, is not a shuffle of channels."""
    need_onnxruntime("1.32")
    inputs = {"q": floats(1, 3, 2, 2), "k": floats(1, 3, 2, 2), "v": floats(1, 3, 4, 2)}
    model = node_model(NET, inputs, {"update_rule": "linear"}, opset=1, outputs=["y", "final"])
    model.graph.input[2].type.tensor_type.shape.dim[2].dim_param = "heads"
    check_model(model, inputs)
