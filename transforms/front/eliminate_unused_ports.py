"""Ports that are not read."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.ops.control import Control
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import drop_unused_inputs, drop_unused_outputs


class EliminateUnusedPorts(FunctionPass):
    """outputs and inputs without readers, and states that only they themselves read  ->  removed

    The pass visits bodies itself: outputs are removed from the outermost graph inwards, inputs from the innermost
    outwards.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = graph.sweep() > 0
        loops = [node for node in graph.ordered() if isinstance(node, Control)] if graph.has(Control) else []
        for node in reversed(loops):
            is_free = not self.leaves(node)
            if is_free and not node.acts and not any(output.is_used for output in node.outputs):
                graph.remove(node)  # its last reader has been removed
                changed = self.accept(node)
                continue
            dropped = is_free and drop_unused_outputs(node)
            for body in node.bodies:
                changed = self.run_on_graph(body) or changed
            dropped = (is_free and drop_unused_inputs(node)) or dropped
            if dropped:
                changed = self.accept(node)
            elif is_free:
                self.refuse(node, "all its ports are read")
        self.at = None
        return (graph.sweep() > 0) or changed
