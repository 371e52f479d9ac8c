"""Visits the graphs of an ONNX model: the main graph, its bodies and its functions, and their tensors and external
data files.

    for scope in all_graphs(model):
        for node in scope.nodes: print(scope.path_of(node), node.op_type)

A path is the same as in translation: the node with the body, the name of the body, the inner node.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mo_loop.errors import ConversionErrors, FileError, InputError, ModelError, MoLoopError
from mo_loop.frontend.external_files import ExternalFiles, range_of, tensor_from
from mo_loop.frontend.model import OnnxModel, opened
from mo_loop.frontend.strip_weights import OWN_FILE
from mo_loop.graph.tensor import DataFile, Tensor
from mo_loop.origin import Origin

_GRAPH, _GRAPHS = 5, 10  # AttributeProto.AttributeType


@dataclass(frozen=True)
class OnnxGraph:
    """One graph: the main one, a body, or a function's. `kind` is "model", the attribute that holds it, or "function".

    `outer` and `owner` are the enclosing scope and the node of a body; None for the main graph and functions.
    """

    scope: tuple[str, ...]
    kind: str
    proto: Any
    opsets: Mapping[str, int]
    outer: "OnnxGraph | None" = None
    owner: Any = None

    @property
    def nodes(self) -> Sequence[Any]:
        return self.proto.node

    @property
    def path(self) -> str:
        """The path as text."""
        return Origin(self.scope).path

    @property
    def is_in_function(self) -> bool:
        """Whether this is the graph of a function, or a body in one."""
        return self.kind == "function" if self.outer is None else self.outer.is_in_function

    def origin_of(self, node: Any) -> Origin:
        return Origin(self.scope, label(node), operator_of(node))

    def tensor(self, name: str) -> Origin:
        """The origin of a tensor of the graph, with its producer if it has one."""
        maker = next((node for node in self.nodes if name in node.output), None)
        return Origin(self.scope, output=name) if maker is None else self.origin_of(maker)._replace(output=name)

    def path_of(self, node: Any) -> str:
        return self.origin_of(node).path

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs. In a FunctionProto they are strings."""
        return [each if self.kind == "function" else each.name for each in self.proto.input]

    @property
    def output_names(self) -> list[str]:
        return [each if self.kind == "function" else each.name for each in self.proto.output]

    @property
    def initializers(self) -> Sequence[Any]:
        return () if self.kind == "function" else self.proto.initializer

    def bodies(self, node: Any) -> "Iterator[OnnxGraph]":
        """The scopes of the bodies of one of the nodes."""
        for attribute in node.attribute:
            for graph in graphs_of(attribute):
                scope = (*self.scope, label(node), body_name(node, attribute.name, graph))
                yield OnnxGraph(scope, attribute.name, graph, self.opsets, self, node)


def graphs_of(attribute: Any) -> Sequence[Any]:
    """The GraphProtos in an attribute."""
    if attribute.type == _GRAPH:
        return (attribute.g,)
    return attribute.graphs if attribute.type == _GRAPHS else ()


def body_protos(node: Any) -> Iterator[Any]:
    """The GraphProtos in the attributes of a node."""
    for attribute in node.attribute:
        yield from graphs_of(attribute)


def graph_protos(model: Any) -> Iterator[Any]:
    """The main graph and the functions of a ModelProto, and all bodies in them."""
    pending = [model.graph, *model.functions]
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.node:
            pending += body_protos(node)


def body_name(node: Any, attribute: str, graph: Any) -> str:
    """The name of a body of `node`. If another body of the node has the same name, it is the name of the attribute."""
    name: str = graph.name or "body"
    same = sum((each.name or "body") == name for each in body_protos(node))
    return name if same < 2 else attribute


def label(node: Any) -> str:
    """The name of a node; of a node without a name, the name of its first output."""
    name: str = node.name
    return name or next((each for each in node.output if each), node.op_type)


def domain_of(node: Any) -> str:
    domain: str = node.domain
    return "" if domain == "ai.onnx" else domain


def operator_of(node: Any) -> str:
    """The operator, with its domain if that is not the default one."""
    domain = domain_of(node)
    return f"{domain}::{node.op_type}" if domain else node.op_type


def main_graph(model: OnnxModel) -> OnnxGraph:
    return OnnxGraph((), "model", model.proto.graph, model.opsets)


def function_graph(model: OnnxModel, function: Any, scope: tuple[str, ...]) -> OnnxGraph:
    opsets = model.opsets | {domain_of(entry): entry.version for entry in function.opset_import}
    return OnnxGraph(scope, "function", function, opsets)


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


_EXTERNAL = 1  # TensorProto.EXTERNAL
LARGEST = (1 << 31) - (1 << 16)
"""Bytes of a ModelProto that can be written and read."""


def external_files(path: str, allowed: Sequence[str] = ()) -> list[DataFile]:
    """The files of external data of the model at `path`, each once, sorted.

    Files that are missing or may not be read are left out: the conversion reports them.

    Raises:
        FileError: the file cannot be read, or is not an ONNX model.
    """
    model = opened(path, allowed)
    found = {}
    for _, tensor in external_tensors(model):
        try:
            file = model.files.at(location_of(tensor), tensor.name)
        except FileError:
            continue
        found[file.path] = file
    return [found[path] for path in sorted(found)]


def external_ranges(path: str | os.PathLike[str]) -> list[tuple[str, list[tuple[int, int]]]]:
    """The locations of the external data of the model at `path`, and the bytes that its tensors read there: from, to.

    The files need not exist. A tensor whose range or type is not valid has none: the conversion reports it.

    Raises:
        FileError: the file cannot be read, or is not an ONNX model.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for _, tensor in external_tensors(opened(path)):
        ranges = found.setdefault(location_of(tensor), [])
        with suppress(MoLoopError, OverflowError):
            ranges.append(range_of(tensor))
    return list(found.items())


def require_external_data(model: OnnxModel) -> None:
    """Raise the errors of all tensors whose external data cannot be read: ONNX Runtime and onnx open these files
    without the rules of `ExternalFiles`.

    Raises:
        FileError: a file is missing, is too short, or may not be read.
        ModelError: the data does not fit the declared type and shape.
        ConversionErrors: several of these errors, grouped.
    """
    _data_of(external_tensors(model), model)


def needs_permission(model: OnnxModel) -> bool:
    """Whether external data is read only because its folder is allowed: ONNX Runtime may refuse it."""
    files = ExternalFiles(model.files.folder)
    try:
        for _, tensor in external_tensors(model):
            files.at(location_of(tensor), tensor.name)
    except FileError:
        return True
    return False


def with_data(model: OnnxModel) -> Any:
    """A copy of the ModelProto with all data in it, read by the rules of `ExternalFiles`.

    Raises:
        InputError: the data has more than 2 GB, which a message cannot hold; or an error of `require_external_data`.
    """
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model.proto)
    functions = {(each.domain, each.name, getattr(each, "overload", "")): each for each in copy.functions}
    tensors = list(external_tensors(replace(model, proto=copy, functions=functions), own=True))
    data = _data_of(tensors, model)
    if copy.ByteSize() + sum(each.nbytes for each in data) > LARGEST:
        raise InputError(
            "the model has more than 2 GB", why="the format of ONNX files allows 2 GB in one message", code="ML204",
            hint="cut it first: mo-loop convert --input, --output show where",
        )
    for (_, proto), tensor in zip(tensors, data, strict=True):
        proto.ClearField("external_data")
        proto.ClearField("data_location")
        proto.raw_data = b"".join(tensor.blocks())
    return copy


def _data_of(tensors: Iterable[tuple[OnnxGraph, Any]], model: OnnxModel) -> list[Tensor]:
    """The data of tensors of the graphs; the errors are those of `require_external_data`."""
    data, errors = [], []
    for graph, tensor in tensors:
        try:
            data.append(tensor_from(tensor, model.files))
        except (FileError, ModelError) as error:
            errors.append(error.at(Origin(graph.scope, output=tensor.name)))
    if errors:
        raise errors[0] if len(errors) == 1 else ConversionErrors(errors)
    return data


def location_of(tensor: Any) -> str:
    """The location of a tensor's external data; the last one counts, as in onnx."""
    return next((str(entry.value) for entry in reversed(tensor.external_data) if entry.key == "location"), "")


def external_tensors(model: OnnxModel, *, own: bool = False) -> Iterator[tuple[OnnxGraph, Any]]:
    """The tensors whose data is in other files, with `own` also those whose data is left in the file of the model, each
    with its graph."""
    for graph in all_graphs(model):
        for tensor in tensor_protos(graph):
            if tensor.data_location == _EXTERNAL and (own or location_of(tensor) != OWN_FILE):
                yield graph, tensor
