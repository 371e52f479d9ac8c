"""Values that the runtime cannot fold: a zero, numbers without bounds, and a tensor without bounds on its shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import i64
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Branched, Control, If, Invariant


def opaque_zero(graph: Graph) -> Value:
    """0 of type i64[1], a random integer of [0, 1): no inference of shapes or bounds recognises that it is constant.

    The runtime does not fold random numbers, but its inference of bounds evaluates them. That inference stops at
    ReverseSequence, which it cannot evaluate.
    """
    shape = Constant(np.array([1, 1]), graph=graph, dtype=i64)
    low, high = (Constant(each, graph=graph, dtype=i64) for each in (0, 1))
    number = ops.RandomUniform(shape, low, high, output_type=i64)
    return ops.Reshape(ops.ReverseSequence(number, [1]), [1]).output


def zero_from_outside(graph: Graph) -> Value:
    """The same, made in the outermost graph and passed into all bodies.

    The runtime evaluates loops whose inputs are all constants. If it cannot evaluate a body, it returns arbitrary
    memory.
    """
    owner = graph.owner
    if owner is None:
        return opaque_zero(graph)
    zero = zero_from_outside(owner.graph)
    parameter = Parameter(graph=graph, type=zero.type.without_known())
    if isinstance(owner, If):
        then, otherwise = (parameter if body is graph else None for body in owner.bodies)
        entry: Any = Branched(then, otherwise)
    else:
        entry = Invariant(parameter)
    assert isinstance(owner, Control)
    owner.input_map = (*owner.input_map, entry)
    owner.graph.set_inputs(owner, [*owner.inputs, zero])
    return parameter.output


def without_bounds(numbers: Value) -> Value:
    """Numbers of static shape, unchanged, without bounds for the runtime: its inference stops at CumSum."""
    dims = list(numbers.type.dims)
    if dims[:1] == [1]:
        return ops.CumSum(numbers, 0).output
    summed = ops.CumSum(ops.Reshape(numbers, [1, *dims]), 0)
    return ops.Reshape(summed, np.array(dims, np.int64)).output


def repeated_once(value: Value, axes: Sequence[int], zero: Value) -> Value:
    """`value` unchanged and of unknown size along `axes`: repeated 1 + `zero` times.

    `zero` is a zero [1] that is known only at run time.
    """
    once = ops.Add(zero, 1).output
    rank = value.type.rank
    for axis in axes:  # one at a time: the runtime fails on several axes if the repeats are known only at run time
        ones = [once if i == axis else Constant([1], graph=value.graph).output for i in range(rank)]
        value = ops.Tile(value, once if rank == 1 else ops.Concat(*ones, axis=0)).output
    return value
