"""Sliced inputs of a TensorIterator that its body does not read."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.ops.control import TensorIterator
from mo_loop.ops.port_map import Sliced
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import drop_unused_inputs, keep_inputs, replace_by_loop


class EliminateUnreadSlices(FunctionPass):
    """TensorIterator over X that reads no slice  ->  Loop with the length of X; over X and Y that reads X  ->  over X

    The runtime removes inputs that the body does not read.
    """

    instead = "`Loop`"
    avoids = (Gap("unread-slice", "a TensorIterator whose body reads no slice runs once"),)

    kinds = (TensorIterator,)

    def run_on_graph(self, graph: Graph) -> bool:
        is_swept = graph.sweep() > 0  # readers without readers do not count
        return super().run_on_graph(graph) or is_swept

    def rewrite(self, node: TensorIterator) -> bool:
        sliced = {entry: entry.parameter.output.is_used for entry in node.input_map if isinstance(entry, Sliced)}
        if all(sliced.values()):
            return self.refuse(node, "its body reads all its slices")
        if any(sliced.values()):
            keep_inputs(node, [number for number, entry in enumerate(node.input_map) if sliced.get(entry, True)])
            return self.accept(node)
        new = replace_by_loop(node)
        drop_unused_inputs(new)
        return self.accept(new)
