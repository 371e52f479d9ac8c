"""The chain, top to bottom: the order is what you read."""

from __future__ import annotations

from transforms.base import FunctionPass
from transforms.common.abs_of_concat import AbsOfConcat
from transforms.common.gather_of_one import GatherOfOne
from transforms.constant_folding import ConstantFolding
from transforms.front.bind_constants import BindConstants
from transforms.front.captured_results import CapturedResults
from transforms.front.concatenate_first import ConcatenateFirst
from transforms.front.constant_loops import ConstantLoops
from transforms.front.empty_loops import EmptyLoops
from transforms.front.guard_trip_counts import GuardTripCounts
from transforms.front.guard_zero_trips import GuardZeroTrips
from transforms.front.invariant_states import InvariantStates
from transforms.front.isolate_parameters import IsolateParameters
from transforms.front.loop_to_ti import LoopToTI
from transforms.front.loosen_results import LoosenResults
from transforms.front.port_renumbering import PortRenumbering
from transforms.front.returned_inputs import ReturnedInputs
from transforms.front.scan_lowering import ScanLowering
from transforms.front.settle_branches import SettleBranches
from transforms.front.unused_ports import UnusedPorts
from transforms.front.widen_states import WidenStates

FRONT: tuple[type[FunctionPass], ...] = (
    ConstantFolding,  # trip counts, conditions and lengths that are known must be seen as such by all below
    GatherOfOne,  # the runtime loses a dimension there
    InvariantStates,  # a state that never changes is a capture
    CapturedResults,  # and what it ends as is known outside
    UnusedPorts,  # what nobody reads is neither carried nor concatenated
    EmptyLoops,  # a loop that provably never runs is its initial values; the runtime would divide by zero
    LoopToTI,  # counted loops over slices
    ScanLowering,  # Scan -> TensorIterator-1 where its length cannot be 0, else Loop-5
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
    AbsOfConcat,  # the runtime overwrites what others still read
    PortRenumbering,  # the canonical order of ports
    IsolateParameters,  # last: no later pass may undo it
)
"""Makes a graph as translated one that the runtime computes rightly."""


def default_pipeline() -> list[FunctionPass]:
    """The passes of a plain conversion, fresh instances."""
    return [each() for each in FRONT]
