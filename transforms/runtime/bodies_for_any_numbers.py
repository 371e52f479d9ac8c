"""Bodies that the runtime can execute where the model does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import Shape, is_static, normalise_axis
from mo_loop.graph.types import string
from mo_loop.ops.base import Constant, Identity, Parameter, Result
from mo_loop.ops.control import If

ELEMENTWISE = (ops.Unary, ops.Binary, ops.Select, ops.Classification, Identity, ops.Convert)
FOR_ALL_NUMBERS = (Parameter, Result, Constant, ops.Reduction, ops.ShapeOf, ops.View)
"""Operations that read the numbers of their first input alone, if the other ones are constants."""


def is_harmless(body: Graph) -> bool:
    """Whether the runtime executes `body` without an error, and to an end, for any numbers."""
    return all(cannot_fail(node) for node in body.ordered())


def cannot_fail(node: Node) -> bool:
    """Whether the runtime executes `node` without an error, and to an end, for any numbers."""
    values = list(node.operands)
    if any(each.dtype is string or each.shape is None for each in (*values, *node.outputs)):
        return False
    if isinstance(node, If):
        return all(map(is_harmless, node.bodies))
    if isinstance(node, ops.Divide | ops.Mod | ops.FloorMod):
        return _has_divisor(node) and _fit(values)
    if isinstance(node, ELEMENTWISE):
        return _fit(values)
    if isinstance(node, ops.Concat):
        return fit_beside([each.shape for each in values], node.axis)
    if isinstance(node, ops.Gather):  # an index outside gives zeros, or arbitrary numbers
        return node.batch_dims == 0 and isinstance(values[2].node, Constant)
    if isinstance(node, ops.Slice):
        return all(isinstance(each.node, Constant) for each in values[3:])
    if isinstance(node, ops.Squeeze | ops.Reshape) and not is_static(values[0].shape):
        return False
    return isinstance(node, FOR_ALL_NUMBERS) and all(isinstance(each.node, Constant) for each in values[1:])


def _has_divisor(node: ops.Binary) -> bool:
    """Whether no division by 0 can end the process."""
    divisor = node.operands[1]
    known = divisor.type.integers if divisor.constant is None else divisor.constant
    return node.output.dtype.is_float or (known is not None and bool(np.all(known)))


def _fit(values: list[Value]) -> bool:
    return all(is_static(each.shape) for each in values) or fit(each.shape for each in values)


def fit(shapes: Iterable[Shape]) -> bool:
    """Whether all shapes can surely be broadcast: inference assumes it where a size is unknown."""
    counted_from_end = zip_longest(*(reversed(shape or ()) for shape in shapes), fillvalue=1)
    return all(len(set(dims) - {1}) <= 1 for dims in counted_from_end)


def fit_beside(shapes: Sequence[Shape], axis: int) -> bool:
    """Whether all sizes but those along an axis are surely equal."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return False
    at = normalise_axis(axis, len(known[0]))
    return all(place == at or len(set(dims)) == 1 for place, dims in enumerate(zip(*known, strict=True)))
