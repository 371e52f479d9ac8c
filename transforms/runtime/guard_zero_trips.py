"""Loops that may run zero times."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.dimension import high, low
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Loop
from mo_loop.ops.port_map import Concatenated, Final, Merged
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import invariant_behind, keep_inputs
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime.barriers import iterations
from mo_loop.transforms.runtime.zero_trips import Ran, are_equal, cut, final_value, is_selection


class GuardZeroTrips(FunctionPass):
    """Loop that may run zero times  ->  the same Loop, with outputs corrected for zero iterations

    Let ran = (M != 0) and C. A concatenated output becomes Slice(output, 0, Select(ran, end, 0)), along every dimension
    of unknown size, as in ONNX Runtime; a Reshape gives the empty tensor the dimensions that the model declares, or
    that the runtime may not know. If the trip count had known bounds, the runtime would assume that the slice is as
    long as the whole (see RemoveSliceBounds), so its bounds are removed. The final value of a state that the body does
    not read is selected outside, and the state is no longer carried.
    """

    instead = "`Slice` to length 0"
    avoids = (
        Gap(
            "zero-trips-concatenated", "after zero iterations a concatenated output has values of an earlier inference",
        ),
        Gap(
            "zero-trips-unread-state",
            "after zero iterations the final value of a state that the body does not read is not the initial one",
            "`Select` or `If` outside",
        ),
        Gap(
            "zero-trips-bounded-count",
            "after zero iterations of a loop whose trip count has bounds, a `Slice` to length 0 is taken for the whole",
            "ends and trip counts after `ReduceSum`, where the inference of bounds stops",
        ),
    )  # fmt: skip

    kinds = (Loop,)

    def run_on_graph(self, graph: Graph) -> bool:
        is_swept = graph.sweep() > 0  # readers without readers do not count
        return super().run_on_graph(graph) or is_swept

    def rewrite(self, node: Loop) -> bool:
        if low(iterations(node)) > 0:
            return self.refuse(node, "it runs at least once")
        initial = {entry.result: (entry.parameter, value) for entry, value in node.fed if isinstance(entry, Merged)}
        ran: Ran | None = None
        changed = False
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            readers = output.uses
            if not readers or all(is_selection(reader, node) for reader, _ in readers):
                continue
            if isinstance(entry, Concatenated):
                ran = ran or Ran(node)
                corrected = cut(output, entry, ran, output.shape or ())
                _remove_trip_count_bounds(node)
            elif isinstance(entry, Final) and entry.result in initial:
                parameter, value = initial[entry.result]
                if parameter.output.is_used:
                    continue
                corrected = invariant_behind(node, entry) or output
                if are_equal(corrected, value):
                    corrected = value
                else:
                    ran = ran or Ran(node)
                    corrected = final_value(corrected, value, ran)
            else:
                continue
            move_readers(output, corrected, readers)
            changed = True
        # States that are selected outside need no input, and the runtime fails on unread Parameters.
        keep = [
            number
            for number, entry in enumerate(node.input_map)
            if not isinstance(entry, Merged) or entry.parameter.output.is_used
        ]
        if len(keep) < len(node.input_map):
            keep_inputs(node, keep)
        return self.accept(node) if changed else self.refuse(node, "its outputs are right after zero iterations")


def _remove_trip_count_bounds(node: Loop) -> None:
    trip = node.operands[0]
    if not isinstance(trip.node, Constant | ops.Barrier) and high(iterations(node)) is not None:
        node.graph.set_input(node, 0, ops.Barrier(trip, hides="bounds").output)
