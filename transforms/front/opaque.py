"""A zero that nobody can fold."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Constant
from mo_loop.types import i64


def opaque_zero(graph: Graph) -> Value:
    """0 of type i64[1], a random integer of [0, 1): no inference of shapes or bounds sees that it is constant.

    The runtime's own folding stops at random numbers, but its inference of bounds evaluates them; that in turn stops
    at ReverseSequence, which it cannot evaluate.
    """
    shape = Constant(np.array([1, 1]), graph=graph, dtype=i64)
    low, high = (Constant(each, graph=graph, dtype=i64) for each in (0, 1))
    number = ops.RandomUniform(shape, low, high, output_type=i64)
    return ops.Reshape(ops.ReverseSequence(number, [1]), [1]).output
