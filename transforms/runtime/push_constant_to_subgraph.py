"""Constants that enter a body through an input port."""

from __future__ import annotations

from mo_loop.graph import Graph
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Branched, Control, Invariant
from transforms.function_pass import FunctionPass


class PushConstantToSubgraph(FunctionPass):
    """an invariant input that is a Constant  ->  the same Constant in the body

    The runtime crashes on some models that pass constants as inputs of a control-flow operation. Axes and shapes are
    also easier to see where they are used. The file holds the data once in any case. Outer graphs come first, so one
    run moves a constant through all levels.
    """

    bodies = "last"

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Control, self._bind)

    def _bind(self, node: Control) -> bool:
        keep = []
        data = node.data_inputs
        for number, (entry, value) in enumerate(zip(node.input_map, data, strict=True)):
            assert value is not None
            if isinstance(entry, Invariant) and isinstance(value.node, Constant):
                self._replace(entry.parameter, value.node)
            elif isinstance(entry, Branched) and isinstance(value.node, Constant):
                self._replace(entry.then, value.node)
                self._replace(entry.else_, value.node)
            else:
                keep.append(number)
        if len(keep) == len(data):
            return self.refuse(node, "no invariant input is a Constant")
        node.input_map = tuple(node.input_map[number] for number in keep)
        node.graph.set_inputs(node, [*node.inputs[: node.first_data_port], *(data[number] for number in keep)])
        return self.accept(node)

    def _replace(self, parameter: Parameter | None, constant: Constant) -> None:
        if parameter is None:
            return
        body = parameter.graph
        copy = Constant(constant.tensor, graph=body, name=constant.name)
        copy.origins = constant.origins
        copy.output.copy_names(parameter.output)
        parameter.output.replace_with(copy.output)
        body.remove(parameter)
