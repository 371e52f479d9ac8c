"""Quantised activations in the form that the runtime computes with integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.types import f32
from mo_loop.ops.base import Constant
from mo_loop.ops.exact import as_float
from mo_loop.ops.quantization import limits, spread
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import drop_dead, replace_output

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
        made = ops.FakeQuantize(as_float(x), *bounds, levels=1 << source.to.bits).output
        return self._replace(node, made)

    def _round(self, node: ops.Dequantize, source: ops.Quantize, x: Value, rank: int) -> bool:
        """A pair of more than 8 bits whose range is the same for all elements, in f32."""
        first, second = _parameters(source, rank), _parameters(node, rank)
        if first is None or second is None:
            return self.refuse(node, "its scales are not constants, or one for each block")
        (scale, zero), (factor, other) = first, second
        if zero.size > 1 or not np.array_equal(zero, other) or scale.min() < 1e-37:
            return self.refuse(node, "it has several zero points, not those of its QuantizeLinear, or tiny scales")
        least, most = (float(each - zero.item()) for each in limits(source.to))
        rounded = ops.Round(ops.Multiply(as_float(x), (1 / scale).astype(np.float32)))
        made = ops.Multiply(ops.Clamp(rounded, min=least, max=most), factor.astype(np.float32))
        return self._replace(node, made.output)

    def _replace(self, node: ops.Dequantize, made: Value) -> bool:
        replace_output(node.output, made if node.to is f32 else ops.Convert(made, destination_type=node.to).output)
        drop_dead([node])
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
    if not np.all(np.isfinite(scale) & (scale > 0)):
        return None
    return scale, zeros[0] if zeros else np.zeros(1)
