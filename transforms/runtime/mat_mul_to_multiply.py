"""Matrix products with an inner dimension of 1."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.replace import drop_dead, replace_output


class MatMulToMultiply(FunctionPass):
    """MatMul(x : [..., N, 1], w : [1, M])  ->  x * w, where w is a Constant

    Each element is one product. The runtime merges consecutive products of this kind, also with elementwise operations
    between them, and fails to compile the result on one thread.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.MatMul, self._rewrite)

    def _rewrite(self, node: ops.MatMul) -> bool:
        x, weights = node.inputs
        assert x is not None and weights is not None
        if not _is_column(x) or node.transpose_a or not isinstance(weights.node, Constant) or weights.rank != 2:
            return self.refuse(node, "it is no product of a column and a constant row")
        row = weights
        if node.transpose_b:
            array = weights.node.array.reshape(1, -1)
            row = Constant(ArrayTensor(array, weights.dtype), graph=node.graph, name=weights.node.name).output
        replace_output(node.output, ops.Multiply(x, row).output)
        node.graph.remove(node)
        drop_dead([weights.node])
        return self.accept(node)


def _is_column(x: Value) -> bool:
    return x.rank is not None and x.rank > 1 and x.type.dims[-1] == 1
