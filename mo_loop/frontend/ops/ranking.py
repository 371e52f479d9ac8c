"""The largest or smallest elements along an axis; of equal ones those with the lowest indices, as ONNX has it.

The runtime's TopK takes n * k steps if it is stable. The unstable one takes about n, but selects and arranges equal
elements in any order. For large n * k it finds the values v[0], v[1], ... v[k - 1], and the rest follows from them:

    key[i]  = i if x[i] is before v[k - 1], 64 i + 2^24 if it is equal to it, else 2^30
    place   = i of the k lowest keys                        what is selected, in the order of indices
    order   = TopK(x[place]).indices                        sorted by value
    group   = CumSum(v[j] != v[j - 1])                      the number of the distinct value
    result  = place[order], sorted by group * k + order     sorted by value and index

All keys are different, so that the order of equal ones does not matter. No key is negative, because TopK compares the
bits of integers as those of floats on ARM; f32 represents all of them for rows of up to `_LONGEST` elements. The first
element of a row is the lowest index of those that are equal to the maximum.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from mo_loop.frontend.ops.shared import integers, number
from mo_loop.frontend.vocabulary import Graph, Value, ops
from mo_loop.graph import ElementType, assume_fixed, element_count, high, i32, i64, normalise_axis, now, u32, u64
from mo_loop.ops.lengths import FAR

Mode = Literal["max", "min"]

_WIDE = (i32, i64, u32, u64)
_FEW = 8
"""Up to so many elements the stable search keeps its results in registers."""
_FAST_STEPS = 4096
"""Up to so many steps (n * k) the stable search takes less time than the operations that replace it."""
_ARRANGED = 32
"""Up to so many selected elements the stable search arranges them in less time."""
_TOGETHER = 64
"""The factor by which it may take more steps if the elements after the axis are searched together."""
_USUAL = 2**14
"""The length of an axis before others, if nothing is known of it."""
_LONG = 2**14
"""From this length on a search for a few elements takes less time if it is one for `_FEW`."""
_ROW = 32
"""From this length on reductions find the first element of a row in less time than the stable search."""
_AFTER_ALL = 2**30
"""A key after all others, which f32 represents: the runtime computes the keys together with the comparisons."""
_EQUAL = 2**24
"""The least key of an element that is equal to the last one."""
_APART = _AFTER_ALL // _EQUAL
"""The difference of the keys of such elements. f32 represents multiples of it up to `_AFTER_ALL`."""
_LONGEST = (_AFTER_ALL - _EQUAL) // _APART
"""The length of a row up to which all keys of equal elements are below `_AFTER_ALL`."""
_BLOCK = 2**12
"""In a row of unknown length, the multiple of this number that is in a place is found before the rest."""
_MOST = 2**23
"""The number of selected elements, if nothing is known of it: so many are arranged correctly."""


def top(x: Value, k: Any, axis: int, mode: Mode, index: ElementType = i64, *, places: bool = True) -> Sequence[Value]:
    """The k (int or scalar Value) first elements along an axis, and their indices. Without `places` those have any
    order for equal elements."""
    if not places or x.rank is None:
        return ops.TopK11(x, k, axis=axis, mode=mode, stable=places, index_element_type=index)
    if isinstance(k, Value) and (numbers := integers(k)):
        k = numbers[0]
    at = normalise_axis(axis, x.rank)
    size = x.type.dims[at]
    if (now(size) or 0) > _LONGEST:
        assume_fixed([size])
    length = high(size)
    usual = now(size) if length is None else length
    count = k if isinstance(k, int) else None if k.known is None else high(k.known.item())
    if isinstance(k, int) and k < _FEW and isinstance(size, int) and _LONG <= size <= _LONGEST:
        more = _by_values(x, _FEW, at, mode, index, _FEW)
        return [each.cut(at, 0, k) for each in more]
    inner = element_count(x.type.dims[at + 1 :])
    are_many = not isinstance(inner, int) or inner >= _FEW
    if _is_fast(_USUAL if usual is None and are_many else usual, count, _TOGETHER if are_many else 1):
        return ops.TopK11(x, k, axis=axis, mode=mode, stable=True, index_element_type=index)
    known = [each for each in (length, count) if each is not None]
    return _by_values(x, k, at, mode, index, min(known, default=_MOST))


def first(x: Value, axis: int, mode: Mode, index: ElementType = i64, *, last: bool = False) -> Value:
    """The index of the first element (of equal ones the first or the last) along an axis, which stays with length 1."""
    if x.rank is not None:
        axis = normalise_axis(axis, x.rank)
        length = x.type.dims[axis]
        is_row = axis == x.rank - 1 and isinstance(length, int) and _ROW <= length <= 2**24
        if is_row and x.dtype not in _WIDE:
            return _place(x, axis, length, mode, last).astype(index)
        if is_row_of_any_length(x, axis) and (now(x.type.dims[axis]) or _ROW) >= _ROW:
            upper, lower, _ = first_of_any_length(x, mode, last=last)
            return (ops.BitwiseAnd(upper, np.int32(_AFTER_ALL - 1)) + lower).astype(index)
    if not last:
        return ops.TopK11(x, 1, axis=axis, mode=mode, stable=True, index_element_type=index)[1]
    place = first(ops.Slice(x, [-1], [-FAR], [-1], [axis]), axis, mode)
    return (ops.Gather(x.sizes, [axis], 0) - 1 - place).astype(index)


def _place(x: Value, axis: int, length: int, mode: Mode, last: bool) -> Value:
    """As `first`, along a row. Nothing is equal to the maximum of infinities that the runtime finds: all are equal."""
    best = (ops.ReduceMax if mode == "max" else ops.ReduceMin)(x, [axis], keep_dims=True)
    steps = _steps(x.graph, _number(x.graph, length))
    if last:
        places = ops.ReduceMax(ops.Select(ops.Equal(x, best), steps, np.int32(-1)), [axis], keep_dims=True)
        return ops.Select(places < np.int32(0), np.int32(length - 1), places)
    places = ops.ReduceMin(ops.Select(ops.Equal(x, best), steps, np.int32(length)), [axis], keep_dims=True)
    return ops.Select(places < np.int32(length), places, np.int32(0))


def is_row_of_any_length(x: Value, axis: int) -> bool:
    """Whether `first_of_any_length` finds elements along this axis."""
    if x.rank is None or normalise_axis(axis, x.rank) != x.rank - 1:
        return False
    return not isinstance(x.type.dims[-1], int) and x.dtype not in _WIDE


def first_of_any_length(x: Value, mode: Mode, *, last: bool = False) -> tuple[Value, Value, Value]:
    """As `first`, along the last axis, of at most 2^30 elements: a place in two parts, and whether elements are there.

    Reductions compare in f32, which counts to 2^24: the multiple of 4096 in a place is found first, then the rest. If
    no element is equal to the maximum of infinities that the runtime finds, all multiples are equally far after it.
    """
    best = (ops.ReduceMax if mode == "max" else ops.ReduceMin)(x, [-1], keep_dims=True)
    steps = _steps(x.graph, _number(x.graph, x.size(-1)))
    low = ops.BitwiseAnd(steps, np.int32(_BLOCK - 1))
    high = steps - low
    reduce, after = (ops.ReduceMax, -_AFTER_ALL) if last else (ops.ReduceMin, _AFTER_ALL)
    keys = ops.Select(ops.Equal(x, best), high, high + np.int32(after))
    upper = reduce(keys, [-1], keep_dims=True)
    rests = ops.Select(ops.Equal(keys, upper), low, np.int32(-1 if last else _BLOCK))
    lower = reduce(rests, [-1], keep_dims=True)
    return upper, lower, ops.Equal(rests, lower)


def _is_fast(length: int | None, count: int | None, together: int) -> bool:
    """Whether the stable search is fast; for more places than the keys represent it is the only one."""
    if count is not None and count < _FEW:
        return True
    if length is None:
        return False
    return length > _LONGEST or length * min(length if count is None else count, length) < _FAST_STEPS * together


def _by_values(x: Value, k: Any, axis: int, mode: Mode, index: ElementType, most: int) -> list[Value]:
    rank = len(x.type.dims)
    last = [i for i in range(rank) if i != axis] + [axis]
    if axis != rank - 1:
        x = ops.Transpose(x, last)
    values, found = _found(x, k, rank - 1, mode, most)
    results = [values, found.astype(index)]
    return results if axis == rank - 1 else [ops.Transpose(each, np.argsort(last)) for each in results]


def _found(x: Value, k: Any, axis: int, mode: Mode, most: int) -> tuple[Value, Value]:
    """The values and their places along the last axis, at most `most` of them."""

    def search(x: Value, mode: Mode) -> Sequence[Value]:
        return ops.TopK11(x, k, axis=axis, mode=mode, index_element_type=i32)

    values, order = search(x, mode)
    found = order
    if not isinstance(k, int) or k != x.type.dims[axis]:
        place = _selected(x, values, axis, mode, search)
        selected = ops.GatherElements(x, place, axis=axis)
        if isinstance(k, int) and k <= _ARRANGED:
            values, order = ops.TopK11(selected, k, axis=axis, mode=mode, stable=True, index_element_type=i32)
            return values, ops.GatherElements(place, order, axis=axis)
        order = search(selected, mode)[1]
        found = ops.GatherElements(place, order, axis=axis)
    before = ops.Concat(values.cut(axis, 0, 1), values.cut(axis, 0, -1), axis=axis)
    group = ops.CumSum((~same(values, before)).astype(i32), axis)
    count = _number(x.graph, k)
    base, digits = FAR // max(most, 1), 1  # of the group, such that digit * k + place fits into 31 bits
    while base**digits < most:
        digits += 1
    for digit in range(digits):  # the lowest digit of the group first
        rest = None if digit == digits - 1 else group % np.int32(base)
        key = (group if rest is None else rest) * count + order
        moved = search(key, "min")[1]
        found = ops.GatherElements(found, moved, axis=axis)
        if rest is not None:
            group = (group - rest) // np.int32(base)
            group, order = ops.GatherElements(group, moved, axis=axis), _steps(x.graph, count)
    return values, found


def _selected(x: Value, values: Value, axis: int, mode: Mode, search: Any) -> Value:
    """The places of the selected elements, in their order. NaN is never before nor equal: no place is too large."""
    last = values.cut(axis, -1)
    length = _number(x.graph, x.size(axis))
    steps = _steps(x.graph, length)
    keys = ops.Select(same(x, last), steps * np.int32(_APART) + np.int32(_EQUAL), np.int32(_AFTER_ALL))
    keys = search(ops.Select(_precedes(x, last, mode), steps, keys), "min")[0]
    places = ops.Select(keys < np.int32(_EQUAL), keys, keys // np.int32(_APART) - np.int32(_EQUAL // _APART))
    return ops.Minimum(places, length - np.int32(1))


def _precedes(x: Value, other: Value, mode: Mode) -> Value:
    if x.dtype in _WIDE:
        nearer = (ops.Maximum if mode == "max" else ops.Minimum)(x, other)
        return ~same(nearer, other)
    return other < x if mode == "max" else x < other


def same(x: Value, other: Value) -> Value:
    """The runtime compares integers as f32; whether their difference is 0 is exact."""
    return ops.Equal(x - other, number(x, 0)) if x.dtype in _WIDE else ops.Equal(x, other)


def _number(graph: Graph, number: Any) -> Value:
    return ops.Constant(np.int32(number), graph=graph) if isinstance(number, int) else number.astype(i32)


def _steps(graph: Graph, count: Value) -> Value:
    """0, 1, ... count - 1 in i32."""
    zero, one = (ops.Constant(np.int32(each), graph=graph) for each in (0, 1))
    return ops.Range(zero, count, one, output_type=i32)
