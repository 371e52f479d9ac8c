"""Determinants."""

from typing import Any

import numpy as np
import pytest

from tests.harness import check_model, check_node, node_model, pairs, parsed, refusal

dynamics = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def matrices(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(dtype)


def check(x: Any, dynamic: bool = False, rtol: float = 1e-4, opsets: tuple[int, ...] = (11, 22)) -> None:
    expected = np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)
    for opset in opsets:
        check_node("Det", {"x": x}, opset=opset, dynamic=dynamic, expected=[expected], rtol=rtol, atol=1e-4)


@pairs(batch=[(), (3,), (2, 3), (0,), (2, 0, 1)], size=[0, 1, 2, 3, 4, 7, 12], dynamic=[False, True])
def test_det(batch: tuple[int, ...], size: int, dynamic: bool) -> None:
    check(matrices(*batch, size, size), dynamic, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_det_of_other_types(dtype: Any) -> None:
    for size in (2, 3):
        check(matrices(2, size, size, dtype=dtype), rtol=1e-2 if dtype is np.float16 else 1e-4)


@dynamics
def test_pivots_of_zero(dynamic: bool) -> None:
    """A zero on the diagonal, rows that must be exchanged, and singular matrices."""
    x = np.array([[[0, 1, 0], [1, 0, 0], [0, 0, 1]], [[0, 0, 2], [0, 3, 0], [5, 0, 0]],
                  [[1, 2, 3], [2, 4, 6], [1, 0, 1]], [[0, 0, 0], [1, 2, 3], [4, 5, 7]],
                  [[0, 1, 2], [0, 3, 4], [0, 5, 6]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]], np.float32)
    check(x, dynamic)


def test_small_pivots_are_not_divided_by() -> None:
    check(np.array([[1e-7, 1, 1], [1, 1, 2], [1, 2, 1]], np.float32), rtol=1e-5)


def test_infinite_and_undefined_elements() -> None:
    x = np.eye(3, dtype=np.float32)[None].repeat(2, 0)
    x[0, 2, 2], x[1, 0, 1] = np.inf, np.nan
    check_node("Det", {"x": x[:1]}, opset=22, expected=[np.array([np.inf], np.float32)])
    check_node("Det", {"x": x[1:]}, opset=22, expected=[np.array([np.nan], np.float32)])


def test_det_in_a_loop() -> None:
    """The loop over the rows inside a loop, of a state and of a captured tensor."""
    model = parsed("""main (int64 n, float[2, 3, 3] x) => (float[2, 3, 3] y, float[N, 2] z) {
          y, z = Loop (n, "", x) <body = step (int64 i, bool c, float[2, 3, 3] s)
              => (bool d, float[2, 3, 3] t, float[2] v) {
            d = Identity (c) t = Add (s, x) u = Det (t) w = Det (x) v = Add (u, w) }> }""")
    x = matrices(2, 3, 3)
    for count in (2, 0, 3):
        states = [x * np.float32(k + 2) for k in range(count)]
        rows = [(np.linalg.det(s) + np.linalg.det(x)).astype(np.float32) for s in states]
        expected = [states[-1] if count else x, np.stack(rows) if rows else np.zeros((0, 2), np.float32)]
        check_model(model, {"n": np.array(count), "x": x}, expected=expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_no_square_matrix(shape: Any) -> None:
    assert refusal(node_model("Det", {"x": np.zeros(shape, np.float32)}, opset=22)).code == "ML227"
