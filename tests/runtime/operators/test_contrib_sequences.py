"""Attention of com.microsoft over grouped heads, sparse layouts and packed sequences."""


import numpy as np
import pytest
from onnx import helper

from tests.cases import read_cases
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


@pytest.mark.parametrize("packed", [False, True])
def test_keys_of_later_tokens(packed):
    inputs = step(2, 4, 4, ends=[1, 3])
    if packed:
        inputs |= {"q": np.concatenate([inputs[each] for each in "qkv"], 2), "k": None, "v": None}
    check_node(OP, inputs, {**COUNTS, "causal": 0}, opset=1, outputs=NAMES, dynamic=True)


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


read_cases(globals())
