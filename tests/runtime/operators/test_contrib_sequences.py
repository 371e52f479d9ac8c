"""Attention of com.microsoft over grouped heads, sparse layouts and packed sequences."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.harness import check_model, check_node, graph_model

# -- GroupQueryAttention: caches, positions and sinks


RNG = np.random.default_rng(23)
OP, NAMES = "com.microsoft::GroupQueryAttention", ["y", "present_k", "present_v"]
HEADS, KV_HEADS, SIZE = 4, 2, 16
COUNTS = {"num_heads": HEADS, "kv_num_heads": KV_HEADS}
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


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


# -- SparseAttention: layouts and buffers. ONNX Runtime's kernel reads the weights of shorter sequences at wrong places,
# so numpy computes the expected values.


SPARSE_OP, SPARSE_OUT = "com.microsoft::SparseAttention", ["y", "present_k", "present_v"]
SPARSE_HEADS, SPARSE_KV_HEADS, SPARSE_SIZE, BLOCK = 4, 2, 8, 2
SPARSE = {"num_heads": SPARSE_HEADS, "kv_num_heads": SPARSE_KV_HEADS, "sparse_block_size": BLOCK}
LAYOUTS = np.array([[[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1]],
                    [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 1]]], np.bool_)


def compressed(layouts):
    """block_row_indices and block_col_indices."""
    counts = layouts.reshape(len(layouts), -1).sum(1)
    columns = np.full((len(layouts), counts.max()), -1, np.int32)
    for number, layout in enumerate(layouts):
        columns[number, : counts[number]] = np.nonzero(layout)[1]
    starts = np.pad(np.cumsum(layouts.sum(2), 1), ((0, 0), (1, 0))).astype(np.int32)
    return {"starts": starts, "columns": columns}


def sparse_step(rows, total, ends, held=8, layouts=LAYOUTS, dtype=np.float32):
    """The inputs of one step."""
    batch, widths = len(ends), {"q": SPARSE_HEADS, "k": SPARSE_KV_HEADS, "v": SPARSE_KV_HEADS}
    inputs = {name: floats(batch, rows, width * SPARSE_SIZE, dtype=dtype) for name, width in widths.items()}
    inputs |= {name: floats(batch, SPARSE_KV_HEADS, held, SPARSE_SIZE, dtype=dtype) for name in ("past_k", "past_v")}
    return inputs | compressed(layouts) | {"total": np.array([total], np.int32), "ends": np.array(ends, np.int32)}


def attention(inputs, layouts=LAYOUTS):
    """One query of one head after another."""
    q, k, v, past_k, past_v, _, _, total, ends = inputs.values()
    (batch, rows, _), y = q.shape, np.zeros_like(q)
    caches = past_k.copy(), past_v.copy()
    for b in range(batch):
        first = 0 if total[0] == rows else ends[b] - rows
        for cache, new in zip(caches, (k, v), strict=True):
            cache[b, :, first : first + rows] = new[b].reshape(rows, SPARSE_KV_HEADS, SPARSE_SIZE).swapaxes(0, 1)
        for h, row in np.ndindex(SPARSE_HEADS, rows):
            blocks = layouts[h % len(layouts), (first + row) // BLOCK]
            earlier = np.arange(min(first + row + 1, ends[b]))
            read = earlier[blocks[earlier // BLOCK]]
            columns, of = slice(h * SPARSE_SIZE, (h + 1) * SPARSE_SIZE), h // (SPARSE_HEADS // SPARSE_KV_HEADS)
            scores = (caches[0][b, of, read] @ q[b, row, columns]).astype(np.float32) / np.sqrt(np.float32(SPARSE_SIZE))
            weights = np.exp(scores - scores.max())
            y[b, row, columns] = weights / weights.sum() @ caches[1][b, of, read]
    return [y, *caches]


@pytest.mark.parametrize("given", ["constant", "computed"])
@dynamic_or_not
def test_layouts_that_heads_share_in_turn(given, dynamic):
    inputs = sparse_step(3, 7, [7, 7])
    constants = ["starts", "columns"] if given == "constant" else []
    check_node(SPARSE_OP, inputs, SPARSE, opset=1, outputs=SPARSE_OUT, constants=constants, dynamic=dynamic,
               expected=attention(inputs))


@dynamic_or_not
def test_sparse_sequences_of_different_lengths(dynamic):
    """One token of each; the buffer keeps what is after it."""
    inputs = sparse_step(1, 7, [7, 2, 4], dtype=np.float16)
    check_node(SPARSE_OP, inputs, SPARSE, opset=1, outputs=SPARSE_OUT, constants=["starts", "columns"], dynamic=dynamic,
               expected=attention(inputs), rtol=1e-2, atol=1e-2)


def test_sparse_first_step_of_padded_sequences():
    """The rows past the end of a sequence read its keys."""
    inputs = sparse_step(4, 4, [4, 3])
    check_node(SPARSE_OP, inputs, SPARSE, opset=1, outputs=SPARSE_OUT, expected=attention(inputs))


def test_a_block_that_reads_none():
    """All earlier keys have equal weights, as ONNX Runtime computes it."""
    layouts = LAYOUTS[:1].copy()
    layouts[0, 2] = False
    inputs = sparse_step(2, 6, [6], layouts=layouts)
    y, *present = check_node(SPARSE_OP, inputs, SPARSE, opset=1, outputs=SPARSE_OUT, constants=["starts", "columns"])
    values = present[1][0].repeat(SPARSE_HEADS // SPARSE_KV_HEADS, 0)
    np.testing.assert_allclose(y[0, 0].reshape(SPARSE_HEADS, SPARSE_SIZE), values[:, :5].mean(1), atol=1e-5)


def test_buffers_are_states_of_a_loop():
    """Each iteration reads one token more."""
    inputs, first, trips = sparse_step(1, 3, [3]), 3, 4
    ports = ["x", "k", "v", "pk", "pv", "starts", "columns", "total", "total"]
    nodes = [helper.make_node("Add", ["before", "one"], ["total"]),
             helper.make_node("SparseAttention", ports, ["y", "nk", "nv"], domain="com.microsoft", **SPARSE),
             helper.make_node("Identity", ["going"], ["go"])]
    of_x, of_cache = ["batch", 1, SPARSE_HEADS * SPARSE_SIZE], ["batch", SPARSE_KV_HEADS, "held", SPARSE_SIZE]
    body = helper.make_graph(
        nodes, "step",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("going", 9, []),
         helper.make_tensor_value_info("before", 6, [1]), helper.make_tensor_value_info("x", 1, of_x),
         *(helper.make_tensor_value_info(name, 1, of_cache) for name in ("pk", "pv"))],
        [helper.make_tensor_value_info("go", 9, []), helper.make_tensor_value_info("total", 6, [1]),
         helper.make_tensor_value_info("y", 1, of_x),
         *(helper.make_tensor_value_info(name, 1, of_cache) for name in ("nk", "nv"))],
    )
    states = ["start", "q", "past_k", "past_v"]
    loop = helper.make_node("Loop", ["trips", "", *states], ["last", *SPARSE_OUT], body=body)
    fed = {name: inputs[name] for name in ("q", "k", "v", "past_k", "past_v")}
    constants = {"starts": inputs["starts"], "columns": inputs["columns"], "one": np.array([1], np.int32)}
    constants |= {"start": np.array([first], np.int32), "trips": np.array(trips, np.int64)}
    model = graph_model([loop], fed, SPARSE_OUT, opset=18, constants=constants, dynamic=True)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    for number in range(trips):
        inputs["total"] = inputs["ends"] = np.array([first + number + 1], np.int32)
        inputs["q"], inputs["past_k"], inputs["past_v"] = attention(inputs)
    check_model(model, fed, expected=[inputs["q"], inputs["past_k"], inputs["past_v"]], rtol=1e-4, atol=1e-4)


# -- Packed sequences: ONNX Runtime has no CPU kernel for these operators, so numpy computes what they shall give


FLAT_HEADS, FLAT_SIZE, V_SIZE = 2, 4, 6
DOMAIN = "com.microsoft::"
lengths_of_sequences = pytest.mark.parametrize("lengths", [[1, 4, 2], [3], [2, 0, 3]], ids=str)


def packing(lengths, rows):
    """token_offset and cumulative_sequence_length."""
    inside = (np.arange(rows) < np.array(lengths)[:, None]).reshape(-1)
    offsets = np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)])
    sums = np.concatenate([[0], np.cumsum(lengths)])
    return {"offset": offsets.reshape(len(lengths), rows).astype(np.int32), "ends": sums.astype(np.int32)}


def flat_attention(q, k, v, lengths, bias=None, scale=None):
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


@pytest.mark.parametrize("bias_shape", [None, (1, 1), (3, FLAT_HEADS)], ids=str)
@dynamic_or_not
def test_attention_with_projection(bias_shape, dynamic):
    lengths, hidden = [1, 4, 2], FLAT_HEADS * FLAT_SIZE
    bias = floats(*bias_shape, 4, 4) if bias_shape else None
    sizes = [hidden, hidden, FLAT_HEADS * V_SIZE]
    x, w, b = floats(sum(lengths), 5), floats(5, sum(sizes)), floats(sum(sizes))
    q, k, v = (each.reshape(len(x), FLAT_HEADS, -1) for each in np.split(x @ w + b, [hidden, 2 * hidden], 1))
    inputs = {"x": x, "w": w, "b": b, **packing(lengths, 4), "bias": bias}
    attributes: dict[str, Any] = {"num_heads": FLAT_HEADS, "qkv_hidden_sizes": sizes, "scale": 0.3}
    check_node(DOMAIN + "PackedAttention", inputs, attributes, opset=1, dynamic=dynamic, constants=["w", "b"],
               expected=[flat_attention(q, k, v, lengths, bias, 0.3)])


@pytest.mark.parametrize(("lengths", "dtype"), [([1, 4, 2], np.float16), ([2, 0, 3], np.float32)], ids=str)
@dynamic_or_not
def test_heads_of_their_own(lengths, dtype, dynamic):
    tokens, hidden = sum(lengths), FLAT_HEADS * FLAT_SIZE
    q, k = floats(tokens, hidden, dtype=dtype), floats(tokens, hidden, dtype=dtype)
    v, bias = floats(tokens, FLAT_HEADS * V_SIZE, dtype=dtype), floats(1, FLAT_HEADS, 4, 4, dtype=dtype)
    inputs = {"q": q, "k": k, "v": v, "b": None, **packing(lengths, 4), "bias": bias}
    y = flat_attention(*[each.reshape(tokens, FLAT_HEADS, -1) for each in (q, k, v)], lengths, bias)
    near = 1e-2 if dtype == np.float16 else None
    check_node(DOMAIN + "PackedMultiHeadAttention", inputs, {"num_heads": FLAT_HEADS}, opset=1, dynamic=dynamic,
               expected=[y], rtol=near, atol=near)


@dynamic_or_not
def test_heads_in_one_tensor(dynamic):
    lengths, hidden = [1, 4, 2], FLAT_HEADS * FLAT_SIZE
    qkv, b = floats(sum(lengths), FLAT_HEADS, 3, FLAT_SIZE), floats(3 * hidden)
    inputs = {"qkv": qkv, "k": None, "v": None, "b": b, **packing(lengths, 4)}
    q, k, v = (qkv[:, :, number] + b.reshape(3, FLAT_HEADS, FLAT_SIZE)[number] for number in range(3))
    expected = [flat_attention(q, k, v, lengths)]
    op = DOMAIN + "PackedMultiHeadAttention"
    check_node(op, inputs, {"num_heads": FLAT_HEADS}, opset=1, dynamic=dynamic, constants=["b"], expected=expected)


def test_layers_of_a_body_between_removed_and_restored_padding():
    """The number of tokens is known at run time only, and they are the state of a loop."""
    hidden, counts, trips = FLAT_HEADS * FLAT_SIZE, [[1, 4, 2], [4, 4, 4]], 3
    w, b = 0.4 * floats(hidden, 3 * hidden), floats(3 * hidden)
    body = helper.make_graph(
        [
            helper.make_node("PackedAttention", ["h", "w", "b", "offset", "ends"], ["h1"], domain="com.microsoft",
                             num_heads=FLAT_HEADS),
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
            heads = [each.reshape(len(h), FLAT_HEADS, FLAT_SIZE) for each in np.split(h @ w + b, 3, 1)]
            h = flat_attention(*heads, lengths)
        y = np.zeros_like(feed["x"])
        y[inside] = h
        check_model(model, feed, expected=[y], rtol=1e-4)
