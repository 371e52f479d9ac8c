"""Activations whose scale is known at run time, with the operations that the runtime computes fast.

The runtime multiplies by 1 / scale, so that an integer may differ by one step from that of DynamicQuantizeLinear.
The scale itself is exact: in the range -1 to 1, for example, the ends lie in the middle of two steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.ops.base import Constant
from mo_loop.ops.exact import extremes, quotient
from mo_loop.transforms.replace import drop_dead, replace_output

EXACT_FORM = 3
"""The input of a Quantize that has the exact form of its numbers."""

MOST = 255
LEAST_SPAN = np.float32(1e-30)
"""In place of the span 0 of activations that are all 0: their integers are 0 with every scale."""


def integers_of(quantised: ops.DynamicQuantize) -> tuple[Value, Value, Value]:
    """The integers in f32, which may exceed 0 to 255 by one step, their scale and their zero point."""
    graph, x = quantised.graph, quantised.inputs[0]
    assert x is not None
    least, most = extremes(x)
    span = ops.Maximum(ops.Subtract(most, least), LEAST_SPAN).output
    scale = quotient(span, Constant(np.float32(MOST), graph=graph).output)
    inverse = ops.Divide(Constant(np.float32(1), graph=graph), scale)
    zero = ops.Round(ops.Multiply(ops.Negative(least), inverse)).output
    return ops.Add(ops.Round(ops.Multiply(x, inverse)), zero).output, scale, zero


def is_read_as_float(value: Value) -> bool:
    """Whether all readers convert the integers to floating point, and a rounding error in them changes no integer.

    The exact form of a Quantize is such a product times a scale. Without integers between them the runtime would
    multiply the weights by the scale, and numbers in the middle of two steps would be rounded to the other one.
    """
    readers = [use.node for use in value.uses]
    return all(isinstance(each, ops.Convert) and each.destination_type.is_float for each in readers) and not any(
        isinstance(behind.node, ops.Quantize) and behind.port == EXACT_FORM
        for each in readers for use in each.outputs[0].uses if use.node.outputs for behind in use.node.outputs[0].uses
    )  # fmt: skip


def replace_converted(value: Value, make: Callable[[], Value]) -> None:
    """The readers of a value, which convert it to floating point, are replaced by a value in f32."""
    readers = [use.node for use in value.uses]
    made = make() if readers else None
    for each in readers:
        assert made is not None and isinstance(each, ops.Convert)
        kind = each.destination_type
        same = kind is made.dtype
        replace_output(each.output, made if same else ops.Convert(made, destination_type=kind).output)
    drop_dead([*readers, value.node])
