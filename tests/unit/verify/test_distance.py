"""How far arrays are apart, and the curves of loops."""

from typing import Any

import numpy as np
import pytest

from mo_loop.compare.layers.tensor_differences import CURVES, POINTS, Curves
from mo_loop.compare.results.array_comparison import BEYOND, BLOCK, EXACT, compare

F32 = np.float32


@pytest.mark.parametrize(("expected", "actual", "worst", "count"), [
    (np.array([1, 2], F32), np.array([1, 2.00402], F32), 2.0, 1),
    (np.array([0], F32), np.array([1e-5], F32), 1.0, 0),
    (np.array([0], np.float16), np.array([0.02], np.float16), 2.0, 1),
    (np.array([4.0]), np.array([4.0]), 0.0, 0),
    (np.array([np.nan, np.inf, 1], F32), np.array([np.nan, np.inf, 1], F32), 0.0, 0),
    (np.array([np.nan, 1], F32), np.array([1, 1], F32), BEYOND, 1),
    (np.array([np.inf, 1], F32), np.array([-np.inf, 1], F32), BEYOND, 1),
    (np.array([3e38], F32), np.array([-3e38], F32), 2000.0, 1),
    (np.array([5, 7]), np.array([5, 7]), 0.0, 0),
    (np.array([1 << 62]), np.array([(1 << 62) + 1]), EXACT, 1),
    (np.array([999]), np.array([998]), 1 / 0.99901, 1),
    (np.array([True, False]), np.array([True, True]), 1e5, 1),
    (np.array([1 + 1j]), np.array([1 + 1j]), 0.0, 0),
    (np.array(["a", "b"], object), np.array(["a", "c"], object), BEYOND, 1),
    (np.array(["a"], object), np.array([b"a"], object), 0.0, 0),
    (np.zeros((0, 2), F32), np.zeros((0, 2), F32), 0.0, 0),
    (np.zeros((2,), F32), np.zeros((3,), F32), BEYOND, 0),
    (np.zeros((2,), F32), np.zeros((2,), np.float16), BEYOND, 0),
])
def test_a_difference_is_a_multiple_of_the_tolerance(expected: Any, actual: Any, worst: float, count: int) -> None:
    found = compare(expected, actual)
    multiple = max(worst, EXACT) if expected.dtype.kind == "i" and count else worst
    assert found.multiple == pytest.approx(multiple, rel=1e-3) and found.count == count
    assert (found.multiple <= 1) == bool(found) == (not found.message)


def test_every_block_is_compared() -> None:
    seed = 3
    rng = np.random.default_rng(seed)
    for place in (0, BLOCK - 1, BLOCK, 2 * BLOCK + 5):
        expected = rng.normal(size=2 * BLOCK + 6).astype(F32)
        actual = expected.copy()
        actual[place] += F32(0.5)
        found, apart = compare(expected, actual), np.abs(expected.astype(float) - actual)
        assert (found.count, found.size, found.index, found.worst) == (1, len(expected), (place,), (place,)), f"{seed}"
        assert (found.largest_abs, found.mean_abs) == pytest.approx((apart.max(), apart.mean()), rel=1e-5)
        assert found.largest_rel == pytest.approx(apart[place] / abs(expected[place]), rel=1e-5)
        cosine = np.dot(expected, actual) / np.linalg.norm(expected) / np.linalg.norm(actual)
        assert found.cosine == pytest.approx(cosine, rel=1e-5)


def test_tolerances_that_are_given_replace_the_usual_ones() -> None:
    expected, actual = np.array([10], F32), np.array([11], F32)
    assert compare(expected, actual, rtol=0.1, atol=1.0).multiple == pytest.approx(0.5)
    assert compare(expected, expected, rtol=0.0, atol=0.0).multiple == 0
    assert compare(expected, actual, rtol=0.0, atol=0.0).multiple == BEYOND


def test_many_iterations_share_points_and_no_peak_is_lost() -> None:
    curves = Curves(((("loop", "body"), "t"),))
    count = 2000
    for number in range(count):
        curves.iterations = number + 1
        curves.add((("loop", "body"), "t"), number, 7.0 if number == 1234 else 0.5)
    data = curves.as_json()
    points = data["tensors"]["t"]
    assert (data["iterations"], data["per_point"]) == (count, 4) and len(points) == count / 4 <= POINTS
    assert [place for place, each in enumerate(points) if each > 1] == [1234 // 4]


def test_an_iteration_without_a_comparison_has_no_point() -> None:
    curves = Curves(((("loop",), "t"),))
    for number in (0, 3):
        curves.add((("loop",), "t"), number, 0.25)
    assert curves.as_json()["tensors"] == {"t": [0.25, None, None, 0.25]}


def test_a_loop_with_many_outputs_shows_those_that_differ_most() -> None:
    keys = [(("loop",), f"o{number}") for number in range(20)]
    curves = Curves(tuple(keys))
    curves.add((("loop", "if", "then_branch"), "inner"), 0, 1.5)
    for number, key in enumerate(keys):
        curves.add(key, 0, float(number))
    shown = list(curves.as_json()["tensors"])
    assert shown == ["if/then_branch/inner", *(f"o{number}" for number in range(20 - CURVES, 20))]
