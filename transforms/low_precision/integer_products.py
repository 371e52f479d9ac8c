"""Products of integers: those of dynamically quantised activations and constant weights, which the runtime computes
with integers, and those whose results are only read in floating point.

Scales that are known at run time are computed with the operations that the runtime computes fast. It multiplies by
1 / scale, so that an integer may differ by one step from that of DynamicQuantizeLinear. The scale itself is exact: in
the range -1 to 1, for example, the ends lie in the middle of two steps.

Integers that are computed in floating point, in every precision of the runtime.

    Convert(i32) -> Multiply by 1/7 -> Floor -> Convert        marked
    Convert(u8) -> MatMul with integers -> Convert             marked
    Parameter of f32 -> Multiply by 1/7 -> Floor -> Convert    from Floor on: the runtime rounds its input anyway
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mo_loop.graph.types import TensorType, f32, i8, i32
from mo_loop.ops.exact import centred, centred_weights, extremes, quotient
from mo_loop.ops.quantization import limits, spread
from mo_loop.support.traversal import reached
from mo_loop.transforms.replace import drop_dead, replace_output, supersede
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Graph, Node, Value, node_pass, ops

EXACT_FORM = 3
"""The input of a Quantize that has the exact form of its numbers."""

MOST = 255
LEAST_SPAN = np.float32(1e-30)
"""In place of the span 0 of activations that are all 0: their integers are 0 with every scale."""


def integers_of(quantised: ops.DynamicQuantize) -> tuple[Value, Value, Value]:
    """The integers in f32, which may exceed 0 to 255 by one step, their scale and their zero point."""
    graph, x = quantised.graph, quantised.operands[0]
    least, most = extremes(x)
    scale = quotient(F.Maximum(most - least, LEAST_SPAN), F.Constant(np.float32(MOST), graph=graph))
    inverse = F.Divide(Constant(np.float32(1), graph=graph), scale)
    zero = F.Round(-least * inverse)
    return F.Round(x * inverse) + zero, scale, zero


def is_read_as_float(value: Value) -> bool:
    """Whether all readers convert the integers to floating point, and a rounding error in them changes no integer.

    The exact form of a Quantize is such a product times a scale. Without integers between them the runtime would
    multiply the weights by the scale, and numbers in the middle of two steps would be rounded to the other one.
    """
    readers = [use.node for use in value.uses]
    return all(isinstance(each, ops.Convert) and each.destination_type.is_float for each in readers) and not any(
        isinstance(reader.node, ops.Quantize) and reader.port == EXACT_FORM
        for each in readers for use in each.outputs[0].uses if use.node.outputs for reader in use.node.outputs[0].uses
    )


def replace_converted(value: Value, make: Callable[[], Value]) -> None:
    """The readers of a value, which convert it to floating point, are replaced by a value in f32."""
    readers = [use.node for use in value.uses]
    made = make() if readers else None
    for each in readers:
        assert made is not None and isinstance(each, ops.Convert)
        replace_output(each.output, made.astype(each.destination_type))
    drop_dead([*readers, value.node])


Array = np.ndarray[Any, Any]
FACTOR = 128.0
LARGEST = 64
"""Without VNNI instructions a CPU adds two products in 16 bits: twice 255 * 64 fits."""
ROWS_APART = 16
"""At most one of so many rows of the weights is multiplied apart; with more, a product in f32 is as fast."""


@node_pass((ops.IntegerMatMul,))
def IntegerMatMulToFakeQuantize(node: ops.IntegerMatMul) -> str:
    """Convert(IntegerMatMul(q, w, zero))  ->  MatMul(FakeQuantize(Round(x / scale) + zero), w) - zero * sums

    where q, scale and zero come from DynamicQuantize(x), and `sums` are the sums of the columns of w. The range of the
    FakeQuantize is constant, 0 to 255, so that the runtime computes the product with integers. Its result is wider by a
    factor of 128, and the scale of the weights is 1 / 128, because the runtime takes weights without a scale for
    numbers. The integers of x may differ by one step from those of DynamicQuantize.

    On a CPU without VNNI the runtime adds two products of a column in 16 bits. Columns whose two largest numbers exceed
    2 * LARGEST are therefore limited to LARGEST; the excess is in few rows, and these are multiplied in f32:

        MatMul(q, w)  ->  MatMul(q, limited w) + MatMul(Gather(q, rows), w[rows] - limited w[rows])
    """
    a, b, a_zero, b_zero = (*node.inputs, None, None)[:4]
    assert a is not None and b is not None
    if not isinstance(a.node, ops.DynamicQuantize) or a_zero is not a.node.outputs[2]:
        return "its first input is not quantised dynamically in this graph"
    if a.rank is None or a.rank < 2:
        return "the rank of its first input is 1, or not known"
    weights = _weights(b, b_zero)
    if weights is None:
        return "its weights minus their zero points are not a constant matrix of 8 bits"
    if not is_read_as_float(node.output):
        return "its integers are read"
    array = weights.array
    limited = limited_to_pairs(array)
    rows = np.flatnonzero((limited != array).any(1))
    if len(rows) * ROWS_APART > len(array):
        return "sums of two products could exceed 16 bits"
    narrow = Constant(limited, graph=node.graph, name=weights.name) if len(rows) else weights
    result = _product(a.node, narrow, rows, array[rows] - limited[rows])
    replace_converted(node.output, lambda: result)
    return ""


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
    limited = F.FakeQuantize(integers, *bounds, levels=MOST + 1)
    product = limited @ F.Dequantize(weights, F.Constant(np.float32(1 / FACTOR), graph=graph), to=f32)
    sums = weights.array.sum(0, dtype=np.int64)
    if len(rows):
        some = F.Clamp(F.Gather(integers, rows, -1), min=0.0, max=float(MOST))
        product = product + some @ centred_weights(F.Constant(rest, graph=graph), None, -1)
        sums = sums + rest.sum(0, dtype=np.int64)
    return product - zero * sums.astype(np.float32)


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


class IntegerProductToFloat(FunctionPass):
    """IntegerMatMul(a, b, zero points)  ->  Convert(MatMul(a - zero point, b - zero point)), the product in f32
    RoundedOrExact(rounded, exact)  ->  rounded
    DynamicQuantize(x)  ->  the integers in f32, if nothing reads them as integers

    A sum of more than 24 bits is rounded, once. Such a product is right on every CPU, and weights are in f32 only after
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
        product = centred(a, a_zero, -1 if a.rank == 1 else -2) @ centred_weights(b, b_zero, -1)
        supersede(node, F.Convert(product, destination_type=i32))
        return self.accept(node)

    def _round(self, node: ops.RoundedOrExact) -> bool:
        rounded = node.operands[0]
        if rounded.dtype.is_integer and not is_read_as_float(node.output):
            return self.refuse(node, "its integers are read")
        supersede(node, rounded)
        return self.accept(node)

    def _quantize(self, node: ops.DynamicQuantize) -> bool:
        integers, scale, zero = node.outputs
        if not is_read_as_float(integers) or not is_read_as_float(zero):
            return self.refuse(node, "its integers are read")
        found, made_scale, made_zero = integers_of(node)
        replace_output(scale, made_scale)
        replace_converted(zero, lambda: made_zero)
        replace_converted(integers, lambda: F.Clamp(found, min=0.0, max=float(MOST)))
        return self.accept(node)


PRECISE = "precise"
"""The name of the mark in the rt_info of a layer."""

_KEEPING = (
    ops.Binary, ops.Reduction, ops.Movement, ops.Abs, ops.Negative, ops.Sign, ops.Clamp, ops.ReLU, ops.Select,
    ops.CumSum, ops.Range, ops.Concat, ops.Pad, ops.Convert,
)
_ROUNDING = (ops.Floor, ops.Ceiling, ops.Round)
_DIVIDING = (ops.Divide, ops.Power, ops.ReduceMean, ops.ReduceL2)
_PRODUCTS = (ops.MatMul, ops.Convolution)

_FRACTION, _WHOLE = 1, 2
_LOOKED_AT = 1 << 16
"""The number of elements of a constant above which it is not searched for fractions."""


class KeepIntegersPrecise(FunctionPass):
    """Convert(f(Convert(i)))  ->  the same, marked as `precise`, where i and the result are integers or booleans

    Where the runtime computes in bf16 or f16 by default, it rounds integers above 256 or 2,048 in f32. It keeps the
    precision of marked layers. A product is marked if both operands are whole numbers.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        if not graph.has(ops.Convert, ops.Comparison):
            return False
        levels: dict[Value, int] = {}
        ends: list[Node] = []
        for node in graph.ordered():
            if isinstance(node, Constant):
                continue
            read = [value for value in node.operands if _is_float(value)]
            given = [value for value in read if isinstance(value.node, Constant)]
            made = [levels.get(value, 0) for value in read if not isinstance(value.node, Constant)]
            level = min(made, default=_WHOLE if given else 0)
            for value in given if level else ():  # the numbers of weights among floats are not read
                if value not in levels:
                    levels[value] = _WHOLE if _is_whole(value) else _FRACTION
                level = min(level, levels[value])
            if isinstance(node, _ROUNDING) or (isinstance(node, ops.Convert) and not read):
                level = _WHOLE
            elif isinstance(node, _DIVIDING):
                level = min(level, _FRACTION)
            elif isinstance(node, _PRODUCTS):
                level = level if level == _WHOLE else 0
            elif not isinstance(node, _KEEPING):
                level = 0
            levels |= {each: level for each in node.outputs if _is_float(each)}
            if isinstance(node, ops.Convert | ops.Comparison) and level and read and not _is_float(node.outputs[0]):
                ends.append(node)

        def makers(node: Node) -> list[Node]:
            values = (each for each in node.operands if levels.get(each))
            return [each.node for each in values if not isinstance(each.node, Constant)]

        marked = [each for each in reached(ends, makers) if PRECISE not in each.rt_info]
        for each in marked:
            each.rt_info[PRECISE] = {"version": 0}
        return bool(marked)


def _is_float(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.dtype.is_float


def _is_whole(constant: Value) -> bool:
    node: Any = constant.node
    return node.tensor.size <= _LOOKED_AT and bool(np.all(np.rint(node.array) == node.array))
