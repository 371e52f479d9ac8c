"""The tensors of an ONNX graph: what it is given, what it holds, what its nodes make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import OnnxGraph, all_graphs, label, operator_of
from mo_loop.graph import Graph


class OnnxTensor(NamedTuple):
    """One tensor; `kind` is "input", "initializer", or the operator that makes it."""

    name: str
    kind: str


def tensors_of(scope: OnnxGraph) -> Iterator[OnnxTensor]:
    """The tensors of one graph, each name once. An initializer that is listed as an input is an initializer."""
    constants = [each.name for each in scope.initializers]
    if scope.kind != "function":
        constants += [each.values.name for each in scope.proto.sparse_initializer]
    held = set(constants)
    yield from (OnnxTensor(name, "input") for name in scope.input_names if name not in held)
    yield from (OnnxTensor(name, "initializer") for name in constants)
    for node in scope.nodes:
        yield from (OnnxTensor(name, operator_of(node)) for name in node.output if name)


def paths_in(graph: Graph, model: OnnxModel) -> dict[str, str]:
    """The paths of the graphs of a model, and those of the same graphs in `graph`; bodies that are gone are left out.

    They differ where a node of control flow bears the name of a model output.
    """
    present = {scope.path for scope in graph.scopes()}
    found = {"": ""}
    for scope in all_graphs(model):
        if scope.outer is None or scope.outer.path not in found:
            continue
        outer = found[scope.outer.path]
        for name in (label(scope.owner), *filter(None, scope.owner.output)):
            path = f"{outer}/{name}/{scope.proto.name or 'body'}".removeprefix("/" if not outer else "")
            if path in present:
                found[scope.path] = path
                break
    return found
