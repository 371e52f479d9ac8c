"""The comparison of expected and actual arrays."""

import ml_dtypes
import numpy as np
import pytest

from mo_loop.compare.results.array_comparison import compare, compare_all, is_limited


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize(("expected", "actual"), [
    (f32(1, 2), f32(1.0009, 2.0019)),
    (f32(0), f32(9e-6)),
    (f32(1001.0005), f32(1000)),  # the tolerance is a share of the expected number
    (f32(np.nan, np.inf, -np.inf), f32(np.nan, np.inf, -np.inf)),
    (np.float32(3), np.float32(3)),
    (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)),
    (np.array([1, 2], np.float16), np.array([1.01, 2.02], np.float16)),
    (np.array([1, 2], ml_dtypes.bfloat16), np.array([1.0078, 2], ml_dtypes.bfloat16)),
    (np.array([1, -8], ml_dtypes.int4), np.array([1, -8], ml_dtypes.int4)),
    (np.array([True, False]), np.array([True, False])),
    (np.array(["a", "\u03c0"], object), np.array([b"a", "\u03c0".encode()])),
    (np.array(["", "ab"]), np.array(["", "ab"], object)),
])
def test_equal(expected: np.ndarray, actual: np.ndarray) -> None:
    result = compare(expected, actual, "y")
    assert result, str(result)


@pytest.mark.parametrize(("expected", "actual", "kind"), [
    (f32(1), f32(1.002), "values"), (f32(1000), f32(1001.0005), "values"), (f32(0), f32(2e-5), "values"),
    (f32(np.nan), f32(0), "values"), (f32(0), f32(np.nan), "values"), (f32(np.inf), f32(-np.inf), "values"),
    (f32(np.inf), f32(3e38), "values"), (f32(1), np.float32(1), "shape"),
    (np.zeros((0, 3), np.float32), np.zeros((0, 2), np.float32), "shape"),
    (np.array([1], np.int64), np.array([1], np.int32), "type"),
    (np.array([1], np.int64), np.array([2], np.int64), "values"),
    (np.array([2**60], np.int64), np.array([2**60 + 1], np.int64), "values"),
    (np.array([1], ml_dtypes.uint4), np.array([2], ml_dtypes.uint4), "values"),
    (np.array([True]), np.array([False]), "values"), (np.array(["a"]), np.array(["b"]), "values"),
    (np.array(["1"]), np.array([1]), "type"),
])
def test_different(expected: np.ndarray, actual: np.ndarray, kind: str) -> None:
    result = compare(expected, actual, "y")
    assert not result and result.kind == kind


def test_the_message_tells_where_and_how_much() -> None:
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    actual = expected.copy()
    actual[1, 1:] += (1, 2)
    result = compare(expected, actual, "y")
    assert (result.index, result.count, result.largest_abs) == ((1, 1), 2, 2.0)
    assert result.largest_rel == pytest.approx(0.4)
    assert str(result) == (
        "y: 2 of 6 values differ, largest difference 2 (relative 0.4), first at [1, 1]: 5.0 instead of 4.0"
    )


def test_tolerances_and_types_can_be_given() -> None:
    assert compare(f32(1), f32(1.05), rtol=0.1) and not compare(f32(1), f32(1.0001), rtol=0, atol=0)
    assert compare(np.array([1], np.int64), np.array([1], np.int32), dtype=False)
    pairs = [("a", f32(1)), ("b", f32(1))], [("a", f32(1.05)), ("b", f32(1.05))]
    assert list(map(bool, compare_all(*pairs, tolerances={"b": (0.1, 0)}))) == [False, True]


@pytest.mark.parametrize(("actual", "cosine"), [((0, 0), 1), ((0, 1), 0)])
def test_the_cosine_of_zeros(actual: tuple[float, float], cosine: float) -> None:
    assert compare(f32(0, 0), f32(*actual)).cosine == cosine


def test_outputs_are_found_by_name() -> None:
    results = compare_all([("a", f32(1)), ("b", f32(2))], [("b", f32(2)), ("a", f32(1)), ("c", f32(3))])
    assert [result.name for result in results] == ["a", "b"] and all(results)


def test_outputs_without_the_names_are_taken_by_position() -> None:
    assert all(compare_all([("a", f32(1)), ("b", f32(2))], [("x", f32(1)), ("y", f32(2))]))
    assert not all(compare_all([("a", f32(1))], [("x", f32(1)), ("y", f32(2))]))


def test_only_64_bit_integers_are_limited_to_32_bits() -> None:
    large = np.array([1 << 40, -(1 << 40), 3])
    assert is_limited(large, np.array([(1 << 31) - 1, -(1 << 31), 3]))
    assert not is_limited(large, np.array([(1 << 31) - 1, -(1 << 31), 4]))
    assert not is_limited(np.array([1 << 40], np.uint64), np.array([(1 << 31) - 1], np.uint64))
