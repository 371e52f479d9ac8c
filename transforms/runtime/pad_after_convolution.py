"""Positions of a convolution of one channel that see nothing but padding."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.replace import move_readers


class PadAfterConvolution(FunctionPass):
    """Convolution(x : [N, 1, ...], w : [1, 1, ..., 3]), pads 0 and 4  ->  Pad(Convolution with pads 0 and 2), 0 and 2

    Along the last dimension a filter lies completely in the padding where the pad is as long as the filter. The result
    is 0 there, but the runtime returns memory that was never written, for one input and one output channel and two or
    more spatial dimensions.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Convolution, self._rewrite)

    def _rewrite(self, node: ops.Convolution) -> bool:
        filters = node.inputs[1]
        assert filters is not None
        if type(node) is not ops.Convolution or filters.shape is None or len(filters.shape) < 4:
            return self.refuse(node, "it has groups or less than two spatial dimensions")
        width = filters.shape[-1]
        if filters.shape[:2] != (1, 1) or node.strides[-1] != 1 or not isinstance(width, int):
            return self.refuse(node, "it has several channels, or a stride along the last dimension")
        if node.auto_pad != "explicit":
            return self.refuse(node, "the runtime chooses its pads, which are shorter than the filter")
        reach = node.dilations[-1] * (width - 1)
        widths = [max(pads[-1] - reach, 0) for pads in (node.pads_begin, node.pads_end)]
        if not any(widths):
            return self.refuse(node, "the filter always covers an element")
        node.pads_begin = (*node.pads_begin[:-1], node.pads_begin[-1] - widths[0])
        node.pads_end = (*node.pads_end[:-1], node.pads_end[-1] - widths[1])
        value = node.output
        begin, end = ([0] * (len(filters.shape) - 1) + [each] for each in widths)
        zero = Constant(np.zeros((), value.dtype.numpy), graph=node.graph, dtype=value.dtype)
        readers = value.uses
        padded = ops.Pad(value, begin, end, zero, pad_mode="constant").output
        move_readers(value, padded, readers)
        return self.accept(node)
