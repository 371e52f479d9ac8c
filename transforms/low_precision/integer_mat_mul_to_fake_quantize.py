"""Products of dynamically quantised activations and constant weights, which the runtime computes with integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.types import f32, i8
from mo_loop.ops.base import Constant
from mo_loop.ops.exact import centred_weights
from mo_loop.ops.quantization import limits, spread
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.low_precision.dynamic import MOST, integers_of, is_read_as_float
from mo_loop.transforms.replace import drop_dead, replace_output

Array = np.ndarray[Any, Any]
FACTOR = 128.0
LARGEST = 64
"""Without VNNI instructions a CPU adds two products in 16 bits: twice 255 * 64 fits."""
ROWS_APART = 16
"""At most one of so many rows of the weights is multiplied apart; with more, a product in f32 is as fast."""


class IntegerMatMulToFakeQuantize(FunctionPass):
    """Convert(IntegerMatMul(q, w, zero))  ->  MatMul(FakeQuantize(Round(x / scale) + zero), w) - zero * sums

    where q, scale and zero come from DynamicQuantize(x), and `sums` are the sums of the columns of w. The range of the
    FakeQuantize is constant, 0 to 255, so that the runtime computes the product with integers. Its result is wider by a
    factor of 128, and the scale of the weights is 1 / 128, because the runtime takes weights without a scale for
    numbers. The integers of x may differ by one step from those of DynamicQuantize.

    On a CPU without VNNI the runtime adds two products of a column in 16 bits. Columns whose two largest numbers exceed
    2 * LARGEST are therefore limited to LARGEST; the excess is in few rows, and these are multiplied in f32:

        MatMul(q, w)  ->  MatMul(q, limited w) + MatMul(Gather(q, rows), w[rows] - limited w[rows])
    """

    kinds = (ops.IntegerMatMul,)

    def rewrite(self, node: ops.IntegerMatMul) -> bool:
        a, b, a_zero, b_zero = (*node.inputs, None, None)[:4]
        assert a is not None and b is not None
        if not isinstance(a.node, ops.DynamicQuantize) or a_zero is not a.node.outputs[2]:
            return self.refuse(node, "its first input is not quantised dynamically in this graph")
        if a.rank is None or a.rank < 2:
            return self.refuse(node, "the rank of its first input is 1, or not known")
        weights = _weights(b, b_zero)
        if weights is None:
            return self.refuse(node, "its weights minus their zero points are not a constant matrix of 8 bits")
        if not is_read_as_float(node.output):
            return self.refuse(node, "its integers are read")
        array = weights.array
        limited = limited_to_pairs(array)
        rows = np.flatnonzero((limited != array).any(1))
        if len(rows) * ROWS_APART > len(array):
            return self.refuse(node, "sums of two products could exceed 16 bits")
        narrow = Constant(limited, graph=node.graph, name=weights.name) if len(rows) else weights
        result = _product(a.node, narrow, rows, array[rows] - limited[rows])
        readers = [use.node for use in node.output.uses]
        for each in readers:
            kind = each.destination_type
            replace_output(each.output, result if kind is f32 else ops.Convert(result, destination_type=kind).output)
        drop_dead(readers)
        return self.accept(node)


def limited_to_pairs(weights: Array) -> Array:
    """The weights [K, N]; columns whose two largest sizes exceed 2 * LARGEST are limited to LARGEST."""
    wide = np.flatnonzero(np.maximum(weights.max(0, initial=0), -(weights.min(0, initial=0) + 1)) >= LARGEST)
    if not len(wide) or len(weights) < 2:
        return weights
    sizes = np.abs(weights[:, wide].astype(np.int16))
    wide = wide[np.partition(sizes, -2, axis=0)[-2:].sum(0) > 2 * LARGEST]
    made = weights.copy()
    made[:, wide] = np.clip(weights[:, wide], -LARGEST, LARGEST)
    return made


def _product(quantised: ops.DynamicQuantize, weights: Constant, rows: Array, rest: Array) -> Value:
    """x / scale times the weights and the rest of some rows, where x has been rounded to integers."""
    graph = quantised.graph
    integers, _, zero = integers_of(quantised)
    bounds = [Constant(np.float32(each), graph=graph) for each in (0, MOST, 0, FACTOR * MOST)]
    limited = ops.FakeQuantize(integers, *bounds, levels=MOST + 1)
    scale = Constant(np.float32(1 / FACTOR), graph=graph)
    product = ops.MatMul(limited, ops.Dequantize(weights, scale, to=f32))
    sums = weights.array.sum(0, dtype=np.int64)
    if len(rows):
        some = ops.Clamp(ops.Gather(integers, rows, -1), min=0.0, max=float(MOST))
        product = ops.Add(product, ops.MatMul(some, centred_weights(Constant(rest, graph=graph).output, None, -1)))
        sums = sums + rest.sum(0, dtype=np.int64)
    return ops.Subtract(product, ops.Multiply(zero, sums.astype(np.float32))).output


def _weights(b: Value, zero_point: Value | None) -> Constant | None:
    """The weights minus their zero point in i8; None if they are not known, or do not fit."""
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
