"""GroupQueryAttention: caches, positions and sinks."""

import numpy as np
import pytest

from tests.harness import check_node

RNG = np.random.default_rng(23)
OP, NAMES = "com.microsoft::GroupQueryAttention", ["y", "present_k", "present_v"]
HEADS, KV_HEADS, SIZE = 4, 2, 16
COUNTS = {"num_heads": HEADS, "kv_num_heads": KV_HEADS}
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def step(batch, rows, total, held=0, ends=None):
    """The inputs of one step with a cache of `held` rows."""
    cache = [floats(batch, KV_HEADS, held, SIZE) if held else None for _ in range(2)]
    return {
        "q": floats(batch, rows, HEADS * SIZE), "k": floats(batch, rows, KV_HEADS * SIZE),
        "v": floats(batch, rows, KV_HEADS * SIZE), "past_k": cache[0], "past_v": cache[1],
        "ends": np.array(ends or [total - 1] * batch, np.int32), "total": np.array(total, np.int32),
    }


def rotary(length=20):
    return {"cos": floats(length, SIZE // 2), "sin": floats(length, SIZE // 2)}


@dynamic_or_not
def test_sequences_of_different_lengths(dynamic):
    inputs = step(3, 1, 6, 5, [5, 2, 3]) | rotary()
    check_node(OP, inputs, {**COUNTS, "do_rotary": 1}, opset=1, outputs=NAMES, dynamic=dynamic)


@dynamic_or_not
def test_first_step_of_padded_sequences(dynamic):
    check_node(OP, step(2, 4, 4, 9, [1, 3]), COUNTS, opset=1, outputs=NAMES, dynamic=dynamic)


@pytest.mark.parametrize(("interleaved", "dynamic"), [(0, True), (1, False)])
def test_positions_of_the_first_step_follow_the_first(interleaved, dynamic):
    inputs = step(2, 4, 4) | rotary() | {"positions": np.array([[3, 1, 0, 7], [5, 5, 2, 1]], np.int64)}
    attributes = {**COUNTS, "do_rotary": 1, "rotary_interleaved": interleaved}
    check_node(OP, inputs, attributes, opset=1, outputs=NAMES, dynamic=dynamic)


@dynamic_or_not
def test_positions_of_queries_with_lengths(dynamic):
    """Those of each sample, also in the first step; compared with queries and keys that are turned before."""
    positions, turns = np.array([[3, 1, 0, 7], [5, 5, 2, 1]], np.int64), rotary()
    inputs = step(2, 4, 4)
    cos, sin = (turns[name][positions][:, :, None] for name in ("cos", "sin"))

    def turned(x):
        first, second = np.split(x.reshape(2, 4, -1, SIZE), 2, -1)
        return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1).reshape(x.shape)

    before = inputs | {name: turned(inputs[name]) for name in "qk"}
    expected = check_node(OP, before, COUNTS, opset=1, outputs=NAMES)
    absent = dict.fromkeys(("bias", "sink", "k_scale", "v_scale", "q_norm", "k_norm"))
    given = inputs | turns | {"positions": positions} | absent | {"lengths": np.array([4, 4], np.int32)}
    check_node(OP, given, {**COUNTS, "do_rotary": 1}, opset=1, outputs=NAMES, dynamic=dynamic, expected=expected)


@dynamic_or_not
def test_window_of_a_buffer_with_a_sink(dynamic):
    inputs = step(1, 3, 8, 12) | {"cos": None, "sin": None, "positions": None, "bias": floats(1, 1, 3, 8)}
    inputs["sink"] = floats(HEADS)
    attributes = {**COUNTS, "local_window_size": 3, "softcap": 2.0}
    check_node(OP, inputs, attributes, opset=1, outputs=NAMES, dynamic=dynamic)


@pytest.mark.parametrize(("kind", "dynamic"), [(1, False), (2, True)])
def test_scores_and_weights_are_an_output(kind, dynamic):
    attributes = {**COUNTS, "qk_output": kind, "softcap": 2.0}
    check_node(OP, step(1, 3, 5, 6), attributes, opset=1, outputs=[*NAMES, "qk"], dynamic=dynamic)


@pytest.mark.parametrize("packed", [False, True])
def test_keys_of_later_tokens(packed):
    inputs = step(2, 4, 4, ends=[1, 3])
    if packed:
        inputs |= {"q": np.concatenate([inputs[each] for each in "qkv"], 2), "k": None, "v": None}
    check_node(OP, inputs, {**COUNTS, "causal": 0}, opset=1, outputs=NAMES, dynamic=True)


def test_cache_of_one_sequence():
    """The runtime crashes on a Gather with batch_dims of a batch of 1 if its shapes are static."""
    check_node(OP, step(1, 1, 4, 3), COUNTS, opset=1, outputs=NAMES)


def test_chunks_whose_rows_are_all_valid():
    inputs = step(2, 3, 8, 12, [6, 7]) | dict.fromkeys(("cos", "sin", "at", "bias", "sink", "ks", "vs", "qn", "kn"))
    inputs["rows"] = np.array([3, 3], np.int32)
    check_node(OP, inputs, COUNTS, opset=1, outputs=NAMES)
