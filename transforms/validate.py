"""Inference of the types and shapes of changed nodes."""

from __future__ import annotations

from mo_loop.errors import InternalError, MoLoopError
from mo_loop.graph import Graph
from mo_loop.transforms.function_pass import FunctionPass


class Validate(FunctionPass):
    """the types of changed nodes, and of all nodes that depend on them  ->  inferred again

    The Manager runs this pass after each pass that changed something. Code that runs passes without a Manager calls it.
    """

    bodies = "never"  # inference visits bodies itself, when it infers their owner

    def run_on_graph(self, graph: Graph) -> bool:
        was_dirty = graph.is_dirty
        try:
            graph.validate()
        except MoLoopError:
            raise
        except Exception as error:
            node = graph.waiting
            where = None if node is None else node.origin
            raise InternalError(f"inference: {type(error).__name__}: {error}", where=where) from error
        return was_dirty
