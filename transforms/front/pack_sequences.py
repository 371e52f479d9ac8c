"""Sequences with elements of one rank and of any shape."""

from __future__ import annotations

from mo_loop.graph.types import SequenceType
from mo_loop.target import ERROR, Gap
from transforms.front.sequence_lowering.layouts import Kind
from transforms.front.sequence_lowering.walk import SequencePass


class PackSequences(SequencePass):
    """[x, y, z]  ->  D = Concat(flat(x), flat(y), flat(z)), T = their shapes, one row each

    The general case: any length, elements of different shapes, positions that are known only at run time. If the
    elements are concatenated along an axis other than the first, the result is exact for up to 2^24 numbers in all
    elements together.
    """

    instead = "the pattern after `CumSum`"
    avoids = (
        Gap(
            "computed-zero-of-reshape", "a 0 in a computed pattern of `Reshape` is taken for \"copy the dimension\"",
            severity=ERROR, since="2025.4.1",
        ),
    )  # fmt: skip

    def kind(self, type_: SequenceType):
        return Kind.of(type_, always_packed=True)
