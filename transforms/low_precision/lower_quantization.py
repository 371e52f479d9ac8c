"""Quantize and Dequantize as compositions of simple operations with ONNX's numbers."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import ElementType, f32
from mo_loop.ops.exact import aligned, as_float, rounded_to, shortened, steps
from transforms.folding import fold_constants
from transforms.function_pass import FunctionPass
from transforms.low_precision.weights import is_weights
from transforms.replace import drop_dead, replace_output


class LowerQuantization(FunctionPass):
    """Quantize(x, scale, zero point)  ->  Clamp(Round(x / scale) + zero point)
    Dequantize(q, scale, zero point)  ->  (q - zero point) * scale

    FakeQuantize differs from this: it rounds after adding the zero point, so that the results of halves differ by 1.
    A Quantize of a product of integers (QLinearConv, QLinearMatMul) is computed from their exact sum.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = self.rewrite_each(graph, ops.Quantize, self._quantize)
        changed = self.rewrite_each(graph, ops.Dequantize, self._dequantize) or changed
        if changed:
            graph.sweep()
            graph.validate()
            fold_constants(graph)
        return changed

    def _quantize(self, node: ops.Quantize) -> bool:
        x, scale, zero, divided = (*node.inputs, None, None)[:4]
        assert x is not None and scale is not None
        if divided is None:
            numbers, divisor = as_float(x), as_float(aligned(x, scale, node.axis, node.block_size))
            divided = _divided(node.to, numbers, divisor)
            divided = divided if node.precision is f32 else shortened(divided, node.precision)
        zero = None if zero is None else aligned(x, zero, node.axis, node.block_size)
        replace_output(node.output, rounded_to(node.to, divided, zero, saturate=node.saturate))
        drop_dead([node])
        return self.accept(node)

    def _dequantize(self, node: ops.Dequantize) -> bool:
        if is_weights(node.output):
            return self.refuse(node, "CompressWeights lowers it")
        x, scale, zero = (*node.inputs, None)[:3]
        assert x is not None and scale is not None
        y = as_float(x)
        if zero is not None:
            y = ops.Subtract(y, as_float(aligned(x, zero, node.axis, node.block_size))).output
        y = ops.Multiply(y, as_float(aligned(x, scale, node.axis, node.block_size))).output
        replace_output(node.output, y if node.to is f32 else ops.Convert(y, destination_type=node.to).output)
        drop_dead([node])
        return self.accept(node)


def _divided(to: ElementType, x: Value, scale: Value) -> Value:
    """x / scale, as exact as the type of the result needs it."""
    if to.is_float:
        return ops.Divide(x, scale).output
    return steps(x, scale) if to.bits <= 8 else steps(x, scale, 1 << 17)
