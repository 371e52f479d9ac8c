"""Compares expected and actual arrays: shape, element type, values.

Shapes are compared exactly. Integers, booleans and strings are compared exactly; floats with a tolerance, where NaN
equals NaN and an infinity equals itself:

    |actual - expected| <= atol + rtol * |expected|         rtol 1e-3, atol 1e-5; both 1e-2 for 16 bits and fewer

A sequence is a list in ONNX, and a pair of tensors in the IR (`sequence_io="packed"`).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.graph.types import name_of
from mo_loop.support.packed_sequences import pack_sequence, unpack_sequence

RTOL, ATOL, SMALL_FLOAT = 1e-3, 1e-5, 1e-2

NamedArray = tuple[str, Any]
"""An array, or its placeholder, with the name of its input or output."""

EQUAL, AMPLIFIED = "equal", "amplified"

Named = list[NamedArray]
"""The inputs or outputs of one inference, in their order."""


@dataclass(frozen=True)
class ArrayComparison:
    """The result for one array. It is false in a boolean context if the arrays differ.

    `kind` is one of "equal", "amplified" (values differ, and every piece of the model agrees), "shape", "type",
    "values", "missing". `largest_abs`, `largest_rel` and `mean_abs` are the largest differences and the mean difference
    of finite pairs, `cosine` is the cosine of the angle between both arrays as vectors of their finite pairs. `snr` is
    the ratio of the expected values to the differences in decibels, None where there are none; `top1` is the share of
    rows whose largest element is the same one, None for an array that is not a matrix. `index` is the first differing
    element in row-major order; `count` is the number of differing elements of `size`; `worst` is the element that
    exceeds the tolerance by most, or is nearest to it, and `pair` has its expected and its actual value as text.
    """

    name: str
    kind: str = "equal"
    message: str = ""
    largest_abs: float = 0.0
    largest_rel: float = 0.0
    index: tuple[int, ...] | None = None
    count: int = 0
    mean_abs: float = 0.0
    cosine: float = 1.0
    snr: float | None = None
    top1: float | None = None
    size: int = 0
    worst: tuple[int, ...] | None = None
    pair: tuple[str, str] = ("", "")

    def __bool__(self) -> bool:
        return self.kind in (EQUAL, AMPLIFIED)

    def __str__(self) -> str:
        if self.kind == EQUAL:
            return f"{self.name}: equal (largest difference {self.largest_abs:.3g}, relative {self.largest_rel:.3g})"
        return f"{self.name}: {self.message}"


def compare(
    expected: Any, actual: Any, name: str = "", *, rtol: float | None = None, atol: float | None = None,
    dtype: bool = True,
) -> ArrayComparison:  # fmt: skip
    """Compare one array. `dtype=False` skips the check of element types."""
    left, right = _plain(np.asarray(expected)), _plain(np.asarray(actual))
    if left.shape != right.shape:
        return ArrayComparison(name, "shape", f"shape {list(right.shape)} instead of {list(left.shape)}")
    if dtype and left.dtype != right.dtype:
        return ArrayComparison(name, "type", f"element type {name_of(right.dtype)} instead of {name_of(left.dtype)}")
    usual = tolerance(left.dtype)
    return _measured(name, left, right, usual[0] if rtol is None else rtol, usual[1] if atol is None else atol)


def tolerance(dtype: np.dtype) -> tuple[float, float]:
    """The usual relative and absolute tolerance of an element type; 0 for types that are compared exactly."""
    if not _is_float(dtype):
        return 0.0, 0.0
    return (RTOL, ATOL) if dtype.itemsize > 2 else (SMALL_FLOAT, SMALL_FLOAT)


def largest_number(value: Any) -> float:
    """The largest finite number of an array, in its absolute value; 0 for texts and complex numbers."""
    array = np.asarray(value)
    if array.dtype.kind in "OSUc" or not array.size:
        return 0.0
    wide = np.abs(array.astype(np.float64))
    return float(wide.max(where=np.isfinite(wide), initial=0.0))


def tolerance_of_ends(expected: Any) -> tuple[float, float]:
    """The relative and absolute tolerance of an output, by its type and its largest number."""
    array = np.asarray(expected)
    rtol, atol = tolerance(array.dtype)
    if not rtol or array.dtype.kind == "c":
        return rtol, atol
    if array.dtype.itemsize == 2:  # two roundings of a number, and one of a quarter of the largest
        unit = 2.0**-10 if array.dtype == np.float16 else 2.0**-7
        rtol, atol = 2 * unit, unit / 4
    return rtol, atol * largest_number(array)


def compare_all(
    expected: Sequence[NamedArray], actual: Sequence[NamedArray], *, rtol: float | None = None,
    atol: float | None = None, tolerances: Mapping[str, tuple[float, float]] | None = None,
) -> list[ArrayComparison]:  # fmt: skip
    """Compare named outputs: by name if every expected name exists, otherwise by position.

    `tolerances` are (rtol, atol) of outputs that have others than `rtol` and `atol`.
    """
    by_name = by_wanted_name(expected, actual)
    if len(expected) != len(actual) and not dict(expected).keys() <= dict(actual).keys():
        text = f"{len(actual)} outputs instead of {len(expected)}"
        return [ArrayComparison("outputs", "missing", text)]
    found = []
    for name, array in expected:
        relative, absolute = (tolerances or {}).get(name, (rtol, atol))
        found.append(compare(array, by_name[name], name, rtol=relative, atol=absolute))
    return found


def by_wanted_name(wanted: Sequence[NamedArray], found: Sequence[NamedArray]) -> dict[str, Any]:
    """The results by the names that are wanted; by position where the runtime uses another name of one."""
    have = dict(found)
    if all(name in have for name, _ in wanted):
        return have
    return {name: array for (name, _), (_, array) in zip(wanted, found, strict=False)}


def packed(feeds: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """The arrays for an IR with inputs of these names: a sequence `s` becomes `s.data` and `s.shapes`."""
    found: dict[str, Any] = {}
    for name, value in feeds.items():
        if isinstance(value, list) and f"{name}.data" in known:
            found[f"{name}.data"], found[f"{name}.shapes"] = pack_sequence(value)
        else:
            found[name] = value
    return found


def unpacked(found: Named, expected: Named) -> Named:
    """The outputs of an IR, with the lists of packed sequences."""
    rest, lists = dict(found), {}
    for name, value in expected:
        if isinstance(value, list) and f"{name}.data" in rest:
            scalars = bool(value) and np.ndim(value[0]) == 0
            lists[name] = unpack_sequence(rest.pop(f"{name}.data"), rest.pop(f"{name}.shapes"), scalars=scalars)
    return [*lists.items(), *rest.items()] if lists else found


def flat(named: Iterable[NamedArray]) -> Named:
    """The arrays; of a list its elements and its length, of an absent optional nothing."""
    found: Named = []
    for name, value in named:
        if value is None:
            continue
        if not isinstance(value, list):
            found.append((name, value))
            continue
        found.append((f"length of {name}", np.asarray(len(value))))
        found += [(f"{name}[{place}]", each) for place, each in enumerate(value)]
    return found


def is_limited(expected: Any, actual: Any) -> bool:
    """Whether 64-bit integers differ only because the CPU device computes them in 32 bits, which limits them."""
    if np.asarray(expected).dtype != np.int64 or np.shape(expected) != np.shape(actual):
        return False
    limits = np.iinfo(np.int32)
    return bool((np.clip(expected, limits.min, limits.max) == actual).all())


def _cosine(left: np.ndarray, right: np.ndarray) -> float:
    """The cosine of the angle between two vectors; 1 if both are zero, 0 if one is."""
    # By sums: products of large vectors use the threads of BLAS, which can hang next to those of a runtime.
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = [math.sqrt(np.sum(np.abs(each) ** 2)) for each in (left, right)]
        if not all(sizes):
            return float(sizes[0] == sizes[1])
        product = np.sum(np.conj(left / sizes[0]) * (right / sizes[1]))
    return float(abs(product) if left.dtype.kind == "c" else product)


def _snr(expected: np.ndarray, difference: np.ndarray) -> float | None:
    """The energy of the expected values to that of the differences in decibels; None if one of them is 0."""
    with np.errstate(over="ignore"):
        signal, noise = float(np.sum(np.abs(expected) ** 2)), float(np.sum(difference**2))
    return 10 * math.log10(signal / noise) if 0 < signal < math.inf and 0 < noise < math.inf else None


def _top1(expected: np.ndarray, actual: np.ndarray) -> float | None:
    """The share of rows of a matrix whose largest element is the same one; None for other arrays."""
    if expected.ndim != 2 or expected.shape[1] < 2 or not expected.size or expected.dtype.kind == "c":
        return None
    return float(np.mean(expected.argmax(axis=1) == actual.argmax(axis=1)))


def _measured(name: str, expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float) -> ArrayComparison:
    """The result for arrays of one shape. The tolerances are those of floats: others are compared exactly."""
    is_float, is_integer = _is_float(expected.dtype), expected.dtype.kind in "iub"
    differs = np.asarray(False if is_float else expected != actual)
    if is_float or (is_integer and differs.any()):
        # float64 represents every narrower float exactly, including those that numpy cannot compute with.
        kind = np.complex128 if expected.dtype.kind == "c" else np.float64
        left, right = expected.astype(kind), actual.astype(kind)
    else:  # texts, and numbers that are equal
        left = right = np.zeros(expected.shape)
    finite = np.isfinite(left) & np.isfinite(right)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(finite, np.abs(left - right), 0.0)
        if is_float:  # infinite where only one is finite, or an infinity meets another value
            same = (left == right) | (np.isnan(left) & np.isnan(right))
            excess = np.where(finite, difference - atol - rtol * np.abs(left), np.where(same, -np.inf, np.inf))
        else:  # large integers that differ can be equal as float64
            excess = np.where(differs, np.maximum(difference, 0.5), -1.0)
    scale = np.abs(left) if is_float else np.maximum(np.abs(left), 1.0)
    relative = np.divide(difference, scale, out=np.zeros_like(difference), where=finite & (scale != 0))
    wrong = excess > 0
    size, count = int(wrong.size), int(wrong.sum())
    facts: dict[str, Any] = {
        "largest_abs": float(difference.max(initial=0.0)), "largest_rel": float(relative.max(initial=0.0)),
        "mean_abs": float(difference.mean()) if size else 0.0, "size": size, "count": count,
        "cosine": _cosine(left[finite], right[finite]) if is_float or is_integer else float(not count),
    }  # fmt: skip
    if is_float:
        facts |= {"snr": _snr(left[finite], difference[finite]), "top1": _top1(left, right)}
    if not size:
        return ArrayComparison(name, **facts)
    worst, index = (
        tuple(map(int, np.unravel_index(int(place), wrong.shape))) for place in (excess.argmax(), wrong.argmax())
    )
    facts |= {"worst": worst, "pair": (str(expected[worst]), str(actual[worst]))}
    if not count:
        return ArrayComparison(name, **facts)
    text = (
        f"{count} of {size} values differ, largest difference {facts['largest_abs']:.3g} "
        f"(relative {facts['largest_rel']:.3g}), "
        f"first at {list(index)}: {actual[index]!s} instead of {expected[index]!s}"
    )
    return ArrayComparison(name, "values", text, index=index, **facts)


def _plain(array: np.ndarray) -> np.ndarray:
    """Strings as str objects, integers of fewer than 8 bits as 8 bits; everything else unchanged."""
    if array.dtype.kind in "SUO":
        text = [value.decode() if isinstance(value, bytes) else str(value) for value in array.ravel().tolist()]
        return np.array(text, dtype=object).reshape(array.shape)
    if array.dtype.name in ("int2", "int4"):
        return array.astype(np.int8)
    return array.astype(np.uint8) if array.dtype.name in ("uint1", "uint2", "uint4") else array


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind in "fc" or "float" in dtype.name


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
    is_text = left.dtype.kind in "OSU" or right.dtype.kind in "OSU"
    if is_text or left.shape != right.shape or left.dtype != right.dtype:
        result = compare(left, right, dtype=not is_text)
        text = "other texts" if result.kind == "values" else result.message
        return Distance(0.0 if result else BEYOND, count=result.count, size=left.size, text=text)
    usual = tolerance(left.dtype)
    is_float = usual != (0.0, 0.0)
    if not is_float and np.array_equal(left, right):
        return Distance(0.0, size=left.size)
    usual = usual if is_float else (RTOL, ATOL)
    limits = usual[0] if rtol is None else rtol, usual[1] if atol is None else atol
    left, right = left.reshape(-1), right.reshape(-1)
    with np.errstate(all="ignore"):
        blocks = [
            _of_block(left[start : start + BLOCK], right[start : start + BLOCK], *limits, is_float)
            for start in range(0, left.size, BLOCK)
        ]
    worst, largest, relative, count = np.array(blocks or [(0.0, 0.0, 0.0, 0)]).T
    text = "numbers that are not finite" if worst.max() >= BEYOND else ""
    return Distance(
        min(float(worst.max()), BEYOND), float(largest.max()), float(relative.max()), int(count.sum()), left.size, text
    )


def _of_block(
    left: np.ndarray, right: np.ndarray, rtol: float, atol: float, is_float: bool, kind: Any = None
) -> tuple[float, float, float, int]:
    """The worst multiple of the tolerance, the largest absolute and relative difference, the number beyond it."""
    if kind is None:
        is_small = is_float and left.dtype.itemsize <= 4
        kind = np.complex128 if left.dtype.kind == "c" else np.float32 if is_small else np.float64
    a, b = left.astype(kind, copy=False), right.astype(kind, copy=False)
    size, apart = np.abs(a), np.abs(a - b)
    multiple = apart / (size * rtol + atol)
    if not is_float or not multiple.max() < BEYOND:
        if kind is np.float32:  # the difference may be beyond its range
            return _of_block(left, right, rtol, atol, is_float, np.float64)
        wrong = (left != right) & ~(np.isnan(a) & np.isnan(b))
        finite = np.isfinite(a) & np.isfinite(b)
        least = 0.0 if is_float else EXACT
        multiple = np.where(wrong, np.where(finite, np.maximum(multiple, least), np.inf), 0.0)
        apart, size = np.where(finite, apart, 0.0), np.where(finite, size, 0.0)
    relative = np.divide(apart, size, out=np.zeros_like(size), where=size > 0)
    return float(multiple.max()), float(apart.max()), float(relative.max()), int(np.count_nonzero(multiple > 1))
