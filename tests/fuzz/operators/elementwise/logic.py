"""Comparison, logic, bits, selection."""

import numpy as np

from tests.fuzz.operators.draw import Draw, Node
from tests.fuzz.operators.table import binary, one_of, unary


def where(d: Draw) -> Node:
    """A condition and two alternatives."""
    dtype = d.dtype()
    condition, x, y = d.broadcast(3)
    return d.node([d.data(condition, np.bool_), d.data(x, dtype, "special"), d.data(y, dtype, constant=0.3)])


def shift(d: Draw) -> Node:
    """By fewer bits than the type has."""
    dtype = d.dtype()
    a, b = d.broadcast(2)
    distance = d.data(b, dtype, "small", constant=0.4)
    distance.array = (np.abs(distance.array.astype(np.int64)) * 3 % (dtype.itemsize * 8)).astype(dtype)
    return d.node([d.data(a, dtype, "positive"), distance], direction=d.pick("LEFT", "RIGHT"))


_comparison, _logical, _bits = binary("special"), binary(), binary("extreme")

OPERATORS = {**dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"), _comparison),
             **dict.fromkeys(("And", "Or", "Xor"), _logical), "Not": unary(), "Where": where,
             **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), _bits), "BitwiseNot": unary("extreme"),
             "BitShift": shift, "IsNaN": unary("special"),
             "IsInf": unary("special", detect_negative=one_of(0, 1), detect_positive=one_of(0, 1))}
