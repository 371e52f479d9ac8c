"""Sequences of any elements of one rank."""

from __future__ import annotations

from mo_loop.graph.types import SequenceType
from transforms.front.sequence_lowering.layouts import Kind
from transforms.front.sequence_lowering.walk import SequencePass


class PackSequences(SequencePass):
    """[x, y, z]  ->  D = flat(x), flat(y), flat(z) in one tensor, T = their shapes, one row each

    The general case: any length, ragged elements, places that only the run can tell. Exact to 2^24 numbers in all
    elements together where they are joined along another axis than the first.
    """

    def kind(self, type_: SequenceType):
        return Kind.of(type_, always_packed=True)
