"""Lengths along axes: an int if it is known, else a scalar Value of type i64. Python's operators compute with both.

tokens = x.size(1)                             # 7, or the Gather of a ShapeOf
chunks = ceil_divided(tokens, 16)
x.reshape([chunks, 16, -1])
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from mo_loop.errors import ModelError
from mo_loop.graph import ElementType, Graph, Value, i64, normalise_axis
from mo_loop.ops import functional as ops

Length: TypeAlias = int | Value

FAR = 2**31 - 1
"""The largest index: the runtime computes indices in 32 bits."""


def dimension(x: Value, axis: int) -> Length:
    """The length of a tensor along an axis."""
    dims = x.type.dims
    length = dims[normalise_axis(axis, len(dims))]
    return length if isinstance(length, int) else ops.Gather(ops.ShapeOf(x), axis, 0)


def length_in(x: Value) -> Length:
    """The length that a tensor of one integer holds. Raises ModelError if it is known to hold several."""
    known = x.type.integers
    if known is not None and len(known) != 1:
        raise ModelError(f"a length or a count has {len(known)} elements, not one", code="ML229")
    return scalar(as_i64(x)) if known is None else known[0]


def as_value(length: Length, graph: Graph) -> Value:
    """A length as a scalar of the graph."""
    return length if isinstance(length, Value) else ops.Constant(np.array(length, np.int64), graph=graph)


def joined(items: Sequence[Any], like: Value) -> Value:
    """Lengths as one vector of type i64, in the graph of `like`."""
    if all(isinstance(item, int) for item in items):
        return ops.Constant(np.array(items, np.int64), graph=like.graph)
    parts: list[Any] = [
        np.array([item], np.int64) if isinstance(item, int) else ops.Reshape(as_i64(item), [1]) for item in items
    ]
    return parts[0] if len(parts) == 1 else ops.Concat(*parts, axis=0)


def reshaped(x: Value, lengths: Sequence[Any]) -> Value:
    """The same elements in another shape: a length or -1 for each axis, and None where it stays the same."""
    keeps = None in lengths
    shape = [0 if length is None else length for length in lengths] if keeps else lengths
    return ops.Reshape(x, joined(shape, x) if _holds_value(shape) else shape, special_zero=keeps)


def part(x: Value, key: Any) -> Value:
    """Elements of a tensor, in the notation of numpy: slices of step 1, whose bounds are lengths or vectors of one; or
    new axes of size 1, which are None. After `...`, axes are counted from the end."""
    keys = key if isinstance(key, tuple) else (key,)
    dots = next((place for place, each in enumerate(keys) if each is ...), len(keys))
    axes = {place if place < dots else place - len(keys): each for place, each in enumerate(keys) if place != dots}
    new = [axis for axis, each in axes.items() if each is None]
    cuts = {axis: each for axis, each in axes.items() if isinstance(each, slice) and each != slice(None)}
    known = all(each is None or (isinstance(each, slice) and each.step is None) for each in axes.values())
    if not known or bool(new) is bool(cuts):
        raise TypeError(f"{key!r} is neither slices nor new axes of a value")
    if new:
        return ops.Unsqueeze(x, new)
    begin = _bounds([cut.start or 0 for cut in cuts.values()], x)
    end = _bounds([FAR if cut.stop is None else cut.stop for cut in cuts.values()], x)
    return ops.Slice(x, begin, end, [1] * len(cuts), list(cuts))


def cut(x: Value, axis: int, start: Any, stop: Any = None) -> Value:
    """Elements along an axis: of `x[start:stop]` where this is the first one."""
    bounds = (_bounds([FAR if bound is None else bound], x) for bound in (start, stop))
    return ops.Slice(x, *bounds, [1], [axis])


def _bounds(bounds: list[Any], x: Value) -> Any:
    if len(bounds) == 1 and isinstance(bounds[0], Value) and bounds[0].rank == 1:
        return bounds[0]
    return joined(bounds, x) if _holds_value(bounds) else bounds


def _holds_value(lengths: Sequence[Any]) -> bool:
    return any(isinstance(length, Value) for length in lengths)


def as_type(x: Value, dtype: ElementType) -> Value:
    """A value in another element type."""
    return x if x.dtype is dtype else ops.Convert(x, destination_type=dtype)


def smaller(a: Length, b: Length) -> Length:
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else ops.Minimum(a, b)


def larger(a: Length, b: Length) -> Length:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else ops.Maximum(a, b)


def ceil_divided(length: Length, size: Length) -> Length:
    """The number of pieces of `size` that hold a length."""
    return (length + (size - 1)) // size


def quotient(length: Length, size: Length) -> Length:
    """The number of pieces of `size` in a length; for a size of 0, the length."""
    return length // larger(size, 1)


def as_i64(x: Value) -> Value:
    """An integer tensor as i64."""
    return as_type(x, i64)


def scalar(x: Value) -> Value:
    """A tensor of one element and any rank as a scalar."""
    return x if x.rank == 0 else ops.Reshape(x, np.zeros(0, np.int64))


def vector(x: Value) -> Value:
    """A tensor of any rank as a vector."""
    return x if x.rank == 1 else ops.Reshape(x, [-1])
