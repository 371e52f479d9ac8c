"""Quantised tensors: operations that only move elements, activations in the form that the runtime computes with
integers, and all others as compositions of simple operations with ONNX's numbers.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mo_loop.graph.types import ElementType, f32, u8
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
from mo_loop.ops.quantization import limits, spread
from mo_loop.support.traversal import reached
from mo_loop.transforms.folding import fold_constants
from mo_loop.transforms.low_precision.weights import is_weights
from mo_loop.transforms.replace import replace_node, supersede
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Graph, Value, ops

MOVING = (ops.View, ops.Transpose, ops.Slice, ops.DepthToSpace, ops.Gather, ops.MaxPool, ops.MaxPool8)
"""Operations whose first output has elements of their first input only."""


class DequantizeBeforeMovement(FunctionPass):
    """Dequantize(MaxPool(q))  ->  MaxPool(Dequantize(q)), and so for other operations that only move elements

    Then a Quantize before the operation becomes a FakeQuantize. The scale must be one positive number. Other readers of
    the moved tensor keep it.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        pending = list(self.candidates(graph, ops.Dequantize))
        while pending:
            node = pending.pop()
            made = self._move(node) if node in graph else []
            changed = bool(made) or changed
            pending += made
        return changed

    def _move(self, node: ops.Dequantize) -> list[ops.Dequantize]:
        value = node.operands[0]
        mover = value.node
        if value.index or not isinstance(mover, (*MOVING, ops.Concat)):
            self.refuse(node, "its input is not the result of an operation that only moves elements")
            return []
        if not _has_one_scale(node) or not _is_quantised(value):
            self.refuse(node, "it has several scales, or its input does not come from a Quantize")
            return []
        count = len(mover.inputs) if isinstance(mover, ops.Concat) else 1
        made = [ops.Dequantize(each, *node.inputs[1:], to=node.to) for each in mover.inputs[:count]]
        moved = type(mover)(*(each.output for each in made), *mover.inputs[count:], **mover.attribute_values())
        supersede(node, moved.outputs[0])
        self.accept(node)
        return made


def _has_one_scale(node: ops.Dequantize) -> bool:
    scale = node.inputs[1]
    if scale is None or not isinstance(scale.node, Constant) or not np.all(scale.node.array > 0):
        return False
    return not node.block_size and all(each is None or each.shape in ((), (1,)) for each in node.inputs[1:])


def _is_quantised(value: Value) -> bool:
    """Whether one of the elements comes from a Quantize."""
    return any(isinstance(each.node, ops.Quantize) for each in reached([value], _moved))


def _moved(value: Value) -> list[Value]:
    """The values whose elements an operation only moves."""
    node = value.node
    inputs = node.inputs if isinstance(node, ops.Concat) else node.inputs[:1] if isinstance(node, MOVING) else ()
    return [each for each in inputs if each is not None]


Array = np.ndarray[Any, Any]
LARGEST_BOUND = 2.0**17


class QuantizeToFakeQuantize(FunctionPass):
    """Dequantize(Quantize(x))  ->  FakeQuantize(x)

    The low-precision transformations of the runtime recognise FakeQuantize before convolutions and matrix products and
    compute these with integers. It rounds after adding the zero point and multiplies by the reciprocal of the scale, so
    a result may differ by one step. Scales and zero points must be constants, one for all or one for each slice along
    the first two axes. The runtime removes a FakeQuantize of 16 bits, and with it the limits of its range, so values of
    more than 8 bits are rounded in f32:

        Dequantize(Quantize(x))  ->  Clamp(Round(x * (1 / scale)), least - zero point, most - zero point) * scale

    Those of a range beyond LARGEST_BOUND stay as they are, such as attention masks with -1e9 or the smallest f32:
    FakeQuantize adds the lower bound last, and returns for 0 the rounding error of this sum, which is then larger than
    the values to which the mask is added.
    """

    kinds = (ops.Dequantize,)

    def rewrite(self, node: ops.Dequantize) -> bool:
        source = node.operands[0].node
        if not isinstance(source, ops.Quantize):
            return self.refuse(node, "its input is not quantised in this graph")
        x = source.operands[0]
        if not source.to.is_integer or x.rank is None:
            return self.refuse(node, f"values of {source.to}, or of unknown rank")
        if source.to.bits > 8:
            return self._round(node, source, x, x.rank)
        ranges = _range(source, x.rank), _range(node, x.rank)
        if None in ranges:
            return self.refuse(node, "its scales are not constants, or one for each block")
        if any(np.abs(each).max(initial=0) > LARGEST_BOUND for pair in ranges for each in pair or ()):
            return self.refuse(node, f"its range is beyond {LARGEST_BOUND:g}, where FakeQuantize does not keep 0")
        if any(size != 1 for pair in ranges for each in pair or () for size in each.shape[2:]):
            return self.refuse(node, "its scales vary along an axis after the second, which the runtime refuses")
        bounds = [Constant(each, graph=node.graph) for pair in ranges for each in pair or ()]
        return self._replace(node, F.FakeQuantize(as_float(x), *bounds, levels=1 << source.to.bits))

    def _round(self, node: ops.Dequantize, source: ops.Quantize, x: Value, rank: int) -> bool:
        """A pair of more than 8 bits whose range is the same for all elements, in f32."""
        first, second = _parameters(source, rank), _parameters(node, rank)
        if first is None or second is None:
            return self.refuse(node, "its scales are not constants, or one for each block")
        (scale, zero), (factor, other) = first, second
        if zero.size > 1 or not np.array_equal(zero, other) or scale.min() < 1e-37:
            return self.refuse(node, "it has several zero points, not those of its QuantizeLinear, or tiny scales")
        least, most = (float(each - zero.item()) for each in limits(source.to))
        rounded = F.Round(as_float(x) * (1 / scale).astype(np.float32))
        return self._replace(node, F.Clamp(rounded, min=least, max=most) * factor.astype(np.float32))

    def _replace(self, node: ops.Dequantize, made: Value) -> bool:
        supersede(node, made.astype(node.to))
        return self.accept(node)


def _range(node: ops.Quantize | ops.Dequantize, rank: int) -> tuple[Array, ...] | None:
    """The dequantised values of the least and the largest integer; None if they are not constants."""
    kind = node.to if isinstance(node, ops.Quantize) else node.inputs[0].type.dtype
    found = _parameters(node, rank)
    if found is None:
        return None
    scale, zero = found
    return tuple(((bound - zero) * scale).astype(np.float32) for bound in limits(kind))


def _parameters(node: ops.Quantize | ops.Dequantize, rank: int) -> tuple[Array, Array] | None:
    """The scale, which is positive, and the zero point in f64; None if they are not constants."""
    parameters = node.inputs[1:3]
    if node.block_size or not all(each is None or isinstance(each.node, Constant) for each in parameters):
        return None
    scale, *zeros = [
        spread(each.node.array.astype(np.float64), node.axis, [1] * rank) for each in parameters if each is not None
    ]
    return (scale, zeros[0] if zeros else np.zeros(1)) if np.all(np.isfinite(scale) & (scale > 0)) else None


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
        x, parameters = node.operands[0], node.inputs[1:]
        axis = node.axis + x.rank if node.axis < 0 and x.rank else node.axis
        supersede(node, over_elements(x, lambda each: _quantised(node, each, axis), *parameters, axis=axis))
        return self.accept(node)

    def _dequantize(self, node: ops.Dequantize) -> bool:
        if is_weights(node.output):
            return self.refuse(node, "CompressWeights lowers it")
        x, scale, zero = (*node.inputs, None)[:3]
        assert x is not None and scale is not None
        y = as_float(x)
        if zero is not None:
            y = self._kept(y - as_float(aligned(x, zero, node.axis, node.block_size)))
        y = y * as_float(aligned(x, scale, node.axis, node.block_size))
        supersede(node, y.astype(node.to))
        return self.accept(node)

    def _kept(self, x: Value) -> Value:
        return F.Barrier(x, hides="memory") if self.exact else x

    def _quantize_dynamically(self, node: ops.DynamicQuantize) -> bool:
        x = node.operands[0]
        least, most = extremes(x)
        scale = quotient(most - least, F.Constant(np.float32(255), graph=node.graph))
        # ONNX's definition divides by a scale of 0 here; ONNX Runtime uses 1.
        scale = F.Select(F.Equal(scale, 0), np.float32(1), scale)
        zero = F.Round(F.Clamp(steps(-least, scale), min=0.0, max=255.0))
        y = over_elements(x, lambda each: rounded_to(u8, steps(each, scale), zero))
        replace_node(node, (y, scale, F.Convert(zero, destination_type=u8)))
        return self.accept(node)

    def _multiply(self, node: ops.IntegerMatMul) -> bool:
        a, b, a_zero, b_zero = (*node.inputs, None, None)[:4]
        assert a is not None and b is not None
        largest = None if b.rank is None else largest_sum(b, b_zero, -1, [max(b.rank - 2, 0)])
        left, right = centred(a, a_zero, -1 if a.rank == 1 else -2), centred_weights(b, b_zero, -1)
        supersede(node, integer_product(left, right, lambda a, b: a @ b, largest))
        return self.accept(node)

    def _choose(self, node: ops.RoundedOrExact) -> bool:
        # The Convert to an integer stays: without it the runtime multiplies the weights by a scale after the product.
        supersede(node, node.operands[1])
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


def _divided(to: ElementType, x: Value, scale: Value) -> Value:
    """x / scale, as exact as the type of the result needs it."""
    if to.is_float:
        return quotient(x, scale, 2.0**60)
    return steps(x, scale) if to.bits <= 8 else steps(x, scale, 1 << 17)
