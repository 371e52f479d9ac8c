"""Exact arithmetic for operators whose rounding depends on the last bit of a number.

The runtime computes a / b as a * (1 / b), where the last bit differs for 4 of 10 quotients: 126.5 becomes 126.49999.
It also drops an Abs whose input is constant at compile time, whatever its sign.
"""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.ops.base import Constant


def quotient(a, b) -> Value:
    """a / b in f32, corrected by the remainder that the product with b leaves; the quotient must be finite."""
    first = ops.Divide(a, b)
    if _is_folded(a, b):
        return first.output
    missing = ops.Subtract(a, ops.Multiply(first, b))
    return ops.Add(first, ops.Divide(missing, b)).output


def _is_folded(*values) -> bool:
    return all(isinstance(each, Value) and isinstance(each.node, Constant) for each in values)


def steps(a: Value, b: Value) -> Value:
    """a / b in f32, correctly rounded near the halves between whole numbers below 512, where the next rounding decides.

    A half has few bits, and so has each part of b, so that their products are exact:

        h = round(2 a / b) / 2        a / b = h + ((a - h * high) - h * low) / b        b = high + low
    """
    first = ops.Divide(a, b)
    if _is_folded(a, b):
        return first.output
    half = ops.Multiply(ops.Round(ops.Multiply(ops.Clamp(first, min=-512.0, max=512.0), 2)), 0.5)
    far = ops.Multiply(b, 4097)
    high = ops.Subtract(far, ops.Subtract(far, b))
    low = ops.Subtract(b, high)
    rest = ops.Subtract(ops.Subtract(a, ops.Multiply(half, high)), ops.Multiply(half, low))
    return ops.Add(half, ops.Divide(rest, b)).output


def magnitude(x) -> Value:
    """|x|"""
    return ops.Maximum(x, ops.Negative(x)).output
