"""Complex numbers, transforms, tables and residual streams of com.microsoft, compared with numpy; inverses of
matrices inside a loop."""

from typing import Any

import numpy as np

from tests.cases import read_cases
from tests.harness import check, node_model, parsed, refusal

RNG = np.random.default_rng(3)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def as_complex(pairs: Any) -> Any:
    return pairs[..., 0] + 1j * pairs[..., 1]


def as_pairs(numbers: Any) -> Any:
    return np.stack([numbers.real, numbers.imag], -1).astype(np.float32)


def test_inverse_in_a_loop() -> None:
    """Inverses of inverses: matrices of another size in each run of the model."""
    model = parsed("""main (float[B,N,N] x, int64 n) => (float[B,N,N] y) {
          y = Loop (n, "", x) <body = step (int64 i, bool c, float[B,N,N] s) => (bool d, float[B,N,N] t) {
            d = Identity (c) t = com.microsoft.Inverse (s) }> }""", **{"com.microsoft": 1})
    matrices = [(np.eye(n) * 3 + RNG.uniform(-1, 1, (2, n, n))).astype(np.float32) for n in (3, 5)]
    check(model, *({"x": x, "n": n} for x in matrices for n in (1, 2)), atol=1e-4)


def test_other_distances_are_refused() -> None:
    model = node_model("com.microsoft::CDist", {"a": floats(2, 3), "b": floats(4, 3)}, {"metric": "cosine"}, opset=1)
    assert "the metric is 'cosine'" in str(refusal(model))


read_cases(globals())
