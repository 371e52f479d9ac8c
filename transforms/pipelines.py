"""The chain, top to bottom: the order is what you read."""

from __future__ import annotations

from transforms.common.abs_of_concat import AbsOfConcat
from transforms.common.common_subexpressions import CommonSubexpressions
from transforms.common.eliminate_no_ops import EliminateNoOps
from transforms.common.gather_of_one import GatherOfOne
from transforms.common.reshape_to_squeeze import ReshapeToSqueeze
from transforms.common.shared_constants import SharedConstants
from transforms.constant_folding import ConstantFolding
from transforms.downgrade.downgrade import Downgrade
from transforms.front.bind_constants import BindConstants
from transforms.front.boolean_copies import BooleanCopies
from transforms.front.broadcast_behind import BroadcastBehind
from transforms.front.broadcast_of_nothing import BroadcastOfNothing
from transforms.front.captured_results import CapturedResults
from transforms.front.collect_appends import CollectAppends
from transforms.front.concat_of_nothing import ConcatOfNothing
from transforms.front.concatenate_first import ConcatenateFirst
from transforms.front.constant_loops import ConstantLoops
from transforms.front.count_while_loops import CountWhileLoops
from transforms.front.dissolve_sequences import DissolveSequences
from transforms.front.empty_loops import EmptyLoops
from transforms.front.forget_bounds import ForgetBounds
from transforms.front.forget_sizes import ForgetSizes
from transforms.front.fuse_recurrent_cells import FuseRecurrentCells
from transforms.front.guard_trip_counts import GuardTripCounts
from transforms.front.guard_zero_trips import GuardZeroTrips
from transforms.front.hide_sizes import HideSizes
from transforms.front.hide_trip_counts import HideTripCounts
from transforms.front.hoist_invariants import HoistInvariants
from transforms.front.invariant_states import InvariantStates
from transforms.front.isolate_parameters import IsolateParameters
from transforms.front.loop_to_ti import LoopToTI
from transforms.front.loosen_results import LoosenResults
from transforms.front.lower_optionals import LowerOptionals
from transforms.front.pack_sequences import PackSequences
from transforms.front.port_renumbering import PortRenumbering
from transforms.front.returned_inputs import ReturnedInputs
from transforms.front.scan_lowering import ScanLowering
from transforms.front.settle_branches import SettleBranches
from transforms.front.settle_loops import SettleLoops
from transforms.front.stack_sequences import StackSequences
from transforms.front.tell_sizes import TellSizes
from transforms.front.transpose_of_ones import TransposeOfOnes
from transforms.front.unreachable_bodies import UnreachableBodies
from transforms.front.unread_slices import UnreadSlices
from transforms.front.unroll_loops import UnrollLoops
from transforms.front.unused_ports import UnusedPorts
from transforms.front.wide_constants import WideConstants
from transforms.front.widen_states import WidenStates
from transforms.function_pass import FunctionPass

COMMON: tuple[type[FunctionPass], ...] = (
    EliminateNoOps,  # before whatever puts such a node in on purpose: guards, isolation
    ReshapeToSqueeze,  # of the Reshapes that are left
    Downgrade,  # nodes at the lowest opset that has them; known pads make Pad-12 a Pad-1
    SharedConstants,  # what reads equal constants may be equal itself
    CommonSubexpressions,  # before the passes that look for memory that several nodes read
)
"""Makes a graph smaller and plainer; what it computes stays."""

FRONT: tuple[type[FunctionPass], ...] = (
    ConstantFolding,  # trip counts, conditions and lengths that are known must be seen as such by all below
    UnrollLoops,  # where it is asked for; what its copies have in common is merged below
    EmptyLoops,  # a list that grows in such a loop alone stays as it is
    InvariantStates,  # and so it is a capture of the loops around it
    UnreachableBodies,  # what reads an element of a list that turns out to be empty
    LowerOptionals,  # what may be absent is a list of one element or none
    DissolveSequences,  # lists whose elements are known one by one, before any loop is looked at for its states
    UnreachableBodies,  # lengths may be known now, and with them conditions
    CollectAppends,  # lists that a loop only appends to, before they become states that grow
    UnreachableBodies,
    StackSequences,  # lists of one shape, or ragged along one axis
    UnreachableBodies,
    PackSequences,  # and all that are left
    GatherOfOne,  # the runtime loses a dimension there
    *COMMON,  # before the states and ports of loops are looked at: an idle node there hides what they are
    TellSizes,  # what is of known shape to the passes below is so to the runtime as well
    InvariantStates,  # a state that never changes is a capture
    CapturedResults,  # and what it ends as is known outside
    CountWhileLoops,  # while loops whose end is known when they begin; their counters may go unread
    UnusedPorts,  # what nobody reads is neither carried nor concatenated
    EmptyLoops,  # a loop that provably never runs is its initial values; the runtime would divide by zero
    HoistInvariants,  # what is the same in every iteration; a loop may slice what was made in its body before
    LoopToTI,  # counted loops over slices
    ScanLowering,  # Scan -> TensorIterator-1 where its length cannot be 0, else Loop-5
    FuseRecurrentCells,  # cells written out over slices, whatever the loop was
    ConcatenateFirst,  # behind a dimension of 0 the runtime divides by zero
    BindConstants,  # constants go into bodies, never through ports
    GuardTripCounts,  # a negative trip count means none in ONNX, endless in Loop-5
    GuardZeroTrips,  # concatenated outputs are stale, unread states lost, when a loop does not run
    LoosenResults,  # the final value of a loop that does not run is its initial one, whatever the body's bounds
    HideTripCounts,  # the runtime keeps the first trip count of an inner loop, whatever grows around it
    UnusedPorts,  # again: guards and lowering leave dead ends
    UnreadSlices,  # without a slice to read the runtime runs the body once
    UnusedPorts,  # what an unread slice was cut from
    ForgetSizes,  # what else has the first size of a growing state would be read off the state
    ForgetBounds,  # and a piece of bounded size for the whole that it was cut from
    HideSizes,  # remainders of bounded sizes would be taken for constants
    SettleLoops,  # what a loop returns may lose its memory to a later node
    SettleBranches,  # what an If returns loses its memory to a later node
    WidenStates,  # a state whose final value nobody reads would keep its first shape
    ConstantLoops,  # nothing but constants: the runtime would try to compute it while it reads
    ReturnedInputs,  # an input returned as it is comes out as freed memory
    BooleanCopies,  # the runtime removes them, and takes another output of the node
    WideConstants,  # the runtime forgets dimensions that a constant adds
    BroadcastOfNothing,  # the runtime lets a size of 0 grow to 1
    BroadcastBehind,  # and where it meets 1 in an operation
    TransposeOfOnes,  # the runtime makes a Reshape of it, which misreads a size of 0
    ConcatOfNothing,  # the runtime leaves out what has no elements, whatever the axis
    SharedConstants,  # again, with the next: the runtime merges equal nodes itself, after AbsOfConcat has looked
    CommonSubexpressions,
    AbsOfConcat,  # the runtime overwrites what others still read
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
