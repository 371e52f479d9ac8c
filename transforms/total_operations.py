"""Operations that cannot fail on any data."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Node
from mo_loop.graph.shape import Shape, is_static
from mo_loop.graph.types import TensorType
from mo_loop.transforms.runtime.bodies_for_any_numbers import fit, fit_beside


def is_total(node: Node) -> bool:
    """Whether `node` cannot fail on any data: its shapes are proven to fit, and it neither divides nor indexes."""
    types = [None if value is None else value.type for value in node.inputs]
    if not all(isinstance(each, TensorType) and each.shape is not None for each in types if each is not None):
        return False
    shapes = [None if each is None else each.shape for each in types]
    if isinstance(node, ops.Divide | ops.FloorMod | ops.Mod | ops.Power) and not node.inputs[0].dtype.is_float:
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
