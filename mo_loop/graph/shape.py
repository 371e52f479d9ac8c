"""Shapes, and the inference from several: broadcast, merged, joined, widened.

A shape is a tuple of dimensions (mo_loop/graph/dimension.py), or None when not even the rank is known.

>>> n = named("N")
>>> broadcast((n, 1), (1, 3)), join(2, 3).lo
((N, 3), 2)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from mo_loop.errors import TypeError_, UnsupportedError
from mo_loop.graph.dimension import Assumption, Dim, Dimension, Symbol, fresh, high, low, now, one_of, open_symbols

Shape: TypeAlias = tuple[Dimension, ...] | None

MOST_DIMENSIONS = 64
"""The largest rank: that of numpy's arrays."""

MOST_ELEMENTS = 2**59
"""The most elements of a tensor, without sizes of 0: with 16 bytes each, more have no number of bytes in 64 bits."""

MOST_COMPUTED = 2**26
"""The most elements of an array that a conversion computes from numbers in the model, and not from its data."""


def is_static(shape: Shape) -> bool:
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def element_count(shape: Shape) -> Dimension | None:
    """The product of all dimensions, None for an unknown rank."""
    if shape is None:
        return None
    total: Dimension = 1
    for dim in sorted(shape, key=lambda d: not isinstance(d, int)):  # ints first: 0 then wins over any symbol
        total = total * dim
    return total


def require_computable(*sizes: int) -> None:
    """Raise TypeError_ if an array of these sizes, which a conversion would compute, has too many elements."""
    if math.prod(max(size, 0) for size in sizes) > MOST_COMPUTED:
        shown = " * ".join(map(str, sizes))
        raise TypeError_(f"a constant of {shown} elements is too large to be computed", code="ML242")


def require_sizes(shape: Sequence[Dimension]) -> None:
    """Raise TypeError_ unless the sizes, and the number of elements, are those of a tensor that can exist."""
    count = 1
    if len(shape) > MOST_DIMENSIONS:
        raise TypeError_(f"a tensor of {len(shape)} dimensions", code="ML242")
    for dim in shape:
        if isinstance(dim, int):
            if dim < 0:
                raise TypeError_(f"the shape {show(shape)} has a size below 0", code="ML242")
            count *= dim or 1
    if count > MOST_ELEMENTS:
        raise TypeError_(f"the shape {show(shape)} has more than 2^59 elements", code="ML242")


def normalise_axis(axis: int, rank: int | None, what: str = "axis") -> int:
    """`axis` counted from the front; TypeError_ unless -rank <= axis < rank, UnsupportedError for an unknown rank."""
    if rank is None:
        raise UnsupportedError("an axis is given, and the rank of the tensor is unknown", code="ML314")
    if not -rank <= axis < rank:
        raise TypeError_(f"{what} {axis} is outside a tensor of rank {rank}", code="ML231")
    return axis + rank if axis < 0 else axis


def broadcast_dim(a: Dimension, b: Dimension) -> Dimension:
    """The result of numpy broadcasting of two dimensions; TypeError_ if both are static and cannot be broadcast."""
    if a == b or (isinstance(b, int) and b == 1):
        return a
    now_a, now_b = now(a), now(b)
    if now_a is not None and now_b is not None and now_a != now_b and 1 not in (now_a, now_b):
        raise TypeError_(f"dimensions {a} and {b} cannot be broadcast", code="ML232")
    if isinstance(a, int):
        if a == 1:
            return b
        return a  # the other one is 1 or equal: the result is the static one
    if isinstance(b, int):
        return b
    if low(a) > 1 and low(b) > 1:  # neither can be 1, so both must be equal
        return a
    if low(a) > 1:
        return a
    if low(b) > 1:
        return b
    return one_of(a, b, None if now_a is None or now_b is None else now_b if now_a == 1 else now_a)


def broadcast(*shapes: Shape) -> Shape:
    """The numpy broadcast of several shapes; the rank is unknown if that of one shape is."""
    known: list[tuple[Dimension, ...]] = []
    for shape in shapes:
        if shape is None:
            return None
        known.append(shape)
    first = known[0]
    if all(shape == first for shape in known):
        return first
    rank = max(len(shape) for shape in known)
    result: list[Dimension] = [1] * rank
    for shape in known:
        offset = rank - len(shape)
        for i, dim in enumerate(shape):
            result[offset + i] = broadcast_dim(result[offset + i], dim)
    return tuple(result)


def merge_dim(a: Dimension, b: Dimension) -> Dimension:
    """One dimension from two statements about it. Raises TypeError_ if they contradict each other."""
    if a == b:
        return a
    now_a, now_b = now(a), now(b)
    if now_a is not None and now_b is not None and now_a != now_b:
        raise TypeError_(f"dimension is both {a} and {b}", code="ML233")
    if isinstance(b, int):
        return merge_dim(b, a)
    if isinstance(a, int):
        value, other = a, b
        hi = high(other)
        if value < low(other) or (hi is not None and value > hi):
            raise TypeError_(f"dimension {other!r} cannot be {value}", code="ML233")
        return value
    if a.is_fresh and not b.is_fresh:
        return b
    if b.is_fresh and not a.is_fresh:
        return a
    return _intersection(a, b)


def _intersection(a: Dim, b: Dim) -> Dimension:
    """A dimension within the bounds of both; one of the two if its bounds are the narrower ones."""
    highs = [bound for bound in (high(a), high(b)) if bound is not None]
    lo, hi = max(low(a), low(b)), min(highs, default=None)
    if hi is not None and hi < lo:
        raise TypeError_(f"dimension {a!r} cannot be {b!r}", code="ML233")
    for each in (a, b):
        if (low(each), high(each)) == (lo, hi):
            return each
    return fresh(lo, hi, a.now, (*a.symbols(), *b.symbols()))


def merge(a: Shape, b: Shape) -> Shape:
    """One shape from two statements about it. Raises TypeError_ if they contradict each other."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b):
        raise TypeError_(f"shape {show(a)} has another rank than {show(b)}", code="ML233")
    return tuple(merge_dim(x, y) for x, y in zip(a, b, strict=True))


def join(a: Dimension, b: Dimension) -> Dimension:
    """A dimension that is one of two; if they differ, a new one: `?` can be the size of another tensor."""
    if a == b:
        return a
    return one_of(a, b, now(a) if now(a) == now(b) else None)


def covers(wide: Dimension, narrow: Dimension) -> bool:
    """Whether every value of `narrow` is within the bounds of the fresh symbol `wide`, or they are equal."""
    if wide == narrow:
        return True
    if not isinstance(wide, Dim) or not wide.is_fresh:
        return False
    hi_w, hi_n = wide.hi, high(narrow)
    return wide.lo <= low(narrow) and (hi_w is None or (hi_n is not None and hi_n <= hi_w))


def of_declared_sizes(shape: Shape) -> Shape:
    """A shape with the numbers that it has for the declared sizes of the model's inputs, as far as they are known."""
    return None if shape is None else tuple(dim if (size := now(dim)) is None else size for dim in shape)


def has_equal_sizes_now(a: Sequence[Dimension], b: Sequence[Dimension]) -> bool:
    """Whether two shapes are known to be equal for the declared sizes of the model's inputs."""
    pairs = zip(a, b, strict=True)
    return len(a) == len(b) and all(x == y or (now(x) is not None and now(x) == now(y)) for x, y in pairs)


def assume_fixed(dims: Iterable[Dimension]) -> None:
    """Raise Assumption if dimensions follow from declared sizes of the model's inputs that may change."""
    fixed = open_symbols(dims)
    if fixed:
        raise Assumption(fixed)


def assume_elements(dims: Iterable[Dimension]) -> None:
    """Raise Assumption if declared sizes of the model's inputs from which dimensions follow may become 0."""
    least = [(symbol, 1) for symbol in open_symbols(dims) if symbol.lo == 0]
    if least:
        raise Assumption(least=least)


def assume_least(bounds: Iterable[tuple[Dimension, int]]) -> None:
    """Raise Assumption if dimensions that are declared sizes of the model's inputs may become smaller than numbers."""
    pairs = [(symbol, size) for dim, size in bounds for symbol in open_symbols([dim]) if dim == Dim(((symbol, 1),))]
    least = [(symbol, size) for symbol, size in pairs if symbol.lo < size]
    if least:
        raise Assumption(least=least)


def assume_equal(a: Sequence[Dimension] | None, b: Sequence[Dimension] | None) -> None:
    """Raise Assumption if sizes differ, but not for the declared sizes of the model's inputs."""
    fixed: set[Symbol] = set()
    equal: list[set[Symbol]] = []
    for one, other in zip(a or (), b or (), strict=False):
        if one == other or now(one) is None or now(one) != now(other):
            continue
        symbols = open_symbols((one, other))
        alike = {each for each in symbols if each.now == now(one)}
        if isinstance(one, int) or isinstance(other, int) or symbols != alike:
            fixed |= symbols
        elif len(alike) > 1:
            equal.append(alike)
    if fixed or equal:
        raise Assumption(fixed, equal)


def assume_ones(shape: Sequence[Dimension]) -> None:
    """Raise Assumption unless it is known which declared sizes are 1."""
    fixed: set[Symbol] = set()
    least: dict[Symbol, int] = {}
    for dim in shape:
        symbols = open_symbols([dim])
        if not symbols or low(dim) > 1 or isinstance(dim, int):
            continue
        if dim.symbol in symbols and dim.now != 1:
            least[dim.symbol] = 2
        else:
            fixed |= symbols
    if fixed or least:
        raise Assumption(fixed, least=least.items())


def join_shapes(a: Shape, b: Shape) -> Shape:
    """A shape that covers both; ranks that differ give an unknown rank."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(join(x, y) for x, y in zip(a, b, strict=True))


def widen(old: Shape, new: Shape, outer: Collection[Symbol]) -> Shape:
    """As join, but a dimension that leaves its bounds becomes unbounded at once, so that repeated widening ends.

    `outer` are the symbols of the graph around the loop. A dimension that changes cannot be one of them.
    """
    if old is None or new is None or len(old) != len(new):
        return None
    return tuple(_widened(x, y, outer) for x, y in zip(old, new, strict=True))


def _widened(old: Dimension, new: Dimension, outer: Collection[Symbol]) -> Dimension:
    if old == new:
        return old
    if not covers(old, new):
        return fresh()
    return fresh(low(old), high(old)) if any(symbol in outer for symbol in symbols_of((old,))) else old


def symbols_of(dims: Iterable[Dimension]) -> Iterator[Symbol]:
    """All symbols in some dimensions or values."""
    return (symbol for dim in dims if isinstance(dim, Dim) for symbol in dim.symbols())


def show(shape: Shape | Sequence[Dimension]) -> str:
    """`[2,N,?]`, or `[...]` for an unknown rank."""
    return "[...]" if shape is None else f"[{','.join(str(dim) for dim in shape)}]"
