"""Model inputs and outputs of loops that are returned unchanged."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Node
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Identity, Parameter, Result
from mo_loop.ops.control import Control
from mo_loop.target import CRASH, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.operands import behind
from mo_loop.transforms.replace import move_readers


class ReshapeReturnedInputs(FunctionPass):
    """x -> Identity -> output  ->  x -> Reshape to its own shape -> output

    An Identity is written as a Convert to the same type, which the runtime removes. It does not remove a Reshape in
    these places, and the Reshape copies nothing.
    """

    instead = "`Reshape` that copies every dimension"
    avoids = (
        Gap(
            "returned-input",
            "an input of dynamic shape that is returned unchanged is freed memory: the values are wrong, or the "
            "process crashes", severity=CRASH,
        ),
        Gap(
            "returned-reshape",
            "an input that is reshaped by a pattern known only at run time, and returned, keeps its largest shape, or "
            "the process crashes", since="2025.4.1",
        ),
        Gap(
            "returned-slice",
            "after a `Convert` to the same type an output concatenated from a view may get the shape of another output",
        ),
    )  # fmt: skip

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for result in graph.results:
            changed = (not self.leaves(result) and self._replace(result)) or changed
        self.at = None
        if changed:
            graph.sweep()
        return changed

    def _replace(self, result: Result) -> bool:
        old, source = result.value, behind(result.value, Identity)
        if source is old or not (isinstance(source.node, Parameter | Control) or _is_reshaped_input(source.node)):
            return self.refuse(result, "it does not return an input or an output of control flow through an Identity")
        if source.rank is None or is_static(source.shape):
            return self.refuse(result, "the shape is static, or its rank is unknown")
        zeros = [0] * source.type.rank
        new = ops.Reshape(source, zeros, special_zero=True).output
        move_readers(old, new, [(result, 0)])
        return self.accept(result)


def _is_reshaped_input(node: Node) -> bool:
    return isinstance(node, ops.Reshape) and isinstance(behind(node.operands[0], Identity).node, Parameter)
