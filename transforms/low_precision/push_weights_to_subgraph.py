"""Quantised constants that enter a body through an input port."""

from __future__ import annotations

from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Branched, Control, Invariant
from transforms.function_pass import FunctionPass
from transforms.low_precision.weights import is_weights
from transforms.port_maps import keep_inputs


class PushWeightsToSubgraph(FunctionPass):
    """an invariant input that is Dequantize(Constant)  ->  the same nodes in the body

    The runtime recognises compressed weights only in the graph that reads them; outside they would be expanded.
    """

    bodies = "last"

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Control, self._push)

    def _push(self, node: Control) -> bool:
        kept = []
        for number, (entry, value) in enumerate(zip(node.input_map, node.data_inputs, strict=True)):
            if value is None or not is_weights(value) or not isinstance(entry, Invariant | Branched):
                kept.append(number)
                continue
            parameters = (entry.parameter,) if isinstance(entry, Invariant) else (entry.then, entry.else_)
            for parameter in parameters:
                if parameter is not None:
                    _replace(parameter, value)
        if len(kept) == len(node.data_inputs):
            return self.refuse(node, "no invariant input is a dequantised constant")
        keep_inputs(node, kept)
        return self.accept(node)


def _replace(parameter: Parameter, value: Value) -> None:
    body, copies = parameter.graph, dict[Value, Value]()
    constants = [each.node for each in value.node.inputs if each is not None]
    body.adopt(value.graph, [*constants, value.node], copies)
    parameter.output.replace_with(copies[value])
    body.remove(parameter)
