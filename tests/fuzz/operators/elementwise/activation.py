"""Activations: functions of one element, and those normalised along an axis."""

import numpy as np

from tests.fuzz.operators.draw import Draw, Node, Port
from tests.fuzz.operators.table import between, one_of, unary


def prelu(d: Draw) -> Node:
    """The slope is broadcast to x; before opset 7 it is one number, or one per channel."""
    dtype, x = d.dtype(), d.shape(1, 4)
    kept = d.integer(0, len(x))
    slope = [1 if d.chance(0.3) else dim for dim in x[len(x) - kept :]]
    return d.node([d.data(x, dtype), d.data(slope, dtype, constant=0.6)])


def clip(d: Draw) -> Node:
    """Bounds as attributes until opset 10, then as inputs, each of which may be absent."""
    dtype = d.dtype()
    low, high = sorted((d.number(-3, 3), d.number(-3, 3)))
    low, high = (low, high) if dtype.kind != "u" else (abs(low), abs(low) + abs(high))
    x = d.data(d.shape(), dtype, "special")
    if d.since < 11:
        return d.node([x], min=d.maybe(low), max=d.maybe(high))
    bounds: list[Port | None] = [d.optional(d.parameter(np.array(each), dtype)) for each in (low, high)]
    return d.node([x, *bounds])


def along(d: Draw) -> Node:
    """Softmax, LogSoftmax, Hardmax; before opset 13 the axis makes a matrix of the input."""
    x = d.data(d.shape(1, 5), d.dtype(), "masked" if d.chance(0.5) else "any")
    if x.rank == 0:
        return d.node([x])
    axis = d.axis(x.rank)
    return d.node([x], axis=d.maybe(axis) if x.rank > 1 or d.since >= 13 else axis)


_positive = between(0.2, 2)

OPERATORS = {"Relu": unary("any"), "LeakyRelu": unary(alpha=between(-0.5, 1.5)), "PRelu": prelu,
             "Elu": unary(alpha=_positive), "Celu": unary(alpha=_positive),
             "Selu": unary(alpha=_positive, gamma=_positive), "ThresholdedRelu": unary("special", alpha=between(-1, 2)),
             "Sigmoid": unary(), "HardSigmoid": unary(alpha=between(0.1, 1), beta=between(-0.5, 1)),
             **dict.fromkeys(("HardSwish", "Softplus", "Softsign", "Mish"), unary()),
             "Gelu": unary(approximate=one_of("none", "tanh")), "Swish": unary(alpha=between(0.5, 2)),
             "Shrink": unary(bias=between(-1, 1), lambd=between(0, 2)), "Clip": clip,
             **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), along)}
