"""Sequences with elements of one rank and of any shape."""

from __future__ import annotations

from mo_loop.graph.types import SequenceType
from transforms.front.sequence_lowering.layouts import Kind
from transforms.front.sequence_lowering.walk import SequencePass


class PackSequences(SequencePass):
    """[x, y, z]  ->  D = Concat(flat(x), flat(y), flat(z)), T = their shapes, one row each

    The general case: any length, elements of different shapes, positions that are known only at run time. If the
    elements are concatenated along an axis other than the first, the result is exact for up to 2^24 numbers in all
    elements together.
    """

    def kind(self, type_: SequenceType):
        return Kind.of(type_, always_packed=True)
