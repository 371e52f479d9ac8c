"""Select of booleans whose condition is one of the values."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.types import boolean
from transforms.function_pass import FunctionPass
from transforms.replace import replace_output


class SelectToLogical(FunctionPass):
    """Select(c, c, x)  ->  LogicalOr(c, x), and Select(c, x, c)  ->  LogicalAnd(c, x)

    The runtime converts the condition to another type than the values and then does not compile the Select.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Select, self._rewrite)

    def _rewrite(self, node: ops.Select) -> bool:
        condition, then, other = node.inputs
        assert condition is not None and then is not None and other is not None
        if node.output.dtype is not boolean or condition not in (then, other):
            return self.refuse(node, "its condition is none of its values")
        made = ops.LogicalOr(condition, other) if then is condition else ops.LogicalAnd(condition, then)
        replace_output(node.output, made.output)
        node.graph.remove(node)
        return self.accept(node)
