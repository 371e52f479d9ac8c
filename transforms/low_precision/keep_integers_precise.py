"""Integers that are computed in floating point, in every precision of the runtime.

    Convert(i32) -> Multiply by 1/7 -> Floor -> Convert        marked
    Convert(u8) -> MatMul with integers -> Convert             marked
    Parameter of f32 -> Multiply by 1/7 -> Floor -> Convert    from Floor on: the runtime rounds its input anyway
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop.graph.types import TensorType
from mo_loop.support.traversal import reached
from mo_loop.transforms.vocabulary import Constant, FunctionPass, Graph, Node, Value, ops

PRECISE = "precise"
"""The name of the mark in the rt_info of a layer."""

_KEEPING = (
    ops.Binary, ops.Reduction, ops.Movement, ops.Abs, ops.Negative, ops.Sign, ops.Clamp, ops.ReLU, ops.Select,
    ops.CumSum, ops.Range, ops.Concat, ops.Pad, ops.Convert,
)  # fmt: skip
_ROUNDING = (ops.Floor, ops.Ceiling, ops.Round)
_DIVIDING = (ops.Divide, ops.Power, ops.ReduceMean, ops.ReduceL2)
_PRODUCTS = (ops.MatMul, ops.Convolution)

_FRACTION, _WHOLE = 1, 2
_LOOKED_AT = 1 << 16
"""The number of elements of a constant above which it is not searched for fractions."""


class KeepIntegersPrecise(FunctionPass):
    """Convert(f(Convert(i)))  ->  the same, marked as `precise`, where i and the result are integers or booleans

    Where the runtime computes in bf16 or f16 by default, it rounds integers above 256 or 2,048 in f32. It keeps the
    precision of marked layers. A product is marked if both operands are whole numbers.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        levels: dict[Value, int] = {}
        ends: list[Node] = []
        for node in graph.ordered():
            if isinstance(node, Constant):
                continue
            read = [value for value in node.operands if _is_float(value)]
            given = [value for value in read if isinstance(value.node, Constant)]
            made = [levels.get(value, 0) for value in read if not isinstance(value.node, Constant)]
            level = min(made, default=_WHOLE if given else 0)
            for value in given if level else ():  # the numbers of weights among floats are not read
                if value not in levels:
                    levels[value] = _WHOLE if _is_whole(value) else _FRACTION
                level = min(level, levels[value])
            if isinstance(node, _ROUNDING) or (isinstance(node, ops.Convert) and not read):
                level = _WHOLE
            elif isinstance(node, _DIVIDING):
                level = min(level, _FRACTION)
            elif isinstance(node, _PRODUCTS):
                level = level if level == _WHOLE else 0
            elif not isinstance(node, _KEEPING):
                level = 0
            levels |= {each: level for each in node.outputs if _is_float(each)}
            if isinstance(node, ops.Convert | ops.Comparison) and level and read and not _is_float(node.outputs[0]):
                ends.append(node)

        def makers(node: Node) -> list[Node]:
            values = (each for each in node.operands if levels.get(each))
            return [each.node for each in values if not isinstance(each.node, Constant)]

        marked = [each for each in reached(ends, makers) if PRECISE not in each.rt_info]
        for each in marked:
            each.rt_info[PRECISE] = {"version": 0}
        return bool(marked)


def _is_float(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.dtype.is_float


def _is_whole(constant: Value) -> bool:
    node: Any = constant.node
    return node.tensor.size <= _LOOKED_AT and bool(np.all(np.rint(node.array) == node.array))
