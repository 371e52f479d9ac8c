"""Products of integers whose results are only read in floating point."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.types import i32
from mo_loop.ops.exact import centred, centred_weights
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.low_precision.dynamic import MOST, integers_of, is_read_as_float, replace_converted
from mo_loop.transforms.replace import drop_dead, replace_output


class IntegerProductToFloat(FunctionPass):
    """IntegerMatMul(a, b, zero points)  ->  Convert(MatMul(a - zero point, b - zero point)), the product in f32
    RoundedOrExact(rounded, exact)  ->  rounded
    DynamicQuantize(x)  ->  the integers in f32, if nothing reads them as integers

    A sum of more than 24 bits is rounded, once. Such a product is right on every CPU, and weights are in f32 only when
    the runtime has compiled the model. Without the Convert to i32 the runtime would multiply the weights by a scale
    after the product, and round them where it computes in bf16.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = self.rewrite_each(graph, ops.IntegerMatMul, self._multiply)
        changed = self.rewrite_each(graph, ops.RoundedOrExact, self._round) or changed
        return self.rewrite_each(graph, ops.DynamicQuantize, self._quantize) or changed

    def _multiply(self, node: ops.IntegerMatMul) -> bool:
        a, b, a_zero, b_zero = (*node.inputs, None, None)[:4]
        assert a is not None and b is not None
        if not is_read_as_float(node.output):
            return self.refuse(node, "its integers are read")

        left = centred(a, a_zero, -1 if a.rank == 1 else -2)
        product = ops.MatMul(left, centred_weights(b, b_zero, -1))
        replace_output(node.output, ops.Convert(product, destination_type=i32).output)
        drop_dead([node])
        return self.accept(node)

    def _round(self, node: ops.RoundedOrExact) -> bool:
        rounded = node.operands[0]
        if rounded.dtype.is_integer and not is_read_as_float(node.output):
            return self.refuse(node, "its integers are read")
        replace_output(node.output, rounded)
        drop_dead([node])
        return self.accept(node)

    def _quantize(self, node: ops.DynamicQuantize) -> bool:
        integers, scale, zero = node.outputs
        if not is_read_as_float(integers) or not is_read_as_float(zero):
            return self.refuse(node, "its integers are read")
        found, made_scale, made_zero = integers_of(node)
        replace_output(scale, made_scale)
        replace_converted(zero, lambda: made_zero)
        replace_converted(integers, lambda: ops.Clamp(found, min=0.0, max=float(MOST)).output)
        return self.accept(node)
