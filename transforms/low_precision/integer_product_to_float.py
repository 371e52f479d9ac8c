"""Products of integers whose results are only read in floating point."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.exact import centred, centred_weights
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.low_precision.dynamic import MOST, integers_of, is_read_as_float, numbers_of, replace_converted
from mo_loop.transforms.replace import drop_dead, replace_output


class IntegerProductToFloat(FunctionPass):
    """Convert(IntegerMatMul(a, b, zero points))  ->  MatMul(a - zero point, b - zero point), in f32
    RoundedOrExact(rounded, exact)  ->  rounded
    DynamicQuantize(x)  ->  the integers in f32, if nothing reads them as integers

    A sum of more than 24 bits is rounded, once. Such a product is right on every CPU, and weights are in f32 only when
    the runtime has compiled the model.
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

        def product() -> Value:
            left = centred(a, a_zero, -1 if a.rank == 1 else -2)
            return ops.MatMul(left, centred_weights(b, b_zero, -1)).output

        replace_converted(node.output, product)
        return self.accept(node)

    def _round(self, node: ops.RoundedOrExact) -> bool:
        rounded = node.operands[0]
        if rounded.dtype.is_integer and not is_read_as_float(node.output):
            return self.refuse(node, "its integers are read")
        if rounded.dtype.is_integer:
            replace_converted(node.output, lambda: numbers_of(rounded))
        else:
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
