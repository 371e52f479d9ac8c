"""All downgrades in one walk."""

from __future__ import annotations

from transforms.downgrade.bitwise_not_to_subtract import BitwiseNotToSubtract
from transforms.downgrade.group_normalization_to_mvn import GroupNormalizationToMVN
from transforms.downgrade.lowest_opset import (
    AvgPool14ToAvgPool1,
    MaxPool14ToMaxPool8,
    Pad12ToPad1,
    ROIAlign9ToROIAlign3,
    ScatterElementsUpdate12ToScatterElementsUpdate3,
    ScatterNDUpdate15ToScatterNDUpdate4,
    TopK11ToTopK3,
)
from transforms.downgrade.soft_sign_to_divide import SoftSignToDivide
from transforms.rewrite import GraphRewrite, MatcherPass

DOWNGRADES: tuple[type[MatcherPass], ...] = (
    Pad12ToPad1,
    ScatterElementsUpdate12ToScatterElementsUpdate3,
    ScatterNDUpdate15ToScatterNDUpdate4,
    TopK11ToTopK3,
    MaxPool14ToMaxPool8,
    AvgPool14ToAvgPool1,
    ROIAlign9ToROIAlign3,
    SoftSignToDivide,
    GroupNormalizationToMVN,
    BitwiseNotToSubtract,
)


class Downgrade(GraphRewrite):
    """f of opset n  ->  f of an older opset, or a composition of older operations where that is asked for"""

    def __init__(self) -> None:
        super().__init__(each() for each in DOWNGRADES)
