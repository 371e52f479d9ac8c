"""SoftSign as older operations."""

from __future__ import annotations

from mo_loop import ops
from transforms.pattern import Match, any_input, wrap_type
from transforms.rewrite import MatcherPass


class SoftSignDecomposition(MatcherPass):
    """SoftSign-9: softsign(x)  ->  x / (1 + |x|)"""

    enabled_by_default = False

    def __init__(self) -> None:
        super().__init__()
        self.x = any_input()
        self.register_matcher(wrap_type(ops.SoftSign, self.x), self.write_out)

    def write_out(self, match: Match) -> bool:
        x = match[self.x]
        size = ops.Abs(x)
        divisor = ops.Add(size, 1.0)
        return self.replace(match, ops.Divide(x, divisor), also=[size, divisor])
