"""Packed sequences: ONNX Runtime has no CPU kernel for these operators, so numpy computes what they shall give."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.harness import check_model, check_node, graph_model

RNG = np.random.default_rng(37)
HEADS, SIZE, V_SIZE = 2, 4, 6
DOMAIN = "com.microsoft::"
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
lengths_of_sequences = pytest.mark.parametrize("lengths", [[1, 4, 2], [3], [2, 0, 3]], ids=str)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def packing(lengths, rows):
    """token_offset and cumulative_sequence_length."""
    inside = (np.arange(rows) < np.array(lengths)[:, None]).reshape(-1)
    offsets = np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)])
    sums = np.concatenate([[0], np.cumsum(lengths)])
    return {"offset": offsets.reshape(len(lengths), rows).astype(np.int32), "ends": sums.astype(np.int32)}


def attention(q, k, v, lengths, bias=None, scale=None):
    """Each sequence by itself; q, k and v are [tokens, heads, size]."""
    found, first = [], 0
    for number, length in enumerate(lengths):
        rows = slice(first, first + length)
        first += length
        if not length:
            continue
        scores = np.einsum("shd,thd->hst", q[rows], k[rows]) * np.float32(scale or q.shape[2] ** -0.5)
        if bias is not None:
            scores = scores + bias[min(number, len(bias) - 1), :, :length, :length]
        weights = np.exp(scores - scores.max(2, keepdims=True))
        weights /= weights.sum(2, keepdims=True)
        found.append(np.einsum("hst,thd->shd", weights, v[rows]).reshape(length, -1))
    return np.concatenate(found).astype(q.dtype)


@lengths_of_sequences
@dynamic_or_not
def test_padding_is_removed(lengths, dynamic):
    x = floats(len(lengths), 4, 5)
    inputs = {"x": x, "count": np.array(lengths, np.int32)}
    packed = packing(lengths, 4)
    inside = np.arange(4) < np.array(lengths)[:, None]
    expected = [x[inside], packed["offset"], packed["ends"], np.array([max(lengths)], np.int32)]
    names = ["y", "offset", "ends", "largest"]
    check_node(DOMAIN + "RemovePadding", inputs, opset=1, outputs=names, dynamic=dynamic, expected=expected)


@pytest.mark.parametrize(("lengths", "dtype"), [([1, 4, 2], np.float16), ([3], np.float32)], ids=str)
@dynamic_or_not
def test_padding_is_restored(lengths, dtype, dynamic):
    x, offset = floats(sum(lengths), 5, dtype=dtype), packing(lengths, 4)["offset"]
    y = np.zeros((len(lengths) * 4, 5), dtype)
    y[offset.reshape(-1)[: len(x)]] = x
    expected = [y.reshape(len(lengths), 4, 5)]
    inputs = {"x": x, "offset": offset}
    check_node(DOMAIN + "RestorePadding", inputs, opset=1, dynamic=dynamic, expected=expected)


@pytest.mark.parametrize("bias_shape", [None, (1, 1), (3, HEADS)], ids=str)
@dynamic_or_not
def test_attention_with_projection(bias_shape, dynamic):
    lengths, hidden = [1, 4, 2], HEADS * SIZE
    bias = floats(*bias_shape, 4, 4) if bias_shape else None
    sizes = [hidden, hidden, HEADS * V_SIZE]
    x, w, b = floats(sum(lengths), 5), floats(5, sum(sizes)), floats(sum(sizes))
    q, k, v = (each.reshape(len(x), HEADS, -1) for each in np.split(x @ w + b, [hidden, 2 * hidden], 1))
    inputs = {"x": x, "w": w, "b": b, **packing(lengths, 4), "bias": bias}
    attributes: dict[str, Any] = {"num_heads": HEADS, "qkv_hidden_sizes": sizes, "scale": 0.3}
    check_node(DOMAIN + "PackedAttention", inputs, attributes, opset=1, dynamic=dynamic, constants=["w", "b"],
               expected=[attention(q, k, v, lengths, bias, 0.3)])


@pytest.mark.parametrize(("lengths", "dtype"), [([1, 4, 2], np.float16), ([2, 0, 3], np.float32)], ids=str)
@dynamic_or_not
def test_heads_of_their_own(lengths, dtype, dynamic):
    tokens, hidden = sum(lengths), HEADS * SIZE
    q, k = floats(tokens, hidden, dtype=dtype), floats(tokens, hidden, dtype=dtype)
    v, bias = floats(tokens, HEADS * V_SIZE, dtype=dtype), floats(1, HEADS, 4, 4, dtype=dtype)
    inputs = {"q": q, "k": k, "v": v, "b": None, **packing(lengths, 4), "bias": bias}
    y = attention(*[each.reshape(tokens, HEADS, -1) for each in (q, k, v)], lengths, bias)
    near = 1e-2 if dtype == np.float16 else None
    check_node(DOMAIN + "PackedMultiHeadAttention", inputs, {"num_heads": HEADS}, opset=1, dynamic=dynamic,
               expected=[y], rtol=near, atol=near)


@dynamic_or_not
def test_heads_in_one_tensor(dynamic):
    lengths, hidden = [1, 4, 2], HEADS * SIZE
    qkv, b = floats(sum(lengths), HEADS, 3, SIZE), floats(3 * hidden)
    inputs = {"qkv": qkv, "k": None, "v": None, "b": b, **packing(lengths, 4)}
    q, k, v = (qkv[:, :, number] + b.reshape(3, HEADS, SIZE)[number] for number in range(3))
    expected = [attention(q, k, v, lengths)]
    op = DOMAIN + "PackedMultiHeadAttention"
    check_node(op, inputs, {"num_heads": HEADS}, opset=1, dynamic=dynamic, constants=["b"], expected=expected)


def test_layers_of_a_body_between_removed_and_restored_padding():
    """The number of tokens is known at run time only, and they are the state of a loop."""
    hidden, counts, trips = HEADS * SIZE, [[1, 4, 2], [4, 4, 4]], 3
    w, b = 0.4 * floats(hidden, 3 * hidden), floats(3 * hidden)
    body = helper.make_graph(
        [
            helper.make_node("PackedAttention", ["h", "w", "b", "offset", "ends"], ["h1"], domain="com.microsoft",
                             num_heads=HEADS),
            helper.make_node("Identity", ["going"], ["go"]),
        ],
        "layer",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("going", 9, []),
         helper.make_tensor_value_info("h", 1, ["tokens", hidden])],
        [helper.make_tensor_value_info("go", 9, []), helper.make_tensor_value_info("h1", 1, ["tokens", hidden])],
    )
    nodes = [
        helper.make_node("RemovePadding", ["x", "count"], ["packed", "offset", "ends", "m"], domain="com.microsoft"),
        helper.make_node("Loop", ["trips", "", "packed"], ["last"], body=body),
        helper.make_node("RestorePadding", ["last", "offset"], ["y"], domain="com.microsoft"),
    ]
    feeds = [{"x": floats(3, 4, hidden), "count": np.array(each, np.int32)} for each in counts]
    constants = {"w": w, "b": b, "trips": np.array(trips, np.int64)}
    model = graph_model(nodes, feeds[0], ["y"], opset=18, constants=constants, dynamic=True)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    for feed, lengths in zip(feeds, counts, strict=True):
        inside = np.arange(4) < np.array(lengths)[:, None]
        h = feed["x"][inside]
        for _ in range(trips):
            h = attention(*[each.reshape(len(h), HEADS, SIZE) for each in np.split(h @ w + b, 3, 1)], lengths)
        y = np.zeros_like(feed["x"])
        y[inside] = h
        check_model(model, feed, expected=[y], rtol=1e-4)
