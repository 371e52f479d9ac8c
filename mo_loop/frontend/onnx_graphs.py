"""The graphs of an ONNX model as it stands: the main graph, bodies, functions; nothing is translated.

    for scope in all_graphs(model):
        for node in scope.nodes: print(scope.path_of(node), node.op_type)

Paths are those of translation: the node that holds a body, the name of the body, the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mo_loop.frontend.model import OnnxModel
from mo_loop.graph.origin import Origin

_GRAPH, _GRAPHS = 5, 10  # AttributeProto.AttributeType


@dataclass(frozen=True)
class OnnxGraph:
    """One graph: the main one, a body, or a function's. `kind` is "model", the attribute that holds it, or "function".

    `outer` and `owner` are the scope and the node that hold a body; None for the others.
    """

    scope: tuple[str, ...]
    kind: str
    proto: Any
    opsets: Mapping[str, int]
    outer: OnnxGraph | None = None
    owner: Any = None

    @property
    def nodes(self) -> Sequence[Any]:
        nodes: Sequence[Any] = self.proto.node
        return nodes

    @property
    def path(self) -> str:
        """The path as text."""
        return Origin(self.scope).path

    @property
    def is_in_function(self) -> bool:
        """Whether it is the graph of a function, or a body in one."""
        return self.kind == "function" if self.outer is None else self.outer.is_in_function

    def origin_of(self, node: Any) -> Origin:
        return Origin(self.scope, label(node), operator_of(node))

    def tensor(self, name: str) -> Origin:
        """A tensor of the graph, with the node that makes it if there is one."""
        maker = next((node for node in self.nodes if name in node.output), None)
        return Origin(self.scope, output=name) if maker is None else self.origin_of(maker)._replace(output=name)

    def path_of(self, node: Any) -> str:
        return self.origin_of(node).path

    @property
    def input_names(self) -> list[str]:
        """Of a function they are plain names."""
        return [each if self.kind == "function" else each.name for each in self.proto.input]

    @property
    def output_names(self) -> list[str]:
        return [each if self.kind == "function" else each.name for each in self.proto.output]

    @property
    def initializers(self) -> Sequence[Any]:
        return () if self.kind == "function" else self.proto.initializer

    def bodies(self, node: Any) -> Iterator[OnnxGraph]:
        """The scopes right below one of the nodes."""
        for attribute in node.attribute:
            for graph in graphs_of(attribute):
                scope = (*self.scope, label(node), body_name(node, attribute.name, graph))
                yield OnnxGraph(scope, attribute.name, graph, self.opsets, self, node)


def graphs_of(attribute: Any) -> Sequence[Any]:
    """The graphs that an attribute holds."""
    if attribute.type == _GRAPH:
        return (attribute.g,)
    graphs: Sequence[Any] = attribute.graphs if attribute.type == _GRAPHS else ()
    return graphs


def body_protos(node: Any) -> Iterator[Any]:
    """The GraphProtos right below a node."""
    for attribute in node.attribute:
        yield from graphs_of(attribute)


def body_name(node: Any, attribute: str, graph: Any) -> str:
    """The name of a body of `node`; that of the attribute which holds it where another body has the same name."""
    name: str = graph.name or "body"
    same = sum((each.name or "body") == name for each in body_protos(node))
    return name if same < 2 else attribute


def label(node: Any) -> str:
    """The name of a node, that of its first output where it has none."""
    name: str = node.name
    return name or next((each for each in node.output if each), node.op_type)


def domain_of(node: Any) -> str:
    domain: str = node.domain
    return "" if domain == "ai.onnx" else domain


def operator_of(node: Any) -> str:
    """The operator with its domain, where that is not the default one."""
    domain = domain_of(node)
    return f"{domain}::{node.op_type}" if domain else node.op_type


def main_graph(model: OnnxModel) -> OnnxGraph:
    return OnnxGraph((), "model", model.proto.graph, model.opsets)


def function_graph(model: OnnxModel, function: Any, scope: tuple[str, ...]) -> OnnxGraph:
    inner = {("" if entry.domain == "ai.onnx" else entry.domain): entry.version for entry in function.opset_import}
    return OnnxGraph(scope, "function", function, {**model.opsets, **inner})


def called(model: OnnxModel, node: Any) -> Any:
    """The function of the model that a node calls; None for an operator."""
    return model.functions.get((domain_of(node), node.op_type, getattr(node, "overload", "")))


def all_graphs(model: OnnxModel) -> Iterator[OnnxGraph]:
    """The main graph and all bodies, outer ones first, then each function with its bodies, under its name."""
    starts = [main_graph(model)]
    starts += [function_graph(model, each, (each.name,)) for each in model.functions.values()]
    for start in starts:
        stack = [start]
        while stack:
            scope = stack.pop()
            yield scope
            stack += reversed([body for node in scope.nodes if node.attribute for body in scope.bodies(node)])
