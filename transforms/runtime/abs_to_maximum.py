"""Abs of a Concat that other nodes read too."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from transforms.function_pass import FunctionPass
from transforms.replace import replace_output


class AbsToMaximum(FunctionPass):
    """Abs(c)  ->  max(-c, c), where c is a Concat that another node reads too

    The runtime writes the absolute values into the memory of the Concat while other nodes still read it.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Abs, self._rewrite)

    def _rewrite(self, node: ops.Abs) -> bool:
        value = node.inputs[0]
        if value is None or not isinstance(value.node, ops.Concat):
            return self.refuse(node, "its input is not a Concat")
        if value.only_use is not None:
            return self.refuse(node, "no other node reads the Concat")
        larger = ops.Maximum(ops.Negative(value), value, name=node.name)
        replace_output(node.output, larger.output)
        node.graph.remove(node)
        return self.accept(node)
