"""Biases of positions, compared with numpy: ONNX Runtime has no kernel for CPUs."""

from fractions import Fraction

import numpy as np
import pytest

from tests.harness import check, check_node, node_model, parsed, refusal

RNG = np.random.default_rng(17)
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
float_types = pytest.mark.parametrize("dtype", [np.float32, np.float16])


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


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


def test_buckets_of_growing_lengths_in_a_loop() -> None:
    """The lengths are known in no iteration."""
    model = parsed("""main (float[8,2] table, int64 n) => (float b) {
          zero = Constant <value_float = 0.0> ()
          b = Loop (n, "", zero) <body = step (int64 i, bool c, float s) => (bool d, float t) {
            d = Identity (c)  one = Constant <value_int = 1> ()  length = Add (i, one)
            bias = com.microsoft.RelativePositionBias <max_distance = 5, is_bidirectional = 1> (table, length, length)
            sum = ReduceSum <keepdims = 0> (bias)  t = Add (s, sum) }> }""", **{"com.microsoft": 1})
    table = floats(8, 2)
    whole = sum(position_bias(table, n, n, 5, True).sum() for n in range(1, 10))
    check(model, {"table": table.T.reshape(8, 2), "n": 9}, expected=[[("b", np.float32(whole))]], atol=1e-4)


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


@dynamic_or_not
@pytest.mark.parametrize(("width", "dtype"), [(8, np.float32), (2, np.float32), (4, np.float16)])
def test_gated_bias(width, dtype, dynamic) -> None:
    inputs = gated_inputs(3, 5, width, dtype)
    check_node("com.microsoft::GatedRelativePositionBias", inputs, {"num_heads": 2}, opset=1, dynamic=dynamic,
               constants=() if dynamic else ("query_bias", "weight", "bias", "eco_a"),
               expected=[gated(*inputs.values(), 2)], atol=1e-5 if dtype is np.float32 else 1e-2)


@dynamic_or_not
def test_gated_bias_of_queries_without_padding(dynamic) -> None:
    """The second sequence has 2 tokens and one of padding, whose query is 0."""
    inputs = gated_inputs(2, 3, 4)
    inputs["query"][1, 2] = 0
    expected = gated(*inputs.values(), 2)
    inputs |= {"query": inputs["query"].reshape(6, 8)[:5], "offsets": np.array([[0, 1, 2], [3, 4, 5]], np.int32)}
    check_node("com.microsoft::GatedRelativePositionBias", inputs, {"num_heads": 2}, opset=1, dynamic=dynamic,
               expected=[expected], atol=1e-5)
