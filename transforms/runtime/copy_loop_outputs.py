"""Outputs of loops whose memory the runtime reuses too early."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import string
from mo_loop.ops.base import Result
from mo_loop.ops.control import Loop
from transforms.function_pass import FunctionPass
from transforms.runtime.memory import has_run_time_end, hide_memory


class CopyLoopOutputs(FunctionPass):
    """y = an output of a Loop  ->  Barrier(y, memory)

    As with outputs of an If (see CopyIfOutputs), the runtime may resize another tensor in the memory of y before a
    reader of y is executed. This happens to a sequence that a loop without iterations passes to another loop, and to
    concatenated outputs of loops that always run. An output that only leaves the graph, or that is sliced directly,
    keeps its memory.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Loop):
            exposed = [output for output in node.outputs if _is_exposed(output)]
            for output in exposed:
                hide_memory(output)
            if exposed:
                changed = self.accept(node)
            else:
                self.refuse(node, "no output can lose its memory to a later node")
        return changed


def _is_exposed(output: Value) -> bool:
    if output.rank is None or is_static(output.shape) or output.dtype is string:
        return False
    readers = [use.node for use in output.uses if not isinstance(use.node, ops.ShapeOf)]  # it reads no contents
    if all(has_run_time_end(reader) for reader in readers):
        return False
    return not any(isinstance(reader, Result) for reader in readers)
