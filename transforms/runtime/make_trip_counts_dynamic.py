"""Trip counts of inner loops that the runtime infers once and keeps."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Use
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Loop
from mo_loop.ops.port_map import Concatenated
from mo_loop.target import Gap
from mo_loop.transforms.runtime.barriers import BarrierPass, HiddenPort


class MakeTripCountsDynamic(BarrierPass):
    """Loop(len(s)) with a concatenated output, in a loop that makes s grow  ->  Loop(Barrier(len(s), value))

    The runtime infers the types of an outer body under the initial shapes of the states, and again under wider ones.
    """

    instead = "trip count plus `min(i, 0)` of the outer loop"
    avoids = (Gap(
        "inner-trip-count",
        "an inner loop keeps the trip count that was inferred from the first shape of an outer state, and the "
        "length of its concatenated outputs",
    ),)  # fmt: skip

    kinds, hides = (Loop,), "value"

    def places(self, node: Loop) -> list[HiddenPort] | str:
        trip = node.operands[0]
        if node.graph.owner is None:
            return "it is not in a body"
        if isinstance(trip.node, Constant) or trip.type.integers is not None:
            return "its trip count is a constant"
        if not any(isinstance(entry, Concatenated) for entry in node.output_map):
            return "it has no concatenated output"
        if isinstance(trip.node, ops.Barrier) and trip.node.hides == "value":
            return "its trip count is dynamic already"
        return [(Use(node, 0), ())]
