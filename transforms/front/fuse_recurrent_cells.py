"""Cells written out in loops to LSTMSequence, GRUSequence and RNNSequence."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.ops.control import Iteration
from transforms.function_pass import FunctionPass


class FuseRecurrentCells(FunctionPass):
    """h' = tanh(x W + h R + b) for every slice x  ->  RNNSequence(X, h, W, R, b); LSTM and GRU alike

    What the body computes is followed from the next states back to slices and states, so the order of gates, how
    their weights are joined and how the cell is written do not matter; weights must be constant. The loop goes, or
    keeps what it does besides: then it reads the hidden states slice by slice. It has to run once for every slice.

    Where there may be no slice the last states are selected outside. Directly inside a TensorIterator only sequences
    of static batch and length run, for others may become a TensorIterator themselves.
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
        # Models without loops need not wait for a thousand lines to load.
        from transforms.front.recurrence.fusion import fused

        reason = fused(node)
        return self.refuse(node, reason) if reason else self.accept(node)
