"""Final values of loops that did not run."""

from __future__ import annotations

from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import low
from mo_loop.ops.control import Final, Loop, Merged
from transforms.function_pass import FunctionPass
from transforms.replace import move_readers
from transforms.runtime.barriers import iterations
from transforms.runtime.zero_trips import are_equal, final_value, has_run, is_selection


class SelectFinalValues(FunctionPass):
    """last = Loop(M, C, initial)  ->  M != 0 and C ? last : initial

    Before 2026.4 the runtime reads a final value from the Result of the body even if the body has not run: it is that
    of an earlier inference, or has no elements. For equal static shapes a Select gives the initial value. For other
    ones a slice of the final and one of the initial value are joined; one of them is empty.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Loop, self._select)

    def _select(self, node: Loop) -> bool:
        if low(iterations(node)) > 0:
            return self.refuse(node, "it runs at least once")
        states = [(entry, value) for entry, value in node.fed if isinstance(entry, Merged)]
        # GuardZeroTrips handles the states that the body does not read.
        initial = {entry.result: value for entry, value in states if entry.parameter.output.is_used}
        ran: Value | None = None
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            readers = output.uses
            value = initial.get(entry.result) if isinstance(entry, Final) else None
            if value is None or are_equal(output, value) or all(is_selection(reader, node) for reader, _ in readers):
                continue
            ran = ran or has_run(node)
            move_readers(output, final_value(output, value, ran), readers)
        return self.accept(node) if ran is not None else self.refuse(node, "no final value of a state is read")

