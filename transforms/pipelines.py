"""The chain, top to bottom: the order is what you read."""

from __future__ import annotations

from transforms.common.abs_to_maximum import AbsToMaximum
from transforms.common.constants_reduce import ConstantsReduce
from transforms.common.gather_to_squeeze import GatherToSqueeze
from transforms.common.nop_elimination import NopElimination
from transforms.common.reshape_to_squeeze import ReshapeToSqueeze
from transforms.common.shared_op_optimization import SharedOpOptimization
from transforms.constant_folding import ConstantFolding
from transforms.downgrade.downgrade import Downgrade
from transforms.front.bidirectional_broadcast_to_numpy import BidirectionalBroadcastToNumpy
from transforms.front.break_state_symbols import BreakStateSymbols
from transforms.front.broadcast_transition import BroadcastTransition
from transforms.front.concatenate_along_first_axis import ConcatenateAlongFirstAxis
from transforms.front.concatenate_appends import ConcatenateAppends
from transforms.front.copy_if_outputs import CopyIfOutputs
from transforms.front.copy_loop_outputs import CopyLoopOutputs
from transforms.front.eliminate_empty_loops import EliminateEmptyLoops
from transforms.front.eliminate_invariant_outputs import EliminateInvariantOutputs
from transforms.front.eliminate_loop_inputs_outputs import EliminateLoopInputsOutputs
from transforms.front.eliminate_unreachable_bodies import EliminateUnreachableBodies
from transforms.front.eliminate_unread_slices import EliminateUnreadSlices
from transforms.front.eliminate_unused_ports import EliminateUnusedPorts
from transforms.front.empty_concat_to_broadcast import EmptyConcatToBroadcast
from transforms.front.fuse_recurrent_cells import FuseRecurrentCells
from transforms.front.guard_trip_counts import GuardTripCounts
from transforms.front.guard_zero_trips import GuardZeroTrips
from transforms.front.hoist_invariants import HoistInvariants
from transforms.front.identity_to_logical_or import IdentityToLogicalOr
from transforms.front.insert_static_shapes import InsertStaticShapes
from transforms.front.isolate_parameters import IsolateParameters
from transforms.front.loop_to_ti import LoopToTI
from transforms.front.lower_optionals import LowerOptionals
from transforms.front.make_state_shapes_dynamic import MakeStateShapesDynamic
from transforms.front.make_trip_counts_dynamic import MakeTripCountsDynamic
from transforms.front.pack_sequences import PackSequences
from transforms.front.port_renumbering import PortRenumbering
from transforms.front.prevent_loop_folding import PreventLoopFolding
from transforms.front.push_constant_to_subgraph import PushConstantToSubgraph
from transforms.front.remove_arithmetic_bounds import RemoveArithmeticBounds
from transforms.front.remove_result_bounds import RemoveResultBounds
from transforms.front.remove_slice_bounds import RemoveSliceBounds
from transforms.front.replace_sequences_by_elements import ReplaceSequencesByElements
from transforms.front.reshape_returned_inputs import ReshapeReturnedInputs
from transforms.front.scan_lowering import ScanLowering
from transforms.front.stack_sequences import StackSequences
from transforms.front.transpose_to_squeeze_unsqueeze import TransposeToSqueezeUnsqueeze
from transforms.front.unroll_loops import UnrollLoops
from transforms.front.unsqueeze_to_constant_rank import UnsqueezeToConstantRank
from transforms.front.while_loop_to_counted_loop import WhileLoopToCountedLoop
from transforms.function_pass import FunctionPass

COMMON: tuple[type[FunctionPass], ...] = (
    NopElimination,  # before whatever puts such a node in on purpose: guards, isolation
    ReshapeToSqueeze,  # of the Reshapes that are left
    Downgrade,  # nodes at the lowest opset that has them; known pads make Pad-12 a Pad-1
    ConstantsReduce,  # what reads equal constants may be equal itself
    SharedOpOptimization,  # before the passes that look for memory that several nodes read
)
"""Makes a graph smaller and plainer; what it computes stays."""

FRONT: tuple[type[FunctionPass], ...] = (
    ConstantFolding,  # trip counts, conditions and lengths that are known must be seen as such by all below
    UnrollLoops,  # where it is asked for; what its copies have in common is merged below
    EliminateEmptyLoops,  # a list that grows in such a loop alone stays as it is
    EliminateLoopInputsOutputs,  # and so it is a capture of the loops around it
    EliminateUnreachableBodies,  # what reads an element of a list that turns out to be empty
    LowerOptionals,  # what may be absent is a list of one element or none
    ReplaceSequencesByElements,  # before the states of loops are looked at
    EliminateUnreachableBodies,  # lengths may be known now, and with them conditions
    ConcatenateAppends,  # lists that a loop only appends to, before they become states that grow
    EliminateUnreachableBodies,
    StackSequences,  # lists of one shape, or ragged along one axis
    EliminateUnreachableBodies,
    PackSequences,  # and all that are left
    GatherToSqueeze,  # the runtime loses a dimension there
    *COMMON,  # before the states and ports of loops are looked at: an idle node there hides what they are
    InsertStaticShapes,  # what is of known shape to the passes below is so to the runtime as well
    EliminateLoopInputsOutputs,  # a state that never changes is a capture
    EliminateInvariantOutputs,  # and what it ends as is known outside
    WhileLoopToCountedLoop,  # while loops whose end is known when they begin; their counters may go unread
    EliminateUnusedPorts,  # what nobody reads is neither carried nor concatenated
    EliminateEmptyLoops,  # a loop that provably never runs is its initial values; the runtime would divide by zero
    HoistInvariants,  # what is the same in every iteration; a loop may slice what was made in its body before
    LoopToTI,  # counted loops over slices
    ScanLowering,  # Scan -> TensorIterator-1 where its length cannot be 0, else Loop-5
    FuseRecurrentCells,  # cells written out over slices, whatever the loop was
    ConcatenateAlongFirstAxis,  # behind a dimension of 0 the runtime divides by zero
    PushConstantToSubgraph,  # constants go into bodies, never through ports
    GuardTripCounts,  # a negative trip count means none in ONNX, endless in Loop-5
    GuardZeroTrips,  # concatenated outputs are stale, unread states lost, when a loop does not run
    RemoveResultBounds,  # the final value of a loop that does not run is its initial one, whatever the body's bounds
    MakeTripCountsDynamic,  # the runtime keeps the first trip count of an inner loop, whatever grows around it
    EliminateUnusedPorts,  # again: guards and lowering leave dead ends
    EliminateUnreadSlices,  # without a slice to read the runtime runs the body once
    EliminateUnusedPorts,  # what an unread slice was cut from
    BreakStateSymbols,  # what else has the first size of a growing state would be read off the state
    RemoveSliceBounds,  # and a piece of bounded size for the whole that it was cut from
    RemoveArithmeticBounds,  # remainders of bounded sizes would be taken for constants
    CopyLoopOutputs,  # what a loop returns may lose its memory to a later node
    CopyIfOutputs,  # what an If returns loses its memory to a later node
    MakeStateShapesDynamic,  # a state whose final value nobody reads would keep its first shape
    PreventLoopFolding,  # nothing but constants: the runtime would try to compute it while it reads
    ReshapeReturnedInputs,  # an input returned as it is comes out as freed memory
    IdentityToLogicalOr,  # the runtime removes them, and takes another output of the node
    UnsqueezeToConstantRank,  # the runtime forgets dimensions that a constant adds
    BidirectionalBroadcastToNumpy,  # the runtime lets a size of 0 grow to 1
    BroadcastTransition,  # and where it meets 1 in an operation
    TransposeToSqueezeUnsqueeze,  # the runtime makes a Reshape of it, which misreads a size of 0
    EmptyConcatToBroadcast,  # the runtime leaves out what has no elements, whatever the axis
    ConstantsReduce,  # again, with the next: the runtime merges equal nodes itself, after AbsToMaximum has looked
    SharedOpOptimization,
    AbsToMaximum,  # the runtime overwrites what others still read
    PortRenumbering,  # the canonical order of ports
    IsolateParameters,  # last: no later pass may undo it
)
"""Makes a graph as translated one that the runtime computes rightly."""

PLACES: dict[str, str] = {
    "start": FRONT[0].__name__,  # the graph as it was translated: Loop, Scan and If as ONNX has them
    "lowered": GuardTripCounts.__name__,  # Loop, TensorIterator and If as they will be written, the guards to come
    "end": PortRenumbering.__name__,  # everything is done but what no later pass may undo
}
"""Where passes of extensions can go without naming a pass of ours: place -> the pass right behind it."""


def default_pipeline(unroll: int = 0) -> list[FunctionPass]:
    """The passes of a plain conversion, fresh instances. Loops of up to `unroll` iterations are written out."""
    return [UnrollLoops(unroll) if each is UnrollLoops else each() for each in FRONT]
