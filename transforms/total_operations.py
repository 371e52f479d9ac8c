"""Operations that cannot fail on any data, and bodies that the runtime can execute where the model does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

import numpy as np

from mo_loop.graph.shape import Shape, normalise_axis
from mo_loop.graph.types import TensorType, string
from mo_loop.ops.control import If
from mo_loop.transforms.vocabulary import Constant, Graph, Identity, Node, Parameter, Result, Value, is_static, ops

DIVISIONS = (ops.Divide, ops.FloorMod, ops.Mod, ops.Power)

ELEMENTWISE = (ops.Unary, ops.Binary, ops.Select, ops.Classification, Identity, ops.Convert)
"""Operations of elements whose shapes have only to fit; a number for each channel has other conditions."""

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


def is_total(node: Node) -> bool:
    """Whether `node` cannot fail on any data: its shapes are proven to fit, and it neither divides nor indexes."""
    types = [None if value is None else value.type for value in node.inputs]
    if not all(isinstance(each, TensorType) and each.shape is not None for each in types if each is not None):
        return False
    shapes = [None if each is None else each.shape for each in types]
    if isinstance(node, DIVISIONS) and not node.inputs[0].dtype.is_float:
        return False
    if isinstance(node, ops.Binary | ops.Select):
        return fit(shapes)
    if isinstance(node, ops.MatMul):
        return _is_total_product(node, shapes)
    if isinstance(node, ops.Reshape):
        return is_static(shapes[0]) and _has_known_parameters(node)
    if isinstance(node, ops.Squeeze):
        if len(node.operands) == 1:
            return is_static(shapes[0])
        axes = node.operands[1].type.integers
        return axes is not None and all((shapes[0] or ())[axis] == 1 for axis in axes)
    if isinstance(node, ops.Concat):
        return fit_beside(shapes, node.axis)
    if isinstance(node, ops.Slice):
        return all(each.type.integers is not None for each in node.operands[3:]) and all(map(is_static, shapes[1:]))
    if isinstance(node, ops.Split | ops.VariadicSplit):
        axes = node.operands[1].type.integers
        return _has_known_parameters(node) and isinstance((shapes[0] or ())[(axes or (0,))[0]], int)
    checked = (ops.Reduction, ops.Unsqueeze, ops.Transpose, ops.CumSum, ops.MVN, ops.NormalizeL2, ops.Tile)
    if isinstance(node, checked):
        return _has_known_parameters(node)
    return isinstance(node, ops.Unary | ops.AlongAxis | ops.Convert | ops.Identity | ops.ShapeOf)


def _has_known_parameters(node: Node) -> bool:
    """Whether pattern, axes or order are known at conversion, so that inference has checked them."""
    return all(value is None or value.type.integers is not None for value in node.inputs[1:])


def _is_total_product(node: ops.MatMul, shapes: list[Shape]) -> bool:
    a, b = shapes
    if not a or not b or len(a) < 2 or len(b) < 2:
        return is_static(a) and is_static(b)
    inner = (a[-2 if node.transpose_a else -1], b[-1 if node.transpose_b else -2])
    return inner[0] == inner[1] and fit([a[:-2], b[:-2]])
