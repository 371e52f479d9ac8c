"""The memory of the tensors of all steps, relative to those that the loop has anyway."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mo_loop.graph import Node, Value
from mo_loop.graph.dimension import Dimension, high, low
from mo_loop.graph.types import TensorType

USUAL = 128
"""The size that an unknown dimension is taken for."""

ALWAYS = 1 << 22
"""Bytes that a tensor may have in any case."""


BLOCKS = "blocks"
"""The name of the body of a loop over blocks of steps."""


Sizes: TypeAlias = Mapping[Dimension, int]
"""The assumed sizes of unknown dimensions that differ from the usual size."""


def size_of(values: Iterable[Value], sizes: Sizes | None = None) -> int:
    """The bytes of tensors, where unknown dimensions have a usual size."""
    return sum(_bytes(value.type, sizes or {}) for value in values if isinstance(value.type, TensorType))


@dataclass(frozen=True)
class Bound:
    """The bytes that a tensor of all steps of a loop may have."""

    limit: int

    @classmethod
    def of(cls, node: Node, times: float) -> Bound:
        """A multiple of the size of the inputs and outputs of a loop, or of the one whose blocks of steps it computes.
        """
        while node.graph.owner is not None and node.graph.name == BLOCKS:
            node = node.graph.owner
        return cls(max(ALWAYS, int(times * size_of([*node.operands, *node.outputs]))))

    def excess(self, values: Iterable[Value], sizes: Sizes | None = None) -> Excess | None:
        """The largest of some tensors, if it is too large."""
        largest = max((size_of([value], sizes) for value in values), default=0)
        return Excess(largest, self.limit) if largest > self.limit else None


@dataclass(frozen=True)
class Excess:
    """A tensor of all steps that is too large."""

    size: int
    limit: int

    def __str__(self) -> str:
        return f"a tensor of all its steps would take {self.size:,} bytes, more than {self.limit:,}"

    def steps_of(self, count: Dimension) -> int:
        """The number of steps of which such a tensor is not too large, for blocks of the steps of a loop."""
        most = usual(count) * self.limit // self.size
        if most < 2:
            return most
        if isinstance(count, int):
            return next((each for each in range(most, most // 2, -1) if count % each == 0), most)
        return 1 << (most.bit_length() - 1)  # the division of a large count by a power of two is exact


def _bytes(type_: TensorType, sizes: Sizes) -> int:
    bits = 32 if type_.dtype is None else type_.dtype.bits
    return math.prod(sizes.get(dim) or usual(dim) for dim in type_.shape or ()) * max(bits, 8) // 8


def usual(dim: Dimension) -> int:
    """The size that is assumed for a dimension."""
    top = high(dim)
    return max(low(dim), USUAL if top is None else min(USUAL, top))
