"""Zeros that the runtime cannot fold."""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import i64
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control, If, Loop
from mo_loop.ops.port_map import Branched, Invariant


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
    """An `opaque_zero` in the outermost graph, passed into all bodies.

    The runtime evaluates loops whose inputs are all constants. If it cannot evaluate a body, it returns arbitrary
    memory.
    """
    return opaque_zero(graph) if graph.owner is None else _captured(graph, zero_from_outside(graph.owner.graph))


def nearest_zero(graph: Graph, known: dict[Graph, Value]) -> Value:
    """0 of type i64[1] for a graph: min(i, 0) with the iteration number i of the innermost Loop around it, else one
    from the outermost graph. `known` has the zeros made before, by graph."""
    if graph not in known:
        known[graph] = _nearest_zero(graph, known)
    return known[graph]


def _nearest_zero(graph: Graph, known: dict[Graph, Value]) -> Value:
    owner = graph.owner
    if owner is None:
        return opaque_zero(graph)
    if isinstance(owner, Loop):
        if owner.iteration is None:
            owner.iteration = Parameter(graph=graph, dtype=i64, shape=())
        return ops.Reshape(ops.Minimum(owner.iteration, 0), [1]).output
    zero = _captured(graph, nearest_zero(owner.graph, known))
    return zero if isinstance(owner, If) else ops.Maximum(zero, zero).output  # see IsolateParameters


def _captured(graph: Graph, value: Value) -> Value:
    """A Parameter of a body for a value of the graph around it."""
    owner = graph.owner
    assert isinstance(owner, Control)
    parameter = Parameter(graph=graph, type=value.type.without_known())
    entry: Any = Invariant(parameter)
    if isinstance(owner, If):
        entry = Branched(*(parameter if body is graph else None for body in owner.bodies))
    owner.input_map = (*owner.input_map, entry)
    owner.graph.set_inputs(owner, [*owner.inputs, value])
    return parameter.output
