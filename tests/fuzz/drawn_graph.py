"""The nodes of a graph or a body while it is drawn."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]


class Scope:
    """The nodes of a graph or a body."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.parameters: list[onnx.ValueInfoProto] = []
        self.results: list[onnx.ValueInfoProto] = []

    def op(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """A node; its output, or a list of several."""
        number = len(self.nodes)
        names = [f"{self.name}_{op_type}{number}_{each}" for each in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array: Array | np.generic) -> str:
        """An initializer."""
        name = f"{self.name}_w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def parameter(self, name: str, kind: int, dims: list[Any]) -> str:
        self.parameters.append(helper.make_tensor_value_info(f"{self.name}_{name}", kind, dims))
        return f"{self.name}_{name}"

    def result(self, name: str, kind: int | None = None, dims: list[Any] | None = None) -> None:
        """An output; an Identity if the name is an outer one or taken."""
        made = {output for node in self.nodes for output in node.output}
        if name not in made or name in {each.name for each in self.results}:
            name = str(self.op("Identity", name))
        declared = helper.make_empty_tensor_value_info(name)
        self.results.append(declared if kind is None else helper.make_tensor_value_info(name, kind, dims))

    def body(self) -> onnx.GraphProto:
        return self.proto(self.parameters, self.results)

    def proto(self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> onnx.GraphProto:
        return helper.make_graph(self.nodes, self.name, inputs, outputs, self.initializers)
