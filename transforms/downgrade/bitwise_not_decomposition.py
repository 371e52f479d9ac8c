"""BitwiseNot as older operations."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.types import boolean
from mo_loop.ops.base import Constant
from transforms.pattern import Match, any_input, wrap_type
from transforms.predicates import Predicate
from transforms.rewrite import MatcherPass


def _is_exact(value: Value) -> bool:
    dtype = value.dtype
    if dtype.kind == "uint":
        return 8 <= dtype.bits < 32
    return dtype is boolean or (dtype.kind == "int" and dtype.bits >= 8)


class BitwiseNotDecomposition(MatcherPass):
    """BitwiseNot-13: not x  ->  -1 - x, or for unsigned types max - x, or for booleans LogicalNot(x)

    Unsigned types of 32 and 64 bits stay: the runtime reads their constants as signed numbers of 32 bits.
    """

    enabled_by_default = False

    def __init__(self) -> None:
        super().__init__()
        self.x = any_input(Predicate("booleans, or integers whose largest value the runtime can hold", _is_exact))
        self.register_matcher(wrap_type(ops.BitwiseNot, self.x), self.write_out)

    def write_out(self, match: Match) -> bool:
        x = match[self.x]
        if x.dtype is boolean:
            return self.replace(match, ops.LogicalNot(x))
        all_ones = -1 if x.dtype.kind == "int" else 2**x.dtype.bits - 1
        return self.replace(match, ops.Subtract(Constant(np.array(all_ones), graph=x.graph, dtype=x.dtype), x))
