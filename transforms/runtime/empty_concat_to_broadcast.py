"""Concat of tensors without elements."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import i64, string
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.replace import replace_output


class EmptyConcatToBroadcast(FunctionPass):
    """Concat(a : [0,?], b : [0,2], axis 1)  ->  Broadcast(0, [0, n + 2]), where n is the size of a along the axis

    The runtime ignores every input of a Concat that has a dimension of 0, also if that is not the axis. The result then
    lacks the size of this input along the axis.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Concat, self._rewrite)

    def _rewrite(self, node: ops.Concat) -> bool:
        output = node.output
        if output.rank is None or output.dtype is string:
            return self.refuse(node, "its rank is unknown, or its elements are strings")
        axis = normalise_axis(node.axis, output.rank)
        if 0 not in (*output.type.dims[:axis], *output.type.dims[axis + 1 :]):
            return self.refuse(node, "no dimension other than the axis is known to be 0")
        inputs = [value for value in node.inputs if value is not None]
        sizes = [_size(inputs, at, axis) for at in range(output.rank)]
        zero = Constant(np.zeros(()), graph=node.graph, dtype=output.dtype)
        replace_output(output, ops.Broadcast(zero, ops.Concat(*sizes, axis=0)).output)
        node.graph.remove(node)
        return self.accept(node)


def _size(inputs: list[Value], at: int, axis: int) -> Value:
    """The size [1] of the result along the dimension `at`."""
    total = 0
    unknown = []
    for value in inputs if at == axis else inputs[:1]:
        dim = value.type.dims[at]
        if isinstance(dim, int):
            total += dim
        else:
            unknown.append(ops.Gather(ops.ShapeOf(value), [at], np.array(0)).output)
    size: Value = Constant([total], graph=inputs[0].graph, dtype=i64).output
    for each in unknown:
        size = ops.Add(size, each).output
    return size
