"""One of two tensors, of which the other one has no elements at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.shape import Dimension, low


def pattern(dims: Sequence[Dimension]) -> list[int] | None:
    """The sizes with a -1 for the only unknown one; None if they do not follow from the number of elements."""
    if len(dims) == 1:
        return [-1]
    sizes = [dim if isinstance(dim, int) else -1 for dim in dims]
    return None if sizes.count(-1) > 1 or 0 in sizes else sizes


def joined(parts: Sequence[Value], dims: Sequence[Dimension], shape: Callable[[], Value]) -> Value:
    """The tensor that has elements, with the sizes `dims`; `shape` makes them where `pattern` does not know them.

    They are joined as vectors: after zero iterations the runtime sets dimensions to 0 that it does not know.
    """
    vectors = [each if each.rank == 1 else ops.Reshape(each, [-1]).output for each in parts]
    vector = ops.Concat(*vectors, axis=0).output if len(vectors) > 1 else vectors[0]
    sizes = pattern(dims)
    if len(dims) > 1:
        vector = ops.Reshape(vector, shape() if sizes is None else sizes, special_zero=False).output
    least = tuple(low(dim) for dim in dims)
    return ops.AtLeast(vector, sizes=least).output if any(least) else vector
