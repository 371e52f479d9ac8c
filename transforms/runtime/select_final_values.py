"""Final values of loops that did not run."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import is_static, least, low
from mo_loop.graph.types import boolean, string
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Final, Loop, Merged
from transforms.function_pass import FunctionPass
from transforms.replace import move_readers
from transforms.runtime.barriers import behind, iterations
from transforms.runtime.harmless import is_harmless
from transforms.runtime.zero_trips import are_equal, chosen, final_value, has_run, is_selection


class SelectFinalValues(FunctionPass):
    """last = Loop(M, C, initial)  ->  M != 0 and C ? last : initial

    Before 2026.4 the runtime reads a final value from the Result of the body even if the body has not run: it is that
    of an earlier inference, or has no elements. For equal static shapes a Select gives the initial value. For equal
    shapes that are dynamic it does so if the loop always runs: where the body can do no harm, the trip count becomes 1
    instead of 0. For other shapes a slice of the final and one of the initial value are joined; one of them is empty.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Loop, self._select)

    def _select(self, node: Loop) -> bool:
        if low(iterations(node)) > 0:
            return self.refuse(node, "it runs at least once")
        found = _unselected(node)
        if not found:
            return self.refuse(node, "no final value of a state is read")
        ran = has_run(node)
        keeps_shapes = _keeps_dynamic_shapes(node, found)
        if keeps_shapes:
            _run_once(node, ran)
        for output, initial in found:
            readers = output.uses
            select = chosen if keeps_shapes else final_value
            move_readers(output, select(output, initial, ran), readers)
        return self.accept(node)


def _unselected(node: Loop) -> list[tuple[Value, Value]]:
    """The final values that are wrong after zero iterations, each with its initial value."""
    # GuardZeroTrips handles the states that the body does not read.
    states = [(entry, value) for entry, value in node.fed if isinstance(entry, Merged)]
    initial = {entry.result: value for entry, value in states if entry.parameter.output.is_used}
    pairs = [
        (output, initial[entry.result])
        for entry, output in zip(node.output_map, node.outputs, strict=True)
        if isinstance(entry, Final) and entry.result in initial
    ]
    return [
        (output, value)
        for output, value in pairs
        if not are_equal(output, value) and not all(is_selection(use.node, node) for use in output.uses)
    ]


def _keeps_dynamic_shapes(node: Loop, finals: list[tuple[Value, Value]]) -> bool:
    """Whether `finals` are all outputs that are read, have the shapes of the initial values, dynamic ones among them,
    and the body may run once more."""
    if {output for output in node.outputs if output.is_used} != {output for output, _ in finals}:
        return False
    if any(last.shape != initial.shape or last.shape is None or last.dtype is string for last, initial in finals):
        return False
    return not all(is_static(last.shape) for last, _ in finals) and is_harmless(node.body)


def _run_once(node: Loop, ran: Value) -> None:
    """The loop runs once where it would not run."""
    trip, go = node.inputs[:2]
    assert trip is not None and go is not None
    trip = behind(trip)
    known = trip.type.known
    if go.type.integers == (1,) and known is not None and least(known.reshape(-1)[0]) >= 0:
        once = ops.Maximum(trip, 1).output
    else:
        once = ops.Select(ran, trip, Constant(1, graph=node.graph, dtype=trip.dtype)).output
    node.starts = True
    node.graph.set_input(node, 0, once)
    if go.type.integers != (1,):
        node.graph.set_input(node, 1, Constant(True, graph=node.graph, dtype=boolean).output)
