"""States that change their shape where the runtime assumes a constant one."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.ops.control import Iteration
from mo_loop.target import Gap
from transforms.function_pass import FunctionPass
from transforms.runtime.state_shapes import hide_initial_shapes


class MakeStateShapesDynamic(FunctionPass):
    """initial value  ->  Barrier(initial value, bounds of its sizes)

    The runtime infers only from the outputs of a loop that a state changes its shape. If the final value is not read,
    the state keeps the shape, or the bounds, of its initial value, and the loop ends without a message when the next
    value does not fit. The dimensions of the initial value that change become dynamic.
    """

    instead = "`Tile` of the initial value by a number known only at run time"
    avoids = (
        Gap("unread-final-shape", "a state that changes its shape keeps its first shape if its final value is unused"),
    )

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Iteration, self._hide)

    def _hide(self, node: Iteration) -> bool:
        if hide_initial_shapes(node, read=False):
            return self.accept(node)
        return self.refuse(node, "each state that changes its shape is read outside, or is dynamic already")
