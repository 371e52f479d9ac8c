"""Loops of constants alone."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Loop
from mo_loop.shape import is_static
from transforms.base import FunctionPass
from transforms.front.opaque import opaque_zero


class ConstantLoops(FunctionPass):
    """Loop(M, C, constants) with unknown shapes in or behind it  ->  Loop(M + 0, ...), a 0 that cannot be folded

    The runtime evaluates such a loop while it infers shapes, and fails because the outcome has another shape than it
    had inferred; nor can it run one when it compiles.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in graph.of(Loop):
            trip = node.inputs[0]
            is_constant = all(value is None or isinstance(value.node, Constant) for value in node.inputs)
            if trip is None or not is_constant or _has_static_shapes(node):
                continue
            zero = ops.Reshape(opaque_zero(graph), trip.type.dims).output
            graph.set_input(node, 0, ops.Add(trip, ops.Convert(zero, destination_type=trip.dtype)).output)
            changed = True
        return changed


def _has_static_shapes(node: Loop) -> bool:
    inner = (each for scope in node.body.scopes() for each in scope)
    return all(is_static(output.shape) for each in (node, *inner) for output in each.outputs)
