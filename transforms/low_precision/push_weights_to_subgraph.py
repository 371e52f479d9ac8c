"""Quantised constants that enter a body through an input port."""

from __future__ import annotations

from mo_loop.graph import Value
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Control
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.low_precision.weights import is_weights
from mo_loop.transforms.port_maps import push_inputs


class PushWeightsToSubgraph(FunctionPass):
    """an invariant input that is Dequantize(Constant)  ->  the same nodes in the body

    The runtime recognises compressed weights only in the graph that reads them; outside they would be expanded.
    """

    bodies = "last"

    kinds = (Control,)

    def rewrite(self, node: Control) -> bool:
        if not push_inputs(node, is_weights, _dequantise_inside):
            return self.refuse(node, "no invariant input is a dequantised constant")
        return self.accept(node)


def _dequantise_inside(parameter: Parameter, value: Value) -> None:
    copies: dict[Value, Value] = {}
    constants = [each.node for each in value.node.operands]
    parameter.graph.adopt(value.graph, [*constants, value.node], copies)
    parameter.output.replace_with(copies[value])
