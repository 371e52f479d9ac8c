"""Sequences that are always empty: a layout without tensors.

    kind = NOTHING if type_.is_empty else ElementKind.of(type_)          # in place of an ElementKind of layouts.py
    sequence_of(kind.made([]), graph, type_)                      # a SequenceEmpty

The type of such a sequence does not contain the shape of an element, so there is no ElementKind for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import SequenceType


@dataclass(frozen=True)
class Nothing:
    """A sequence that is always empty, as a layout."""

    tensors: tuple[Value, ...] = ()

    def like(self, tensors: Sequence[Value]) -> Nothing:
        return self


class NothingKind:
    """The kind of sequences that are always empty."""

    def types(self) -> tuple[Any, ...]:
        return ()

    def made(self, tensors: Sequence[Value]) -> Nothing:
        return Nothing()

    def empty(self, graph: Graph) -> Nothing:
        return Nothing()

    def of_layout(self, layout) -> Nothing:
        return Nothing()

    def of_items(self, items) -> Nothing:
        return Nothing()


NOTHING = NothingKind()


def sequence_of(layout, graph: Graph, type_: SequenceType) -> Value:
    """The sequence that a layout holds, as a value."""
    if isinstance(layout, Nothing):
        return ops.SequenceEmpty(graph=graph, dtype=type_.element.dtype).output
    made: Value = layout.sequence()
    return made
