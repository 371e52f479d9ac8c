"""Tensors that grow, and may have no elements."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import Dimension, low
from mo_loop.graph.types import i64
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.replace import drop_dead, replace_output


class BidirectionalBroadcastToNumpy(FunctionPass):
    """Broadcast(x : [N], [2, 1]) in both directions  ->  Broadcast(x, [2, n]), n being the size of x

    The runtime takes a Broadcast behind the operation that reads it, and the maximum of both sizes for its target:
    where 0 meets 1, it grows to 1. A pattern that only the run tells is the target where all of x is of size 1.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Broadcast, self._rewrite)

    def _rewrite(self, node: ops.Broadcast) -> bool:
        data, pattern = node.inputs[:2]
        assert data is not None and pattern is not None
        target = pattern.type.integers
        if node.mode != "bidirectional" or data.shape is None:
            return self.refuse(node, "it grows in one direction, or its rank is unknown")
        if target is None:
            return self._of_one(node, data, pattern)
        rank = max(len(data.shape), len(target))
        gap = rank - len(data.shape)
        dims = [*[1] * gap, *data.shape]
        wanted = [*[1] * (rank - len(target)), *target]
        if not any(_may_vanish(dim) and want == 1 for dim, want in zip(dims, wanted, strict=True)):
            return self.refuse(node, "no dimension of 0 can meet one of 1")
        sizes = [
            _size(data, axis - gap, dim) if want == 1 else Constant([want], graph=node.graph, dtype=i64).output
            for axis, (dim, want) in enumerate(zip(dims, wanted, strict=True))
        ]
        replace_output(node.output, ops.Broadcast(data, ops.Concat(*sizes, axis=0)).output)
        drop_dead([node])
        return self.accept(node)

    def _of_one(self, node: ops.Broadcast, data: Value, pattern: Value) -> bool:
        """x : [1, 1]: the pattern is the target, if it has as many dimensions at least."""
        length = pattern.shape[0] if pattern.shape else None
        if not isinstance(length, int) or length < len(data.shape or ()) or any(dim != 1 for dim in data.shape or ()):
            return self.refuse(node, "what it grows to is known at run time only, and not all of it is of size 1")
        replace_output(node.output, ops.Broadcast(data, pattern).output)
        drop_dead([node])
        return self.accept(node)


def _may_vanish(dim: Dimension) -> bool:
    return not isinstance(dim, int) and low(dim) == 0


def _size(value: Value, axis: int, dim: Dimension) -> Value:
    if isinstance(dim, int):
        return Constant([dim], graph=value.graph, dtype=i64).output
    return ops.Gather(ops.ShapeOf(value), [axis], 0).output
