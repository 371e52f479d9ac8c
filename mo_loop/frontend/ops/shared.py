"""Helpers for translators of several families: values as Python numbers if they are known, otherwise as nodes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.frontend.arrays import first_numbers
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.graph.types import ElementType, i64
from mo_loop.ops.lengths import Length, as_value, joined

MOST_COUNTED = 2**20
"""The largest number of indices that become a constant."""

FAR = 2**31 - 1
"""The largest index: the runtime computes indices in 32 bits."""


def integers(value: Value | None) -> tuple[int, ...] | None:
    """All values of a small integer tensor if they are known, else None."""
    return None if value is None else value.type.integers


def one_integer(value: Value | None) -> int | None:
    """The number of an integer tensor of one element if it is known, else None.

    Raises:
        TypeError_: the tensor has none, or several.
    """
    known = integers(value)
    if value is not None and known is not None and len(known) != 1:
        raise TypeError_(f"an input is {value.type}, and must be one number", code="ML235")
    return None if known is None else known[0]


def near(numbers: Sequence[int]) -> list[int]:
    """Indices clamped to 32 bits: in models, INT64_MAX means "to the end" and INT64_MIN "to the beginning"."""
    return [max(min(number, FAR), -FAR) for number in numbers]


def counted(count: Length, like: Value) -> Value:
    """0, 1, ... below `count`, in i64."""
    if isinstance(count, int) and count <= MOST_COUNTED:
        return ops.Constant(first_numbers(count), graph=like.graph)
    zero, end, one = (as_value(each, like.graph) for each in (0, count, 1))
    return ops.Range(zero, end, one, output_type=i64)


def divided(x: Value, count: Any, size: Any) -> Value:
    """The last dimension as `count` rows of `size` elements. (A size of -1 does not exist in an empty tensor.)"""
    leading = ops.Slice(ops.ShapeOf(x), [0], [-1], [1], [0])
    return ops.Reshape(x, ops.Concat(leading, joined([count, size], x), axis=0))


def as_type(value: Value | None, to: ElementType):
    """A value in another element type; None stays None."""
    return value if value is None or value.dtype is to else ops.Convert(value, destination_type=to)


def number(like: Value, value: float):
    """A scalar of the element type of `like`."""
    return np.asarray(value).astype(like.dtype.numpy)


def constant_like(like: Value, number: float) -> Value:
    """A scalar of the element type of `like`, as a value in its graph."""
    return ops.Constant(np.array(number, like.dtype.numpy), graph=like.graph, dtype=like.dtype)
