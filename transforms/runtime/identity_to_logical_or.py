"""Copies of booleans that the runtime would replace by another value."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.types import boolean
from mo_loop.ops.base import Identity
from transforms.function_pass import FunctionPass
from transforms.replace import replace_output


class IdentityToLogicalOr(FunctionPass):
    """Identity(x), where x is boolean and not the first output of its node  ->  LogicalOr(x, x)

    An Identity is written as a Convert to the same type. The runtime removes such a Convert of a boolean, and then
    reads the first output of the node, whichever output it was.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Identity, self._rewrite)

    def _rewrite(self, node: Identity) -> bool:
        value = node.inputs[0]
        if value is None or node.output.dtype is not boolean or not value.index:
            return self.refuse(node, "it does not copy a boolean, or copies the first output of a node")
        replace_output(node.output, ops.LogicalOr(value, value).output)
        node.graph.remove(node)
        return self.accept(node)
