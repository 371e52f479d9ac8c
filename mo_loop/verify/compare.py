"""Compares expected and actual arrays: shape, element type, values.

Shapes are compared exactly. Integers, booleans and strings are compared exactly; floats with a tolerance, where NaN
equals NaN and an infinity equals itself:

    |actual - expected| <= atol + rtol * |expected|         rtol 1e-3, atol 1e-5; both 1e-2 for 16 bits and fewer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RTOL, ATOL, SMALL_FLOAT = 1e-3, 1e-5, 1e-2

Named = tuple[str, Any]


@dataclass(frozen=True)
class Comparison:
    """The result for one array. It is false in a boolean context if the arrays differ.

    `kind` is one of "equal", "shape", "type", "values", "missing". `largest_abs` and `largest_rel` are the
    largest differences of finite pairs; `index` is the first differing element in row-major order; `count` is
    the number of differing elements.
    """

    name: str
    kind: str = "equal"
    message: str = ""
    largest_abs: float = 0.0
    largest_rel: float = 0.0
    index: tuple[int, ...] | None = None
    count: int = 0

    def __bool__(self) -> bool:
        return self.kind == "equal"

    def __str__(self) -> str:
        if self:
            return f"{self.name}: equal (largest difference {self.largest_abs:.3g}, relative {self.largest_rel:.3g})"
        return f"{self.name}: {self.message}"


def compare(
    expected: Any,
    actual: Any,
    name: str = "",
    *,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: bool = True,
) -> Comparison:
    """Compare one array. `dtype=False` skips the check of element types."""
    left, right = _plain(np.asarray(expected)), _plain(np.asarray(actual))
    if left.shape != right.shape:
        return Comparison(name, "shape", f"shape {_list(right.shape)} instead of {_list(left.shape)}")
    if dtype and left.dtype != right.dtype:
        return Comparison(name, "type", f"element type {right.dtype} instead of {left.dtype}")
    if _is_float(left.dtype):
        default = (RTOL, ATOL) if left.dtype.itemsize > 2 else (SMALL_FLOAT, SMALL_FLOAT)
        return _close(name, left, right, default[0] if rtol is None else rtol, default[1] if atol is None else atol)
    return _exact(name, left, right)


def compare_all(
    expected: Sequence[Named],
    actual: Sequence[Named],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: bool = True,
) -> list[Comparison]:
    """Compare named outputs: by name if every expected name exists, otherwise by position."""
    by_name = dict(actual)
    if not all(name in by_name for name, _ in expected):
        if len(expected) != len(actual):
            text = f"{len(actual)} outputs instead of {len(expected)}"
            return [Comparison("outputs", "missing", text)]
        by_name = {name: array for (name, _), (_, array) in zip(expected, actual, strict=True)}
    return [compare(array, by_name[name], name, rtol=rtol, atol=atol, dtype=dtype) for name, array in expected]


def _close(name: str, expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float) -> Comparison:
    # float64 represents every narrower float exactly, including those that numpy cannot compute with.
    kind = np.complex128 if expected.dtype.kind == "c" else np.float64
    left, right = expected.astype(kind), actual.astype(kind)
    finite = np.isfinite(left) & np.isfinite(right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(finite, np.abs(left - right), 0.0)
    relative = np.divide(difference, np.abs(left), out=np.zeros_like(difference), where=finite & (left != 0))
    wrong = np.where(finite, difference > atol + rtol * np.abs(np.where(finite, left, 0.0)), ~same)
    largest = (float(difference.max(initial=0.0)), float(relative.max(initial=0.0)))
    if not wrong.any():
        return Comparison(name, largest_abs=largest[0], largest_rel=largest[1])
    return _differing(name, expected, actual, wrong, largest)


def _exact(name: str, expected: np.ndarray, actual: np.ndarray) -> Comparison:
    wrong = np.asarray(expected != actual)
    if not wrong.any():
        return Comparison(name)
    largest = (0.0, 0.0)
    if expected.dtype.kind in "iub":
        difference = np.abs(expected.astype(np.float64) - actual.astype(np.float64))
        scale = np.maximum(np.abs(expected.astype(np.float64)), 1.0)
        largest = (float(difference.max()), float((difference / scale).max()))
    return _differing(name, expected, actual, wrong, largest)


def _differing(
    name: str, expected: np.ndarray, actual: np.ndarray, wrong: np.ndarray, largest: tuple[float, float]
) -> Comparison:
    index = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    count = int(wrong.sum())
    text = (
        f"{count} of {wrong.size} values differ, largest difference {largest[0]:.3g} (relative {largest[1]:.3g}), "
        f"first at {_list(index)}: {actual[index]!s} instead of {expected[index]!s}"
    )
    return Comparison(name, "values", text, largest[0], largest[1], index, count)


def _plain(array: np.ndarray) -> np.ndarray:
    """Strings as str objects, integers of fewer than 8 bits as 8 bits; everything else unchanged."""
    if array.dtype.kind in "SUO":
        text = [value.decode() if isinstance(value, bytes) else str(value) for value in array.ravel().tolist()]
        plain = np.empty(len(text), dtype=object)
        plain[:] = text
        return plain.reshape(array.shape)
    if array.dtype.name in ("int2", "int4"):
        return array.astype(np.int8)
    if array.dtype.name in ("uint1", "uint2", "uint4"):
        return array.astype(np.uint8)
    return array


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind in "fc" or "float" in dtype.name


def _list(values: Sequence[int]) -> str:
    return "[" + ", ".join(str(int(v)) for v in values) + "]"
