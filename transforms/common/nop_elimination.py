"""Operations without an effect."""

from __future__ import annotations

from mo_loop.transforms.common import eliminate_arithmetic, eliminate_conversions, eliminate_movement
from mo_loop.transforms.rewrite import GraphRewrite, passes_in

NO_OPS = passes_in(eliminate_conversions, eliminate_arithmetic, eliminate_movement)
"""All passes of the files, in their order there."""


class NopElimination(GraphRewrite):
    """f(x) = x  ->  x, and f(f(x))  ->  f'(x)

    Runs all passes of NO_OPS in one traversal, producers first, bodies included. Each can be disabled by its own name.
    A model output that would then be an input, a constant or another output keeps an Identity; an output of a body
    needs none.
    """

    def __init__(self) -> None:
        super().__init__(each() for each in NO_OPS)
