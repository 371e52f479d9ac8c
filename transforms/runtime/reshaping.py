"""Tensors that are carried in another shape, and their sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import Dimension, low
from mo_loop.graph.types import i64
from mo_loop.ops.base import Constant


def pattern(dims: Sequence[Dimension]) -> list[int] | None:
    """The sizes with a -1 for the only unknown one; None if they do not follow from the number of elements."""
    if len(dims) == 1:
        return [-1]
    sizes = [dim if isinstance(dim, int) else -1 for dim in dims]
    return None if sizes.count(-1) > 1 or 0 in sizes else sizes


def reshaped(value: Value, dims: Sequence[Dimension], shape: Callable[[], Value]) -> Value:
    """`value` with the sizes `dims`; `shape` makes them where `pattern` does not know them."""
    sizes = pattern(dims)
    if len(dims) > 1 or value.rank != 1:
        value = ops.Reshape(value, shape() if sizes is None else sizes, special_zero=False).output
    return at_least(value, [low(dim) for dim in dims])


def size_of(value: Value, axis: int) -> Value:
    """The size along an axis, [1]."""
    size = value.type.dims[axis]
    if isinstance(size, int):
        return Constant([size], graph=value.graph, dtype=i64).output
    return ops.Gather(ops.ShapeOf(value), [axis], 0).output


def at_least(value: Value, sizes: Sequence[int]) -> Value:
    """`value`, of which inference knows that its sizes are at least `sizes`."""
    return ops.AtLeast(value, sizes=tuple(sizes)).output if any(sizes) else value
