"""Arithmetic: functions of one element, of two, running sums."""

import numpy as np

from tests.fuzz.operators.draw import Draw, Node
from tests.fuzz.operators.table import binary, unary, variadic


def mod(d: Draw) -> Node:
    """Floats only with `fmod`."""
    dtype = d.dtype()
    a, b = d.broadcast(2)
    fmod = 1 if dtype.kind == "f" else d.maybe(d.pick(0, 1))
    return d.node([d.data(a, dtype, "extreme"), d.data(b, dtype, "nonzero", constant=0.4)], fmod=fmod)


def power(d: Draw) -> Node:
    """Bases and exponents whose power is a number of ordinary size."""
    base, exponent = d.dtype("T"), d.dtype("T1") if d.since >= 12 else d.dtype("T")
    a, b = d.broadcast(2)
    whole = d.chance(0.5)
    values = d.data(b, exponent, "small", constant=0.4)
    if whole or exponent.kind != "f":
        values.array = np.abs(np.round(values.array)).astype(exponent)
    return d.node([d.data(a, base, "any" if whole and base.kind != "u" else "positive"), values])


def running(d: Draw) -> Node:
    """CumSum and CumProd: the axis is an input."""
    x = d.data(d.shape(1, 4), d.dtype("T"), "small" if d.op == "CumProd" else "any")
    axis = d.axis(x.rank)
    kind = d.dtype("T2") if d.op == "CumSum" else np.dtype(d.pick(np.int32, np.int64))
    return d.node([x, d.parameter(axis if d.chance(0.7) else [axis], kind)], exclusive=d.maybe(d.pick(0, 1)),
                  reverse=d.maybe(d.pick(0, 1)))


OPERATORS = {**dict.fromkeys(("Abs", "Neg", "Sign", "Ceil", "Floor", "Round"), unary("special")),
             **dict.fromkeys(("Sin", "Cos", "Atan", "Tanh", "Asinh", "Erf", "Sinh", "Cosh"), unary("any")),
             **dict.fromkeys(("Tan", "Asin", "Acos", "Atanh"), unary("unit")), "Exp": unary("small"),
             "Sqrt": unary("positive"), "Log": unary("positive"), "Acosh": unary("above one"),
             "Reciprocal": unary("nonzero"), **dict.fromkeys(("Add", "Sub", "Mul"), binary("extreme")),
             "Div": binary("extreme", "positive"), "Mod": mod, "Pow": power,
             **dict.fromkeys(("Max", "Min"), variadic("special")), **dict.fromkeys(("Sum", "Mean"), variadic("any")),
             "CumSum": running, "CumProd": running}
