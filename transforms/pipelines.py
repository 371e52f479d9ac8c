"""The passes of a conversion in the order in which they run."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from mo_loop.errors import InternalError
from mo_loop.target import Gap, Target
from mo_loop.transforms.common.batch_norms import FuseBatchNorms
from mo_loop.transforms.common.nop_elimination import NopElimination
from mo_loop.transforms.common.simplification import (
    ConstantFolding,
    ConstantFoldingAfterLoops,
    ConstantsReduce,
    ReshapeToSqueeze,
    SharedOpOptimization,
)
from mo_loop.transforms.common.transposed_weights import ShareTransposedConstants, TransposeMatMul, TransposeWeights
from mo_loop.transforms.downgrade import Downgrade
from mo_loop.transforms.front.appends import AppendBehindIf, ConcatenateAppends, JoinAppends
from mo_loop.transforms.front.loop_elimination import (
    EliminateEmptyLoops,
    EliminateInvariantOutputs,
    EliminateLoopInputsOutputs,
    EliminateUnreachableBodies,
    EliminateUnusedPorts,
    PortRenumbering,
    UnrollLoops,
)
from mo_loop.transforms.front.loop_to_ti import FuseRecurrentCells, LoopToTI, ScanLowering
from mo_loop.transforms.front.lower_sequences import (
    LowerOptionals,
    PackSequences,
    ReplaceSequencesByElements,
    StackSequences,
)
from mo_loop.transforms.front.while_loop_to_counted_loop import HoistInvariants, WhileLoopToCountedLoop
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.loops.specialize_loops import PreferAnySizes, SpecializeLoops
from mo_loop.transforms.loops.split_loops import ComputeBeforeLoops, ComputeBehindLoops, VectorizeLoops
from mo_loop.transforms.loops.steps_per_iteration import StepsPerIteration
from mo_loop.transforms.loops.written_states import ConcatenateGrowingStates, WriteBehindLoops
from mo_loop.transforms.low_precision.compress_weights import CompressWeights, PushWeightsToSubgraph
from mo_loop.transforms.low_precision.integer_products import (
    IntegerMatMulToFakeQuantize,
    IntegerProductToFloat,
    KeepIntegersPrecise,
)
from mo_loop.transforms.low_precision.lower_quantization import (
    DequantizeBeforeMovement,
    LowerQuantization,
    QuantizeToFakeQuantize,
)
from mo_loop.transforms.manager import Step, StepObserver
from mo_loop.transforms.runtime.branches import CopySlicedBranches, NameBranchResults, WidenBranchInputs
from mo_loop.transforms.runtime.computed_constants import ComputeConstantStates, CopyComputedConstants
from mo_loop.transforms.runtime.device_loops import (
    AppendPieces,
    CutFinalValues,
    FollowIterations,
    ReadSizesOutside,
    ReadStatesTwice,
    SeparateDynamicValues,
    SeparateFinalValues,
    SizeSlicedInputs,
    WidenEmptyStates,
)
from mo_loop.transforms.runtime.empty_dimensions import (
    AddLeadingDimension,
    ConcatenateAlongFirstAxis,
    PreserveEmptyBroadcasts,
    SelectReductionOfNothing,
)
from mo_loop.transforms.runtime.hidden_sizes import (
    BreakStateSymbols,
    ComputeCopiedConditions,
    MakeAssignedShapesDynamic,
    MakeFinalShapesDynamic,
    MakeStateShapesDynamic,
    MakeTripCountsDynamic,
    RemoveArithmeticBounds,
    RemoveResultBounds,
    RemoveSliceBounds,
)
from mo_loop.transforms.runtime.initial_values import CopyInitialConstants, SeparateReadValues, ShareInitialValues
from mo_loop.transforms.runtime.known_shapes import (
    DistinguishBranchShapes,
    DistinguishElements,
    DistinguishStaticShapes,
    InsertKnownSizes,
    InsertStaticShapes,
    SelectElements,
)
from mo_loop.transforms.runtime.local import LocalRules
from mo_loop.transforms.runtime.loop_inputs import (
    EliminateUnreadSlices,
    PreventLoopFolding,
    PushConstantToSubgraph,
    ReverseBehindLoops,
)
from mo_loop.transforms.runtime.lower_barriers import LowerBarriers
from mo_loop.transforms.runtime.memory_copies import (
    CopyAssignedInputs,
    CopyControlOutputs,
    CopyReturnedOutputs,
    IsolateParameters,
    ReshapeReturnedInputs,
)
from mo_loop.transforms.runtime.trip_guards import (
    BranchUnlessRun,
    GuardTripCounts,
    GuardZeroTrips,
    RunOnce,
    SelectFinalValues,
)
from mo_loop.transforms.runtime.weight_forms import (
    DivideStackedWeights,
    SeparateWeightOrders,
    SpreadScales,
    UnsignedWeights,
)
from mo_loop.transforms.states.low_latency2 import LowLatency2, SetSequenceLength
from mo_loop.transforms.states.make_stateful import FuseStatefulAttention, MakeStateful
from mo_loop.transforms.write_sizes import WriteSizes

COMMON: tuple[type[FunctionPass], ...] = (
    NopElimination,  # before the guards and isolations below insert such nodes on purpose
    ReshapeToSqueeze,  # the Reshapes that remain
    Downgrade,  # after constants are folded: Pad-12 with known widths becomes Pad-1
    ConstantsReduce,  # makes the inputs of equal nodes equal for the next pass
    SharedOpOptimization,  # before the passes that look for memory that several nodes read
)
"""Makes a graph smaller and simpler; its results stay the same."""

LOOPS: tuple[type[FunctionPass], ...] = (
    ConcatenateGrowingStates,  # the passes below do not see such a state
    WriteBehindLoops,  # nor one that is a buffer
    VectorizeLoops,  # loops whose iterations do not depend on each other are gone
    ComputeBehindLoops,  # before the next pass: what an output alone needs is no longer in the loop
    ComputeBeforeLoops,
    StepsPerIteration,  # the rest of the other loops
)
"""Passes that take work out of loops; only speed depends on them."""

SPECIALIZED: tuple[type[FunctionPass], ...] = (
    ConstantFolding, EliminateEmptyLoops, EliminateUnreachableBodies, EliminateLoopInputsOutputs,
    WhileLoopToCountedLoop, EliminateUnusedPorts, LoopToTI, FuseRecurrentCells,
)
"""Passes that run again in the branches that SpecializeLoops made, where sizes and numbers of steps are known."""

FRONT: tuple[type[FunctionPass], ...] = (
    SetSequenceLength,  # only for LowLatency2; all others see the known length
    TransposeMatMul,  # before the next pass moves the elements of weights
    ConstantFolding,  # all passes below need the trip counts, conditions and lengths that are known
    UnrollLoops,  # only with a limit; SharedOpOptimization below merges what the copies have in common
    EliminateEmptyLoops,  # a sequence that only such a loop appends to does not change
    EliminateLoopInputsOutputs,  # and becomes an invariant input of the outer loops
    EliminateUnreachableBodies,  # bodies that read an element of a sequence that is always empty
    LowerOptionals,  # an optional becomes a sequence of at most one element
    ReplaceSequencesByElements,  # before any pass examines the states of loops
    EliminateUnreachableBodies,  # lengths may be known now, and with them conditions
    ConcatenateAppends,  # sequences that a loop only appends to, before they become states that grow
    JoinAppends,  # those of elements that differ along the axis along which they are concatenated
    EliminateUnreachableBodies,
    StackSequences,  # sequences of one shape, or that differ along one axis
    EliminateUnreachableBodies,
    PackSequences,  # all other sequences
    DequantizeBeforeMovement,
    QuantizeToFakeQuantize,
    IntegerMatMulToFakeQuantize,
    IntegerProductToFloat,  # those that the pass before leaves
    FuseBatchNorms,  # after the passes that fold and quantise weights
    PushWeightsToSubgraph,  # the weights of a matrix product are in its graph
    LowerQuantization,  # before the rules of the runtime, which see its nodes
    *COMMON,  # before any pass examines states and ports of loops: nodes without effect would hide their form
    AppendBehindIf,  # sequences are tensors now
    EliminateLoopInputsOutputs,  # states that never change become invariant inputs
    EliminateInvariantOutputs,  # and their final values are the outer tensors
    WhileLoopToCountedLoop,  # before the next pass: nothing may read their counters then
    EliminateUnusedPorts,  # values that are not read are neither carried nor concatenated
    EliminateEmptyLoops,  # the runtime would divide by zero
    HoistInvariants,  # before LoopToTI: a tensor made in the body can be sliced once it is made outside
    LoopToTI,  # counted loops over slices
    ScanLowering,  # TensorIterator-1 if the length cannot be 0, else Loop-5
    FuseRecurrentCells,  # cells over slices, in a loop of any kind
    LowLatency2,  # loops over a sequence are one step now; before the guards, which loops of one step do not need
    MakeStateful,  # states of the caller are variables, as the rules below expect
    FuseStatefulAttention,  # after the passes that make caches of inputs
    SpecializeLoops,  # before the passes whose forms depend on sizes
    # All counted loops over slices have their last form, recurrent cells and states have their nodes. No NopElimination
    # after these: for no steps they insert Reshapes whose sizes the runtime does not have.
    *LOOPS,
    PreferAnySizes,  # where the forms for the declared sizes turn out to have loops too
    EliminateLoopInputsOutputs,  # also states that two steps in one iteration exchange and give back
    EliminateInvariantOutputs,  # of blocks of steps, which run at least once
    EliminateEmptyLoops,  # also those whose conditions are constants now: the runtime infers sizes of 0 for them
    EliminateUnusedPorts,  # of loops inside others, whose states no step reads then either
    ConstantFoldingAfterLoops,  # the runtime would divide by zero for slices without elements that these passes leave
    InsertKnownSizes,  # before the next pass: sizes of a Concat may follow from these
    InsertStaticShapes,  # also of what the passes of LOOPS make; the passes below and the runtime then know the same
    PushConstantToSubgraph,  # constants are in the bodies that read them
    GuardTripCounts,  # a negative trip count means 0 iterations in ONNX, no limit in Loop-5
    SelectFinalValues,  # the final value of a loop that did not run would be old contents
    ConcatenateAlongFirstAxis,  # the runtime divides by a dimension of 0 before the axis
    GuardZeroTrips,  # other outputs of a loop that did not run would be old contents
    RunOnce,  # after the passes that correct outputs for no iterations
    BranchUnlessRun,  # those that the pass before leaves
    FollowIterations,  # more iterations than before would write beyond the memory
    AppendPieces,  # of the loops that the pass before leaves
    WidenEmptyStates,  # also those that the pass before makes
    CutFinalValues,
    RemoveResultBounds,  # the initial value that such a loop returns may be outside the bounds of the Result
    ComputeCopiedConditions,
    MakeTripCountsDynamic,  # the runtime keeps the first trip count of an inner loop while a state grows
    EliminateUnusedPorts,  # guards and lowering leave unread ports
    EliminateUnreadSlices,  # without a slice the runtime executes the body once
    EliminateUnusedPorts,  # the tensors that the unread slices came from
    SizeSlicedInputs,
    BreakStateSymbols,  # the runtime would take the size of a state that grows for that of other tensors
    SelectElements,  # an If of a few numbers needs none of the next passes
    DistinguishBranchShapes,  # an output of If may be that of an earlier inference
    DistinguishStaticShapes,  # the outputs that the pass before leaves, of the same If
    DistinguishElements,
    RemoveSliceBounds,  # and the size of a slice for that of the whole, also of those that the pass before makes
    RemoveArithmeticBounds,  # and the remainder of a dimension for a constant
    MakeStateShapesDynamic,  # a state whose final value is not read would keep its initial shape
    MakeFinalShapesDynamic,  # so would others
    ShareInitialValues,  # before the next pass, which then has less to do
    SeparateReadValues,  # the runtime compiles no concatenation with a variable whose initial value is computed
    MakeAssignedShapesDynamic,  # the runtime copies no static tensor into a variable of dynamic shape
    CopyAssignedInputs,  # the runtime would give a variable the memory of the input that it becomes
    PreventLoopFolding,  # the runtime would evaluate loops of constants while it reads the model
    PreserveEmptyBroadcasts,  # in an element-wise operation a size of 0 would become 1
    AddLeadingDimension,  # the runtime would divide by a first dimension of 0
    DistinguishBranchShapes,  # once more, with the next passes: what hides sizes makes outputs of branches dynamic
    DistinguishStaticShapes,
    DistinguishElements,
    RemoveSliceBounds,
    ShareTransposedConstants,  # after the passes that fold and merge constants
    TransposeWeights,  # those that no constant holds in this form already
    SelectReductionOfNothing,  # before the pass that merges the sizes which several reductions read
    ReadSizesOutside,  # also those that the pass before reads
    ConstantsReduce,  # once more, with the next pass: the runtime merges equal nodes too, and LocalRules counts readers
    SharedOpOptimization,
    WidenBranchInputs,  # after the passes that make inputs and outputs of If
    LocalRules,  # forms of one node and its neighbours, after all that looks for the nodes that they change
    PreserveEmptyBroadcasts,  # once more: matrix products with one number are products of elements now
    ReverseBehindLoops,  # the runtime removes inputs whose numbers no node reads now, and refuses what they leave
    RemoveSliceBounds,  # what is reversed has an upper bound
    ReshapeReturnedInputs,  # the runtime would return freed memory
    UnsignedWeights,
    DivideStackedWeights,
    SpreadScales,  # the weights are where CompressWeights finds them
    SeparateWeightOrders,  # after the passes that fold, merge and transpose constants
    ReadStatesTwice,  # before the passes that copy what a later node may overwrite: its maximum takes memory
    SeparateFinalValues,  # after the passes that read final values, before those that copy what several Results read
    SeparateDynamicValues,
    CopyReturnedOutputs,  # before the next pass: these copies take memory
    CopyControlOutputs,  # their memory may go to a later node too early
    NameBranchResults,  # the names of layers depend on those of others only where these are equal
    CopySlicedBranches,
    ComputeConstantStates,  # no later pass moves constants into bodies
    CopyInitialConstants,  # no later pass merges constants
    CopyComputedConstants,  # the runtime would overwrite what it computes once
    IsolateParameters,  # after the passes that make or remove readers of Parameters
    CompressWeights,  # no pass folds, moves or merges them
    LowerBarriers,  # no pass can see through or remove a Barrier
    KeepIntegersPrecise,  # marks the nodes of the file
    WriteSizes,  # no pass decides by sizes after it
    PortRenumbering,  # the canonical order of ports
)
"""Turns a translated graph into one that the runtime executes correctly."""

RULES = tuple(dict.fromkeys(
    each for each in FRONT if each.__module__.startswith(f"{__package__}.runtime.") and each is not LowerBarriers
))
"""The passes that avoid errors of the runtime, in order."""

RELIED_ON = (PushConstantToSubgraph,)
"""Rules whose form other rules rely on: they read axes and sizes where the constants are."""

BY_SIZES = (
    AddLeadingDimension, AppendPieces, BranchUnlessRun, BreakStateSymbols, ConcatenateAlongFirstAxis,
    CutFinalValues, FollowIterations, GuardZeroTrips, InsertKnownSizes, InsertStaticShapes, ReadSizesOutside,
    ReadStatesTwice, RemoveResultBounds, RunOnce, SelectFinalValues, SelectReductionOfNothing, WidenEmptyStates,
)
"""Rules that decide by sizes. When they run again, Barriers hide sizes that the runtime did infer, such as those of
loops that surely run, and more are known where equal nodes have been merged."""

PLACES: dict[str, str] = {
    "start": TransposeMatMul.__name__,  # the translated graph: Loop, Scan and If as in ONNX
    "lowered": GuardTripCounts.__name__,  # Loop, TensorIterator and If of the file, before the guards
    "end": IsolateParameters.__name__,  # before the passes whose result no other pass may change
}
"""Places for the passes of extensions that need no name of a pass: place -> the next pass."""


def check_rules(target: Target | None = None) -> StepObserver:
    """An observer that runs all rules but BY_SIZES again before Barriers are lowered; InternalError if one changes the
    graph."""
    target = target or Target()

    def observer(step: Step) -> None:
        if not isinstance(step.each, IsolateParameters):
            return
        for scope in step.graph.scopes():
            scope.sweep()
        for rule in RULES:
            again = _made(rule, _not_needed(target))
            again.config.disable(*BY_SIZES)
            if rule not in BY_SIZES and is_needed(rule, target) and again.run(step.graph):
                raise InternalError(f"{rule.__name__} changes the graph again when all rules have run", code="ML411")

    return observer


STATES = (SetSequenceLength, LowLatency2, MakeStateful, FuseStatefulAttention)
"""Passes that change what a model computes: its states keep their values across inferences. Options turn them on."""

FAST_QUANTIZATION = (
    DequantizeBeforeMovement, QuantizeToFakeQuantize, IntegerMatMulToFakeQuantize, IntegerProductToFloat,
)
"""Passes after which a quantised tensor may differ by one step from that of ONNX."""


def default_pipeline(
    unroll: int = 0, target: Target | None = None, quantization: str = "fast", states: Sequence[FunctionPass] = (),
    exact_order: bool = False,
) -> list[FunctionPass]:
    """New instances of the passes of a conversion.

    Args:
        unroll: loops of at most so many iterations are unrolled.
        target: rules that no release of it needs are disabled by default.
        quantization: with "exact" the passes of `FAST_QUANTIZATION` are disabled by default; with "portable"
            `CompressWeights` keeps layers that saturate on some processors in f32.
        states: passes of `STATES` with their arguments; without them the pipeline has none.
        exact_order: loops add floating-point numbers in the order of their steps.
    """
    target = target or Target()
    has_steps = any(isinstance(each, LowLatency2) for each in states)
    weights = CompressWeights(portable=quantization == "portable")
    lowering = LowerQuantization(exact=quantization == "exact")
    loops = (ComputeBehindLoops(exact_order), ComputeBeforeLoops(exact_order), VectorizeLoops(exact_order))
    specialize = SpecializeLoops([each() for each in SPECIALIZED])
    chosen = (UnrollLoops(unroll, keeps_steps=has_steps), specialize, weights, lowering, *loops, *states)
    given: dict[type[FunctionPass], FunctionPass] = {type(each): each for each in chosen}
    not_needed = _not_needed(target)
    passes = [given.get(each) or _made(each, not_needed) for each in FRONT if each in given or each not in STATES]
    for each in passes if quantization == "exact" else ():
        if isinstance(each, FAST_QUANTIZATION):
            each.enabled_by_default = False
    return passes


def _made(cls: type[FunctionPass], not_needed: Mapping[type[FunctionPass], tuple[int, ...]]) -> FunctionPass:
    """A new instance of a pass; the rules `_not_needed` are disabled by default."""
    made = cls()
    if cls in not_needed:
        rules = (made, *made.passes)
        for place in not_needed[cls]:
            rules[place].enabled_by_default = False
    return made


@cache
def _not_needed(target: Target) -> dict[type[FunctionPass], tuple[int, ...]]:
    """Rule -> the places of those that no release of `target` needs: 0 is the rule, the next are those that it
    contains. Other rules are not in it."""
    rules = {cls: (cls, *map(type, cls().passes)) for cls in RULES}
    found = {cls: tuple(at for at, each in enumerate(rules[cls]) if not is_needed(each, target)) for cls in rules}
    return {cls: places for cls, places in found.items() if places}


def is_needed(rule: type[FunctionPass], target: Target) -> bool:
    """Whether a release of the target may have an error that `rule` avoids; True if it states none."""
    return rule in RELIED_ON or not rule.avoids or any(map(target.may_have, rule.avoids))


def avoided_gaps() -> Iterator[Gap]:
    """The errors of the runtime that the passes of a conversion avoid, in the order in which they run."""
    for cls in dict.fromkeys(type(each) for one in default_pipeline() for each in one.walk()):
        yield from cls.gaps()
