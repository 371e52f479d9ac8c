"""Constants of one element with a higher rank than the other operand."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import element_count
from mo_loop.ops.arithmetic import Binary
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass


class UnsqueezeToConstantRank(FunctionPass):
    """x : [N] + c : [1,1,1]  ->  Unsqueeze(x, [0, 1]) + c

    The runtime moves an operation with a constant of one element past a Gather, Squeeze or Reshape, and then loses the
    dimensions that the constant adds.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Binary, self._unsqueeze)

    def _unsqueeze(self, node: Binary) -> bool:
        for port, other in ((0, 1), (1, 0)):
            value, constant = node.inputs[port], node.inputs[other]
            if value is None or constant is None or not _has_higher_rank(constant, value):
                continue
            missing = constant.type.rank - value.type.rank
            node.graph.set_input(node, port, ops.Unsqueeze(value, list(range(missing))).output)
            return self.accept(node)
        return self.refuse(node, "no constant of one element adds dimensions")


def _has_higher_rank(constant: Value, value: Value) -> bool:
    if not isinstance(constant.node, Constant) or isinstance(value.node, Constant) or value.rank is None:
        return False
    return element_count(constant.shape) == 1 and constant.type.rank > value.rank
