"""Absolute values of what has just been joined."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from transforms.function_pass import FunctionPass
from transforms.replace import replace_output


class AbsToMaximum(FunctionPass):
    """c = Concat(...), read elsewhere too: Abs(c)  ->  max(-c, c)

    The runtime writes the absolute values into the memory of the Concat, though others still read it.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Abs, self._rewrite)

    def _rewrite(self, node: ops.Abs) -> bool:
        value = node.inputs[0]
        if value is None or not isinstance(value.node, ops.Concat):
            return self.refuse(node, "it reads no Concat")
        if value.only_use is not None:
            return self.refuse(node, "nothing else reads the Concat")
        larger = ops.Maximum(ops.Negative(value), value, name=node.name)
        replace_output(node.output, larger.output)
        node.graph.remove(node)
        return self.accept(node)
