"""Reshapes that only remove or only add dimensions of 1."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph.dimension import Dimension
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.predicates import has_static_rank
from mo_loop.transforms.rewrite import MatcherPass


class ReshapeToSqueeze(MatcherPass):
    """Reshape(x : [N,1,3]) to [N,3]  ->  Squeeze(x, [1]); to [N,1,1,3]  ->  Unsqueeze(x, [1])

    All other dimensions must be proven equal and in the same order. The axes are constants then: the computation of the
    shape disappears, and inference knows more. A Reshape that does both, or neither, stays. Reshapes in bodies stay
    too: the runtime knows fewer ranks in a body than this converter proves, and reads the rank of a Reshape off its
    pattern.
    """

    bodies = "never"

    x = any_input(has_static_rank())
    pattern = wrap_type(ops.Reshape, x, any_input(), when=has_static_rank())

    def matched(self, match: Match) -> bool:
        x = match[self.x]
        before, after = x.type.dims, match.root.output.type.dims
        gone = ones_among(before, after)
        if gone:
            return self.replace(match, ops.Squeeze(x, gone))
        new = ones_among(after, before)
        return bool(new) and self.replace(match, ops.Unsqueeze(x, new))


def ones_among(longer: tuple[Dimension, ...], shorter: tuple[Dimension, ...]) -> list[int]:
    """The axes of `longer` that are 1 and without which it equals `shorter`; empty if there are none."""
    axes = []
    rest = list(shorter)
    for axis, dim in enumerate(longer):
        if rest and rest[0] == dim:
            rest.pop(0)
        elif isinstance(dim, int) and dim == 1:
            axes.append(axis)
        else:
            return []
    return axes if not rest else []
