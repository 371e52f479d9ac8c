"""Compares expected and actual arrays: shape, element type, values.

Shapes are compared exactly. Integers, booleans and strings are compared exactly; floats with a tolerance, where NaN
equals NaN and an infinity equals itself:

    |actual - expected| <= atol + rtol * |expected|         rtol 1e-3, atol 1e-5; both 1e-2 for 16 bits and fewer

A sequence is a list in ONNX, and a pair of tensors in the IR (`sequence_io="packed"`).
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mo_loop.graph.types import name_of
from mo_loop.support.packed_arrays import pack_sequence, unpack_sequence

RTOL, ATOL, SMALL_FLOAT = 1e-3, 1e-5, 1e-2

NamedArray = tuple[str, Any]
"""An array, or its placeholder, with the name of its input or output."""

EQUAL, AMPLIFIED = "equal", "amplified"

BEYOND = 1e30
"""The `multiple` of differences that have no measure. JSON has no infinity."""

EXACT = 2.0
"""The least `multiple` of a difference of numbers that are compared exactly."""

BLOCK = 1 << 15
"""The elements that are compared at once: they stay in the cache of the processor."""

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
    `multiple` is the largest difference as a multiple of its tolerance.
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
    multiple: float = 0.0

    def __bool__(self) -> bool:
        return self.kind in (EQUAL, AMPLIFIED)

    def __str__(self) -> str:
        if self.kind == EQUAL:
            return f"{self.name}: equal (largest difference {self.largest_abs:.3g}, relative {self.largest_rel:.3g})"
        return f"{self.name}: {self.message}"


def compare(
    expected: Any, actual: Any, name: str = "", *, rtol: float | None = None, atol: float | None = None,
    dtype: bool = True,
) -> ArrayComparison:
    """Compare one array. `dtype=False` skips the check of element types."""
    left, right = _plain(np.asarray(expected)), _plain(np.asarray(actual))
    if left.shape != right.shape:
        text = f"shape {list(right.shape)} instead of {list(left.shape)}"
        return ArrayComparison(name, "shape", text, size=left.size, multiple=BEYOND)
    if dtype and left.dtype != right.dtype:
        text = f"element type {name_of(right.dtype)} instead of {name_of(left.dtype)}"
        return ArrayComparison(name, "type", text, size=left.size, multiple=BEYOND)
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
) -> list[ArrayComparison]:
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


def json_ready(value: Any) -> Any:
    """A record in types that JSON has; numbers that are not finite become text."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [json_ready(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def is_limited(expected: Any, actual: Any) -> bool:
    """Whether 64-bit integers differ only because the CPU device computes them in 32 bits, which limits them."""
    if np.asarray(expected).dtype != np.int64 or np.shape(expected) != np.shape(actual):
        return False
    limits = np.iinfo(np.int32)
    return bool((np.clip(expected, limits.min, limits.max) == actual).all())


class _Block(NamedTuple):
    """The measures of some elements: the places of the first that differs and of the worst one with its excess; the
    largest difference, relative difference and multiple; the sums of which `_measured` makes means and the cosine."""

    first: int
    worst: int
    excess: float
    largest: tuple[float, ...]
    sums: tuple[Any, ...]


def _of_block(left: np.ndarray, right: np.ndarray, rtol: float, atol: float) -> _Block:
    is_float, is_text = _is_float(left.dtype), left.dtype.kind == "O"
    # float64 represents every narrower float exactly, including those that numpy cannot compute with.
    kind = np.complex128 if left.dtype.kind == "c" else np.float64
    a, b = (np.zeros(each.shape) if is_text else each.astype(kind) for each in (left, right))
    differs, finite, size = np.asarray(left != right), np.isfinite(a) & np.isfinite(b), np.abs(a)
    apart = np.where(finite, np.abs(a - b), 0.0)
    if is_float:  # infinite where only one is finite, or an infinity meets another value
        limit, same = atol + rtol * size, ~differs | (np.isnan(a) & np.isnan(b))
        excess = np.where(finite, apart - limit, np.where(same, -np.inf, np.inf))
        multiple = np.where(finite, np.where(apart > 0, apart / limit, 0.0), np.where(same, 0.0, np.inf))
    else:  # large integers that differ can be equal as float64
        excess = np.where(differs, np.maximum(apart, 0.5), -1.0)
        multiple = np.where(differs, np.inf if is_text else np.maximum(apart / (size * RTOL + ATOL), EXACT), 0.0)
    scale = size if is_float else np.maximum(size, 1.0)
    relative = np.divide(apart, scale, out=np.zeros_like(apart), where=finite & (scale != 0))
    wrong, worst = excess > 0, int(excess.argmax())
    a, b = (a, b) if finite.all() else (a[finite], b[finite])
    # Sums of products: matrix products of large vectors use the threads of BLAS, which can hang next to a runtime's.
    squares = (np.sum(np.abs(each) ** 2) for each in (a, b))
    sums = (np.count_nonzero(wrong), apart.sum(), np.sum(apart**2), *squares, np.sum(np.conj(a) * b))
    largest = tuple(float(each.max()) for each in (apart, relative, multiple))
    return _Block(int(wrong.argmax()), worst, float(excess[worst]), largest, sums)


def _measured(name: str, expected: np.ndarray, actual: np.ndarray, rtol: float, atol: float) -> ArrayComparison:
    """The result for arrays of one shape. The tolerances are those of floats: others are compared exactly."""
    if not expected.size:
        return ArrayComparison(name)
    left, right, size = expected.reshape(-1), actual.reshape(-1), expected.size
    with np.errstate(all="ignore"):
        blocks = {
            start: _of_block(left[start : start + BLOCK], right[start : start + BLOCK], rtol, atol)
            for start in range(0, size, BLOCK)
        }
        sums, largest = zip(*((each.sums, each.largest) for each in blocks.values()), strict=True)
        count, difference, noise, signal, other, product = map(sum, zip(*sums, strict=True))
        largest_abs, largest_rel, multiple = map(max, zip(*largest, strict=True))
    start = max(blocks, key=lambda each: blocks[each].excess)
    worst = tuple(map(int, np.unravel_index(start + blocks[start].worst, expected.shape)))
    lengths = math.sqrt(signal) * math.sqrt(other)
    cosine = product / lengths if 0 < lengths < math.inf else float(signal == other)
    facts: dict[str, Any] = {
        "largest_abs": largest_abs, "largest_rel": largest_rel, "multiple": min(multiple, BEYOND),
        "mean_abs": float(difference) / size, "size": size, "count": int(count), "worst": worst,
        "cosine": float(abs(cosine) if expected.dtype.kind == "c" else cosine) if noise else 1.0,
        "pair": (str(expected[worst]), str(actual[worst])),
    }
    if expected.dtype.kind == "O":
        facts["cosine"] = float(not count)
    if _is_float(expected.dtype):
        is_known = 0 < signal < math.inf and 0 < noise < math.inf
        facts["snr"] = 10 * math.log10(signal / noise) if is_known else None
        if expected.ndim == 2 and expected.shape[1] > 1 and expected.dtype.kind != "c":
            rows = [each.astype(np.float64).argmax(axis=1) for each in (expected, actual)]
            facts["top1"] = float(np.mean(rows[0] == rows[1]))
    if not count:
        return ArrayComparison(name, **facts)
    first = next(start + each.first for start, each in blocks.items() if each.sums[0])
    index = tuple(map(int, np.unravel_index(first, expected.shape)))
    text = (
        f"{count} of {size} values differ, largest difference {largest_abs:.3g} (relative {largest_rel:.3g}), "
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
