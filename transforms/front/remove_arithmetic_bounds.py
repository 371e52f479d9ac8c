"""Sizes in arithmetic whose bounds the runtime gets wrong."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Control
from transforms.function_pass import FunctionPass
from transforms.unfoldable import without_bounds

WRONG_BELOW_0 = (ops.Mod, ops.Abs, ops.Power, ops.ReduceProd)
"""Operations whose extremes lie at the ends of an interval, but for one that reaches below 0."""

KINDS = (ops.FloorMod, *WRONG_BELOW_0)

UNKNOWN_TO_INFERENCE = (Control, ops.CumSum, ops.RandomUniform, ops.ReverseSequence)
"""Where the runtime's inference of bounds stops."""


class RemoveArithmeticBounds(FunctionPass):
    """FloorMod(n, 4), n a size of [4..8]  ->  FloorMod(CumSum(n), 4)

    The runtime infers bounds of what is computed from sizes, and takes for the extremes of FloorMod, Mod, Abs, Power
    and ReduceProd what these make of the bounds of their inputs: of [4..8] modulo 4 it says 0, and puts the constant in
    its place. All but FloorMod are right where nothing is negative.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        if not any(graph.of(kind) for kind in KINDS):
            return False
        changed = False
        bounded: dict[Value, bool] = {}  # what the runtime infers bounds of, and whether it may be negative
        for node in list(graph.ordered()):
            if isinstance(node, KINDS) and not self.leaves(node):
                changed = self._hide(node, bounded) or changed
            if _spreads(node, bounded):
                made = (each for each in node.outputs if is_static(each.shape) and not _is_known(each))
                bounded.update(dict.fromkeys(made, _may_be_negative(node, bounded)))
        self.at = None
        return changed

    def _hide(self, node: Node, bounded: dict[Value, bool]) -> bool:
        if not _spreads(node, bounded):
            return self.refuse(node, "the runtime knows no bounds of its inputs")
        if isinstance(node, WRONG_BELOW_0) and not _may_be_negative(node, bounded):
            return self.refuse(node, "nothing is negative")
        port = next(port for port, value in enumerate(node.inputs) if value in bounded)
        size = node.inputs[port]
        assert size is not None
        node.graph.set_input(node, port, without_bounds(size))
        return self.accept(node)


def _spreads(node: Node, bounded: dict[Value, bool]) -> bool:
    """Whether the runtime infers bounds of what `node` computes: from sizes and constants alone."""
    if isinstance(node, UNKNOWN_TO_INFERENCE) or not node.inputs:
        return False
    if isinstance(node, ops.ShapeOf):
        return True
    return any(value in bounded for value in node.inputs) and all(
        value in bounded or _is_known(value) for value in node.inputs
    )


def _may_be_negative(node: Node, bounded: dict[Value, bool]) -> bool:
    """Whether a number may be that goes into `node`, or that it makes of others."""
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
