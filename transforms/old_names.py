"""Earlier names of passes, which stay valid for one version in options and configurations.

current_name("BindConstants")       # "PushConstantToSubgraph", and a DeprecationWarning
current_name("LoopToTI")            # "LoopToTI"
"""

from __future__ import annotations

import warnings

OLD_NAMES: dict[str, str] = {
    "AbsOfConcat": "AbsToMaximum",
    "AvgPool14ToAvgPool1": "ConvertAvgPool14ToAvgPool1",
    "BindConstants": "PushConstantToSubgraph",
    "BitwiseNotToSubtract": "BitwiseNotDecomposition",
    "BooleanCopies": "IdentityToLogicalOr",
    "BroadcastBehind": "PreserveEmptyBroadcasts",
    "BroadcastOfNothing": "PreserveEmptyBroadcasts",
    "CapturedResults": "EliminateInvariantOutputs",
    "CollectAppends": "ConcatenateAppends",
    "CommonSubexpressions": "SharedOpOptimization",
    "CompressConstants": "CompressFloatConstants",
    "ConcatOfNothing": "EmptyConcatToBroadcast",
    "ConcatenateFirst": "ConcatenateAlongFirstAxis",
    "ConstantLoops": "PreventLoopFolding",
    "CountWhileLoops": "WhileLoopToCountedLoop",
    "DissolveSequences": "ReplaceSequencesByElements",
    "EliminateNoOps": "NopElimination",
    "EmptyLoops": "EliminateEmptyLoops",
    "ForgetBounds": "RemoveSliceBounds",
    "ForgetSizes": "BreakStateSymbols",
    "GroupNormalizationToMVN": "GroupNormalizationDecomposition",
    "HideSizes": "RemoveArithmeticBounds",
    "HideTripCounts": "MakeTripCountsDynamic",
    "InvariantStates": "EliminateLoopInputsOutputs",
    "LoosenResults": "RemoveResultBounds",
    "MaxPool14ToMaxPool8": "ConvertMaxPool14ToMaxPool8",
    "Pad12ToPad1": "ConvertPad12ToPad1",
    "ROIAlign9ToROIAlign3": "ConvertROIAlign9To3",
    "ReturnedInputs": "ReshapeReturnedInputs",
    "ScatterElementsUpdate12ToScatterElementsUpdate3": "ConvertScatterElementsUpdate12ToScatterElementsUpdate3",
    "ScatterNDUpdate15ToScatterNDUpdate4": "ConvertScatterNDUpdate15ToScatterNDUpdate3",
    "SettleBranches": "CopyControlOutputs",
    "SettleLoops": "CopyControlOutputs",
    "SharedConstants": "ConstantsReduce",
    "SoftSignToDivide": "SoftSignDecomposition",
    "TellSizes": "InsertStaticShapes",
    "TopK11ToTopK3": "ConvertTopK11ToTopK3",
    "TransposeOfOnes": "TransposeToSqueezeUnsqueeze",
    "UnreachableBodies": "EliminateUnreachableBodies",
    "UnreadSlices": "EliminateUnreadSlices",
    "UnusedPorts": "EliminateUnusedPorts",
    "WideConstants": "UnsqueezeToConstantRank",
    "WidenStates": "MakeStateShapesDynamic",
}
"""Old name -> present name."""


def current_name(name: str) -> str:
    """The present name of a pass; for an old name, with a DeprecationWarning."""
    present = OLD_NAMES.get(name, name)
    if present != name:
        warnings.warn(renamed(name), DeprecationWarning, stacklevel=3)
    return present


def renamed(name: str) -> str:
    """The note for a user of the old name of a pass."""
    return f"the pass {name} is now called {OLD_NAMES[name]}; the old name stops working in the next version"
