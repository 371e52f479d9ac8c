"""Errors of the runtime that show in one node and its neighbours: the pattern, and what is written instead."""

from __future__ import annotations

from transforms.rewrite import GraphRewrite
from transforms.runtime.local.between_heads import MaximumBehindSoftmax, MaximumBetweenHeads
from transforms.runtime.local.elementwise_layers import (
    AbsToMaximum,
    CopySelectedConstant,
    DropBitsBeforeConvert,
    EmptyConstantsToMaximum,
    IdentityToLogicalOr,
    MakeConstantsScalar,
    SelectToLogical,
    SoftSignToQuotient,
    UnsqueezeToConstantRank,
)
from transforms.runtime.local.fused_constants import (
    MaximumBeforeFakeQuantize,
    MaximumBeforeMatMul,
    MaximumBehindAverage,
    MaximumBehindMatMul,
    MaximumBehindReduction,
)
from transforms.runtime.local.merged_constants import MaximumBetweenConstants
from transforms.runtime.local.moves import (
    CountAxesFromEnd,
    CountIndicesFromStart,
    DropBatchesOfOne,
    EmptyConcatToBroadcast,
    EmptyOutputsToBroadcast,
    EmptySqueezeToBroadcast,
    MoveWithSixDimensions,
    ReduceBeforeTranspose,
    TransposeToSqueezeUnsqueeze,
    WidenTwoBitConstants,
)
from transforms.runtime.local.products import (
    AddOutputChannel,
    MatMulToMultiply,
    MaximumBeforeSum,
    SliceConvolution,
)
from transforms.runtime.local.rule import LocalRule
from transforms.runtime.local.scales import MaximumBeforeAverage, MaximumBeforeNormalisation

RULES: tuple[type[LocalRule], ...] = (
    IdentityToLogicalOr,
    SelectToLogical,
    CopySelectedConstant,
    AbsToMaximum,
    EmptyConstantsToMaximum,
    SoftSignToQuotient,
    DropBitsBeforeConvert,
    UnsqueezeToConstantRank,
    MakeConstantsScalar,
    ReduceBeforeTranspose,
    TransposeToSqueezeUnsqueeze,
    MoveWithSixDimensions,
    EmptyConcatToBroadcast,
    EmptySqueezeToBroadcast,
    EmptyOutputsToBroadcast,
    CountAxesFromEnd,
    CountIndicesFromStart,
    DropBatchesOfOne,
    WidenTwoBitConstants,
    MatMulToMultiply,
    SliceConvolution,
    MaximumBeforeSum,
    AddOutputChannel,
    MaximumBeforeNormalisation,
    MaximumBeforeAverage,
    MaximumBetweenHeads,
    MaximumBehindSoftmax,
    MaximumBetweenConstants,
    MaximumBehindReduction,  # after those that place a maximum for other reasons
    MaximumBehindMatMul,
    MaximumBehindAverage,
    MaximumBeforeMatMul,
    MaximumBeforeFakeQuantize,
)


class LocalRules(GraphRewrite):
    """a form that the runtime computes wrongly, or does not compile  ->  another form of the same result

    Runs all passes of RULES in one traversal, producers first, bodies included. Each can be disabled by its own name.
    The table of `gaps.py` says which error each avoids, and in which releases.
    """

    def __init__(self) -> None:
        super().__init__(each() for each in RULES)
