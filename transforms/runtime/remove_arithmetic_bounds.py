"""Arithmetic on dimensions for which the runtime infers wrong bounds."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Control
from transforms.function_pass import FunctionPass

WRONG_BELOW_0 = (ops.Mod, ops.Abs, ops.Power, ops.ReduceProd)
"""Operations whose extremes lie at the ends of an interval, unless it contains negative numbers."""

KINDS = (ops.FloorMod, *WRONG_BELOW_0)

UNKNOWN_TO_INFERENCE = (Control, ops.Barrier, ops.CumSum, ops.RandomUniform, ops.ReverseSequence)
"""Operations at which the runtime's inference of bounds stops."""


class RemoveArithmeticBounds(FunctionPass):
    """FloorMod(n, 4), where n is a dimension of 4..8  ->  FloorMod(Barrier(n, bounds), 4)

    The runtime infers bounds of values that are computed from dimensions. For FloorMod, Mod, Abs, Power and ReduceProd
    it computes them from the bounds of the inputs alone: for 4..8 modulo 4 it infers 0 and 0, and replaces the node by
    the constant 0. All but FloorMod are correct if nothing is negative.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        if not any(graph.of(kind) for kind in KINDS):
            return False
        changed = False
        bounded: dict[Value, bool] = {}  # values with bounds -> whether they may be negative
        for node in list(graph.ordered()):
            if isinstance(node, KINDS) and not self.leaves(node):
                changed = self._remove_bounds(node, bounded) or changed
            if _has_bounds(node, bounded):
                made = (each for each in node.outputs if is_static(each.shape) and not _is_known(each))
                bounded.update(dict.fromkeys(made, _may_be_negative(node, bounded)))
        self.at = None
        return changed

    def _remove_bounds(self, node: Node, bounded: dict[Value, bool]) -> bool:
        if not _has_bounds(node, bounded):
            return self.refuse(node, "the runtime infers no bounds for its inputs")
        if isinstance(node, WRONG_BELOW_0) and not _may_be_negative(node, bounded):
            return self.refuse(node, "its inputs are not negative")
        port = next(port for port, value in enumerate(node.inputs) if value in bounded)
        size = node.inputs[port]
        assert size is not None
        node.graph.set_input(node, port, ops.Barrier(size, hides="bounds").output)
        return self.accept(node)


def _has_bounds(node: Node, bounded: dict[Value, bool]) -> bool:
    """Whether the runtime infers bounds for the outputs of `node`: it reads only dimensions and constants."""
    if isinstance(node, UNKNOWN_TO_INFERENCE) or not node.inputs:
        return False
    if isinstance(node, ops.ShapeOf):
        return True
    return any(value in bounded for value in node.inputs) and all(
        value in bounded or _is_known(value) for value in node.inputs
    )


def _may_be_negative(node: Node, bounded: dict[Value, bool]) -> bool:
    """Whether an input of `node`, or the difference that it computes, may be negative."""
    if isinstance(node, ops.ShapeOf):
        return False
    return isinstance(node, ops.Subtract | ops.Negative) or any(
        bounded[value] if value in bounded else _has_negative(value) for value in node.inputs if value is not None
    )


def _has_negative(value: Value) -> bool:
    numbers = value.type.integers if value.constant is None else value.constant
    return bool(np.any(np.less(np.asarray(numbers), 0)))


def _is_known(value: Value | None) -> bool:
    return value is None or isinstance(value.node, Constant) or value.type.integers is not None
