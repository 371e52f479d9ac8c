"""Sequences of one step."""

from __future__ import annotations

from mo_loop.graph import Graph
from transforms.function_pass import FunctionPass
from transforms.states.recurrences import make_single


class SetSequenceLength(FunctionPass):
    """x[N, ...], over which a loop or a recurrent layer runs  ->  x[1, ...]

    LowLatency2 with a sequence_length does the same. In a pipeline this pass comes first, so that all others see the
    known length.
    """

    bodies = "never"  # the types of bodies follow from those of the inputs

    def run_on_graph(self, graph: Graph) -> bool:
        return make_single(graph)
