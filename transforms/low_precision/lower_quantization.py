"""Quantised tensors as compositions of simple operations with ONNX's numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import ElementType, f32, u8
from mo_loop.ops.base import Constant
from mo_loop.ops.exact import (
    aligned,
    as_float,
    centred,
    centred_weights,
    extremes,
    integer_product,
    largest_sum,
    over_elements,
    quotient,
    rounded_to,
    shortened,
    steps,
)
from mo_loop.transforms.folding import fold_constants
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.low_precision.weights import is_weights
from mo_loop.transforms.replace import drop_dead, replace_node, replace_output


@dataclass(eq=False)
class LowerQuantization(FunctionPass):
    """Quantize(x, scale, zero point)  ->  Clamp(Round(x / scale) + zero point), or Clamp(Round(x / scale + zero point))
    Dequantize(q, scale, zero point)  ->  (q - zero point) * scale
    DynamicQuantize(x)  ->  the integers for the scale (max - min) / 255 and the zero point -min / scale
    IntegerMatMul(a, b, zero points)  ->  MatMul(a - zero point, b - zero point) in f32, two where one is not exact
    RoundedOrExact(rounded, exact)  ->  exact

    FakeQuantize differs from this: it rounds after adding the zero point, so that the results of halves differ by 1.
    A Quantize of a product of integers (QLinearConv, QLinearMatMul) is computed from their exact sum.

    With `exact` a Barrier is between the difference and its product with the scale: the runtime would compute
    q * scale - zero point * scale.
    """

    exact: bool = field(default=False, kw_only=True)

    def run_on_graph(self, graph: Graph) -> bool:
        changed = self.rewrite_each(graph, ops.Quantize, self._quantize)
        changed = self.rewrite_each(graph, ops.Dequantize, self._dequantize) or changed
        changed = self.rewrite_each(graph, ops.DynamicQuantize, self._quantize_dynamically) or changed
        changed = self.rewrite_each(graph, ops.IntegerMatMul, self._multiply) or changed
        changed = self.rewrite_each(graph, ops.RoundedOrExact, self._choose) or changed
        if changed:
            graph.sweep()
            graph.validate()
            fold_constants(graph)
        return changed

    def _quantize(self, node: ops.Quantize) -> bool:
        x, *parameters = node.inputs
        assert x is not None
        axis = node.axis + x.rank if node.axis < 0 and x.rank else node.axis
        y = over_elements(x, lambda each: _quantised(node, each, axis), *parameters, axis=axis)
        replace_output(node.output, y)
        drop_dead([node])
        return self.accept(node)

    def _dequantize(self, node: ops.Dequantize) -> bool:
        if is_weights(node.output):
            return self.refuse(node, "CompressWeights lowers it")
        x, scale, zero = (*node.inputs, None)[:3]
        assert x is not None and scale is not None
        y = as_float(x)
        if zero is not None:
            y = self._kept(ops.Subtract(y, as_float(aligned(x, zero, node.axis, node.block_size))).output)
        y = ops.Multiply(y, as_float(aligned(x, scale, node.axis, node.block_size))).output
        replace_output(node.output, y if node.to is f32 else ops.Convert(y, destination_type=node.to).output)
        drop_dead([node])
        return self.accept(node)

    def _kept(self, x: Value) -> Value:
        return ops.Barrier(x, hides="memory").output if self.exact else x

    def _quantize_dynamically(self, node: ops.DynamicQuantize) -> bool:
        x = node.operands[0]
        least, most = extremes(x)
        scale = quotient(ops.Subtract(most, least), Constant(np.float32(255), graph=node.graph).output)
        # ONNX's definition divides by a scale of 0 here; ONNX Runtime uses 1.
        scale = ops.Select(ops.Equal(scale, 0), np.float32(1), scale).output
        zero = ops.Round(ops.Clamp(steps(ops.Negative(least).output, scale), min=0.0, max=255.0)).output
        y = over_elements(x, lambda each: rounded_to(u8, steps(each, scale), zero))
        replace_node(node, (y, scale, ops.Convert(zero, destination_type=u8).output))
        return self.accept(node)

    def _multiply(self, node: ops.IntegerMatMul) -> bool:
        a, b, a_zero, b_zero = (*node.inputs, None, None)[:4]
        assert a is not None and b is not None
        largest = None if b.rank is None else largest_sum(b, b_zero, -1, [max(b.rank - 2, 0)])
        left, right = centred(a, a_zero, -1 if a.rank == 1 else -2), centred_weights(b, b_zero, -1)
        replace_output(node.output, integer_product(left, right, _product, largest))
        drop_dead([node])
        return self.accept(node)

    def _choose(self, node: ops.RoundedOrExact) -> bool:
        exact = node.operands[1]
        # The Convert to an integer stays: without it the runtime multiplies the weights by a scale after the product.
        replace_output(node.output, exact)
        drop_dead([node])
        return self.accept(node)


def _quantised(node: ops.Quantize, x: Value, axis: int) -> Value:
    """The integers of x, which may have other dimensions after the axis than the input."""
    _, scale, zero, divided = (*node.inputs, None, None)[:4]
    assert scale is not None
    if divided is None:
        divided = _divided(node.to, as_float(x), as_float(aligned(x, scale, axis, node.block_size)))
        divided = divided if node.precision is f32 else shortened(divided, node.precision)
    zero = None if zero is None else aligned(x, zero, axis, node.block_size)
    return rounded_to(node.to, divided, zero, saturate=node.saturate, rounds_sum=node.rounds_sum)


def _product(a: Value, b: Value) -> Value:
    return ops.MatMul(a, b).output


def _divided(to: ElementType, x: Value, scale: Value) -> Value:
    """x / scale, as exact as the type of the result needs it."""
    if to.is_float:
        return quotient(x, scale, 2.0**60)
    return steps(x, scale) if to.bits <= 8 else steps(x, scale, 1 << 17)
