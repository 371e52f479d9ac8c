"""The tensors of an ONNX graph: its inputs, its initializers, and the outputs of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import OnnxGraph, all_graphs, operator_of
from mo_loop.graph.origin import Origin

_TENSOR_KINDS = (4, 9, 11, 12)  # AttributeProto.AttributeType: TENSOR, TENSORS, SPARSE_TENSOR, SPARSE_TENSORS


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


def tensor_protos(graph: OnnxGraph) -> Iterator[Any]:
    """The TensorProtos of one graph: initializers, attributes, and the values and indices of sparse tensors."""
    yield from graph.initializers
    sparse = [] if graph.kind == "function" else list(graph.proto.sparse_initializer)
    defaults = graph.proto.attribute_proto if graph.kind == "function" else ()
    for attribute in (*(each for node in graph.nodes for each in node.attribute), *defaults):
        if attribute.type in _TENSOR_KINDS:
            yield from (attribute.t, *attribute.tensors)
            sparse += (attribute.sparse_tensor, *attribute.sparse_tensors)
    for each in sparse:
        yield from (each.values, each.indices)


def has_tensor(model: OnnxModel, path: str) -> bool:
    """Whether a tensor of the model has this path. The path of a tensor of the main graph is its name."""
    return any(
        Origin(graph.scope, output=tensor.name).path == path
        for graph in all_graphs(model)
        for tensor in tensors_of(graph)
    )
