"""The chain, top to bottom: the order is what you read."""

from __future__ import annotations

from transforms.base import FunctionPass
from transforms.common.abs_of_concat import AbsOfConcat
from transforms.common.common_subexpressions import CommonSubexpressions
from transforms.common.eliminate_no_ops import EliminateNoOps
from transforms.common.gather_of_one import GatherOfOne
from transforms.common.reshape_to_squeeze import ReshapeToSqueeze
from transforms.common.shared_constants import SharedConstants
from transforms.constant_folding import ConstantFolding
from transforms.downgrade.downgrade import Downgrade
from transforms.front.bind_constants import BindConstants
from transforms.front.captured_results import CapturedResults
from transforms.front.concat_of_nothing import ConcatOfNothing
from transforms.front.concatenate_first import ConcatenateFirst
from transforms.front.constant_loops import ConstantLoops
from transforms.front.empty_loops import EmptyLoops
from transforms.front.fuse_recurrent_cells import FuseRecurrentCells
from transforms.front.guard_trip_counts import GuardTripCounts
from transforms.front.guard_zero_trips import GuardZeroTrips
from transforms.front.hoist_invariants import HoistInvariants
from transforms.front.invariant_states import InvariantStates
from transforms.front.isolate_parameters import IsolateParameters
from transforms.front.loop_to_ti import LoopToTI
from transforms.front.loosen_results import LoosenResults
from transforms.front.port_renumbering import PortRenumbering
from transforms.front.returned_inputs import ReturnedInputs
from transforms.front.scan_lowering import ScanLowering
from transforms.front.settle_branches import SettleBranches
from transforms.front.unroll_loops import UnrollLoops
from transforms.front.unused_ports import UnusedPorts
from transforms.front.wide_constants import WideConstants
from transforms.front.widen_states import WidenStates

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
    GatherOfOne,  # the runtime loses a dimension there
    *COMMON,  # before the states and ports of loops are looked at: an idle node there hides what they are
    InvariantStates,  # a state that never changes is a capture
    CapturedResults,  # and what it ends as is known outside
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
    UnusedPorts,  # again: guards and lowering leave dead ends
    SettleBranches,  # what an If returns loses its memory to a later node
    WidenStates,  # a state whose final value nobody reads would keep its first shape
    ConstantLoops,  # nothing but constants: the runtime would try to compute it while it reads
    ReturnedInputs,  # an input returned as it is comes out as freed memory
    WideConstants,  # the runtime forgets dimensions that a constant adds
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
