"""Attention of com.microsoft: masks, pasts, packed tensors, buffers, beams and biases of positions."""

from fractions import Fraction

import numpy as np
import onnx
import pytest

from tests.cases import read_cases
from tests.harness import check_model, check_node, node_model, refusal
from tests.texts import texts

TEXTS = texts(__file__)

# -- Attention and MultiHeadAttention: what masks, pasts and packed tensors mean


RNG = np.random.default_rng(17)
BATCH, HEADS, S, SIZE = 2, 3, 4, 5
HIDDEN = HEADS * SIZE
LOWEST = float(np.finfo(np.float32).min)


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def int32s(values):
    return np.array(values, np.int32)


def three(length=S):
    return {"q": floats(BATCH, S, HIDDEN), "k": floats(BATCH, length, HIDDEN), "v": floats(BATCH, length, HIDDEN)}


# -- DecoderMaskedMultiHeadAttention: buffers, beams, keys of an encoder, and the forms without a CPU kernel


OP, NAMES = "com.microsoft::DecoderMaskedMultiHeadAttention", ["y", "present_k", "present_v"]
BEAMS, STEP_HEADS, STEP_SIZE, LENGTH = 4, 2, 4, 6
BUFFER = BEAMS, STEP_HEADS, LENGTH, STEP_SIZE


def step(past):
    """The inputs of one step of two sequences with two beams each."""
    tensors = {name: floats(BEAMS, 1, STEP_HEADS * STEP_SIZE) for name in ("q", "k", "v")}
    mask = RNG.integers(0, 2, (BEAMS, past + 1)).astype(np.int32)
    mask[:, -1] = 1
    return tensors | {
        "mask": mask, "bias": floats(1, STEP_HEADS, 1, past + 1), "past_k": floats(*BUFFER), "past_v": floats(*BUFFER),
        "past": np.array(past, np.int32), "width": None, "from": None, "b": floats(3 * STEP_HEADS * STEP_SIZE),
    }


def check_decoder(inputs, attributes=None, **options):
    attributes = {"num_heads": STEP_HEADS, "past_present_share_buffer": 1, **(attributes or {})}
    check_node(OP, inputs, attributes, opset=1, **{"outputs": NAMES, "rtol": 1e-4, **options})


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


IN_A_LOOP = TEXTS["in a loop"]


@pytest.mark.parametrize("kind", ["float", "float16"])
def test_a_loop_fills_the_buffer(kind):
    dtype = np.float32 if kind == "float" else np.float16
    inputs = {"q": floats(2, 1, 8, dtype=dtype), "k": floats(2, 1, 8, dtype=dtype), "n": np.int64(4)}
    inputs |= {name: floats(2, 2, 6, 4, dtype=dtype) for name in ("past_k", "past_v")}
    rtol = 1e-4 if kind == "float" else 1e-2
    check_model(onnx.parser.parse_model(IN_A_LOOP.format(type=kind)), inputs, rtol=rtol, atol=rtol)


# -- LongformerAttention, compared with numpy: ONNX Runtime has no kernel for CPUs


LONG_HEADS, LONG_SIZE, WINDOW = 2, 4, 3
LONG = {"num_heads": LONG_HEADS, "window": WINDOW}


def attention(x, weight, bias, mask, global_weight, global_bias, flags):
    """One token of one head after another."""
    batch, rows, hidden = x.shape
    wide = [each.astype(np.float64) for each in (x, weight, bias, global_weight, global_bias)]
    local, whole = wide[0] @ wide[1] + wide[2], wide[0] @ wide[3] + wide[4]
    y = np.zeros((batch, rows, hidden))
    for b, row, h in np.ndindex(batch, rows, LONG_HEADS):
        if mask[b, row] < 0:
            continue
        columns = slice(h * LONG_SIZE, (h + 1) * LONG_SIZE)
        q, k, v = np.split((whole if flags[b, row] else local)[b], 3, axis=1)
        read = (np.abs(np.arange(rows) - row) <= WINDOW) | (flags[b] != 0) | (flags[b, row] != 0)
        scores = k[read, columns] @ q[row, columns] / np.sqrt(LONG_SIZE) + mask[b, read]
        weights = np.exp(scores - scores.max())
        y[b, row, columns] = weights @ v[read, columns] / weights.sum()
    return y.astype(x.dtype)


def inputs_of(batch, rows, flags, masked=(), dtype=np.float32):
    hidden = LONG_HEADS * LONG_SIZE
    mask = np.zeros((batch, rows), dtype)
    for place in masked:
        mask[place] = -10000
    marks = np.zeros((batch, rows), np.int32)
    for place in flags:
        marks[place] = 1
    return {
        "x": floats(batch, rows, hidden, dtype=dtype), "weight": floats(hidden, 3 * hidden, dtype=dtype),
        "bias": floats(3 * hidden, dtype=dtype), "mask": mask,
        "global_weight": floats(hidden, 3 * hidden, dtype=dtype), "global_bias": floats(3 * hidden, dtype=dtype),
        "flags": marks,
    }


# -- Biases of positions, compared with numpy: ONNX Runtime has no kernel for CPUs


float_types = pytest.mark.parametrize("dtype", [np.float32, np.float16])


def bucket(distance, count, largest, both):
    """Of one distance, key - query, as in T5; exact, with powers instead of logarithms."""
    half = count // 2 if both else count
    first = half if both and distance > 0 else 0
    far = abs(distance) if both else max(-distance, 0)
    exact = half // 2
    if far < exact:
        return first + far
    ratio, base = Fraction(far, exact) ** (half - exact), Fraction(largest, exact)
    return first + min(exact + sum(base**n <= ratio for n in range(1, half - exact + 1)), half - 1)


def position_bias(table, queries, keys, largest, both):
    """The table has a row for each bucket."""
    rows = [[bucket(k - q, len(table), largest, both) for k in range(keys)] for q in range(queries)]
    return np.moveaxis(table[np.array(rows)], 2, 0)[None]


@float_types
@pytest.mark.parametrize(("both", "largest"), [(0, 20), (1, 20), (0, 36), (1, 18)])
def test_buckets_of_distances(both, largest, dtype) -> None:
    """Lengths up to those after the last border, where all distances are in one bucket; elements are transposed.

    Of 36 and 18, some distances are at the border of two buckets.
    """
    table = floats(32, 3, dtype=dtype)
    stored, attributes = table.T.reshape(32, 3), {"is_bidirectional": both, "max_distance": largest}
    for length in (1, largest + 6):
        number = np.array([length])
        check_node(
            "com.microsoft::RelativePositionBias", {"table": stored, "q": number, "k": number}, attributes, opset=1,
            constants=["table"] if length == 1 else ["q", "k"], dynamic=["q", "k"] if length == 1 else (),
            expected=[position_bias(table, length, length, largest, bool(both))],
        )


def test_buckets_need_a_larger_distance() -> None:
    inputs = {"table": floats(32, 3), "q": np.array([4]), "k": np.array([4])}
    model = node_model("com.microsoft::RelativePositionBias", inputs, {"max_distance": 16}, opset=1)
    assert "max_distance must be larger" in str(refusal(model))


def gated(query, query_bias, rel_pos, weight, bias, eco_a, heads):
    batch, rows, hidden = query.shape
    y = np.zeros((batch, heads, rows, rows), np.float64)
    for b, h, s in np.ndindex(batch, heads, rows):
        one = (query[b, s].astype(np.float64) + query_bias).reshape(heads, hidden // heads)[h]
        u, r = 1 / (1 + np.exp(-(one @ weight + bias).reshape(2, -1).sum(1)))
        y[b, h, s] = (u * (r * eco_a[0, h, 0, 0] - 1) + 2) * rel_pos[0, h, s]
    return y.astype(query.dtype)


def gated_inputs(batch, rows, width, dtype=np.float32):
    return {"query": floats(batch, rows, 8, dtype=dtype), "query_bias": floats(8, dtype=dtype),
            "rel_pos": floats(1, 2, rows, rows, dtype=dtype), "weight": floats(4, width, dtype=dtype),
            "bias": floats(width, dtype=dtype), "eco_a": floats(1, 2, 1, 1, dtype=dtype)}


read_cases(globals())
