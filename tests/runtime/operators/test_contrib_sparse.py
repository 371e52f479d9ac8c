"""SparseAttention: layouts and buffers. ONNX Runtime's kernel reads the weights of shorter sequences at wrong places,
so numpy computes the expected values.
"""

import numpy as np
import pytest
from onnx import helper

from tests.harness import check_model, check_node, graph_model

RNG = np.random.default_rng(43)
OP, NAMES = "com.microsoft::SparseAttention", ["y", "present_k", "present_v"]
HEADS, KV_HEADS, SIZE, BLOCK = 4, 2, 8, 2
COUNTS = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, "sparse_block_size": BLOCK}
LAYOUTS = np.array([[[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1]],
                    [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 1]]], np.bool_)
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def compressed(layouts):
    """block_row_indices and block_col_indices."""
    counts = layouts.reshape(len(layouts), -1).sum(1)
    columns = np.full((len(layouts), counts.max()), -1, np.int32)
    for number, layout in enumerate(layouts):
        columns[number, : counts[number]] = np.nonzero(layout)[1]
    starts = np.pad(np.cumsum(layouts.sum(2), 1), ((0, 0), (1, 0))).astype(np.int32)
    return {"starts": starts, "columns": columns}


def step(rows, total, ends, held=8, layouts=LAYOUTS, dtype=np.float32):
    """The inputs of one step."""
    batch, widths = len(ends), {"q": HEADS, "k": KV_HEADS, "v": KV_HEADS}
    inputs = {name: floats(batch, rows, width * SIZE, dtype=dtype) for name, width in widths.items()}
    inputs |= {name: floats(batch, KV_HEADS, held, SIZE, dtype=dtype) for name in ("past_k", "past_v")}
    return inputs | compressed(layouts) | {"total": np.array([total], np.int32), "ends": np.array(ends, np.int32)}


def attention(inputs, layouts=LAYOUTS):
    """One query of one head after another."""
    q, k, v, past_k, past_v, _, _, total, ends = inputs.values()
    (batch, rows, _), y = q.shape, np.zeros_like(q)
    caches = past_k.copy(), past_v.copy()
    for b in range(batch):
        first = 0 if total[0] == rows else ends[b] - rows
        for cache, new in zip(caches, (k, v), strict=True):
            cache[b, :, first : first + rows] = new[b].reshape(rows, KV_HEADS, SIZE).swapaxes(0, 1)
        for h, row in np.ndindex(HEADS, rows):
            blocks = layouts[h % len(layouts), (first + row) // BLOCK]
            earlier = np.arange(min(first + row + 1, ends[b]))
            read = earlier[blocks[earlier // BLOCK]]
            columns, of = slice(h * SIZE, (h + 1) * SIZE), h // (HEADS // KV_HEADS)
            scores = (caches[0][b, of, read] @ q[b, row, columns]).astype(np.float32) / np.sqrt(np.float32(SIZE))
            weights = np.exp(scores - scores.max())
            y[b, row, columns] = weights / weights.sum() @ caches[1][b, of, read]
    return [y, *caches]


@pytest.mark.parametrize("given", ["constant", "computed"])
@dynamic_or_not
def test_layouts_that_heads_share_in_turn(given, dynamic):
    inputs = step(3, 7, [7, 7])
    constants = ["starts", "columns"] if given == "constant" else []
    check_node(OP, inputs, COUNTS, opset=1, outputs=NAMES, constants=constants, dynamic=dynamic,
               expected=attention(inputs))


@dynamic_or_not
def test_sequences_of_different_lengths(dynamic):
    """One token of each; the buffer keeps what is after it."""
    inputs = step(1, 7, [7, 2, 4], dtype=np.float16)
    check_node(OP, inputs, COUNTS, opset=1, outputs=NAMES, constants=["starts", "columns"], dynamic=dynamic,
               expected=attention(inputs), rtol=1e-2, atol=1e-2)


def test_first_step_of_padded_sequences():
    """The rows past the end of a sequence read its keys."""
    inputs = step(4, 4, [4, 3])
    check_node(OP, inputs, COUNTS, opset=1, outputs=NAMES, expected=attention(inputs))


def test_a_block_that_reads_none():
    """All earlier keys have equal weights, as ONNX Runtime computes it."""
    layouts = LAYOUTS[:1].copy()
    layouts[0, 2] = False
    inputs = step(2, 6, [6], layouts=layouts)
    y, *present = check_node(OP, inputs, COUNTS, opset=1, outputs=NAMES, constants=["starts", "columns"])
    values = present[1][0].repeat(HEADS // KV_HEADS, 0)
    np.testing.assert_allclose(y[0, 0].reshape(HEADS, SIZE), values[:, :5].mean(1), atol=1e-5)


def test_buffers_are_states_of_a_loop():
    """Each iteration reads one token more."""
    inputs, first, trips = step(1, 3, [3]), 3, 4
    ports = ["x", "k", "v", "pk", "pv", "starts", "columns", "total", "total"]
    nodes = [helper.make_node("Add", ["before", "one"], ["total"]),
             helper.make_node("SparseAttention", ports, ["y", "nk", "nv"], domain="com.microsoft", **COUNTS),
             helper.make_node("Identity", ["going"], ["go"])]
    of_x, of_cache = ["batch", 1, HEADS * SIZE], ["batch", KV_HEADS, "held", SIZE]
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
    loop = helper.make_node("Loop", ["trips", "", *states], ["last", *NAMES], body=body)
    fed = {name: inputs[name] for name in ("q", "k", "v", "past_k", "past_v")}
    constants = {"starts": inputs["starts"], "columns": inputs["columns"], "one": np.array([1], np.int32)}
    constants |= {"start": np.array([first], np.int32), "trips": np.array(trips, np.int64)}
    model = graph_model([loop], fed, NAMES, opset=18, constants=constants, dynamic=True)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    for number in range(trips):
        inputs["total"] = inputs["ends"] = np.array([first + number + 1], np.int32)
        inputs["q"], inputs["past_k"], inputs["past_v"] = attention(inputs)
    check_model(model, fed, expected=[inputs["q"], inputs["past_k"], inputs["past_v"]], rtol=1e-4, atol=1e-4)
