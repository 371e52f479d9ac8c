"""Tensors that grow to sizes of the run, and meet one of size 1 there."""

from __future__ import annotations

from functools import partial

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import Dimension, Shape, low
from mo_loop.ops.arithmetic import Binary
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.replace import drop_dead, insert_after


class BroadcastTransition(FunctionPass):
    """min(c : [1, 1], Broadcast(x : [1, 1], [k, n]))  ->  Broadcast(min(c, x), [k, n])

    The runtime moves a Broadcast behind the operation that reads it too, but to the larger of the sizes that meet: a
    size of 0 beside 1 becomes 1. Moved already, to its own sizes, it stays.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        while self._move_each(graph):  # what was moved may meet the next operation
            graph.validate()
            changed = True
        return changed

    def _move_each(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.ordered()) if graph.of(ops.Broadcast) else ():
            if isinstance(node, Binary) and not self.leaves(node):
                changed = self._move(node) or changed
        self.at = None
        return changed

    def _move(self, node: Binary) -> bool:
        for port, value in enumerate(node.inputs):
            other = node.inputs[1 - port]
            if value is None or other is None or not _grows_at_run_time(value):
                continue
            old = value.node
            data, sizes = old.inputs[:2]
            if data is None or not _meets_one(value.shape, data.shape, other.shape):
                continue
            node.graph.set_input(node, port, data)
            insert_after(node.output, partial(_grown, sizes))
            drop_dead([old])
            return self.accept(node)
        return self.refuse(node, "nothing grows to sizes of the run before it, or to none that can be 0 beside 1")


def _grown(sizes: Value | None, value: Value) -> ops.Broadcast:
    return ops.Broadcast(value, sizes)


def _grows_at_run_time(value: Value) -> bool:
    node = value.node
    if not isinstance(node, ops.Broadcast) or node.mode != "numpy" or len(node.inputs) > 2:
        return False
    return node.inputs[1] is not None and not isinstance(node.inputs[1].node, Constant)


def _meets_one(grown: Shape, data: Shape, other: Shape) -> bool:
    """Whether a size that may be 0 meets 1 on both sides, and nothing of `other` makes the result larger."""
    if grown is None or data is None or other is None or max(len(data), len(other)) > len(grown):
        return False
    wide: list[list[Dimension]] = [[*[1] * (len(grown) - len(shape)), *shape] for shape in (data, other)]
    alike = all(b in (1, a) for a, b in zip(*wide, strict=True))
    return alike and any(
        not isinstance(dim, int) and low(dim) == 0 and a == b == 1 for dim, a, b in zip(grown, *wide, strict=True)
    )
