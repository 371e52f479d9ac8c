"""Arithmetic on dimensions for which the runtime infers wrong bounds."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import is_static
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.runtime.inference import has_bounds, is_known, may_be_negative

WRONG_BELOW_0 = (ops.Mod, ops.Abs, ops.Power, ops.ReduceProd)
"""Operations whose extremes lie at the ends of an interval, unless it contains negative numbers."""

KINDS = (ops.FloorMod, *WRONG_BELOW_0)


class RemoveArithmeticBounds(FunctionPass):
    """FloorMod(n, 4), where n is a dimension of 4..8  ->  FloorMod(Barrier(n, bounds), 4)

    The runtime infers bounds of values that are computed from dimensions. So with Mod, Abs, Power and ReduceProd if
    something may be negative.
    """

    instead = "`ReduceSum` before it, where the inference of bounds stops"
    avoids = (
        Gap(
            "remainder-of-size",
            "the bounds of `FloorMod` are computed only at the ends of the interval: a size of 4..8 modulo 4 becomes "
            "the constant 0",
        ),
        Gap(
            "negative-bounds",
            "the bounds of `Mod`, `Abs`, `Power` and `ReduceProd` of numbers that may be below 0 are computed only "
            "at the ends of the interval",
        ),
    )  # fmt: skip

    def run_on_graph(self, graph: Graph) -> bool:
        if not any(graph.of(kind) for kind in KINDS):
            return False
        changed = False
        bounded: dict[Value, bool] = {}  # values with bounds -> whether they may be negative
        for node in list(graph.ordered()):
            if isinstance(node, KINDS) and not self.leaves(node):
                changed = self._remove_bounds(node, bounded) or changed
            if has_bounds(node, bounded):
                made = (each for each in node.outputs if is_static(each.shape) and not is_known(each))
                bounded.update(dict.fromkeys(made, may_be_negative(node, bounded)))
        self.at = None
        return changed

    def _remove_bounds(self, node: Node, bounded: dict[Value, bool]) -> bool:
        if not has_bounds(node, bounded):
            return self.refuse(node, "the runtime infers no bounds for its inputs")
        if isinstance(node, WRONG_BELOW_0) and not may_be_negative(node, bounded):
            return self.refuse(node, "its inputs are not negative")
        port = next(port for port, value in enumerate(node.inputs) if value in bounded)
        size = node.operands[port]
        node.graph.set_input(node, port, ops.Barrier(size, hides="bounds").output)
        return self.accept(node)
