"""The cost of one step of a loop: the nodes that the runtime executes, and the numbers that they read and write."""

from __future__ import annotations

import math
from collections.abc import Collection

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Constant, Parameter, Result

LANES = 8
"""Multiplications of a product that take as long as one number of an element-wise operation."""


def step_nodes(body: Graph) -> int:
    """The number of nodes that one step executes, at least 1."""
    every = (each for scope in body.scopes() for each in scope)
    return max(1, sum(not isinstance(each, Constant | Parameter | Result) for each in every))


def has_known_shapes(body: Graph, besides: Collection[Node] = ()) -> bool:
    """Whether the shapes of all values of a step are known at conversion, except those that `besides` reads."""
    read = (value for scope in body.scopes() for each in scope if each not in besides for value in each.operands)
    return all(is_static(value.shape) for value in read)


def numbers_touched(body: Graph) -> int:
    """The approximate count of numbers that one step writes; an unknown size counts as 1."""
    total = 0
    for node in (each for scope in body.scopes() for each in scope):
        if isinstance(node, Constant | Parameter | Result):
            continue
        written = sum(_elements(output) for output in node.outputs)
        weights = node.inputs[1] if len(node.inputs) > 1 else None
        if isinstance(node, ops.MatMul) and weights is not None and weights.shape:
            at = -1 if node.transpose_b or len(weights.shape) == 1 else -2
            depth = weights.shape[at]
            written += written * (depth if isinstance(depth, int) else 1) // LANES
        elif isinstance(node, ops.Filtered) and weights:
            written += written * _elements(weights) // (LANES * max(1, _size(node.outputs[0], 1)))
        total += written
    return total


def _elements(value: Value) -> int:
    shape = value.shape
    return 1 if shape is None else math.prod(dim if isinstance(dim, int) else 1 for dim in shape)


def _size(value: Value, axis: int) -> int:
    dim = value.type.dims[axis]
    return dim if isinstance(dim, int) else 1
