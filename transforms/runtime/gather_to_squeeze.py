"""Gather along a dimension of 1."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import normalise_axis
from transforms.function_pass import FunctionPass
from transforms.replace import replace_output


class GatherToSqueeze(FunctionPass):
    """Gather(x : [..., 1, ...], [0])  ->  x; with a scalar index  ->  Squeeze(x)

    The only element of the dimension is selected. The runtime loses the dimension if an Unsqueeze has made it.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Gather, self._rewrite)

    def _rewrite(self, node: ops.Gather) -> bool:
        data, indices, axis = node.inputs
        assert data is not None and indices is not None and axis is not None
        kept = None if node.batch_dims else _only_element(data, indices, axis)
        if kept is None:
            return self.refuse(node, "it is not proven to select the only element of a dimension of 1")
        replace_output(node.output, kept)
        node.graph.remove(node)
        return self.accept(node)


def _only_element(data: Value, indices: Value, axis: Value) -> Value | None:
    if data.shape is None or axis.type.integers is None:
        return None
    at = normalise_axis(axis.type.integers[0], len(data.shape))
    index = indices.type.integers
    if data.shape[at] != 1 or index is None or any(each not in (0, -1) for each in index):
        return None
    if indices.shape == ():
        return ops.Squeeze(data, [at]).output
    if indices.shape == (1,):
        return data
    if indices.rank == 1:
        return ops.Concat(*[data] * len(index), axis=at).output if index else None
    return None
