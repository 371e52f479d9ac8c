"""Recurrent cells in loops become LSTMSequence, GRUSequence and RNNSequence."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.ops.control import Iteration
from mo_loop.transforms.function_pass import FunctionPass


class FuseRecurrentCells(FunctionPass):
    """h' = tanh(x W + h R + b) for every slice x  ->  RNNSequence(X, h, W, R, b); LSTM and GRU likewise

    The computation is followed from the next states back to slices and states. The order of gates, the layout of their
    weights and the spelling of the cell do not matter; weights must be constant. The loop is removed, or keeps the rest
    of its body, which then reads the hidden states slice by slice. It must have exactly one iteration per slice.

    If there may be no slice, the final states are selected outside the loop. Directly in the body of a TensorIterator
    only sequences of static batch and length are made; the runtime may replace others by a TensorIterator.
    """

    bodies = "last"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Iteration):
            while node in graph and self._fuse(node):
                changed = True
                graph.validate()
        return changed

    def _fuse(self, node: Iteration) -> bool:
        # Models without loops do not load the thousand lines of this package.
        from mo_loop.transforms.front.recurrence.fusion import fused

        reason = fused(node)
        return self.refuse(node, reason) if reason else self.accept(node)
