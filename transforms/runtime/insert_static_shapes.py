"""Shapes that are known at conversion and not to the runtime."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Node
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import string
from mo_loop.ops.base import Constant
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime.inference import has_constant_sizes
from mo_loop.transforms.runtime.zero_trips import is_cut


class InsertStaticShapes(FunctionPass):
    """Concat(x[:p], x[p + 1:]) of x : [3]  ->  Reshape(Concat(...), [2])

    Differences of symbols prove the size of such a Concat or Slice; the runtime only knows bounds. The passes that
    search dynamic shapes would not recognise shapes that are dynamic to the runtime.
    """

    instead = "`Reshape` to the size"
    avoids = (Gap(
        "differences-of-symbols",
        "a size that follows from differences of symbols is not inferred: forms for static shapes do not help then",
    ),)  # fmt: skip

    kinds = (ops.Concat, ops.Slice)

    def rewrite(self, node: Node) -> bool:
        output = node.output
        readers = [use for use in output.uses if not has_constant_sizes(use.node)]
        if not is_static(output.shape) or output.dtype is string or not _is_open(node):
            return self.refuse(node, "its shape is unknown, or the runtime infers it from its inputs")
        if is_cut(node):
            return self.refuse(node, "it has no elements if its loop did not run")
        if not readers:
            return self.refuse(node, "all its readers are Reshapes to constant shapes")
        move_readers(output, ops.Reshape(output, list(output.type.dims)).output, readers)
        return self.accept(node)


def _is_open(node: Node) -> bool:
    """Whether the runtime cannot infer a size from the inputs."""
    data = node.inputs if isinstance(node, ops.Concat) else node.inputs[:1]
    bounds = [] if isinstance(node, ops.Concat) else node.inputs[1:]
    open_sizes = any(value is not None and not is_static(value.shape) for value in data)
    return open_sizes or any(value is not None and not isinstance(value.node, Constant) for value in bounds)
