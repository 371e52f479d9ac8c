"""States that change their shape, and whose final value is read."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.ops.control import Iteration
from mo_loop.target import Gap
from transforms.function_pass import FunctionPass
from transforms.runtime.state_shapes import hide_initial_shapes


class MakeFinalShapesDynamic(FunctionPass):
    """initial value  ->  Barrier(initial value, bounds of its sizes)

    Before 2026.3 the runtime does not infer from the final value either that a state changes its shape, if the Result
    of the body has no bounds, or bounds that include the initial size. The state keeps the size, or the bounds, of its
    initial value, and what does not fit is lost, or the inference fails.
    """

    instead = "`Tile` of the initial value by a number known only at run time"
    avoids = (
        Gap(
            "state-of-static-initial-shape",
            "a state whose next value has no known bounds keeps its first shape, and the memory for it, also if its "
            "final value is read: values are lost, old ones, or the inference fails", until="2026.2.1",
        ),
    )  # fmt: skip

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Iteration, self._hide)

    def _hide(self, node: Iteration) -> bool:
        if hide_initial_shapes(node, read=True):
            return self.accept(node)
        return self.refuse(node, "no state that changes its shape is read outside, or it is dynamic already")
