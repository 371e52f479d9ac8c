"""Operations without an effect."""

from __future__ import annotations

from transforms.common.eliminate_arithmetic import (
    EliminateAddZero,
    EliminateDivideOne,
    EliminateDoubleNot,
    EliminateEqualOperands,
    EliminateMultiplyOne,
    EliminateReluOfRelu,
    EliminateSelect,
    EliminateSubtractZero,
    MergeClamps,
)
from transforms.common.eliminate_conversions import EliminateConvert, EliminateIdentity, MergeConverts
from transforms.common.eliminate_movement import (
    EliminateBroadcast,
    EliminateConcat,
    EliminateGather,
    EliminatePad,
    EliminateReduce,
    EliminateReshape,
    EliminateSlice,
    EliminateSplit,
    EliminateTile,
    EliminateTranspose,
    MergeReshapes,
    MergeTransposes,
)
from transforms.rewrite import GraphRewrite, MatcherPass

NO_OPS: tuple[type[MatcherPass], ...] = (
    EliminateIdentity,
    EliminateConvert,
    MergeConverts,
    EliminateAddZero,
    EliminateSubtractZero,
    EliminateMultiplyOne,
    EliminateDivideOne,
    EliminateEqualOperands,
    EliminateDoubleNot,
    EliminateSelect,
    EliminateReluOfRelu,
    MergeClamps,
    EliminateTranspose,
    MergeTransposes,
    EliminateReshape,  # before MergeReshapes: a tensor that gets its old shape again needs no Reshape
    MergeReshapes,
    EliminateConcat,
    EliminateSplit,
    EliminateSlice,
    EliminatePad,
    EliminateTile,
    EliminateBroadcast,
    EliminateGather,
    EliminateReduce,
)


class NopElimination(GraphRewrite):
    """f(x) = x  ->  x, and f(f(x))  ->  f'(x)

    Runs all passes of NO_OPS in one traversal, producers first, bodies included. Each can be disabled by its own name.
    A model output that would then be an input, a constant or another output keeps an Identity; an output of a body
    needs none.
    """

    def __init__(self) -> None:
        super().__init__(each() for each in NO_OPS)
