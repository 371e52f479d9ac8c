"""The sizes of the tensors of a piece, before it runs."""

from __future__ import annotations

from typing import Any

from mo_loop.compare.layers.onnx_side import LARGEST, OnnxPlan
from mo_loop.graph import Value
from mo_loop.graph.dimension import Symbol


class Sizes:
    """Estimates from the types of the IR, whose symbols get their values from the arrays that exist.

    A tensor without a counterpart in the IR, or with an unknown dimension, counts like the largest one before it.
    """

    def __init__(self, plan: OnnxPlan, ir: Any, budget: int) -> None:
        self._plan = plan
        self._ir = ir
        self._left = budget
        self._weights = LARGEST
        self._largest = 0
        self._begun = False
        self._lengths: dict[Symbol, int] = {}

    def fits(self, place: int) -> bool:
        """Whether the tensors of a node fit into the piece as well."""
        if not self._begun:
            self._begin(place - 1)
        size, weights = self._of(place)
        self._left -= size
        self._weights -= weights
        return self._left >= 0 and self._weights >= 0

    def _begin(self, first: int) -> None:
        self._begun = True
        if self._ir is not None:
            for value, array in self._ir.values.items():
                self._largest = max(self._largest, array.nbytes)
                self._learn(value, array.shape)
        size, weights = self._of(first)
        self._left -= size
        self._weights -= weights

    def _learn(self, value: Value, shape: tuple[int, ...]) -> None:
        for dim, length in zip(value.shape or (), shape, strict=False):
            if not isinstance(dim, int) and dim.symbol is not None:
                self._lengths[dim.symbol] = length

    def _of(self, place: int) -> tuple[int, int]:
        """The bytes of the outputs of a node, and those of the weights that it reads."""
        size = 0
        for name in self._plan.nodes[place].output:
            if name:
                size += self._of_tensor(name)
        weights = sum(
            _bytes_of(self._plan.constants[name])
            for name in self._plan.nodes[place].input
            if name in self._plan.constants
        )
        return size, weights

    def _of_tensor(self, name: str) -> int:
        found = [] if self._ir is None else self._ir.find((self._plan.scope, name))
        size = None if not found else self._of_value(found[0][1])
        if size is None:
            return self._largest
        self._largest = max(self._largest, size)
        return size

    def _of_value(self, value: Value) -> int | None:
        if value.shape is None or value.dtype is None:
            return None
        count = 1
        for dim in value.shape:
            length = dim if isinstance(dim, int) else self._length(dim)
            if length is None:
                return None
            count *= max(length, 0)
        return count * max(value.dtype.bits // 8, 1)

    def _length(self, dim: Any) -> int | None:
        if not all(symbol in self._lengths for symbol, _ in dim.terms):
            return None
        return int(dim.const + sum(factor * self._lengths[symbol] for symbol, factor in dim.terms))


def _bytes_of(held: Any) -> int:
    """About the bytes of an initializer or Constant node."""
    if not hasattr(held, "data_type"):
        return 0
    count = 1
    for dim in held.dims:
        count *= dim
    return count * 8 if held.data_type in (7, 11, 13) else count * 4
