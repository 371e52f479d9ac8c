"""Bodies that the runtime can execute where the model does not."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import string
from mo_loop.ops.arithmetic import Binary, Divide, FloorMod, Mod, Unary
from mo_loop.ops.base import Constant, Identity, Parameter, Result
from mo_loop.ops.comparison import Classification, Select
from mo_loop.ops.control import If
from mo_loop.ops.reduction import Reduction

ELEMENTWISE = (Unary, Binary, Select, Classification, Identity, ops.Convert)
OTHERS = (Parameter, Result, Constant, ops.ShapeOf)


def is_harmless(body: Graph) -> bool:
    """Whether the runtime executes `body` without an error, and to an end, for any numbers."""
    return all(_is_harmless(node) for node in body.ordered())


def _is_harmless(node: Node) -> bool:
    if any(output.dtype is string for output in node.outputs):
        return False
    if isinstance(node, If):
        return all(map(is_harmless, node.bodies))
    if isinstance(node, Divide | Mod | FloorMod) and not _has_divisor(node):
        return False
    if isinstance(node, Reduction | ops.Unsqueeze):
        return all(axes is None or isinstance(axes.node, Constant) for axes in node.inputs[1:])
    return isinstance(node, OTHERS) or (isinstance(node, ELEMENTWISE) and _fit(node))


def _has_divisor(node: Binary) -> bool:
    """Whether the process does not end at a division by 0."""
    divisor = node.inputs[1]
    assert divisor is not None
    known = divisor.type.integers if divisor.constant is None else divisor.constant
    return node.output.dtype.is_float or (known is not None and bool(np.all(known)))


def _fit(node: Node) -> bool:
    """Whether the shapes of all inputs surely agree: inference takes it for granted where a size is unknown."""
    shapes = [value.shape for value in node.inputs if value is not None]
    if None in shapes:
        return False
    if all(is_static(shape) for shape in shapes):
        return True
    counted_from_end = zip_longest(*(reversed(shape or ()) for shape in shapes), fillvalue=1)
    return all(len(set(dims) - {1}) <= 1 for dims in counted_from_end)
