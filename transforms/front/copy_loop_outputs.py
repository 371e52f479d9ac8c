"""What loops return and the runtime gives the memory of away too early."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import string
from mo_loop.ops.base import Result
from mo_loop.ops.control import Loop
from transforms.function_pass import FunctionPass
from transforms.run_time_slices import has_run_time_end, read_through_slice


class CopyLoopOutputs(FunctionPass):
    """y = an output of a Loop  ->  Slice(y, 0, its own length), the whole of y

    As with what an If returns (`CopyIfOutputs`), the runtime may size another tensor in the same memory before a
    reader of y has come to its turn; seen with a list that a loop without iterations hands on to another loop, and
    with what a loop that certainly runs has concatenated. What only leaves the graph, or is sliced at once, keeps its
    memory.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Loop):
            exposed = [output for output in node.outputs if _is_exposed(output)]
            for output in exposed:
                _copy(output)
            changed = (self.accept(node) if exposed else self.refuse(node, "what it returns is safe")) or changed
        return changed


def _is_exposed(output: Value) -> bool:
    if output.rank is None or is_static(output.shape) or output.dtype is string:
        return False
    readers = [use.node for use in output.uses if not isinstance(use.node, ops.ShapeOf)]  # that one reads no contents
    if all(has_run_time_end(reader) for reader in readers):
        return False
    return not any(isinstance(reader, Result) for reader in readers)


def _copy(output: Value) -> None:
    def length(axis: int) -> Value:
        return ops.Gather(ops.ShapeOf(output), [axis], 0).output

    read_through_slice(output, length)
