"""Sizes that are known at conversion, but not to the runtime, because another size of the shape is computed."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Node
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import string
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime.inference import has_constant_sizes, is_inferred

VECTORS = {
    ops.Reshape: (1,), ops.Broadcast: (1,), ops.Tile: (1,), ops.Pad: (1, 2), ops.Pad12: (1, 2), ops.Slice: (1, 2),
}  # fmt: skip
"""Operations whose sizes are numbers of inputs, and the ports of these inputs."""


class InsertKnownSizes(FunctionPass):
    """Pad(x, end: Concat(k, [0])) of x : [N,3]  ->  Reshape(Pad(...), [0,3]), where 0 keeps a size

    Of a vector the runtime infers all numbers or none. The passes that search dynamic shapes would not recognise shapes
    that are dynamic to the runtime.
    """

    instead = "`Reshape` to the size"
    avoids = (Gap(
        "vector-of-unknown-number",
        "if one number of a vector of sizes is known only at run time, none is inferred: forms for static shapes do "
        "not help then",
        until="2026.1.0",
    ),)  # fmt: skip

    kinds = tuple(VECTORS)

    def run_on_graph(self, graph: Graph) -> bool:
        """Does nothing without control flow, which alone depends on dynamic shapes."""
        has_control_flow = graph.owner is not None or bool(graph.nodes_with_bodies())
        return has_control_flow and super().run_on_graph(graph)

    def rewrite(self, node: Node) -> bool:
        output = node.output
        if output.dtype is string or not _has_hidden_size(node):
            return self.refuse(node, "no size is known, or the runtime infers it")
        readers = [use for use in output.uses if not has_constant_sizes(use.node)]
        if not readers:
            return self.refuse(node, "all its readers are Reshapes to constant sizes")
        dims = output.type.dims
        sizes = [dim if isinstance(dim, int) else 0 for dim in dims]
        move_readers(output, ops.Reshape(output, sizes, special_zero=not is_static(dims)).output, readers)
        return self.accept(node)


def _has_hidden_size(node: Node) -> bool:
    """Whether a size is known that follows from a vector whose numbers the runtime does not infer."""
    shape, data = node.output.shape, node.operands[0].shape
    vectors = [node.inputs[port] for port in VECTORS[type(node)] if port < len(node.inputs)]
    if shape is None or all(vector is None or is_inferred(vector) for vector in vectors):
        return False
    if isinstance(node, ops.Slice):  # the runtime keeps the sizes of other axes; InsertStaticShapes says static shapes
        assert data is not None
        sizes = zip(shape, data, strict=True)
        return not is_static(shape) and any(isinstance(dim, int) and dim != old for dim, old in sizes)
    return any(isinstance(dim, int) for dim in shape)
