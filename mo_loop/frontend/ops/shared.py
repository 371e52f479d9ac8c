"""Helpers for translators of several families: values as Python numbers if they are known, otherwise as nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.frontend.arrays import first_numbers
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import ElementType, i64

MOST_COUNTED = 2**20
"""The largest number of indices that become a constant."""

FAR = 2**31 - 1
"""The largest index: the runtime computes indices in 32 bits."""


def integers(value: Value | None) -> tuple[int, ...] | None:
    """All values of a small integer tensor if they are known, else None."""
    return None if value is None else value.type.integers


def near(numbers: Sequence[int]) -> list[int]:
    """Indices clamped to 32 bits: in models, INT64_MAX means "to the end" and INT64_MIN "to the beginning"."""
    return [max(min(number, FAR), -FAR) for number in numbers]


def scalar(value: Value) -> Value:
    """A tensor of one element and any rank as a scalar."""
    return value if value.rank == 0 else ops.Reshape(value, np.zeros(0, np.int64)).output


def vector(value: Value) -> Value:
    """A tensor of any rank as a vector."""
    return value if value.rank == 1 else ops.Reshape(value, [-1]).output


def dimension(x: Value, axis: int):
    """The length along an axis: an int if it is static, else a scalar Value of type i64."""
    dims = x.type.dims
    length = dims[normalise_axis(axis, len(dims))]
    return length if isinstance(length, int) else ops.Gather(ops.ShapeOf(x), axis, 0).output


def counted(graph: Graph, count: Any) -> Value:
    """0, 1, ... count - 1 in i64, of an int or a scalar Value; empty if the count is negative."""
    if isinstance(count, int) and count <= MOST_COUNTED:
        return ops.Constant(first_numbers(count), graph=graph).output
    zero, one = (ops.Constant(np.int64(each), graph=graph).output for each in (0, 1))
    end = ops.Constant(np.int64(count), graph=graph) if isinstance(count, int) else ops.Maximum(count, 0)
    return ops.Range(zero, end, one, output_type=i64).output


def quotient(length: Any, size: Any) -> Any:
    """How many pieces of `size` a length has, ints or scalar Values; of a size of 0, as many as the length."""
    if isinstance(length, int) and isinstance(size, int):
        return length // max(size, 1)
    divisor = max(size, 1) if isinstance(size, int) else ops.Maximum(size, 1)
    return ops.Divide(length, divisor).output


def divided(x: Value, count: Any, size: Any) -> Value:
    """The last dimension as `count` rows of `size` elements. (A size of -1 does not exist in an empty tensor.)"""
    leading = ops.Slice(ops.ShapeOf(x), [0], [-1], [1], [0])
    return ops.Reshape(x, ops.Concat(leading, joined([count, size], x), axis=0)).output


def joined(items: Sequence[Any], like: Value) -> Value:
    """Ints and scalar Values as one vector of type i64, in the graph of `like`."""
    if all(isinstance(item, int) for item in items):
        return ops.Constant(np.array(items, np.int64), graph=like.graph).output
    parts: list[Any] = [
        np.array([item], np.int64) if isinstance(item, int) else ops.Reshape(as_i64(item), [1]).output for item in items
    ]
    joint: Value = parts[0] if len(parts) == 1 else ops.Concat(*parts, axis=0).output
    return joint


def as_i64(value: Value) -> Value:
    """An integer tensor as i64."""
    return value if value.dtype is i64 else ops.Convert(value, destination_type=i64).output


def converted(value: Value | None, to: ElementType):
    """A value in another element type; None stays None."""
    return value if value is None or value.dtype is to else ops.Convert(value, destination_type=to).output
