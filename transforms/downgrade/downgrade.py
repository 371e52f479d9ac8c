"""All downgrades in one traversal."""

from __future__ import annotations

from mo_loop.transforms.downgrade import decompositions, lowest_opset
from mo_loop.transforms.rewrite import GraphRewrite, passes_in

DOWNGRADES = passes_in(lowest_opset, decompositions)
"""All passes of the files, in their order there."""


class Downgrade(GraphRewrite):
    """f of opset n  ->  f of an older opset; with an enabled decomposition  ->  older operations"""

    def __init__(self) -> None:
        super().__init__(each() for each in DOWNGRADES)
