"""Orders of channels that the runtime would apply to weights in the inverse direction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node
from mo_loop.ops.activation import PReLU
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.replace import drop_dead


class CountAxesFromEnd(FunctionPass):
    """Gather(x, [2, 0, 1], 1)  ->  Gather(x, [2, 0, 1], 1 - rank), and Concat of a Split in this order likewise

    The runtime moves the order of channels into the weights of the Convolutions behind, but takes the inverse order.
    The slopes of a PReLU between them stay in the old order. It does not recognise an axis below 0. An order that is
    its own inverse, as that of reversed channels, is correct without PReLU, and faster.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = self.rewrite_each(graph, ops.Gather, self._gather)
        return self.rewrite_each(graph, ops.Concat, self._concat) or changed

    def _gather(self, node: ops.Gather) -> bool:
        x, indices, axis = node.inputs
        assert x is not None and indices is not None and axis is not None
        at, order = axis.type.integers, indices.type.integers
        if x.rank is None or at is None or at[0] < 0 or order is None or indices.rank != 1:
            return self.refuse(node, "it has no constant order along an axis that is not below 0")
        size = x.type.dims[at[0]]
        places = [each % len(order) for each in order]
        if node.batch_dims or (isinstance(size, int) and size != len(order)) or not _is_inverted(node, places):
            return self.refuse(node, "the runtime does not move it, or moves it correctly")
        node.graph.set_input(node, 2, Constant(np.int64(at[0] - x.rank), graph=node.graph).output)
        drop_dead([axis.node])
        return self.accept(node)

    def _concat(self, node: ops.Concat) -> bool:
        split = None if node.inputs[0] is None else node.inputs[0].node
        if node.axis < 0 or node.output.rank is None or not isinstance(split, ops.Split):
            return self.refuse(node, "it is no Concat of a Split along an axis that is not below 0")
        places = [each.index for each in node.inputs if each is not None and each.node is split]
        if len(places) < len(node.inputs) or not _is_inverted(node, places):
            return self.refuse(node, "the runtime does not move it, or moves it correctly")
        node.axis -= node.output.rank
        return self.accept(node)


def _is_inverted(node: Node, order: Sequence[int]) -> bool:
    """Whether `order` is a permutation that the runtime would apply wrongly to what reads `node`."""
    if sorted(order) != list(range(len(order))) or list(order) == sorted(order):
        return False
    if any(order[each] != place for place, each in enumerate(order)):
        return True
    return any(isinstance(each, PReLU) for each in node.graph.descendants([node]))
