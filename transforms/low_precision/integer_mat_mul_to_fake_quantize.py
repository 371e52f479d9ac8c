"""Products of dynamically quantised activations and constant weights, which the runtime computes with integers."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import f32, i8
from mo_loop.ops.base import Constant
from mo_loop.ops.exact import extremes
from mo_loop.ops.quantization import limits, spread
from transforms.function_pass import FunctionPass
from transforms.replace import drop_dead, replace_output

MOST, FACTOR = 255, 128.0
LEAST_SPAN = np.float32(1e-30)
"""In place of the span 0 of activations that are all 0: their integers are 0 with every scale."""


class IntegerMatMulToFakeQuantize(FunctionPass):
    """Convert(IntegerMatMul(q, w, zero))  ->  MatMul(FakeQuantize(Round(x / scale) + zero), w) - zero * sums

    where q, scale and zero come from DynamicQuantize(x), and `sums` are the sums of the columns of w. The range of the
    FakeQuantize is constant, 0 to 255, so that the runtime computes the product with integers. Its result is wider by a
    factor of 128, and the scale of the weights is 1 / 128, because the runtime takes weights without a scale for
    numbers. The integers of x may differ by one step from those of DynamicQuantize.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = self.rewrite_each(graph, ops.IntegerMatMul, self._fuse)
        for node in graph.of(ops.DynamicQuantize) if changed else ():
            integers, scale, zero = node.outputs
            if scale.is_used and not integers.is_used and not zero.is_used:
                _, span = _range(node)
                replace_output(scale, ops.Multiply(span, np.float32(1 / MOST)).output)
                drop_dead([node])
        return changed

    def _fuse(self, node: ops.IntegerMatMul) -> bool:
        a, b, a_zero, b_zero = (*node.inputs, None, None)[:4]
        assert a is not None and b is not None
        if not isinstance(a.node, ops.DynamicQuantize) or a_zero is not a.node.outputs[2]:
            return self.refuse(node, "its first input is not quantised dynamically in this graph")
        if a.rank is None or a.rank < 2:
            return self.refuse(node, "the rank of its first input is 1, or not known")
        weights = _weights(b, b_zero)
        if weights is None:
            return self.refuse(node, "its weights less their zero points are not a constant matrix of 8 bits")
        readers = [use.node for use in node.output.uses]
        if not all(isinstance(each, ops.Convert) and each.destination_type.is_float for each in readers):
            return self.refuse(node, "its integers are read")
        result = _product(a.node, weights)
        for each in readers:
            kind = each.destination_type
            replace_output(each.output, result if kind is f32 else ops.Convert(result, destination_type=kind).output)
        drop_dead(readers)
        return self.accept(node)


def _product(quantised: ops.DynamicQuantize, weights: Constant) -> Value:
    """x / scale times the weights, where x has been rounded to integers."""
    graph, x = quantised.graph, quantised.inputs[0]
    least, span = _range(quantised)
    inverse = ops.Divide(Constant(np.float32(MOST), graph=graph), span)
    zero = ops.Round(ops.Multiply(ops.Negative(least), inverse))
    bounds = [Constant(np.float32(each), graph=graph) for each in (0, MOST, 0, FACTOR * MOST)]
    integers = ops.FakeQuantize(ops.Add(ops.Round(ops.Multiply(x, inverse)), zero), *bounds, levels=MOST + 1)
    scale = Constant(np.float32(1 / FACTOR), graph=graph)
    product = ops.MatMul(integers, ops.Dequantize(weights, scale, to=f32))
    sums = weights.array.astype(np.int64).sum(0).astype(np.float32)
    return ops.Subtract(product, ops.Multiply(zero, sums)).output


def _range(quantised: ops.DynamicQuantize) -> tuple[Value, Value]:
    """The least element of the input, and the largest less the least; 0 is an element."""
    x = quantised.inputs[0]
    assert x is not None
    least, most = extremes(x)
    return least, ops.Maximum(ops.Subtract(most, least), LEAST_SPAN).output


def _weights(b: Value, zero_point: Value | None) -> Constant | None:
    """The weights less their zero point in i8; None if they are not known, or do not fit."""
    constant, zero = b.node, None if zero_point is None else zero_point.node
    if not isinstance(constant, Constant) or b.rank != 2 or b.dtype.bits != 8:
        return None
    if zero is None and b.dtype is i8:
        return constant
    numbers = constant.array.astype(np.int64)
    if isinstance(zero, Constant):
        numbers = numbers - spread(zero.array.astype(np.int64), -1, numbers.shape)
    elif zero is not None:
        return None
    least, most = limits(i8)
    if numbers.size and (numbers.min() < least or numbers.max() > most):
        return None
    return Constant(numbers.astype(np.int8), graph=b.graph, name=constant.name)
