"""inspect_onnx: the inspection of an ONNX model, convertible or not. Types are those that the model declares."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mo_loop.errors import FileError
from mo_loop.frontend.model import OnnxModel, opened
from mo_loop.frontend.onnx_graphs import OnnxGraph, all_graphs, called, operator_of
from mo_loop.frontend.onnx_tensors import tensor_protos
from mo_loop.frontend.strip_weights import OWN_FILE
from mo_loop.frontend.tensor_protos import byte_count
from mo_loop.frontend.utf8 import check_names_on_error
from mo_loop.graph.types import BY_ONNX
from mo_loop.look.inspection.description import ExternalFile, Function, Inspection, Operator, ScopeSize
from mo_loop.look.inspection.onnx_control import Controls
from mo_loop.look.inspection.onnx_types import declared

_EXTERNAL = 1  # TensorProto.EXTERNAL
_STRING = 8  # TensorProto.STRING
_ITEM_BYTES = {"value_float": 4, "value_floats": 4, "value_int": 8, "value_ints": 8}


def inspect_onnx(source: Any, allowed: Sequence[str] = ()) -> Inspection:
    """Inspect an ONNX model. Raises FileError as `opened` does, and ModelError for names that are not UTF-8."""
    model = opened(source, allowed)
    with check_names_on_error(model.proto):
        inspection = _inspection(model)
        json.dumps(inspection.as_json())  # fails if a name is not UTF-8
    return inspection


def _inspection(model: OnnxModel) -> Inspection:
    proto = model.proto
    size = os.stat(model.path).st_size if model.path else proto.ByteSize()
    all_scopes = list(all_graphs(model))
    sizes = {scope.path: _Constants(scope) for scope in all_scopes}
    producer = f"{proto.producer_name} {proto.producer_version}".strip()
    constants = {each.name for each in proto.graph.initializer}
    calls = Counter(id(called(model, node)) for scope in all_scopes for node in scope.nodes)
    return Inspection(
        file=model.path or "model",
        format="onnx",
        file_bytes=size,
        name=model.name,
        ir_version=proto.ir_version,
        producer=producer,
        opsets={domain or "ai.onnx": version for domain, version in model.opsets.items()},
        metadata={entry.key: entry.value for entry in proto.metadata_props},
        inputs=[declared(each.name, each.type) for each in proto.graph.input if each.name not in constants],
        outputs=[declared(each.name, each.type) for each in proto.graph.output],
        operators=_operators(all_scopes, sizes),
        scopes=[_size(scope, sizes[scope.path]) for scope in all_scopes],
        control=Controls(model).all(),
        functions=[
            Function(
                f"{each.domain}::{each.name}", len(each.node), calls[id(each)], list(each.input), list(each.output)
            )
            for each in model.functions.values()
        ],
        external=list(_external(model, all_scopes)),
    )


# -- constants


class _Constants:
    """The constants that a scope defines, initializers and Constant nodes: name -> (elements, bytes)."""

    def __init__(self, scope: OnnxGraph) -> None:
        self.sizes: dict[str, tuple[int, int]] = {each.name: _tensor_size(each) for each in scope.initializers}
        for sparse in () if scope.kind == "function" else scope.proto.sparse_initializer:
            self.sizes[sparse.values.name] = _tensor_size(sparse.values)
        for node in scope.nodes:
            if node.op_type == "Constant" and node.output:
                self.sizes[node.output[0]] = _constant_size(node)


def _tensor_size(tensor: Any) -> tuple[int, int]:
    elements = math.prod(tensor.dims) if all(dim >= 0 for dim in tensor.dims) else 0
    if tensor.data_type == _STRING:
        return elements, sum(map(len, tensor.string_data))
    known = BY_ONNX.get(tensor.data_type)
    return elements, known.size_of(elements) if known else 0


def _constant_size(node: Any) -> tuple[int, int]:
    elements = size = 0
    for attribute in node.attribute:
        if attribute.name == "value":
            elements, size = _tensor_size(attribute.t)
        elif attribute.name == "sparse_value":
            elements, size = _tensor_size(attribute.sparse_tensor.values)
        elif attribute.name in _ITEM_BYTES:
            elements = len(attribute.floats) or len(attribute.ints) or 1
            size = elements * _ITEM_BYTES[attribute.name]
        elif attribute.name in ("value_string", "value_strings"):
            texts = attribute.strings or [attribute.s]
            elements, size = len(texts), sum(map(len, texts))
    return elements, size


def _size(scope: OnnxGraph, constants: _Constants) -> ScopeSize:
    counts = Counter(operator_of(node) for node in scope.nodes)
    sizes = constants.sizes.values()
    return ScopeSize(
        scope.path, scope.kind, len(scope.nodes), len(sizes), sum(count for count, _ in sizes),
        sum(size for _, size in sizes), dict(counts.most_common()),
    )  # fmt: skip


def _operators(all_scopes: Iterable[OnnxGraph], sizes: dict[str, _Constants]) -> list[Operator]:
    """All operators, the most frequent first; a constant counts once for each operator that reads it."""
    found: dict[str, Operator] = {}
    seen: set[tuple[str, str, str]] = set()
    for scope in all_scopes:
        for node in scope.nodes:
            name = operator_of(node)
            operator = found.setdefault(name, Operator(name))
            operator.count += 1
            for read in node.input:
                at = _defined(read, scope, sizes) if read else None
                if at is not None and (name, at.path, read) not in seen:
                    seen.add((name, at.path, read))
                    elements, size = sizes[at.path].sizes[read]
                    operator.elements += elements
                    operator.bytes += size
    return sorted(found.values(), key=lambda each: (-each.count, each.name))


def _defined(name: str, scope: OnnxGraph | None, sizes: dict[str, _Constants]) -> OnnxGraph | None:
    """The innermost enclosing scope that defines a constant of this name; None if there is none."""
    while scope is not None:
        if name in sizes[scope.path].sizes:
            return scope
        scope = scope.outer
    return None


# -- files


def _external(model: OnnxModel, all_scopes: Iterable[OnnxGraph]) -> Iterator[ExternalFile]:
    found: dict[str, ExternalFile] = {}
    for tensor in (tensor for scope in all_scopes for tensor in tensor_protos(scope)):
        if tensor.data_location != _EXTERNAL:
            continue
        info = {entry.key: entry.value for entry in tensor.external_data}
        location = info.get("location", "")
        if location == OWN_FILE:
            continue
        if location not in found:
            found[location] = ExternalFile(location, 0, 0, _file_size(model, location, tensor.name))
        found[location].tensors += 1
        offset = max(byte_count(info.get("offset"), 0), 0)
        found[location].needed = max(found[location].needed, offset + _tensor_size(tensor)[1])
    yield from found.values()


def _file_size(model: OnnxModel, location: str, tensor: str) -> int | None:
    """The bytes of an external file; None for one that a conversion would not read."""
    try:
        file = model.files.at(location, tensor)
    except FileError:
        return None
    return None if file.identity is None else file.identity.size
