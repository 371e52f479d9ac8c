"""Edits of an ONNX model: other inputs, outputs, sizes and names, and the weights that an IR stores as f16.

    cut_model(load("model.onnx"), Cut.of(model, "hidden", "logits"))          # a ModelProto; None if nothing is cut
    with_half_weights(proto, graph)                 # None if the IR has no weights in f16 that the model has in f32
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mo_loop.errors import UsageError
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.declared_types import types_of
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.node_order import NamesRead, names_defined_in
from mo_loop.frontend.onnx_graphs import body_protos, graph_protos
from mo_loop.graph import Graph
from mo_loop.graph.types import f16
from mo_loop.ops.arithmetic import Convert
from mo_loop.ops.base import Constant

LARGEST = float(np.finfo(np.float16).max)
"""The largest number in f16."""


def replace_entries(field: Any, entries: Sequence[Any]) -> None:
    """Give a repeated field these messages, which may be its own."""
    kept = [copy.deepcopy(each) for each in entries]
    del field[:]
    field.extend(kept)


def graphs_in(graph: Any) -> Iterator[Any]:
    """A graph and all bodies in it, outer ones first."""
    pending = [graph]
    while pending:
        each = pending.pop(0)
        yield each
        pending += [body for node in each.node for body in body_protos(node)]


def rename_reads(graph: Any, old: str, new: str) -> None:
    """Let the nodes of a graph, and of bodies that do not hide the name, read another tensor."""
    for node in graph.node:
        node.input[:] = [new if each == old else each for each in node.input]
        for body in body_protos(node):
            if old not in names_defined_in(body):
                rename_reads(body, old, new)
                for port in body.output:  # a body can return an outer tensor
                    port.name = new if port.name == old else port.name


def sweep(graph: Any) -> set[str]:
    """Remove the nodes that no output needs; returns the names that the outputs and the other nodes read."""
    names, needed, kept = NamesRead(), {entry.name for entry in graph.output}, []
    for node in reversed(graph.node):  # ONNX orders the nodes
        if needed.intersection(node.output):
            kept.append(node)
            needed |= names.of_node(node)
    replace_entries(graph.node, list(reversed(kept)))
    return needed


def of_unknown_sizes(model: Any) -> Any:
    """A copy of a ModelProto whose inputs have a symbol in place of each declared size, so that others can be given.

    So do those of bodies: ONNX Runtime allocates the results of a body with the sizes that it declares.
    """
    model = copy.deepcopy(model)
    for graph in graph_protos(model):
        del graph.value_info[:]
        if not hasattr(graph, "initializer"):  # the ports of a function are names
            continue
        constants = {each.name for each in graph.initializer}
        for port in graph.input:
            for axis, dim in enumerate(() if port.name in constants else port.type.tensor_type.shape.dim):
                if dim.HasField("dim_value"):
                    dim.dim_param = f"{port.name}[{axis}]"
        for port in graph.output:
            if port.type.HasField("tensor_type"):
                port.type.tensor_type.ClearField("shape")
    return model


def cut_model(model: OnnxModel, cut: Cut, kept: Collection[str] = ()) -> Any:
    """A copy of the model that begins and ends at the tensors of `cut`; None if it is the model itself.

    The declared shapes of changed inputs are removed. Inputs in `kept` stay although no node reads them. UsageError if
    the type of an inner tensor is not known.
    """
    if cut.inputs is None and cut.outputs is None:
        return None
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    graph = proto.graph
    declared = {entry.name: entry for entry in graph.input}
    inner = [name for name in cut.inputs or {} if name not in declared]
    types = {each.name: each.type for each in (*graph.value_info, *graph.output)}
    types |= types_of(model, [name for name in inner if name not in types])
    for name, entry in (cut.inputs or {}).items():
        kind = declared[name].type if name in declared else types.get(name)
        if kind is None:
            raise UsageError(f"the type of {name!r} is not known", hint="cut the model at another tensor")
        _detach(graph, name)
        if entry.value is not None:
            array = np.asarray(entry.value).astype(onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
            graph.initializer.append(onnx.numpy_helper.from_array(array, name))
            continue
        added = graph.input.add(name=name)
        added.type.CopyFrom(kind)
        added.type.tensor_type.ClearField("shape")
        if kind.tensor_type.HasField("shape"):  # the rank, and the names of dimensions, which may be shared
            for dim in kind.tensor_type.shape.dim:
                added.type.tensor_type.shape.dim.add(dim_param=dim.dim_param)
    if cut.outputs is not None:
        del graph.output[:]
        graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in cut.outputs)
    needed = sweep(graph)
    for each in [entry for entry in graph.input if entry.name not in needed and entry.name not in kept]:
        graph.input.remove(each)
    del graph.value_info[:]
    return proto


def _detach(graph: Any, name: str) -> None:
    """Remove an input or initializer, or give another name to the output of the node that makes the tensor."""
    for entries in (graph.input, graph.initializer):
        for each in [entry for entry in entries if entry.name == name]:
            entries.remove(each)
    for node in graph.node:
        for place, output in enumerate(node.output):
            if output == name:
                node.output[place] = f"{name} (cut)"


def has_half_weights(ir: Graph) -> bool:
    """Whether an IR stores weights in f16 and computes with them in another type."""
    return next(_compressed(ir), None) is not None


def with_half_weights(model: Any, ir: Graph) -> Any:
    """A copy of a ModelProto in which the weights that the IR has as f16 are those numbers, in their former type.

    They are known by their content, in any order: the IR may have transposed them.
    """
    halved = {_content(each) for each in _compressed(ir)}
    if not halved:
        return None
    copy, changed = onnx.ModelProto(), False
    copy.CopyFrom(model)
    for tensor in _tensors(copy):
        if tensor.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE) or np.prod(tensor.dims) < 2:
            continue
        array = numpy_helper.to_array(tensor)
        half = _as_half(array)
        if _content(half) in halved:
            tensor.CopyFrom(numpy_helper.from_array(half.astype(array.dtype), tensor.name))
            changed = True
    return copy if changed else None


def _compressed(ir: Graph) -> Iterator[np.ndarray]:
    for scope in ir.scopes():
        for node in scope.of(Convert):
            source = node.inputs[0]
            if "decompression" not in node.rt_info or source is None or source.dtype is not f16:
                continue
            if isinstance(source.node, Constant):
                yield source.node.array


def _tensors(model: Any) -> Iterator[Any]:
    for graph in graph_protos(model):
        yield from getattr(graph, "initializer", ())
        for node in graph.node:
            yield from (each.t for each in node.attribute if each.type == onnx.AttributeProto.TENSOR)


def _as_half(array: np.ndarray) -> np.ndarray:
    finite = np.isfinite(array)
    with np.errstate(over="ignore"):
        return np.where(finite, np.clip(array, -LARGEST, LARGEST), array).astype(np.float16)


def _content(array: np.ndarray) -> bytes:
    return sha256(np.sort(array, axis=None).tobytes()).digest()
