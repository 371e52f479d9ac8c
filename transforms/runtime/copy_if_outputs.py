"""Outputs of If whose memory the runtime reuses too early."""

from __future__ import annotations

from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import string
from mo_loop.ops.base import Result
from mo_loop.ops.control import If
from transforms.function_pass import FunctionPass
from transforms.runtime.memory import UNCONVERTED, has_own_memory, has_run_time_end, hide_memory


class CopyIfOutputs(FunctionPass):
    """y = If(c)  ->  Barrier(y, memory)

    The runtime divides a graph into sections; each ends at a node whose output shape depends on values. It computes the
    shapes of all outputs of a section before it executes the first node. Memory that two sections share is kept apart,
    except for the outputs of an If: a node of dynamic shape later in the next section may get the same memory, and
    resizing it destroys the contents before a reader has read them. A Slice whose end is known only at run time ends a
    section, and its output is kept. An end within bounds would give these bounds to the whole of y (see
    RemoveSliceBounds).

    A model output has memory of its own, unless its type is converted at the output. If all nodes of dynamic shape that
    the If does not depend on are such outputs, nothing can take its memory.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        if not graph.of(If):
            return False
        places = {node: place for place, node in enumerate(graph.ordered())}
        resized = [node for node in places if not has_own_memory(node)]
        changed = False
        for node in self.candidates(graph, If):
            # Inserted nodes take memory as well, and the runtime may execute the nodes in another order than this one.
            may_lose = changed or (resized and places[resized[-1]] > places[node]) or _may_run_after(node, resized)
            changed = self._copy(node, bool(may_lose)) or changed
        return changed

    def _copy(self, node: If, may_lose_memory: bool) -> bool:
        exposed = [output for output in node.outputs if _is_exposed(output)]
        # Without a later node a conversion of the type at an output takes memory; then so does the copy of that output.
        if not exposed or not (may_lose_memory or any(output.dtype not in UNCONVERTED for output in exposed)):
            return self.refuse(node, "no output can lose its memory to a later node")
        for output in exposed:
            hide_memory(output)
        return self.accept(node)


def _is_exposed(output: Value) -> bool:
    if output.rank is None or is_static(output.shape) or output.dtype is string:
        return False
    if all(has_run_time_end(use.node) for use in output.uses):
        return False
    is_returned = any(isinstance(use.node, Result) for use in output.uses)
    return not is_returned or (output.graph.owner is None and output.dtype not in UNCONVERTED)


def _may_run_after(node: Node, resized: list[Node]) -> bool:
    """Whether `node` does not depend on all of `resized`: the others may be executed after it."""
    return not node.graph.ancestors([node]).issuperset(resized)
