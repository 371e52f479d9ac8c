"""Products with gates. The sums of the family have no kernels for CPUs."""

import numpy as np

from tests.fuzz.operators.draw import Draw, Node


def scaled_silu(d: Draw) -> Node:
    x = d.data(d.shape(0, 4), d.dtype("T"))
    scale = d.parameter(np.array(d.number(-1.5, 2)), d.dtype("M"))
    return d.node([x, d.optional(scale, 0.4)], alpha=d.maybe(d.number(-1.5, 2)))


def gated_add(d: Draw) -> Node:
    """The gate has one number for each row."""
    dtype, shape = d.dtype("T"), d.shape(1, 4)
    return d.node([d.data(shape, dtype), d.data(shape, dtype), d.data([*shape[:-1], 1], dtype)])


OPERATORS = {"com.microsoft::ScaledSiLU": scaled_silu, "com.microsoft::GatedAdd": gated_add}
