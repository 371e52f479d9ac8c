"""Attention and MultiHeadAttention: what masks, pasts and packed tensors mean."""

from typing import Any

import numpy as np
import pytest

from tests.harness import check_node

RNG = np.random.default_rng(17)
BATCH, HEADS, S, SIZE = 2, 3, 4, 5
HIDDEN = HEADS * SIZE
LOWEST = float(np.finfo(np.float32).min)
MHA = "com.microsoft::MultiHeadAttention"
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def int32s(values):
    return np.array(values, np.int32)


def three(length=S):
    return {"q": floats(BATCH, S, HIDDEN), "k": floats(BATCH, length, HIDDEN), "v": floats(BATCH, length, HIDDEN)}


@pytest.mark.parametrize(("mask", "filter_value"), [("ends", -1e4), ("keys", LOWEST), ("pairs", -1e4)])
@dynamic_or_not
def test_masks_with_later_keys(mask, filter_value, dynamic):
    masks = {"ends": int32s([3, 1]), "keys": int32s([[1, 0, 1, 1], [0, 0, 0, 0]]),
             "pairs": RNG.integers(0, 2, (BATCH, S, S)).astype(np.int32)}
    inputs = {**three(), "bias": floats(3 * HIDDEN), "mask": masks[mask]}
    attributes = {"num_heads": HEADS, "unidirectional": 1, "mask_filter_value": filter_value}
    check_node(MHA, inputs, attributes, opset=1, dynamic=dynamic)


def test_half_precision_has_masks_beyond_its_range():
    inputs = {name: each.astype(np.float16) for name, each in three().items()}
    inputs |= {"bias": None, "mask": int32s([[0, 0, 0, 0], [1, 1, 0, 0]])}
    check_node(MHA, inputs, {"num_heads": HEADS, "mask_filter_value": LOWEST}, opset=1, rtol=2e-3, atol=2e-3)


@dynamic_or_not
def test_last_query_reads_all_keys_of_others(dynamic):
    check_node(MHA, three(S + 3), {"num_heads": HEADS, "unidirectional": 1}, opset=1, dynamic=dynamic)


@dynamic_or_not
def test_past_is_written_into_a_buffer(dynamic):
    past = {name: floats(BATCH, HEADS, 9, SIZE) for name in ("past_k", "past_v")}
    inputs = {**three(), "bias": None, "mask": None, "added": None, **past, "length": int32s([2])}
    check_node(MHA, inputs, {"num_heads": HEADS}, opset=1, outputs=["y", "pk", "pv"], dynamic=dynamic)


def test_scores_are_an_output():
    inputs, attributes = {**three(), "bias": None, "mask": int32s([3, 1])}, {"num_heads": HEADS}
    found = check_node(MHA, inputs, attributes, opset=1, outputs=["y", "pk", "pv"])
    q, k = (inputs[name].reshape(BATCH, S, HEADS, SIZE).transpose(0, 2, 1, 3) for name in "qk")
    scores = q @ k.swapaxes(2, 3) / np.sqrt(np.float32(SIZE))
    scores[0, :, :, 3:] -= 10000
    scores[1, :, :, 1:] -= 10000
    names = ["y", "pk", "pv", "qk"]
    check_node(MHA, inputs, attributes, opset=1, outputs=names, dynamic=True, expected=[*found, scores])


def test_bias_of_a_constant_key():
    """Keys are a constant with a part of the bias."""
    check_node(MHA, {**three(), "bias": floats(3 * HIDDEN)}, {"num_heads": HEADS}, opset=1, constants=["k"])


def test_packed():
    given, attributes = three(), {"num_heads": HEADS}
    q, k, v = (each.reshape(BATCH, S, HEADS, SIZE) for each in given.values())
    y = check_node(MHA, given, attributes, opset=1)
    packed: list[dict[str, Any]] = [{"qkv": np.stack([q, k, v], 3)}, {"q": given["q"], "kv": np.stack([k, v], 3)}]
    for inputs in packed:
        for dynamic in (False, True):
            check_node(MHA, inputs, attributes, opset=1, dynamic=dynamic, expected=y)


@dynamic_or_not
def test_ends_followed_by_starts(dynamic):
    inputs = {"x": floats(BATCH, S, 6), "w": floats(6, 3 * HIDDEN), "b": floats(3 * HIDDEN)}
    inputs["mask"] = int32s([4, 3, 1, 2])
    check_node("com.microsoft::Attention", inputs, {"num_heads": HEADS}, opset=1, dynamic=dynamic, constants=["w", "b"])


def test_square_mask():
    """[batch, 1, M, M]: the rows of the queries and the columns of the keys; both are fewer than M."""
    square = RNG.integers(0, 2, (BATCH, 1, 9, 9)).astype(np.int32)
    inputs = {"x": floats(BATCH, S, 6), "w": floats(6, 3 * HIDDEN), "b": floats(3 * HIDDEN)}
    past, pairs = floats(2, BATCH, HEADS, 2, SIZE), np.ascontiguousarray(square[:, 0, 2 : 2 + S, : 2 + S])
    attributes, names, op = {"num_heads": HEADS}, ["y", "present"], "com.microsoft::Attention"
    same = check_node(op, {**inputs, "mask": pairs, "past": past}, attributes, opset=1, outputs=names)
    given = {**inputs, "mask": square, "past": past}
    for dynamic in (False, True):
        check_node(op, given, attributes, opset=1, outputs=names, dynamic=dynamic, expected=same)


def test_attention_writes_into_a_buffer():
    inputs = {"x": floats(BATCH, S, 6), "w": floats(6, 3 * HIDDEN), "b": floats(3 * HIDDEN)}
    past = floats(2, BATCH, HEADS, 3, SIZE)
    names, op = ["y", "present"], "com.microsoft::Attention"
    given = {**inputs, "mask": None, "past": past}
    y, present = check_node(op, given, {"num_heads": HEADS}, opset=1, outputs=names, dynamic=True)
    buffer = floats(2, BATCH, HEADS, 9, SIZE)
    buffer[:, :, :, :3] = past
    whole = buffer.copy()
    whole[:, :, :, :7] = present
    given |= {"past": buffer, "added": None, "length": int32s([3])}
    attributes = {"num_heads": HEADS, "past_present_share_buffer": 1}
    for dynamic in (False, True):
        check_node(op, given, attributes, opset=1, outputs=names, dynamic=dynamic, expected=[y, whole])


@dynamic_or_not
def test_projection_of_integers(dynamic):
    inputs = {
        "x": RNG.integers(0, 256, (BATCH, S, 6)).astype(np.uint8),
        "w": RNG.integers(-64, 64, (6, 3 * HIDDEN)).astype(np.int8), "b": floats(3 * HIDDEN),
        "x_scale": np.float32(0.02), "w_scale": RNG.uniform(0.001, 0.02, 3 * HIDDEN).astype(np.float32),
        "mask": int32s([4, 2]), "x_zero": np.uint8(120), "w_zero": np.zeros(3 * HIDDEN, np.int8),
    }
    attributes = {"num_heads": HEADS, "unidirectional": 1}
    check_node("com.microsoft::QAttention", inputs, attributes, opset=1, dynamic=dynamic, constants=["w", "b"])
