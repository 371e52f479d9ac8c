"""Padded convolutions of one channel in three dimensions."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.shape import is_static
from transforms.function_pass import FunctionPass
from transforms.replace import move_readers


class AddOutputChannel(FunctionPass):
    """Convolution(x : [N, 1, D, H, W], w : [1, 1, ...])  ->  Slice(Convolution(x, [w, w]), the first channel)

    For one input and one output channel of dynamic shape in three padded dimensions, the runtime reads memory that was
    never written. With a second output channel it does not.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Convolution, self._rewrite)

    def _rewrite(self, node: ops.Convolution) -> bool:
        filters = node.inputs[1]
        assert filters is not None
        if type(node) is not ops.Convolution or filters.rank != 5 or filters.type.dims[:2] != (1, 1):
            return self.refuse(node, "it has groups, several channels, or less than three spatial dimensions")
        is_padded = node.auto_pad.startswith("same") or any((*node.pads_begin, *node.pads_end))
        if not is_padded or is_static(node.output.shape):
            return self.refuse(node, "it has no pads, or a static shape")
        value, readers = node.output, node.output.uses
        node.graph.set_input(node, 1, ops.Concat(filters, filters, axis=0).output)
        move_readers(value, ops.Slice(value, [0], [1], [1], [1]).output, readers)
        return self.accept(node)
