"""Distance: how far two arrays are apart, as a multiple of the tolerance.

    found = distance(expected, actual, None, None)
    found.worst                 # up to 1: they agree; BEYOND: another shape or type, or numbers that are not finite

`worst` is the largest |actual - expected| / (atol + rtol * |expected|). Values that must be equal, such as integers,
are measured in the same way; a difference is at least EXACT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.compare.results.array_comparison import ATOL, RTOL, compare, tolerance
from mo_loop.graph.types import name_of

BEYOND = 1e30
"""The `worst` of differences that have no measure. JSON has no infinity."""

EXACT = 2.0

BLOCK = 1 << 15
"""The elements that are compared at once: they stay in the cache of the processor."""


@dataclass(frozen=True, slots=True)
class Distance:
    """`abs` and `rel` are the largest differences of finite numbers, `count` elements of `size` are beyond the
    tolerance, and `text` is the reason if `worst` is BEYOND."""

    worst: float
    abs: float = 0.0
    rel: float = 0.0
    count: int = 0
    size: int = 0
    text: str = ""


def distance(expected: Any, actual: Any, rtol: float | None, atol: float | None) -> Distance:
    """Return the distance of two arrays."""
    left, right = np.asarray(expected), np.asarray(actual)
    if left.shape != right.shape:
        return Distance(BEYOND, size=left.size, text=f"shape {_list(right.shape)} instead of {_list(left.shape)}")
    if left.dtype.kind in "OSU" or right.dtype.kind in "OSU":
        count = compare(left, right, dtype=False).count
        return Distance(BEYOND if count else 0.0, count=count, size=left.size, text="other texts" if count else "")
    if left.dtype != right.dtype:
        text = f"element type {name_of(right.dtype)} instead of {name_of(left.dtype)}"
        return Distance(BEYOND, size=left.size, text=text)
    if not _is_float(left.dtype) and np.array_equal(left, right):
        return Distance(0.0, size=left.size)
    limits, is_real = _tolerances(left.dtype, rtol, atol), _is_float(left.dtype) and left.dtype.kind != "c"
    left, right = left.reshape(-1), right.reshape(-1)
    worst = largest = relative = 0.0
    count = 0
    with np.errstate(all="ignore"):
        for start in range(0, left.size, BLOCK):
            a, b = left[start : start + BLOCK], right[start : start + BLOCK]
            found = (_of_finite(a, b, *limits) if is_real else None) or _of_any(a, b, *limits)
            worst, largest, relative = max(worst, found[0]), max(largest, found[1]), max(relative, found[2])
            count += found[3]
    text = "numbers that are not finite" if worst >= BEYOND else ""
    return Distance(min(worst, BEYOND), largest, relative, count, left.size, text)


Part = tuple[float, float, float, int]
"""The worst multiple of the tolerance, the largest absolute and relative difference, the number beyond it."""


def _of_finite(left: np.ndarray, right: np.ndarray, rtol: float, atol: float) -> Part | None:
    """The distance of a block; None if a number in it is not finite, or there is no tolerance. It takes few passes."""
    kind = np.float32 if left.dtype.itemsize <= 4 else np.float64
    size = np.abs(left.astype(kind, copy=False))
    apart = np.abs(left.astype(kind, copy=False) - right.astype(kind, copy=False))
    limit = size * rtol
    limit += atol
    multiple = np.divide(apart, limit, out=limit)
    worst = float(multiple.max())
    if not worst < BEYOND:
        return None
    count = int(np.count_nonzero(multiple > 1)) if worst > 1 else 0
    size[size == 0] = np.inf
    return worst, float(apart.max()), float(np.divide(apart, size, out=size).max()), count


def _of_any(left: np.ndarray, right: np.ndarray, rtol: float, atol: float) -> Part:
    """The distance of a block of any numbers."""
    kind = np.complex128 if left.dtype.kind == "c" else np.float64
    a, b = left.astype(kind), right.astype(kind)
    wrong = (left != right) & ~(np.isnan(a) & np.isnan(b))
    apart, size = np.abs(a - b), np.abs(a)
    multiple = apart / (size * rtol + atol)
    if not _is_float(left.dtype):
        multiple = np.maximum(multiple, EXACT)
    finite = np.isfinite(a) & np.isfinite(b)
    multiple = np.where(wrong, np.where(finite, multiple, np.inf), 0.0)
    relative = np.divide(apart, size, out=np.zeros_like(size), where=finite & (size > 0))
    largest, count = float(apart.max(where=finite, initial=0)), int(np.count_nonzero(multiple > 1))
    return float(multiple.max()), largest, float(relative.max()), count


def _tolerances(dtype: np.dtype, rtol: float | None, atol: float | None) -> tuple[float, float]:
    usual = tolerance(dtype) if _is_float(dtype) else (RTOL, ATOL)
    return usual[0] if rtol is None else rtol, usual[1] if atol is None else atol


def _is_float(dtype: np.dtype) -> bool:
    return tolerance(dtype) != (0.0, 0.0)


def _list(values: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"
