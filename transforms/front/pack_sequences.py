"""Sequences with elements of one rank."""

from __future__ import annotations

from mo_loop.graph.types import SequenceType
from mo_loop.target import ERROR, Gap
from mo_loop.transforms.front.sequence_lowering.layouts import ElementKind, Packed
from mo_loop.transforms.front.sequence_lowering.walk import SequencePass


class PackSequences(SequencePass):
    """[x, y, z]  ->  D = Concat(flat(x), flat(y), flat(z)), T = their shapes, one row each

    The general case: any length, elements of different shapes, positions that are known only at run time. If the
    elements are concatenated along an axis other than the first, the result is exact for up to 2^24 numbers in all
    elements together.
    """

    instead = "the pattern after `ReduceSum`"
    avoids = (Gap(
        "computed-zero-of-reshape", "a 0 in a computed pattern of `Reshape` is taken for \"copy the dimension\"",
        severity=ERROR, since="2025.4.1",
    ),)  # fmt: skip

    def kind(self, type_: SequenceType):
        return ElementKind.of(type_, always_packed=True)


class StackSequences(SequencePass):
    """[x, y, z]  ->  Stack(x, y, z) if all elements have one shape, else Concat(x, y, z) and their sizes

    A sequence to which a loop only appends becomes a tensor that grows. A sequence that a loop only reads becomes
    Gathers and Slices of one tensor.
    """

    def kind(self, type_: SequenceType):
        kind = ElementKind.of(type_)
        return None if kind is None or kind.way is Packed else kind
