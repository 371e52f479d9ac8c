"""GAPS: every known error of OpenVINO's CPU device, since and until which release it exists, and what avoids it.

tests/runtime/probes has a graph for each that shows it; `tools/probe_runtime.py` runs them on a release and compares
what it finds with `since` and `until`. docs/runtime.md is made of this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

WRONG, CRASH, ERROR, SLOW = "wrong numbers", "crash", "error", "slow"
SEVERITIES = (WRONG, CRASH, ERROR, SLOW)

MEASURED = (
    "2024.6.0", "2025.0.0", "2025.1.0", "2025.2.0", "2025.3.0", "2025.4.1", "2026.0.0", "2026.1.0", "2026.2.1",
    "2026.3.1", "2026.4.1",
)  # fmt: skip
"""The releases on which all probes have run, oldest first."""


@dataclass(frozen=True)
class Gap:
    """One error of the runtime.

    `since` is the first release of `MEASURED` that has it, "" if all of them have it up to `until`; `until` is the last
    one, "" if the newest still has it. `rule` is the class name of the pass, or the translator, that avoids it, "" if
    nothing does; `form` is what is written instead. `avx512_since` is the first release that has it only on processors
    with AVX-512, "" if there is none; only processors without AVX-512 have one that is `without_avx512`. The rule is
    for all processors, because an IR runs on any.
    """

    id: str
    sentence: str
    severity: str = WRONG
    rule: str = ""
    form: str = ""
    since: str = ""
    until: str = ""
    avx512_since: str = ""
    without_avx512: bool = False

    def is_in(self, release: str, *, has_avx512: bool = True) -> bool:
        """Whether `release`, such as "2025.4.1", has it on such a processor; a newer one than all measured has what the
        newest has."""
        number = version(release)
        if has_avx512 and self.without_avx512:
            return False
        if not has_avx512 and self.avx512_since and number >= version(self.avx512_since):
            return False
        return (not self.since or number >= version(self.since)) and (not self.until or number <= version(self.until))


@cache
def version(release: str) -> tuple[int, ...]:
    """(2025, 4, 1) of "2025.4.1"."""
    return tuple(int(part) for part in release.split("."))


_ISOLATED = "`max(p, p)` after the body Parameter, `p or p` for booleans"

GAPS: tuple[Gap, ...] = (
    # -- loops: memory of states, slices and captured tensors
    Gap(
        "swapped-states",
        "back edges are copied one after another: a state that becomes another state has its new value by then",
        WRONG, "IsolateParameters", _ISOLATED,
    ),
    Gap(
        "view-of-state",
        "a view of one state (Reshape, Squeeze, Gather with a constant index) becomes another state too late",
        WRONG, "IsolateParameters", _ISOLATED,
    ),
    Gap(
        "previous-slice", "a state that is a slice of the iteration before is the slice of the current one",
        WRONG, "IsolateParameters", _ISOLATED,
    ),
    Gap(
        "iteration-number-as-state", "a state that is the number of the iteration before is that of the current one",
        WRONG, "IsolateParameters", _ISOLATED,
    ),
    Gap(
        "captured-tensor-overwritten", "a captured tensor that a scatter reads is overwritten in place",
        WRONG, "IsolateParameters", _ISOLATED,
    ),
    Gap(
        "captured-scalar-overwritten",
        "an elementwise operation of a captured scalar and a view of a slice overwrites the scalar: the results are "
        "running sums or products",
        WRONG, "IsolateParameters", _ISOLATED,
    ),
    Gap(
        "captured-tensor-as-state", "a state that becomes a captured tensor and is read elsewhere does not compile",
        ERROR, "IsolateParameters", _ISOLATED,
    ),
    Gap(
        "loop-output-memory",
        "a final value or a concatenated output of dynamic shape is overwritten by a later node before it is read",
        WRONG, "CopyControlOutputs", "`Slice` to its own length",
    ),
    # -- loops: trip counts and zero iterations
    Gap(
        "negative-trip-count", "a trip count below 0 means an endless loop", WRONG, "GuardTripCounts", "`max(M, 0)`",
    ),
    Gap(
        "huge-trip-count",
        "the buffer of a concatenated output is allocated for all of the trip count, although the body may stop "
        "before; if this number of bytes does not fit into 64 bits, the output is lost and memory is corrupted",
        WRONG, "GuardTripCounts", "trip count -1 and `i + 1 < M` in the condition",
    ),
    Gap(
        "zero-trips-concatenated", "after zero iterations a concatenated output has values of an earlier inference",
        WRONG, "GuardZeroTrips", "`Slice` to length 0",
    ),
    Gap(
        "zero-trips-unread-state",
        "after zero iterations the final value of a state that the body does not read is not the initial one",
        WRONG, "GuardZeroTrips", "`Select` or `If` outside",
    ),
    Gap(
        "zero-trips-read-state",
        "after zero iterations the final value of any state is that of an earlier inference",
        WRONG, "SelectFinalValues", "`Select`, a slice of the final value, or both joined, one of them cut to length 0",
        until="2026.3.1",
    ),
    Gap(
        "zero-trips-result-bounds",
        "after zero iterations the final value keeps the bounds of the size of the body's result",
        WRONG, "RemoveResultBounds", "`Tile` by a number known only at run time",
    ),
    Gap(
        "zero-trips-concatenated-bounds",
        "a concatenated output whose bounds exclude a size of 0 stops the inference or the process, or keeps its size, "
        "after zero iterations",
        WRONG, "RemoveResultBounds", "`Tile` by a number known only at run time",
    ),
    Gap(
        "zero-trips-size-of-capture",
        "the body returns what is as long as a captured tensor: after zero iterations the size of that tensor is read "
        "off the final value",
        WRONG, "RemoveResultBounds", "`Tile` by a number known only at run time",
    ),
    Gap(
        "zero-trips-bounded-count",
        "after zero iterations of a loop whose trip count has bounds, a `Slice` to length 0 is taken for the whole",
        WRONG, "GuardZeroTrips", "ends and trip counts after `CumSum`, where the inference of bounds stops",
    ),
    Gap(
        "trip-count-of-zero", "a constant trip count of 0 crashes the process, or returns old values",
        CRASH, "EliminateEmptyLoops", "the initial values, and empty constants", avx512_since="2026.4.1",
    ),
    Gap(
        "condition-of-false", "a constant condition that is false does not compile",
        ERROR, "EliminateEmptyLoops", "the initial values, and empty constants",
    ),
    # -- variables
    Gap(
        "initial-value-of-one-variable",
        "a variable that grows and alone reads its computed initial value does not compile, or keeps its length at a "
        "reset",
        ERROR, "ShareInitialValues", "the initial value, without elements, is an input of the `Concat` as well",
        since="2025.0.0",
    ),
    Gap(
        "initial-rows-of-one-variable",
        "a variable that grows and alone reads its computed initial value, which has elements, has another shape than "
        "this value after a reset, or the inference fails",
        WRONG, "ShareInitialValues", "no elements of the initial value are an input of a `Concat` before the `Assign`",
        since="2025.0.0",
    ),
    Gap(
        "initial-value-read-late",
        "a variable that alone reads its computed initial value, and whose next value does not depend on all that "
        "reads it, has this next value already after some resets",
        WRONG, "ShareInitialValues", "no elements of the initial value are an input of a `Concat` before the `Assign`",
        since="2025.0.0",
    ),
    Gap(
        "assigned-input",
        "a variable that becomes an input, or a view of one (Squeeze, Reshape, Concat of known sizes), has what the "
        "caller writes into that memory later",
        WRONG, "CopyAssignedInputs", "`max(x, x)` behind the input, `x or x` for booleans",
    ),
    Gap(
        "assigned-constant",
        "a variable that becomes a constant, or a view of one, has the contents of other memory from then on",
        WRONG, "CopyAssignedInputs", "`Tile` of the constant by a number known only at run time",
    ),
    Gap(
        "static-value-of-dynamic-variable", "a tensor of static shape is not copied into a variable of dynamic shape",
        ERROR, "MakeAssignedShapesDynamic", "`Tile` of the value by a number known only at run time",
    ),
    Gap(
        "concatenation-with-variable",
        "a concatenation with a variable whose initial value is computed does not compile (\"Invalid graph status\")",
        ERROR, "SeparateReadValues", "`Reshape` to its own shape, or a copy, between them", since="2025.0.0",
    ),
    Gap(
        "constant-of-initial-values",
        "two variables whose computed initial values read one constant: the inference fails (\"Cannot get dims for non "
        "static shape\"), or the process ends",
        ERROR, "CopyInitialConstants", "each initial value reads a constant of its own", since="2025.0.0",
    ),
    # -- loops: what is inferred about shapes
    Gap(
        "unread-final-shape", "a state that changes its shape keeps its first shape if its final value is unused",
        WRONG, "MakeStateShapesDynamic", "`Tile` of the initial value by a number known only at run time",
    ),
    Gap(
        "state-of-static-initial-shape",
        "a state whose next value has no known bounds keeps its first shape, and the memory for it, also if its final "
        "value is read: values are lost, old ones, or the inference fails",
        WRONG, "MakeFinalShapesDynamic", "`Tile` of the initial value by a number known only at run time",
        until="2026.2.1",
    ),
    Gap(
        "state-symbols",
        "a state that grows has the symbols of its initial value in the body: the size of a captured tensor of the "
        "same initial size is read off the state",
        WRONG, "BreakStateSymbols", "`Slice` of the initial value to its own length, which has no symbol",
    ),
    Gap(
        "state-symbols-of-two-states",
        "two states with the same initial value have the same symbols: the size of one is read off the other",
        WRONG, "BreakStateSymbols", "`Slice` of the initial value to its own length, which has no symbol",
    ),
    Gap(
        "inner-trip-count",
        "an inner loop keeps the trip count that was inferred from the first shape of an outer state, and the length "
        "of its concatenated outputs",
        WRONG, "MakeTripCountsDynamic", "trip count plus `min(i, 0)` of the outer loop",
    ),
    Gap(
        "concatenated-behind-zero", "concatenation along an axis behind a dimension of 0 crashes the process",
        CRASH, "ConcatenateAlongFirstAxis", "axis 0, then `Transpose`",
    ),
    Gap(
        "copied-zero-by-ones",
        "a tensor of floats or booleans that a loop copies into its body, or out of it, crashes the process if its "
        "first dimension is 0 and all others are 1",
        CRASH, "AddLeadingDimension", "`Unsqueeze` outside and `Squeeze` in the body", until="2025.2.0",
    ),
    # -- loops that are evaluated, or rebuilt, while the model is read
    Gap(
        "constant-loop-idle-inner",
        "a loop of constants is evaluated while the model is read, which fails if an inner loop does not run",
        ERROR, "PreventLoopFolding", "trip count plus a zero that cannot be folded",
    ),
    Gap(
        "constant-loop-with-branches",
        "a loop of constants is evaluated while the model is read, which fails if its body holds an If or a "
        "TensorIterator",
        ERROR, "PreventLoopFolding", "trip count plus a zero that cannot be folded", until="2026.2.1",
    ),
    Gap(
        "constant-loop-unknown-length",
        "a loop of constants is evaluated while the model is read, which fails if its body decides how often it runs",
        ERROR, "PreventLoopFolding", "trip count plus a zero that cannot be folded",
    ),
    Gap(
        "constant-loop-reversed",
        "a loop of constants is evaluated while the model is read, with reversed outputs in forward order",
        WRONG, "PreventLoopFolding", "a zero that cannot be folded in the body",
    ),
    Gap(
        "constant-loop-running-sum",
        "a `CumSum` of the output of a loop of constants is not folded, and what is sliced by it does not compile",
        ERROR, "PreventLoopFolding", "a zero that cannot be folded in the body",
    ),
    Gap(
        "constant-loop-random", "a loop of constants with random numbers draws them once for all inferences",
        WRONG, "PreventLoopFolding", "a zero that cannot be folded in the body",
    ),
    Gap(
        "constant-iterator-in-place",
        "a TensorIterator of constants is computed once, and an elementwise operation behind it overwrites its result",
        WRONG, "CopyComputedConstants", "`Tile` by a number known only at run time",
    ),
    Gap(
        "constant-operation-in-place",
        "so are other operations of constants that the runtime does not fold, such as ReverseSequence, Convolution and "
        "LSTMSequence",
        WRONG, "CopyComputedConstants", "`Tile` by a number known only at run time",
    ),
    Gap(
        "computed-trip-count",
        "a trip count of 0 that can be computed while the model is read crashes the process, or returns old values",
        CRASH, "PreventLoopFolding", "trip count plus a zero that cannot be folded", avx512_since="2026.4.1",
    ),
    Gap(
        "computed-condition",
        "a condition that is false and can be computed while the model is read makes the result empty, or an old one",
        WRONG, "PreventLoopFolding", "`or 0 > 0`, with a zero that cannot be folded",
    ),
    Gap(
        "invariant-result-reversed",
        "a final value that is a captured tensor fails if another output is concatenated in reverse",
        ERROR, "EliminateInvariantOutputs", "the tensor itself, outside",
    ),
    # -- TensorIterator and If
    Gap(
        "tensor-iterator-of-no-slices",
        "a TensorIterator over a dimension of 0 returns the values of an earlier inference",
        WRONG, "ScanLowering", "`Loop` with a trip count from the shape",
    ),
    Gap(
        "nested-tensor-iterators", "a TensorIterator directly in a TensorIterator does not compile",
        ERROR, "ScanLowering", "`Loop`",
    ),
    Gap(
        "unread-slice", "a TensorIterator whose body reads no slice runs once",
        WRONG, "EliminateUnreadSlices", "`Loop`",
    ),
    Gap(
        "if-output-of-same-shape",
        "an output of dynamic shape is not copied if the other branch has given it the same shape before",
        WRONG, "DistinguishBranchShapes", "`[1, size]` from one branch, `[size, 1]` from the other, reshaped outside",
        until="2026.1.0",
    ),
    Gap(
        "if-output-memory",
        "an output of If of dynamic shape is overwritten by a later node before it is read",
        WRONG, "CopyControlOutputs", "`Slice` with an end that depends on the condition", since="2025.1.0",
    ),
    Gap(
        "constant-input-of-if",
        "a constant that is an input of If, Loop or TensorIterator, and is read elsewhere, crashes the process",
        CRASH, "PushConstantToSubgraph", "a copy of the constant in the bodies", since="2026.2.1",
    ),
    Gap(
        "deep-ifs", "compiling nested Ifs takes time exponential in their depth: seconds at 16, minutes at 32", SLOW,
    ),
    # -- symbols and bounds of sizes
    Gap(
        "slice-symbols",
        "a Slice with ends known only at run time of a dimension 0..M has the symbol of the whole dimension: the size "
        "of one is read off the other",
        WRONG, "RemoveSliceBounds", "`Tile` by a number known only at run time before it",
    ),
    Gap(
        "remainder-of-size",
        "the bounds of `FloorMod` are computed only at the ends of the interval: a size of 4..8 modulo 4 becomes the "
        "constant 0",
        WRONG, "RemoveArithmeticBounds", "`CumSum` before it, where the inference of bounds stops",
    ),
    Gap(
        "negative-bounds",
        "the bounds of `Mod`, `Abs`, `Power` and `ReduceProd` of what may be below 0 are computed only at the ends of "
        "the interval",
        WRONG, "RemoveArithmeticBounds", "`CumSum` before it, where the inference of bounds stops",
    ),
    Gap(
        "differences-of-symbols",
        "a size that follows from differences of symbols is not known: what is written for static shapes does not "
        "protect them",
        WRONG, "InsertStaticShapes", "`Reshape` to the size",
    ),
    # -- moved, merged and removed nodes
    Gap(
        "returned-input",
        "an input of dynamic shape that is returned unchanged is freed memory: the values are wrong, or the process "
        "crashes",
        CRASH, "ReshapeReturnedInputs", "`Reshape` that copies every dimension",
    ),
    Gap(
        "returned-reshape",
        "an input that is reshaped by a pattern known only at run time, and returned, keeps its largest shape, or the "
        "process crashes",
        WRONG, "ReshapeReturnedInputs", "`Reshape` that copies every dimension", since="2025.4.1",
    ),
    Gap(
        "returned-slice",
        "after a `Convert` to the same type an output concatenated from a view may get the shape of another output",
        WRONG, "ReshapeReturnedInputs", "`Reshape` that copies every dimension",
    ),
    Gap(
        "boolean-copy",
        "a copy (`Convert` to the same type) of a boolean that is not the first output of its node becomes the first",
        WRONG, "IdentityToLogicalOr", "`LogicalOr(x, x)`",
    ),
    Gap(
        "abs-of-concat", "`Abs` overwrites a `Concat` that other nodes still read",
        WRONG, "AbsToMaximum", "`max(-x, x)`",
    ),
    Gap(
        "computed-constant-overwritten",
        "what is computed from constants alone and not folded, such as the result of a TensorIterator, is computed "
        "once; an elementwise operation overwrites it, and later inferences read that",
        WRONG, "CopyComputedConstants", "`Tile` by a number known only at run time",
    ),
    Gap(
        "compressed-constant-in-place",
        "so is a `MatMul` or `Gather` of constants if one of them is compressed, to 8 bits or less, or to f16 in a "
        "`MatMul`",
        WRONG, "CopyComputedConstants", "`Tile` by a number known only at run time",
    ),
    Gap(
        "constant-times-compressed",
        "`MatMul` of a constant and weights of at most 8 bits does not compile",
        ERROR, "CopyComputedConstants", "`Tile` of the constant by a number known only at run time", since="2025.0.0",
    ),
    Gap(
        "channel-order",
        "a `Gather`, or a `Concat` of a `Split`, that permutes channels is moved into the weights of the Convolutions "
        "behind as the inverse permutation",
        WRONG, "CountAxesFromEnd", "an axis below 0, which is not recognised",
    ),
    Gap(
        "channel-order-of-slopes",
        "channels in reverse order are moved past a `PReLU`, whose slopes keep their order",
        WRONG, "CountAxesFromEnd", "an axis below 0, which is not recognised",
    ),
    Gap(
        "channel-order-of-pad",
        "channels in reverse order are moved past a `Pad` that adds or removes channels; the model may not compile",
        WRONG, "CountAxesFromEnd", "an axis below 0, which is not recognised",
    ),
    Gap(
        "gather-of-inserted-axis",
        "a `Gather` along the axis that an `Unsqueeze` inserts is removed with it, and the dimensions of its indices "
        "are lost",
        WRONG, "CountAxesFromEnd", "an axis below 0, which is not recognised",
    ),
    Gap(
        "reduced-concat",
        "`ReduceMax` and `ReduceMin` of two joined tensors become the elementwise maximum and minimum of the tensors",
        WRONG, "CountAxesFromEnd", "an axis below 0, which is not recognised", until="2026.0.0",
    ),
    Gap(
        "shared-constant",
        "an elementwise operation behind a Reshape or Unsqueeze makes its constant of one element a scalar for all "
        "readers, and the model does not compile",
        ERROR, "MakeConstantsScalar", "a scalar constant of its own", until="2026.2.1",
    ),
    Gap(
        "scalar-prelu", "PReLU of a scalar with a slope of one dimension does not compile",
        ERROR, "MakeConstantsScalar", "a scalar slope", until="2026.0.0",
    ),
    Gap(
        "constant-rank",
        "an operation after `Gather`, `Squeeze` or `Reshape` with a constant of one element and more dimensions than "
        "the other input loses the new dimensions",
        WRONG, "UnsqueezeToConstantRank", "`Unsqueeze` of the other input",
    ),
    Gap(
        "reduction-of-transpose",
        "a reduction of a `Transpose` to a scalar or vector, without kept dimensions, reads and writes memory that "
        "does not belong to the tensors",
        WRONG, "ReduceBeforeTranspose", "the reduction before the `Transpose`, along the axes that move there",
        until="2025.2.0",
    ),
    Gap(
        "transpose-of-ones",
        "a `Transpose` that moves only dimensions of 1 becomes a `Reshape` to the current sizes, in which a size of 0 "
        "is misread",
        WRONG, "TransposeToSqueezeUnsqueeze", "`Squeeze` and `Unsqueeze`",
    ),
    Gap(
        "dynamic-groups",
        "a `Reshape` of four dimensions, of which only the first is dynamic, to four or five whose second is dynamic, "
        "then a `Transpose` and a `Reshape`, is taken for a shuffle of channels, and the model does not compile",
        ERROR, "MoveWithSixDimensions", "a `Transpose` of six dimensions",
    ),
    Gap(
        "moved-broadcast",
        "a `Broadcast` to sizes known only at run time is moved after an elementwise operation with a tensor of size "
        "1, to the larger of the sizes: a size of 0 becomes 1",
        WRONG, "PreserveEmptyBroadcasts", "moved after the operation before, to the exact sizes",
    ),
    Gap(
        "bidirectional-broadcast",
        "a bidirectional `Broadcast` is moved after its elementwise reader, with the larger of the sizes as its "
        "target: 0 and 1 become 1",
        WRONG, "PreserveEmptyBroadcasts", "the exact target, if it is known",
    ),
    Gap(
        "computed-bidirectional-broadcast",
        "the same with computed sizes and a tensor with a dimension of 1: a size of 0 at run time may become 1; "
        "`check` says where (ML507)",
        WRONG,
    ),
    Gap(
        "soft-sign-of-elementwise", "`SoftSign` of the result of an elementwise operation of dynamic shape is wrong",
        WRONG, "SoftSignToQuotient", "`x / (1 + |x|)`", until="2025.3.0",
    ),
    Gap(
        "inner-products-of-one",
        "two consecutive matrix products with inner dimensions of 1 do not compile (\"Layout rank can't be larger\")",
        ERROR, "MatMulToMultiply", "`Multiply`", since="2025.3.0",
    ),
    Gap(
        "select-of-its-condition",
        "`Select` of booleans does not compile if the condition is also one of the values",
        ERROR, "SelectToLogical", "`LogicalOr` or `LogicalAnd`",
    ),
    Gap(
        "select-of-one-constant", "`Select` of a constant of one element and itself does not compile",
        ERROR, "CopySelectedConstant", "a copy of the constant", until="2025.1.0",
    ),
    Gap(
        "elements-counted-from-end", "`GatherElements` and `GatherND` read outside the tensor for an index below 0",
        WRONG, "CountIndicesFromStart", "the index plus the size", until="2025.2.0",
    ),
    Gap(
        "empty-concat", "`Concat` ignores inputs with a dimension of 0, for every axis",
        WRONG, "EmptyConcatToBroadcast", "`Broadcast` of a zero to the summed shape",
    ),
    Gap(
        "unsqueeze-of-nothing",
        "`Unsqueeze` and `Squeeze` of a tensor with a dimension that is 0 before run time make 0 of the dimensions "
        "that are not known, and a `Reshape` to computed sizes and 0 fails",
        WRONG, "EmptySqueezeToBroadcast", "`Broadcast` of a zero to the shape",
    ),
    Gap(
        "empty-constant-operand",
        "a sum, difference, product or quotient with a constant without elements crashes the process",
        CRASH, "EmptyConstantsToMaximum", "`Maximum`, whose result has no elements either",
    ),
    Gap(
        "empty-constant-output", "a constant of i64 without elements as a model output crashes the process",
        CRASH, "EmptyOutputsToBroadcast", "`Broadcast` to sizes known only at run time", until="2024.6.0",
    ),
    # -- single operations
    Gap(
        "greater-of-nan", "`Greater` and `GreaterEqual` are true for NaN",
        WRONG, "translator of Greater", "`Less` and `LessEqual` with swapped inputs", avx512_since="2024.6.0",
    ),
    Gap(
        "integer-divide", "integer `Divide` after a reduction or `MatMul` rounds instead of truncating",
        WRONG, "translator of Div", "`(a - Mod(a, b)) / b`",
    ),
    Gap(
        "divide-8-bits", "`Divide` of 8-bit integers rounds instead of truncating",
        WRONG, "translator of Div", "`(a - Mod(a, b)) / b`, through i32",
    ),
    Gap(
        "saturating-8-bits", "8-bit `Add`, `Subtract` and `Multiply` saturate instead of wrapping around",
        WRONG, "translator of Add", "through i32",
    ),
    Gap(
        "reciprocal-divide",
        "f32 `Divide` multiplies by the reciprocal: quotients can be one unit off before a rounding",
        WRONG, "translator of QuantizeLinear", "exact steps",
    ),
    Gap(
        "tile-of-two-axes", "`Tile` with several repeats known at run time gives wrong values",
        WRONG, "translator of Tile", "one `Tile` per axis",
    ),
    Gap(
        "top-none", "`TopK` with a k of 0 at run time corrupts memory",
        CRASH, "translator of TopK", "one element more, removed afterwards",
    ),
    Gap(
        "computed-pad-value", "`Pad` ignores a pad value that is computed",
        WRONG, "translator of Pad", "pad with 0, then `Select`",
    ),
    Gap(
        "backward-range", "`Range` whose limit is on the wrong side does not stop",
        WRONG, "translator of Range", "the limit is clamped first",
    ),
    Gap(
        "reduced-infinities", "`ReduceMax` and `ReduceMin` of infinities give the largest finite number",
        WRONG, "translator of ReduceMax", "`Select` if all are infinite",
    ),
    Gap(
        "reduce-max-i32", "`ReduceMax` of i32 confuses the largest with the smallest number",
        WRONG, "translator of ReduceMax", "composed",
    ),
    Gap(
        "narrowing-conversion",
        "`Convert` of integers to 8 or 16 bits saturates instead of wrapping around",
        WRONG, "DropBitsBeforeConvert", "`x & 255`, or `((x + 128) & 255) - 128`", until="2025.3.0",
    ),
    Gap(
        "boolean-of-split", "`Convert` to boolean of an output of `VariadicSplit` does not compile",
        ERROR, "translator of Cast", "`NotEqual` to 0",
    ),
    Gap(
        "float8-overflow", "`Convert` to float8 does not saturate",
        WRONG, "translator of Cast", "values are limited first, NaN is kept",
    ),
    Gap(
        "mean-of-channels", "`ReduceMean` adds equal channels in different orders",
        WRONG, "translator of GlobalAveragePool", "`AvgPool` over a known size",
    ),
    Gap(
        "computed-zero-of-reshape", "a 0 in a computed pattern of `Reshape` is taken for \"copy the dimension\"",
        ERROR, "PackSequences", "the pattern after `CumSum`", since="2025.4.1",
    ),
    Gap(
        "batched-gathers",
        "`Gather` with `batch_dims` and known dimensions of 1 before the axis crashes, or gives wrong values",
        CRASH, "DropBatchesOfOne", "`Gather` without `batch_dims`",
    ),
    Gap(
        "long-dft", "`DFT` and `IDFT` of lengths that are not powers of two lose digits (3e-3 at 16,000)",
        WRONG, "translator of DFT", "composed of `RDFT`, which does not lose any",
    ),
    Gap(
        "long-rdft", "`RDFT` of a length above that of its input is refused, or reads outside the input",
        WRONG, "translator of DFT", "padded first",
    ),
    Gap(
        "long-irdft", "`IRDFT` of a length above that of its input reads outside the input",
        WRONG, "translator of DFT", "padded first",
    ),
    Gap(
        "rdft-f64", "`RDFT` and `IRDFT` refuse f64", ERROR, "translator of DFT", "computed in f32",
    ),
    Gap(
        "random-times-zero", "a fusion refuses `RandomUniform` times 0",
        ERROR, "translator of RandomUniform", "the factor is hidden from the fusion",
    ),
    Gap(
        "convolution-of-one-place",
        "`Convolution` of one channel with a single place along the last dimension, a stride above 1 there and of 1 "
        "before it is wrong",
        WRONG, "translator of Conv", "one position more, removed afterwards", avx512_since="2024.6.0",
    ),
    Gap(
        "filter-in-padding",
        "`Convolution` of one input and one output channel returns memory that was never written where the filter lies "
        "completely in the padding",
        WRONG, "AddOutputChannel", "a second output channel, removed afterwards", since="2026.3.1",
    ),
    Gap(
        "weights-scaled-by-row",
        "`MatMul` with 4- or 8-bit weights whose scales or zero points vary along the axis that is summed gives wrong "
        "numbers, or ends the process",
        WRONG, "translator of DequantizeLinear", "the numbers and the scales are negated", since="2025.0.0",
    ),
    Gap(
        "row-times-weights-of-one-scale",
        "`MatMul` of a single row with 4- or 8-bit weights of one scale is wrong",
        WRONG, "SpreadScales", "the same scale for each column", until="2024.6.0",
    ),
    Gap(
        "columns-of-one-zero-point",
        "`MatMul` of few rows with 4- or 8-bit weights of one zero point has wrong last columns if their number is not "
        "a multiple of 16",
        WRONG, "SpreadScales", "the same zero point for each column", until="2025.0.0",
    ),
    Gap(
        "zero-points-of-i4",
        "`MatMul` with weights of i4 that have zero points is wrong",
        WRONG, "UnsignedWeights", "the numbers and the zero points are larger by 8, in u4", until="2025.3.0",
    ),
    Gap(
        "weights-in-blocks-of-columns",
        "`MatMul` with 4- or 8-bit weights in blocks along the axis that is not summed does not compile",
        ERROR, "translator of DequantizeLinear", "the numbers and the scales are negated", since="2025.2.0",
    ),
    Gap(
        "table-scaled-by-column",
        "`Gather` of rows of a 4- or 8-bit table whose scales or zero points vary along the columns gives wrong "
        "numbers, or ends the process",
        WRONG, "translator of DequantizeLinear", "the numbers and the scales are negated",
    ),
    Gap(
        "transposed-filters-with-zero-points",
        "`ConvolutionBackpropData` of 8-bit activations limits filters to i8 after it subtracts their zero points",
        WRONG, "translator of DequantizeLinear",
        "i8 without zero points if the numbers fit, else the numbers and the scales are negated",
    ),
    Gap(
        "fake-quantize-of-16-bits",
        "a `FakeQuantize` of 65,536 levels is removed, and with it the limits of its range",
        WRONG, "translator of QuantizeLinear", "`Round`, `Clamp` and `Convert`", since="2026.1.0",
    ),
    Gap(
        "epsilon-of-quantised",
        "the scale of a quantised tensor is moved behind an `MVN` whose epsilon stays as it is",
        WRONG, "MaximumBeforeNormalisation", "`max(x, x)` before the `MVN`",
    ),
    Gap(
        "average-of-padding",
        "the zero point of a quantised tensor is moved behind an `AvgPool` that counts the zeros of the padding",
        WRONG, "MaximumBeforeAverage", "`max(x, x)` before the `AvgPool`",
    ),
    Gap(
        "small-average-of-quantised",
        "an `AvgPool` of a quantised tensor with fewer than 16 results before a `FakeQuantize` gives wrong numbers, or "
        "does not compile",
        WRONG, "MaximumBehindAverage", "`max(p, p)` behind the `AvgPool`", without_avx512=True,
    ),
    Gap(
        "constants-merged-to-infinity",
        "the constants of `(x + c) * s` and `(x * s) * t` are multiplied with each other, also where the product is "
        "infinite or 0",
        WRONG, "MaximumBetweenConstants", "`max(y, y)` between the two operations",
    ),
    Gap(
        "attention-with-as-many-queries-as-heads",
        "static attention gives wrong values if there are as many queries as heads, a computed operand is added or "
        "multiplied, and a `Transpose` stands directly at only one of Q and the result",
        WRONG, "MaximumBetweenHeads", "`max(x, x)` at this `Transpose`",
    ),
    Gap(
        "attention-of-constant-heads", "attention reads the first head of constant keys or values for all heads",
        WRONG, "MaximumBehindSoftmax", "`max(w, w)` behind the `Softmax`", since="2025.2.0", until="2026.0.0",
    ),
    Gap(
        "fake-quantize-of-negative-factors",
        "a `FakeQuantize` of dynamic shape behind a `Multiply` by constants of both signs along the channels gives "
        "wrong numbers",
        WRONG, "MaximumBeforeFakeQuantize", "`max(p, p)` before the `FakeQuantize`",
    ),
    Gap(
        "fake-quantize-of-unknown-channels",
        "a `FakeQuantize` behind an `Add` or `Multiply` of a constant for each channel takes the first one for all if "
        "the number of channels is not known",
        WRONG, "MaximumBeforeFakeQuantize", "`max(p, p)` before the `FakeQuantize`",
    ),
    Gap(
        "factors-of-quantised-product",
        "factors that do not vary along the columns alone, behind a `MatMul` of 8 bits, are taken for other elements; "
        "behind one of two inputs all do that vary",
        WRONG, "MaximumBehindMatMul", "`max(p, p)` behind the `MatMul`", since="2025.4.1",
    ),
    Gap(
        "scales-of-many-matrices",
        "`MatMul` of 8 bits with constant weights of more than one matrix and several scales reads behind the scales",
        WRONG, "MaximumBeforeMatMul", "`max(q, q)` behind the `FakeQuantize`", since="2026.4.1",
    ),
    Gap(
        "constant-of-unknown-columns",
        "a constant of several elements behind a `MatMul` of an unknown number of columns is taken for other elements, "
        "or the model does not compile",
        WRONG, "MaximumBehindMatMul", "`max(p, p)` behind the `MatMul`", since="2025.4.1",
    ),
    Gap(
        "padded-volume",
        "a padded `Convolution` of one input and one output channel of dynamic shape in three dimensions reads memory "
        "that was never written",
        WRONG, "AddOutputChannel", "a second output channel, removed afterwards", since="2026.3.1",
    ),
    Gap(
        "sum-with-convolution-of-one-channel",
        "a tensor that is added to a `Convolution` of one input channel and dynamic shape is read at other places",
        WRONG, "MaximumBeforeSum", "`max(c, c)` of the convolution before the sum", since="2026.3.1",
        avx512_since="2026.3.1",
    ),
    Gap(
        "one-channel-added-to-convolution",
        "a tensor of an unknown number of channels that is added to a `Convolution` of dynamic shape is refused if it "
        "has one",
        ERROR, "MaximumBeforeSum", "`max(c, c)` of the convolution before the sum",
    ),
    Gap(
        "channel-constant-of-reduction",
        "a reduction of three dimensions along the last or the first reads a constant for each channel that follows at "
        "the place of the batch, also behind its end",
        WRONG, "MaximumBehindReduction", "`max(r, r)` behind the reduction",
    ),
    Gap(
        "channel-range-of-reduction",
        "a `FakeQuantize` with a range for each channel behind a reduction that does not keep the dimensions takes the "
        "ranges of other channels",
        WRONG, "MaximumBehindReduction", "`max(r, r)` behind the reduction",
    ),
    Gap(
        "channel-constant-of-matmul",
        "a constant along the second of four or more dimensions behind a `MatMul` with constant weights is taken for "
        "one along the last, or the model does not compile",
        WRONG, "MaximumBehindMatMul", "`max(p, p)` behind the `MatMul`",
    ),
    Gap(
        "channel-range-of-matmul",
        "a `FakeQuantize` with a range for each place along the second of three or more dimensions behind a `MatMul` "
        "takes the ranges of the columns, or the model does not compile",
        WRONG, "MaximumBehindMatMul", "`max(p, p)` behind the `MatMul`",
    ),
    Gap(
        "convolution-of-padding",
        "a `Convolution` whose filter sees nothing but padding at every place along the last dimension crashes: a "
        "stride skips the only elements",
        CRASH, "SliceConvolution", "a stride of 1, and every so many places of the result", until="2024.6.0",
    ),
    Gap(
        "matmul-of-three-dimensions",
        "`MatMul` of an input of unknown sizes of rank 2 with a constant of three dimensions does not compile",
        ERROR, "translator of MatMul", "four dimensions", since="2025.4.1",
    ),
    Gap(
        "matmul-of-batch-one",
        "`MatMul` of a batch of 1 of unknown sizes with a constant of three dimensions has a size of 0",
        WRONG, "translator of MatMul", "four dimensions", since="2025.4.1",
    ),
    Gap(
        "matmul-of-no-columns", "a transposed `MatMul` with a dimension of 0 does not compile",
        ERROR, "translator of Gemm", "the result itself",
    ),
    Gap(
        "slice-of-computed-axes",
        "`Slice` of a tensor of known shape with constant bounds and axes known only at run time crashes",
        CRASH, "translator of Slice", "steps that cannot be folded",
    ),
    Gap(
        "sequence-of-length-zero", "recurrent sequence operations of length 0 do not write their last state",
        WRONG, "translator of LSTM", "`Select` of zeros",
    ),
    Gap(
        "four-bits", "i4 and u4 are stored in 8 bits inside a graph, and do not wrap around",
        WRONG, "translator of Cast", "the lowest four bits, computed in i32",
    ),
    Gap(
        "two-bit-constants", "the elements of a constant of two bits are read in reverse order within each byte",
        WRONG, "WidenTwoBitConstants", "a constant of four bits", until="2025.2.0",
    ),
    Gap(
        "not-of-16-bits", "`BitwiseNot` of u16 is 0",
        WRONG, "translator of BitwiseNot", "`65535 - x`", until="2025.3.0",
    ),
    Gap(
        "col2im-of-computed-shapes", "`Col2Im` to a shape known only at run time crashes the process",
        CRASH, "translator of Col2Im", "added up place by place", until="2025.4.1",
    ),
    Gap(
        "einsum-of-scalars", "`Einsum` of scalars alone does not compile",
        ERROR, "translator of Einsum", "`Multiply`", until="2025.1.0",
    ),
    Gap(
        "matmul-over-nothing",
        "`MatMul` with a constant of no rows does not write its result, which is zeros",
        WRONG, "translator of MatMul", "zeros",
    ),
    Gap(
        "lrn-bias", "`LRN` truncates its bias to an integer", WRONG, "translator of LRN", "composed",
    ),
    Gap(
        "strings", "`Slice`, `Split`, `Convert` and `Gather` of strings corrupt memory",
        CRASH, "last check", "refused, ML303",
    ),
    # -- not avoided
    Gap(
        "failed-check-with-one-thread",
        "with `INFERENCE_NUM_THREADS` of 1 an inference of which a check of shapes fails (`Reshape`, `MatMul`, "
        "`Concat`, `Broadcast`, `Add`, `Convolution` and others) returns, with the results of the inference before",
        WRONG, since="2025.2.0",
    ),
    Gap(
        "inference-after-failed-check",
        "an inference request of which a check of shapes has failed may fail with any inputs from then on, or give "
        "wrong values",
        WRONG,
    ),
    Gap(
        "integers-of-32-bits",
        "integers are read as 32 bits: a trip count above 2^31 - 1 that is known only at run time cannot be "
        "distinguished from a negative one",
        WRONG,
    ),
    Gap(
        "concatenated-nothing",
        "concatenated outputs without elements keep only the dimensions that are known before run time",
        WRONG,
    ),
    Gap(
        "einsum-of-diagonal", "`Einsum` of a subscript that is twice in one input does not compile",
        ERROR, until="2025.0.0",
    ),
    Gap(
        "sum-of-product-over-nothing",
        "an elementwise operation of a `MatMul` whose inner size is 0 at run time does not happen, or the result keeps "
        "its shape",
        WRONG,
    ),
    Gap(
        "reshape-of-nothing",
        "`Reshape` of a tensor without elements to other sizes is refused if a 0 in its pattern copies a size of 0",
        ERROR, until="2024.6.0",
    ),
    Gap(
        "sequence-lens-of-zero",
        "recurrent sequence operations write neither outputs nor last states of a sequence whose length is given as 0",
        WRONG,
    ),
    Gap(
        "unsigned-of-32-bits", "numbers of u32 above 2^31 - 1 are read as 2^31 - 1",
        WRONG, until="2025.3.0",
    ),
    Gap(
        "infinities-of-f64",
        "f64 is computed in f32; infinities become its largest number at any conversion to or from f64", WRONG,
    ),
    Gap("relu-of-nan", "`ReLU` loses NaN; `check` says so (ML505)", WRONG),
    Gap("hard-sigmoid-of-nan", "`HardSigmoid` loses NaN; `check` says so (ML505)", WRONG),
    Gap("exp-of-nan", "`Exp` of NaN is infinite; `check` says so (ML505)", WRONG),
    Gap(
        "softmax-of-nan", "`Softmax` and `LogSoftmax` are NaN only where the input is; `check` says so (ML505)", WRONG,
    ),
    Gap("max-pool-of-nan", "`MaxPool` loses NaN; `check` says so (ML505)", WRONG),
    Gap("clamp-of-nan", "`Clamp` loses NaN; `check` says so (ML505)", WRONG),
    Gap("maximum-of-nan", "`Maximum` and `Minimum` lose NaN if it is the first input; `check` says so (ML505)", WRONG),
    Gap("reduced-nan", "`ReduceMax` and `ReduceMin` lose NaN; `check` says so (ML505)", WRONG),
)  # fmt: skip
"""Every known gap; within a group, in the order in which the rules run."""
