"""Sizes that are known here and not to the runtime."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Node
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import string
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.replace import move_readers


class InsertStaticShapes(FunctionPass):
    """Concat(x[:p], x[p + 1:]) of [3]  ->  Reshape(Concat(...), [2])

    Differences of symbols say how long such pieces are together; the runtime knows bounds alone. Passes that look for
    what it takes to be of dynamic shape would overlook such a tensor, and what is made of it in turn.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        found = [self.rewrite_each(graph, kind, self._tell) for kind in (ops.Concat, ops.Slice)]
        return any(found)

    def _tell(self, node: Node) -> bool:
        output = node.output
        readers = [use for use in output.uses if not _tells(use.node)]
        if not is_static(output.shape) or output.dtype is string or not _is_vague(node):
            return self.refuse(node, "its shape is unknown, or told by its inputs one by one")
        if not readers:
            return self.refuse(node, "its size is told already")
        move_readers(output, ops.Reshape(output, list(output.type.dims)).output, readers)
        return self.accept(node)


def _is_vague(node: Node) -> bool:
    """Whether an input leaves a size open."""
    data = node.inputs if isinstance(node, ops.Concat) else node.inputs[:1]
    bounds = [] if isinstance(node, ops.Concat) else node.inputs[1:]
    open_sizes = any(value is not None and not is_static(value.shape) for value in data)
    return open_sizes or any(value is not None and not isinstance(value.node, Constant) for value in bounds)


def _tells(reader: Node) -> bool:
    pattern = reader.inputs[1] if isinstance(reader, ops.Reshape) else None
    return pattern is not None and isinstance(pattern.node, Constant)
