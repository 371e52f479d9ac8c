"""Operations as several older ones."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.types import boolean
from mo_loop.ops.base import Constant
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.predicates import Predicate, has_static_rank
from mo_loop.transforms.rewrite import MatcherPass


class SoftSignDecomposition(MatcherPass):
    """SoftSign-9: softsign(x)  ->  x / (1 + |x|)"""

    enabled_by_default = False

    x = any_input()
    pattern = wrap_type(ops.SoftSign, x)

    def matched(self, match: Match) -> bool:
        x = match[self.x]
        size = ops.Abs(x)
        divisor = ops.Add(size, 1.0)
        return self.replace(match, ops.Divide(x, divisor), also=[size, divisor])


class GroupNormalizationDecomposition(MatcherPass):
    """GroupNormalization-12 of x : [N,C,...]  ->  MVN(x as [N,groups,-1]) in the shape of x, * scale + bias per channel

    The runtime refuses GroupNormalization in bodies; this form runs everywhere. Dimensions of 0 are not allowed.
    """

    enabled_by_default = False

    x, scale, bias = any_input(has_static_rank()), any_input(), any_input()
    pattern = wrap_type(ops.GroupNormalization, x, scale, bias)

    def matched(self, match: Match) -> bool:
        x, node = match[self.x], match.root
        assert isinstance(node, ops.GroupNormalization)
        groups = ops.Reshape(x, [0, node.num_groups, -1], special_zero=True)
        normal = ops.MVN(groups, [2], eps=node.epsilon, eps_mode="INSIDE_SQRT")
        whole = ops.Reshape(normal, ops.ShapeOf(x))
        scaled = ops.Multiply(whole, _along_channels(match[self.scale], x.type.rank))
        shifted = ops.Add(scaled, _along_channels(match[self.bias], x.type.rank))
        return self.replace(match, shifted, also=[groups, normal, whole, scaled])


def _along_channels(vector: Value, rank: int) -> Value:
    """A vector [C] as [C, 1, ...], which broadcasts over the rest of [N, C, ...]."""
    return ops.Unsqueeze(vector, list(range(1, rank - 1))).output if rank > 2 else vector


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

    x = any_input(Predicate("booleans, or integers whose largest value the runtime can hold", _is_exact))
    pattern = wrap_type(ops.BitwiseNot, x)

    def matched(self, match: Match) -> bool:
        x = match[self.x]
        if x.dtype is boolean:
            return self.replace(match, ops.LogicalNot(x))
        all_ones = Constant(np.array(-1), graph=x.graph, dtype=x.dtype)  # of an unsigned type the largest number
        return self.replace(match, ops.Subtract(all_ones, x))
