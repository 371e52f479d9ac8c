"""Reshapes that only take out dimensions of 1, or only put them in."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph.shape import Dimension
from transforms.pattern import Match, any_input, wrap_type
from transforms.predicates import has_static_rank
from transforms.rewrite import MatcherPass


class ReshapeToSqueeze(MatcherPass):
    """reshape(x : [N, 1, 3]) to [N, 3]  ->  squeeze(x, [1]); to [N, 1, 1, 3]  ->  unsqueeze(x, [1])

    The other dimensions are proven to be the same in the same order. Which axes they are then needs no shape: what
    computed it goes, and inference sees more. A Reshape that does both, or neither, stays. So do those in bodies: there
    the runtime knows fewer ranks than are proven here, and finds that of a Reshape in its pattern.
    """

    bodies = "never"

    def __init__(self) -> None:
        super().__init__()
        self.x = any_input(has_static_rank())
        self.register_matcher(wrap_type(ops.Reshape, self.x, any_input(), when=has_static_rank()), self.rename)

    def rename(self, match: Match) -> bool:
        x = match[self.x]
        before, after = x.type.dims, match.root.output.type.dims
        gone = ones_among(before, after)
        if gone:
            return self.replace(match, ops.Squeeze(x, gone))
        new = ones_among(after, before)
        return bool(new) and self.replace(match, ops.Unsqueeze(x, new))


def ones_among(longer: tuple[Dimension, ...], shorter: tuple[Dimension, ...]) -> list[int]:
    """The axes of `longer` that are 1 and without which it is `shorter`; none if there are no such axes."""
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
