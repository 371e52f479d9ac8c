"""GroupNormalization as older operations."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Value
from transforms.pattern import Match, any_input, wrap_type
from transforms.predicates import has_static_rank
from transforms.rewrite import MatcherPass


class GroupNormalizationDecomposition(MatcherPass):
    """GroupNormalization-12 of x : [N,C,...]  ->  MVN(x as [N,groups,-1]) in the shape of x, * scale + bias per channel

    The runtime refuses GroupNormalization in bodies; this form runs everywhere. Dimensions of 0 are not allowed.
    """

    enabled_by_default = False

    def __init__(self) -> None:
        super().__init__()
        self.x = any_input(has_static_rank())
        self.scale, self.bias = any_input(), any_input()
        self.register_matcher(wrap_type(ops.GroupNormalization, self.x, self.scale, self.bias), self.write_out)

    def write_out(self, match: Match) -> bool:
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
