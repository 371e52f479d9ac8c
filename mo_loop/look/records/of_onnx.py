"""The structure of an ONNX model. Types are those that the model declares; `inferred_outputs` finds others."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from mo_loop.errors import FileError
from mo_loop.frontend.declared_types import with_inferred_types
from mo_loop.frontend.external_files import dense_from_sparse, tensor_from
from mo_loop.frontend.model import OnnxModel, opened
from mo_loop.frontend.onnx_graphs import OnnxGraph, function_graph, main_graph, operator_of
from mo_loop.graph.tensor import ArrayTensor, Tensor
from mo_loop.graph.types import BY_ONNX, f32, i64, string
from mo_loop.look.records.data import Data, digest
from mo_loop.look.records.node_records import SCAN_ATTRIBUTES, branch_key, connect, ref_of
from mo_loop.look.records.structure import (
    ONNX,
    Drain,
    Feed,
    Item,
    Output,
    OutputRecord,
    Ref,
    ScopeRecord,
    Structure,
    in_order,
    port_of,
    shown_dims,
)
from mo_loop.text.literals import show_array

_TENSOR, _GRAPH, _GRAPHS = 4, 5, 10  # AttributeProto.AttributeType

_FIELDS = {1: "f", 2: "i", 3: "s", 6: "floats", 7: "ints", 8: "strings"}
"""The fields of an AttributeProto by its type: numbers and strings."""

_PLAIN = {
    "value_float": ("f", f32), "value_floats": ("floats", f32), "value_int": ("i", i64), "value_ints": ("ints", i64),
    "value_string": ("s", string), "value_strings": ("strings", string),
}
"""The attributes of a Constant that are numbers or strings: their fields and types."""

SMALL = 16
"""The number of elements up to which the tensor of an attribute is shown with its values."""

Names = Mapping[str, Ref]


class _Stored(NamedTuple):
    """A constant in the model: its type, its numbers of elements and bytes, and the function that reads it."""

    dtype: str
    shape: Sequence[int]
    elements: int
    nbytes: int
    read: Callable[[], Tensor]


def structure_of_onnx(
    model: OnnxModel, source: str, unread: list[FileError] | None = None, *, weights: bool = True
) -> Structure:
    """The structure of a loaded model. ModelError and FileError for data that cannot be read.

    With `unread` data in files that cannot be read are left out; the errors are added to it. Without `weights` no data
    are read, and attributes are left out.
    """
    reader = _Reader(model, unread, weights)
    proto = model.proto
    main = reader.scope(main_graph(model), ScopeRecord(), {})
    functions = {}
    for (domain, name, overload), function in model.functions.items():
        full = "::".join(each for each in (domain, name, overload) if each)
        functions[full] = reader.scope(function_graph(model, function, (full,)), ScopeRecord((full,)), {})
        functions[full].settings = reader.settings(function)
    metadata = {f"metadata/{each.key}": each.value for each in proto.metadata_props}
    for key in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if getattr(proto, key):
            metadata[key] = str(getattr(proto, key))
    if proto.graph.name:
        metadata["name"] = proto.graph.name
    opsets = {domain or "ai.onnx": str(version) for domain, version in model.opsets.items()}
    found = Structure(ONNX, source, main, functions, opsets, metadata, made_of=proto)
    for scope in found.scopes():
        "".join(_names(scope))  # TypeError for a name that is not UTF-8, which protobuf returns as bytes
    return found


def inferred_outputs(structure: Structure) -> dict[Item, list[Output]]:
    """The outputs of all items of an ONNX model, with types that inference finds where none is declared."""
    model = with_inferred_types(opened(structure.made_of))
    typed = structure_of_onnx(model, structure.source, weights=False)  # the same items in the same order
    scopes = zip(structure.scopes(), typed.scopes(), strict=True)
    pairs = (pair for old, new in scopes for pair in zip(old.items, new.items, strict=True))
    return {item: other.outputs for item, other in pairs}


def _names(scope: ScopeRecord) -> Iterator[str]:
    yield from (*scope.path, scope.tag)
    yield from (result.name for result in scope.results)
    for item in scope.items:
        yield from (item.name, item.operator, *item.attributes, *item.info, *item.info.values())
        yield from (ref.item.name for ref in item.inputs if ref is not None)
        yield from (name for output in item.outputs for name in output.names)


class _Reader:
    def __init__(self, model: OnnxModel, unread: list[FileError] | None, weights: bool) -> None:
        self._model = model
        self._unread = unread
        self._weights = weights
        self._undefined: dict[tuple[ScopeRecord, str], Item] = {}

    def scope(self, graph: OnnxGraph, scope: ScopeRecord, outer: Names) -> ScopeRecord:
        """Fill `scope` with the items of a graph and of its bodies; `outer` are the values that it can capture."""
        proto = graph.proto
        values = () if graph.kind == "function" else (*proto.value_info, *proto.output, *proto.input)
        types = {each.name: _type(each.type) for each in values}
        names: dict[str, Ref] = dict(outer)
        items: list[Item] = []

        def add(item: Item) -> Item:
            items.append(item)
            for index, output in enumerate(item.outputs):
                if output.names:
                    names[output.names[0]] = Ref(item, index)
            return item

        stored = [(each.name, self._stored(each)) for each in graph.initializers]
        for sparse in () if graph.kind == "function" else proto.sparse_initializer:
            stored.append((sparse.values.name, self._stored_sparse(sparse)))
        constants = [self._constant(Item("Constant", name, scope), (name,), each) for name, each in stored]
        held = {item.name for item in constants}
        for name in graph.input_names:
            if name not in held:
                output = _output(name, types)
                if graph.kind == "model":
                    output = Output(output.names, output.dtype or "?", output.shape or "[...]")
                scope.parameters.append(add(Item("input", name, scope, outputs=[output])))
        for item in constants:
            add(item)
        made = [(node, add(self._item(node, scope, types))) for node in graph.nodes]
        for node, item in made:
            item.inputs = [self._ref(name, names, scope) for name in node.input]
        for node, item in made:
            bodies = graph.bodies(node) if node.attribute else ()
            for body in sorted(bodies, key=lambda body: body.kind == "else_branch"):  # `then` first, as in an IR
                tag = body.kind if body.kind not in item.bodies else f"{body.kind}/{len(item.bodies)}"
                item.bodies[tag] = self.scope(body, ScopeRecord(body.scope, item, tag), names)
            if item.bodies:
                connect_onnx(node, item, graph.opsets.get("", 9) < 9)
                item.captures = _captured(item)
        scope.items = in_order(items)
        for name in graph.output_names:
            dtype, shape = types.get(name, ("", ""))
            if graph.kind == "model":
                dtype, shape = dtype or "?", shape or "[...]"
            scope.results.append(OutputRecord(name, self._ref(name, names, scope), dtype, shape))
        return scope

    def settings(self, function: Any) -> dict[str, str]:
        """The opsets and attributes of a function."""
        found = {f"opset {each.domain or 'ai.onnx'}": str(each.version) for each in function.opset_import}
        found |= {f"attribute {name}": "required" for name in function.attribute}
        return found | {f"attribute {each.name}": self._text(each) for each in function.attribute_proto}

    def _ref(self, name: str, names: Names, scope: ScopeRecord) -> Ref | None:
        """The value of a name; for a name that nothing defines, the name."""
        if not name:
            return None
        if name in names:
            return names[name]
        made = Item("undefined", name, scope, outputs=[Output((name,))])
        return Ref(self._undefined.setdefault((scope, name), made), 0)

    # -- constants

    def _constant(self, item: Item, names: tuple[str, ...], stored: _Stored) -> Item:
        """The item with the data and the type of a constant."""
        item.outputs = [Output((name,) if name else (), stored.dtype, shown_dims(stored.shape)) for name in names]
        try:
            item.data = Data.of(stored.read()) if self._weights else Data((), None, "", *stored[2:])
        except FileError as error:
            if self._unread is None:
                raise
            self._unread.append(error)
        return item

    def _stored(self, proto: Any) -> _Stored:
        read = partial(tensor_from, proto, self._model.files)
        return _Stored(element_type(proto.data_type), list(proto.dims), *tensor_size(proto), read)

    def _stored_sparse(self, proto: Any) -> _Stored:
        read = partial(dense_from_sparse, proto, self._model.files)
        return self._stored(proto.values)._replace(shape=list(proto.dims), read=read)

    def _value(self, attribute: Any) -> _Stored | None:
        """The value of a Constant; None if it is that of a function's attribute."""
        name = attribute.name
        if attribute.ref_attr_name:
            return None
        if name == "value":
            return self._stored(attribute.t)
        if name == "sparse_value":
            return self._stored_sparse(attribute.sparse_tensor)
        if name not in _PLAIN:
            return None
        key, dtype = _PLAIN[name]
        tensor = ArrayTensor(np.array(getattr(attribute, key), dtype.numpy), dtype)
        size = sum(map(len, tensor.array().flat)) if dtype is string else tensor.nbytes
        return _Stored(dtype.name, tensor.shape, tensor.size, size, lambda: tensor)

    # -- nodes

    def _item(self, node: Any, scope: ScopeRecord, types: Mapping[str, tuple[str, str]]) -> Item:
        outputs = [_output(name, types) for name in node.output]
        item = Item(operator_of(node), node.name, scope, outputs=outputs, made_of=node)
        if self._weights:
            item.info = {each.key: each.value for each in getattr(node, "metadata_props", ())}
            item.info |= {"doc_string": node.doc_string} if node.doc_string else {}
        if item.operator == "Constant" and len(node.attribute) == 1:
            stored = self._value(node.attribute[0])
            if stored is not None:
                return self._constant(item, tuple(node.output), stored)
        overload = getattr(node, "overload", "")
        if overload:
            item.attributes["overload"] = overload
        for attribute in node.attribute if self._weights else ():
            if attribute.type not in (_GRAPH, _GRAPHS):
                item.attributes[attribute.name] = self._text(attribute)
        return item

    def _text(self, attribute: Any) -> str:
        if attribute.ref_attr_name:
            return f"@{attribute.ref_attr_name}"
        if attribute.type in _FIELDS:
            return _plain_text(getattr(attribute, _FIELDS[attribute.type]))
        if attribute.type == _TENSOR:
            tensor = tensor_from(attribute.t, self._model.files)
            content = show_array(tensor) if tensor.size <= SMALL else digest(tensor)
            return f"{tensor.dtype}{shown_dims(tensor.shape)} {content}"
        data = attribute.SerializeToString(deterministic=True)
        return f"{len(data)} bytes {blake2b(data, digest_size=6).hexdigest()}"


def tensor_size(proto: Any) -> tuple[int, int]:
    """The numbers of elements and of bytes of a TensorProto; 0 bytes of a type that is not known."""
    elements = math.prod(proto.dims) if all(dim >= 0 for dim in proto.dims) else 0
    known = BY_ONNX.get(proto.data_type)
    if known is string:
        return elements, sum(map(len, proto.string_data))
    return elements, known.size_of(elements) if known else 0


def _plain_text(value: Any) -> str:
    """A number, a string, or a list of these."""
    if isinstance(value, int | float):
        return f"{value:.9g}" if isinstance(value, float) else str(value)
    return value.decode(errors="replace") if isinstance(value, bytes) else f"[{', '.join(map(_plain_text, value))}]"


def _output(name: str, types: Mapping[str, tuple[str, str]]) -> Output:
    return Output((name,) if name else (), *types.get(name, ("", "")))


def _captured(owner: Item) -> dict[Ref, list[str]]:
    """The outer values that the bodies of a node read, in the order of use, with the operators that read them and their
    ports."""
    scopes = dict.fromkeys(scope for body in owner.bodies.values() for scope in body.all())
    found: dict[Ref, list[str]] = {}
    for scope in scopes:
        for item in scope.items:
            for port, ref in enumerate(item.inputs):
                if ref is not None and ref.item.scope not in scopes:
                    found.setdefault(ref, []).append(f"{item.operator} {port}")
        found |= {
            each.ref: [] for each in scope.results
            if each.ref is not None and each.ref.item.scope not in scopes and each.ref not in found
        }
    return found


def _type(proto: Any) -> tuple[str, str]:
    """A declared element type and the dimensions as text, also of a type that cannot be converted; "" if not declared.
    """
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim]
        dtype = element_type(tensor.elem_type) if tensor.elem_type else ""
        return dtype, shown_dims(dims) if tensor.HasField("shape") else ""
    if kind in ("sequence_type", "optional_type"):
        inner = port_of("", *_type(getattr(proto, kind).elem_type))
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})", ""
    if kind == "map_type":
        value = port_of("", *_type(proto.map_type.value_type))
        return f"map({element_type(proto.map_type.key_type)}, {value})", ""
    return "" if kind is None else f"{kind.removesuffix('_type')}()", ""


def element_type(number: int) -> str:
    if not number:
        return "?"
    return BY_ONNX[number].name if number in BY_ONNX else f"type {number}"


# -- Loop, Scan and If of ONNX


def connect_onnx(node: Any, item: Item, is_old: bool) -> None:
    """Set the port map of an item. The Scan of operator set 8 (`is_old`) has lengths as its first input."""
    bodies = list(item.bodies.values())
    if item.operator == "If":
        connect(item, {"inputs": [], "outputs": [
            {"role": "Selected", "port": port, **{branch_key(body.tag): _end(body, port) for body in bodies}}
            for port in range(len(item.outputs))
        ]})
    elif item.operator == "Loop" and len(bodies) == 1:
        connect(item, _loop_ports(item, bodies[0]))
    elif item.operator == "Scan" and len(bodies) == 1:
        item.mapped = {key: item.attributes.pop(key) for key in SCAN_ATTRIBUTES if key in item.attributes}
        connect(item, _scan_ports(node, item, bodies[0], is_old))
        if is_old:
            item.input_names, item.direct = ("sequence lengths",), 1
    else:
        _connect_unknown(item, bodies)


def _connect_unknown(item: Item, bodies: Sequence[ScopeRecord]) -> None:
    """Only the operator defines how the outputs depend on those of the bodies: they are compared one by one."""
    for body in bodies:
        for place, parameter in enumerate(body.parameters):
            parameter.feed = Feed(f"input {place}")
    for place in range(max((len(body.results) for body in bodies), default=0)):
        sources = {tag: ref_of(_end(body, place)) for tag, body in item.bodies.items()}
        item.drains.append(Drain("body output", sources))


def _end(body: ScopeRecord, place: int) -> OutputRecord | None:
    """An output of a body; None in a damaged model that lacks it."""
    return body.results[place] if place < len(body.results) else None


def _loop_ports(item: Item, body: ScopeRecord) -> dict[str, Any]:
    """The condition is a state of the body, which input 1 begins."""
    found: dict[str, Any] = {"inputs": [], "outputs": []}
    for port, parameter in enumerate(body.parameters):
        if not port:
            found["iteration"] = parameter
        elif port < max(len(item.inputs), 2):
            entry = {"role": "Merged", "port": port, "parameter": parameter, "result": _end(body, port - 1)}
            found["inputs"].append(entry)
    found["condition"] = _end(body, 0)
    for port in range(len(item.outputs)):
        role = "Final" if port < len(item.inputs) - 2 else "Concatenated"
        found["outputs"].append({"role": role, "port": port, "result": _end(body, port + 1)})
    return found


def _scan_ports(node: Any, item: Item, body: ScopeRecord, is_old: bool) -> dict[str, Any]:
    given = {each.name: each for each in node.attribute}
    count = given["num_scan_inputs"].i if "num_scan_inputs" in given else 0
    first = int(is_old)
    states = max(len(item.inputs) - first - max(count, 0), 0)

    def sliced(side: str, place: int) -> dict[str, Any]:
        name = "directions" if is_old and side == "input" else f"scan_{side}_directions"
        axes, ways = (list(given[key].ints) if key in given else [] for key in (f"scan_{side}_axes", name))
        backward = place < len(ways) and bool(ways[place])
        axis = axes[place] if place < len(axes) else first
        return {"axis": axis, "direction": "reverse" if backward else "forward"}

    found: dict[str, Any] = {"inputs": [], "outputs": []}
    for place, parameter in enumerate(body.parameters):
        is_state = place < states
        role = "Merged" if is_state else "Sliced"
        more = {"result": _end(body, place)} if is_state else sliced("input", place - states)
        found["inputs"].append({"role": role, "port": first + place, "parameter": parameter} | more)
    for port in range(len(item.outputs)):
        is_state = port < states
        role = "Final" if is_state else "Concatenated"
        more = {} if is_state else sliced("output", port - states)
        found["outputs"].append({"role": role, "port": port, "result": _end(body, port)} | more)
    return found
