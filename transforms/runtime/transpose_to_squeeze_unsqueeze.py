"""Transposes that move only dimensions of 1, of tensors that may have no elements."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import low
from transforms.function_pass import FunctionPass
from transforms.replace import drop_dead, replace_output


class TransposeToSqueezeUnsqueeze(FunctionPass):
    """Transpose(x : [1,N,2], [1, 2, 0])  ->  Unsqueeze(Squeeze(x, 0), 2), where N may be 0

    If only dimensions of 1 move, the runtime replaces the Transpose by a Reshape to the sizes at run time, in which a 0
    means "copy this dimension". An inference with N = 0 fails or returns old results.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Transpose, self._rewrite)

    def _rewrite(self, node: ops.Transpose) -> bool:
        data, order = node.inputs
        assert data is not None and order is not None
        if data.shape is None or order.type.integers is None:
            return self.refuse(node, "its rank or the order is unknown")
        places = list(order.type.integers) or list(reversed(range(len(data.shape))))
        ones = [axis for axis, dim in enumerate(data.shape) if dim == 1]
        others = [axis for axis in places if axis not in ones]
        if not ones or others != sorted(others):
            return self.refuse(node, "it moves other dimensions than those of 1, or none")
        if not any(not isinstance(data.shape[axis], int) and low(data.shape[axis]) == 0 for axis in others):
            return self.refuse(node, "no dynamic dimension can be 0")
        replace_output(node.output, _moved(data, ones, [place for place, axis in enumerate(places) if axis in ones]))
        drop_dead([node])
        return self.accept(node)


def _moved(data: Value, ones: list[int], places: list[int]) -> Value:
    return ops.Unsqueeze(ops.Squeeze(data, ones), places).output
