"""Complex numbers, transforms, tables and residual streams of com.microsoft, compared with numpy; inverses of
matrices inside a loop."""

from typing import Any

import numpy as np
import pytest

from tests.harness import check, check_node, node_model, parsed, refusal

RNG = np.random.default_rng(3)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def as_complex(pairs: Any) -> Any:
    return pairs[..., 0] + 1j * pairs[..., 1]


def as_pairs(numbers: Any) -> Any:
    return np.stack([numbers.real, numbers.imag], -1).astype(np.float32)


@pytest.mark.parametrize("op", ["ComplexMul", "ComplexMulConj"])
def test_complex_products(op: str) -> None:
    a, b = floats(2, 3, 2), floats(1, 3, 2)
    right = as_complex(b).conj() if op.endswith("Conj") else as_complex(b)
    check_node(f"com.microsoft::{op}", {"a": a, "b": b}, opset=1, dynamic=True,
               expected=[as_pairs(as_complex(a) * right)], atol=1e-5)


def test_complex_products_of_halves() -> None:
    a, b = floats(2, 3, 2).astype(np.float16), floats(1, 3, 2).astype(np.float16)
    product = as_pairs(as_complex(a.astype(np.float32)) * as_complex(b.astype(np.float32)))
    check_node("com.microsoft::ComplexMul", {"a": a, "b": b}, opset=1, dynamic=True,
               expected=[product.astype(np.float16)], atol=1e-2)


@pytest.mark.parametrize("count", [1, 2])
def test_transforms(count: int) -> None:
    """Over the last dimensions; the inverse divides by the number of elements."""
    x = floats(3, 4, 6)
    halves = np.fft.rfftn(x, axes=range(3 - count, 3))
    attributes = {"signal_ndim": count, "normalized": 0, "onesided": 1}
    check_node("com.microsoft::Rfft", {"x": x}, attributes, opset=1, dynamic=True, expected=[as_pairs(halves)],
               atol=1e-4)
    check_node("com.microsoft::Irfft", {"x": as_pairs(halves)}, attributes, opset=1, expected=[x], atol=1e-4)


def test_tables_have_rows() -> None:
    table, rows = floats(5, 3), np.array([[4, 0], [1, 1]])
    inputs = {"table": table, "rows": rows, "padding": np.array(0), "scale": np.array(False)}
    check_node("com.microsoft::TorchEmbedding", inputs, opset=1, expected=[table[rows]])


@pytest.mark.parametrize(("attributes", "expected"),
                         [({}, (0, 0, 1)), ({"isinf_only": 1}, (1, 0, 1)), ({"isnan_only": 1}, (0, 1, 1))])
def test_finite(attributes: dict[str, int], expected: tuple[int, ...]) -> None:
    """Of all inputs together: one with NaN, one with an infinity, one without either."""
    for odd, result in zip((np.nan, -np.inf, 0), expected, strict=True):
        inputs = {"a": floats(2, 3), "b": np.array([1, odd], np.float32)}
        check_node("com.microsoft::IsAllFinite", inputs, attributes, opset=1, expected=[np.array(bool(result))])


def test_inverse_in_a_loop() -> None:
    """Inverses of inverses: matrices of another size in each run of the model."""
    model = parsed("""main (float[B,N,N] x, int64 n) => (float[B,N,N] y) {
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[B,N,N] s) => (bool d, float[B,N,N] t) {
            d = Identity (c) t = com.microsoft.Inverse (s) }> }""", **{"com.microsoft": 1})
    matrices = [(np.eye(n) * 3 + RNG.uniform(-1, 1, (2, n, n))).astype(np.float32) for n in (3, 5)]
    check(model, *({"x": x, "n": n} for x in matrices for n in (1, 2)), atol=1e-4)


def test_streams() -> None:
    """The prologue adds the previous block's output; rows are normalised, gated by a network of low rank, summed."""
    lead, count, width, rank = (2, 3), 2, 4, 3
    streams, scale = floats(*lead, count * width), floats(count * width)
    down, up, inject = floats(count * width, rank), floats(rank, count * width), floats(count * width, count)
    block, gate = floats(*lead, width), floats(*lead, count)
    rows = streams.reshape(*lead, count, width) + gate[..., None] * block[..., None, :]
    normal = rows / np.sqrt((rows**2).mean(-1, keepdims=True) + 1e-5)
    flat = normal.reshape(streams.shape) * scale
    hidden = 0.5 * flat @ down
    weights = 1 / (1 + np.exp(-(hidden / (1 + np.exp(-hidden))) @ up))
    pre_output = 2 * (flat * weights).reshape(rows.shape).sum(-2)
    post_gate = 3 / (1 + np.exp(-flat @ inject / 4))
    check_node(
        "com.microsoft::HyperConnectionLowRankMix",
        {"streams": streams, "scale": scale, "down": down, "up": up, "inject": inject, "block": block, "gate": gate},
        {"num_branches": count, "silu_alpha": 0.5, "reduction_scale": 2.0, "gate_mul": 3.0, "gate_div": 4.0},
        opset=1, outputs=3, dynamic=["streams"], expected=[pre_output, post_gate, rows.reshape(streams.shape)],
        atol=1e-4,
    )


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances_of_rows_to_themselves(metric: str) -> None:
    """The rounded square of a distance of 0 is below 0 for some rows."""
    x = floats(200, 7) * 10
    squares = np.sum((x[:, None] - x[None].astype(np.float64)) ** 2, -1)
    expected = [(squares if metric == "sqeuclidean" else np.sqrt(squares)).astype(np.float32)]
    check_node("com.microsoft::CDist", {"a": x, "b": x}, {"metric": metric}, opset=1, expected=expected, atol=0.05)


def test_other_distances_are_refused() -> None:
    model = node_model("com.microsoft::CDist", {"a": floats(2, 3), "b": floats(4, 3)}, {"metric": "cosine"}, opset=1)
    assert "the metric is 'cosine'" in str(refusal(model))
