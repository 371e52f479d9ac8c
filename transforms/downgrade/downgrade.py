"""All downgrades in one traversal."""

from __future__ import annotations

from transforms.downgrade.decompositions import (
    BitwiseNotDecomposition,
    GroupNormalizationDecomposition,
    SoftSignDecomposition,
)
from transforms.downgrade.lowest_opset import (
    ConvertAvgPool14ToAvgPool1,
    ConvertMaxPool14ToMaxPool8,
    ConvertPad12ToPad1,
    ConvertROIAlign9To3,
    ConvertScatterElementsUpdate12ToScatterElementsUpdate3,
    ConvertScatterNDUpdate15ToScatterNDUpdate3,
    ConvertTopK11ToTopK3,
)
from transforms.rewrite import GraphRewrite, MatcherPass

DOWNGRADES: tuple[type[MatcherPass], ...] = (
    ConvertPad12ToPad1,
    ConvertScatterElementsUpdate12ToScatterElementsUpdate3,
    ConvertScatterNDUpdate15ToScatterNDUpdate3,
    ConvertTopK11ToTopK3,
    ConvertMaxPool14ToMaxPool8,
    ConvertAvgPool14ToAvgPool1,
    ConvertROIAlign9To3,
    SoftSignDecomposition,
    GroupNormalizationDecomposition,
    BitwiseNotDecomposition,
)


class Downgrade(GraphRewrite):
    """f of opset n  ->  f of an older opset; with an enabled decomposition  ->  older operations"""

    def __init__(self) -> None:
        super().__init__(each() for each in DOWNGRADES)
