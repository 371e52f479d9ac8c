"""The base class of the passes that take work out of loops."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.ops.control import Loop, TensorIterator
from mo_loop.transforms.function_pass import FunctionPass


class LoopPass(FunctionPass):
    """Rewrites loops; what nothing reads any more then goes, and types follow."""

    kinds = (Loop, TensorIterator)

    def run_on_graph(self, graph: Graph) -> bool:
        changed = super().run_on_graph(graph)
        if changed:
            graph.sweep()
            graph.validate()
        return changed
