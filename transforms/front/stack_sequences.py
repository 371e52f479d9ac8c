"""Sequences with elements that differ along at most one axis."""

from __future__ import annotations

from mo_loop.graph.types import SequenceType
from transforms.front.sequence_lowering.layouts import Kind, Packed
from transforms.front.sequence_lowering.walk import SequencePass


class StackSequences(SequencePass):
    """[x, y, z]  ->  Stack(x, y, z) if all elements have one shape, else Concat(x, y, z) and their sizes

    A sequence to which a loop only appends becomes a tensor that grows. A sequence that a loop only reads becomes
    Gathers and Slices of one tensor.
    """

    def kind(self, type_: SequenceType):
        kind = Kind.of(type_)
        return None if kind is None or kind.way is Packed else kind
