"""Absolute values of what has just been joined."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from transforms.base import FunctionPass
from transforms.replace import replace_output


class AbsOfConcat(FunctionPass):
    """c = Concat(...), read elsewhere too: Abs(c)  ->  max(-c, c)

    The runtime writes the absolute values into the memory of the Concat, though others still read it.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in graph.of(ops.Abs):
            value = node.inputs[0]
            if value is None or not isinstance(value.node, ops.Concat) or value.only_use is not None:
                continue
            larger = ops.Maximum(ops.Negative(value), value, name=node.name)
            replace_output(node.output, larger.output)
            graph.remove(node)
            changed = True
        return changed
