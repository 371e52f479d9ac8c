"""Attention and convolutions of decoders of com.microsoft, with states that are carried on."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.cases import read_cases
from tests.harness import check_model, check_node, graph_model, need_onnxruntime, node_model
from tests.texts import texts

TEXTS = texts(__file__)

# -- Attention of decoders: ONNX Runtime has no CPU kernel for these operators, so numpy computes what they shall give


RNG = np.random.default_rng(41)
BATCH, HEADS, SIZE, S = 2, 3, 8, 3
HIDDEN = HEADS * SIZE
OF_DECODERS, OF_TOKENS = "com.microsoft::DecoderAttention", "com.microsoft::DecoderMaskedSelfAttention"
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def heads(x):
    """[.., hidden] as [.., heads, size]."""
    return x.reshape(*x.shape[:-1], HEADS, -1)


def attention(q, k, v, mask=None, scale=SIZE**-0.5):
    """Tensors of [batch, heads, rows, size]; the mask is added."""
    scores = q @ k.swapaxes(2, 3) * np.float32(scale) + (0 if mask is None else mask)
    weights = np.exp(scores - scores.max(3, keepdims=True))
    return (weights / weights.sum(3, keepdims=True) @ v).astype(q.dtype)


# -- DecoderAttention


def decoder(is_cross, reads_past, is_masked, dtype=np.float32):
    """The inputs of a node, and its outputs: two steps of self attention, or of one key of the encoder."""
    length, past = 4, 2
    inputs: dict[str, Any] = {
        "query": floats(S, BATCH, HIDDEN, dtype=dtype), "key": floats(length, BATCH, HIDDEN, dtype=dtype),
        "wq": (0.3 * floats(HIDDEN, HIDDEN)).astype(dtype), "wkv": (0.3 * floats(HIDDEN, 2 * HIDDEN)).astype(dtype),
        "b": floats(3 * HIDDEN, dtype=dtype),
    }
    query, key, wq, wkv, b = inputs.values()
    cache = [floats(BATCH, HEADS, past, SIZE, dtype=dtype) if reads_past else None for _ in range(2)]
    q = heads(query @ wq + b[:HIDDEN]).transpose(1, 2, 0, 3)
    k, v = (heads(x).transpose(1, 2, 0, 3) for x in np.split((key if is_cross else query) @ wkv + b[HIDDEN:], 2, 2))
    if reads_past:
        k, v = cache if is_cross else (np.concatenate(pair, 2) for pair in zip(cache, (k, v), strict=True))
    padding = RNG.random((BATCH, k.shape[2])) < 0.5
    padding[:, 0] = False
    inputs |= {"padding": padding if is_masked else None, "key_cache": cache[0], "value_cache": cache[1]}
    flags = {"static_kv": is_cross, "use_past": reads_past, "has_state": True, "has_padding": is_masked}
    inputs |= {name: np.array([flag]) for name, flag in flags.items()}
    y = attention(q, k, v, np.where(padding, -np.inf, 0)[:, None, None].astype(dtype) if is_masked else None)
    return inputs, list(flags), [y.transpose(2, 0, 1, 3).reshape(S, BATCH, HIDDEN), k, v]


def test_cache_of_a_loop_grows():
    """The new caches are the states of a loop: self attention of three steps."""
    inputs, flags, _ = decoder(False, True, False)
    inner = {name: inputs[name] for name in ("wq", "wkv", "b")} | {name: inputs[name] for name in flags}
    ports = ["x", "x", "wq", "wkv", "b", "", "kc", "vc", *flags]
    cache = ["batch", HEADS, "past", SIZE]
    body = helper.make_graph(
        [helper.make_node("DecoderAttention", ports, ["y", "nk", "nv"], domain="com.microsoft", num_heads=HEADS),
         helper.make_node("Identity", ["going"], ["go"])],
        "step",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("going", 9, []),
         helper.make_tensor_value_info("x", 1, ["rows", "batch", HIDDEN]),
         *(helper.make_tensor_value_info(name, 1, cache) for name in ("kc", "vc"))],
        [helper.make_tensor_value_info("go", 9, []), helper.make_tensor_value_info("y", 1, ["rows", "batch", HIDDEN]),
         *(helper.make_tensor_value_info(name, 1, cache) for name in ("nk", "nv"))],
    )
    loop = helper.make_node("Loop", ["trips", "", "query", "key_cache", "value_cache"], ["y", "k", "v"], body=body)
    fed = {name: inputs[name] for name in ("query", "key_cache", "value_cache")}
    constants = {**inner, "trips": np.array(3, np.int64)}
    model = graph_model([loop], fed, ["y", "k", "v"], opset=18, constants=constants, dynamic=True)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    x, k, v = fed.values()
    for _ in range(3):
        q = heads(x @ inner["wq"] + inner["b"][:HIDDEN]).transpose(1, 2, 0, 3)
        new = (heads(each).transpose(1, 2, 0, 3) for each in np.split(x @ inner["wkv"] + inner["b"][HIDDEN:], 2, 2))
        k, v = (np.concatenate(pair, 2) for pair in zip((k, v), new, strict=True))
        x = attention(q, k, v).transpose(2, 0, 1, 3).reshape(x.shape)
    check_model(model, fed, expected=[x, k, v], rtol=1e-4, atol=1e-4)


# -- DecoderMaskedSelfAttention


def in_blocks(keys):
    """Rows of keys as a buffer holds them: blocks of 16 bytes of all rows, one block after another."""
    block = 16 // keys.dtype.itemsize
    return keys.reshape(*keys.shape[:3], -1, block).transpose(0, 1, 3, 2, 4).reshape(keys.shape)


def token(dtype=np.float32):
    """The inputs that a node always has, and Q, K and V for the new token."""
    x, w = floats(BATCH, 1, 5, dtype=dtype), floats(5, 3 * HIDDEN, dtype=dtype)
    b = floats(3 * HIDDEN, dtype=dtype)
    return {"x": x, "w": w, "b": b}, [heads(each).swapaxes(1, 2) for each in np.split(x @ w + b, 3, 2)]


@pytest.mark.parametrize(("dtype", "has_beams"), [(np.float32, False), (np.float32, True), (np.float16, True)], ids=str)
@dynamic_or_not
def test_buffer_whose_keys_lie_in_blocks(dtype, has_beams, dynamic):
    """With beams, a token of the past was written by the beam that `beams` names."""
    inputs, (q, k, v) = token(dtype)
    past, length, most = floats(2, BATCH, HEADS, 7, SIZE, dtype=dtype), 4, 7
    beams = RNG.integers(0, BATCH, (1, BATCH, most)).astype(np.int32)
    present = past.copy()
    present[0, :, :, length], present[1, :, :, length] = k[:, :, 0], v[:, :, 0]
    used = present[:, :, :, : length + 1].copy()
    if has_beams:
        for row, place in np.ndindex(BATCH, length):
            used[:, row, :, place] = past[:, beams[0, row, place], :, place]
    y = attention(q, *used).reshape(BATCH, 1, HIDDEN)
    inputs |= {"mask": None, "past": np.stack([in_blocks(past[0]), past[1]]), "bias": None}
    inputs["length"] = np.array([length], np.int32)
    if has_beams:
        inputs |= {"width": np.array([BATCH], np.int32), "beams": beams}
    near = 2e-2 if dtype == np.float16 else 1e-4
    check_node(OF_TOKENS, inputs, {"num_heads": HEADS, "past_present_share_buffer": 1}, opset=1,
               outputs=["y", "present"], dynamic=dynamic, expected=[y, np.stack([in_blocks(present[0]), present[1]])],
               rtol=near, atol=near)


# -- Linear attention: rules of the state, heads that share a state, and states that are carried on


LINEAR = "com.microsoft::LinearAttention"


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


IN_A_LOOP = TEXTS["in a loop"]


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


def test_values_with_heads_known_at_run_time():
    """A Transpose of chunks of one batch, between two Reshapes, is not a shuffle of channels."""
    need_onnxruntime("1.32")
    inputs = {"q": floats(1, 3, 2, 2), "k": floats(1, 3, 2, 2), "v": floats(1, 3, 4, 2)}
    model = node_model(NET, inputs, {"update_rule": "linear"}, opset=1, outputs=["y", "final"])
    model.graph.input[2].type.tensor_type.shape.dim[2].dim_param = "heads"
    check_model(model, inputs)


# -- Causal convolutions: states, layouts, and sequences that are packed


STATEFUL, PACKED = "com.microsoft::CausalConvWithState", "com.microsoft::VarlenCausalConvWithState"


@pytest.mark.parametrize("ends", [[0, 2, 3, 7], [0, 0, 7, 7]])
@dynamic_or_not
def test_packed_sequences_have_states_of_their_own(ends, dynamic):
    need_onnxruntime("1.32")
    inputs = {"x": floats(7, 2), "w": floats(2, 1, 3), "ends": np.array(ends, np.int32), "b": floats(2),
              "state": floats(3, 2, 4), "count": np.array([5, -1, 2], np.int32)}
    attributes = {"dilation": 2, "state_update_capacity": 3}
    outputs = ["y", "final", "update"]
    check_node(PACKED, inputs, attributes, opset=1, outputs=outputs, constants=["w", "b"], dynamic=dynamic)


read_cases(globals())
