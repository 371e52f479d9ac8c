"""Positions of a convolution of one channel that see nothing but padding."""

from __future__ import annotations

import operator

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.shape import Dimension
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.replace import move_readers


class PadAfterConvolution(FunctionPass):
    """Convolution(x : [N, 1, ...], w : [1, 1, ..., 3]), pads 0 and 4  ->  Pad(Convolution with pads 0 and 2), 0 and 2

    The filter lies completely in the padding where the pad is as long as the filter. The result is 0 there, but the
    runtime returns memory that was never written, for one input and one output channel and two or more spatial
    dimensions; mostly along the last dimension, and only where the stride is 1.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Convolution, self._rewrite)

    def _rewrite(self, node: ops.Convolution) -> bool:
        filters = node.inputs[1]
        assert filters is not None
        if type(node) is not ops.Convolution or filters.shape is None or len(filters.shape) < 4:
            return self.refuse(node, "it has groups or less than two spatial dimensions")
        if filters.shape[:2] != (1, 1) or node.auto_pad != "explicit":
            return self.refuse(node, "it has several channels, or the runtime chooses its pads")
        begin = tuple(map(_beyond, node.pads_begin, filters.shape[2:], node.strides, node.dilations))
        end = tuple(map(_beyond, node.pads_end, filters.shape[2:], node.strides, node.dilations))
        if not any((*begin, *end)):
            return self.refuse(node, "its filter always covers an element")
        node.pads_begin = tuple(map(operator.sub, node.pads_begin, begin))
        node.pads_end = tuple(map(operator.sub, node.pads_end, end))
        value = node.output
        zero = Constant(np.zeros((), value.dtype.numpy), graph=node.graph, dtype=value.dtype)
        readers = value.uses
        padded = ops.Pad(value, [0, 0, *begin], [0, 0, *end], zero, pad_mode="constant").output
        move_readers(value, padded, readers)
        return self.accept(node)


def _beyond(pad: int, length: Dimension, stride: int, dilation: int) -> int:
    """The number of positions in the padding before or after a dimension; 0 where a stride makes it depend on sizes."""
    return max(pad - dilation * (length - 1), 0) if isinstance(length, int) and stride == 1 else 0
