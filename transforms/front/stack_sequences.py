"""Sequences whose elements differ along one axis at most."""

from __future__ import annotations

from mo_loop.graph.types import SequenceType
from transforms.front.sequence_lowering.layouts import Kind, Packed
from transforms.front.sequence_lowering.walk import SequencePass


class StackSequences(SequencePass):
    """[x, y, z]  ->  Stack(x, y, z), where all elements are of one shape; else Concat(x, y, z) and their sizes

    A list that a loop only appends to becomes a tensor that grows; one that a loop only reads becomes Gathers and
    Slices of what was split.
    """

    def kind(self, type_: SequenceType):
        kind = Kind.of(type_)
        return None if kind is None or kind.way is Packed else kind
