"""How much memory the tensors of all steps take, beside those that the loop has anyway."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from mo_loop.graph import Value
from mo_loop.graph.dimension import Dimension, high, low
from mo_loop.graph.types import TensorType

USUAL = 128
"""The size that an unknown dimension is taken for."""

ALWAYS = 1 << 22
"""Bytes that a tensor may have in any case."""


Sizes: TypeAlias = Mapping[Dimension, int]
"""What unknown dimensions are taken for, other than the usual size."""


def size_of(values: Iterable[Value], sizes: Sizes | None = None) -> int:
    """The bytes of tensors, where unknown dimensions have a usual size."""
    return sum(_bytes(value.type, sizes or {}) for value in values if isinstance(value.type, TensorType))


def too_large(values: Iterable[Value], beside: Iterable[Value], times: float, sizes: Sizes | None = None) -> str:
    """Why the largest of `values` takes too much memory beside some tensors, or empty."""
    largest = max((size_of([value], sizes) for value in values), default=0)
    limit = max(ALWAYS, int(times * size_of(beside)))
    if largest <= limit:
        return ""
    return f"a tensor of all its steps would take {largest:,} bytes, more than {limit:,}"


def _bytes(type_: TensorType, sizes: Sizes) -> int:
    bits = 32 if type_.dtype is None else type_.dtype.bits
    return math.prod(sizes.get(dim) or _usual(dim) for dim in type_.shape or ()) * max(bits, 8) // 8


def _usual(dim: Dimension) -> int:
    top = high(dim)
    return max(low(dim), USUAL if top is None else min(USUAL, top))
