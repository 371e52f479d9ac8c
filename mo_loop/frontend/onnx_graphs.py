"""The graphs of an ONNX model as it stands: the main graph, bodies, functions; nothing is translated.

    for scope in all_graphs(model):
        for node in scope.nodes: print(scope.path_of(node), node.op_type)
    placed(model, "loop/step/add")          # a scope path that an error names -> its scope and node

Paths are those of translation: the node that holds a body, the name of the body, the node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mo_loop.frontend.model import OnnxModel

_GRAPH, _GRAPHS = 5, 10  # AttributeProto.AttributeType


@dataclass(frozen=True)
class OnnxGraph:
    """One graph: the main one, a body, or a function's. `kind` is "model", the attribute that holds it, or "function".

    `outer` and `owner` are the scope and the node that hold a body; None for the others.
    """

    path: str
    kind: str
    proto: Any
    opsets: Mapping[str, int]
    outer: OnnxGraph | None = None
    owner: Any = None

    @property
    def nodes(self) -> Sequence[Any]:
        nodes: Sequence[Any] = self.proto.node
        return nodes

    def path_of(self, node: Any) -> str:
        return f"{self.path}/{label(node)}" if self.path else label(node)

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
                path = f"{self.path_of(node)}/{graph.name or 'body'}"
                yield OnnxGraph(path, attribute.name, graph, self.opsets, self, node)


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


def label(node: Any) -> str:
    """The name of a node, that of its first output where it has none."""
    return node.name or next((name for name in node.output if name), node.op_type)


def domain_of(node: Any) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def operator_of(node: Any) -> str:
    """The operator with its domain, where that is not the default one."""
    return f"{domain_of(node)}::{node.op_type}" if domain_of(node) else node.op_type


def main_graph(model: OnnxModel) -> OnnxGraph:
    return OnnxGraph("", "model", model.proto.graph, model.opsets)


def function_graph(model: OnnxModel, function: Any, path: str) -> OnnxGraph:
    inner = {("" if entry.domain == "ai.onnx" else entry.domain): entry.version for entry in function.opset_import}
    return OnnxGraph(path, "function", function, {**model.opsets, **inner})


def called(model: OnnxModel, node: Any) -> Any:
    """The function of the model that a node calls; None for an operator."""
    return model.functions.get((domain_of(node), node.op_type, getattr(node, "overload", "")))


def all_graphs(model: OnnxModel) -> Iterator[OnnxGraph]:
    """The main graph and all bodies, outer ones first, then each function with its bodies, under its name."""
    starts = [main_graph(model)]
    starts += [function_graph(model, each, each.name) for each in model.functions.values()]
    for start in starts:
        stack = [start]
        while stack:
            scope = stack.pop()
            yield scope
            stack += reversed([body for node in scope.nodes if node.attribute for body in scope.bodies(node)])


# -- from a path to what stands there


class Places:
    """Finds what stands at a scope path. Names may hold slashes themselves, so paths are followed from the top."""

    def __init__(self, model: OnnxModel) -> None:
        self._model = model
        self._known: dict[str, tuple[dict[str, Any], list[Any]]] = {}
        self._makers: dict[str, dict[str, Any]] = {}

    def find(self, path: str) -> tuple[OnnxGraph, Any] | None:
        """The scope and the node at `path`; the node is None where the path is that of a value or a body."""
        return self._below(main_graph(self._model), path) if path else None

    def made(self, path: str, names: Collection[str]) -> tuple[OnnxGraph, Any] | None:
        """The scope at `path` (empty for the main graph) and the node in it that is, or makes, one of `names`."""
        found = self.find(path) if path else (main_graph(self._model), None)
        if found is None or found[0].path != path:
            return None
        scope = found[0]
        nodes, _ = self._index(scope)
        if path not in self._makers:
            self._makers[path] = {name: node for node in scope.nodes for name in node.output if name}
        makers = self._makers[path]
        return next(((scope, table[name]) for name in names for table in (nodes, makers) if name in table), None)

    def _below(self, scope: OnnxGraph, rest: str) -> tuple[OnnxGraph, Any] | None:
        nodes, holders = self._index(scope)
        if rest in nodes:
            return scope, nodes[rest]
        for node in holders:
            name = label(node)
            if not rest.startswith(f"{name}/"):
                continue
            function = called(self._model, node)
            if function is not None:
                inner = function_graph(self._model, function, scope.path_of(node))
                return self._below(inner, rest[len(name) + 1 :])
            for body in scope.bodies(node):
                tail = body.path[len(scope.path_of(node)) + 1 :]
                after = rest[len(name) + 1 :]
                if after == tail:
                    return body, None
                if after.startswith(f"{tail}/"):
                    return self._below(body, after[len(tail) + 1 :])
        return scope, None

    def _index(self, scope: OnnxGraph) -> tuple[dict[str, Any], list[Any]]:
        if scope.path not in self._known:
            nodes = {label(node): node for node in reversed(scope.nodes)}
            holders = [node for node in scope.nodes if _has_bodies(node) or called(self._model, node) is not None]
            self._known[scope.path] = nodes, holders
        return self._known[scope.path]


def _has_bodies(node: Any) -> bool:
    return any(True for _ in body_protos(node))


# -- what is needed


def needed(
    nodes: Iterable[Any], outputs: Iterable[str], given: Collection[str], reads: Callable[[Any], Any]
) -> set[int]:
    """Positions of the nodes that `outputs` depend on, in any order of nodes; names that are `given` need nothing.

    `reads` says which names a node and its bodies read.
    """
    nodes = list(nodes)
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    found: set[int] = set()
    stack = [name for name in outputs if name not in given]
    while stack:
        place = makers.get(stack.pop())
        if place is None or place in found:
            continue
        found.add(place)
        stack += [name for name in reads(nodes[place]) if name not in given]
    return found
