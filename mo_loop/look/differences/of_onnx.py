"""The structure of an ONNX model. Types are those that the model declares; nothing is inferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from mo_loop.errors import FileError
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import OnnxGraph, domain_of, function_graph, main_graph, operator_of
from mo_loop.frontend.tensor_protos import dense_from_sparse, tensor_from
from mo_loop.graph.tensor import ArrayTensor, Tensor
from mo_loop.graph.types import string
from mo_loop.look.differences.data import Data
from mo_loop.look.differences.structure import ONNX, Drain, Feed, Item, Output, Ref, Result, Scope, Structure, in_order
from mo_loop.look.inspection.description import shown_dim
from mo_loop.look.inspection.onnx_types import declared, tensor_port
from mo_loop.text.literals import show_array

# AttributeProto.AttributeType
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS, _GRAPHS = 1, 2, 3, 4, 5, 6, 7, 8, 10

SMALL = 16
"""The number of elements up to which the tensor of an attribute is shown with its values."""

SCAN_ATTRIBUTES = (
    "num_scan_inputs", "scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions",
)  # fmt: skip

Names = Mapping[str, Ref]


def structure_of_onnx(model: OnnxModel, source: str, unread: list[FileError] | None = None) -> Structure:
    """The structure of a loaded model. ModelError and FileError for data that cannot be read.

    With `unread` initializers in files that cannot be read are constants without data; the errors are added to it.
    """
    reader = _Reader(model, unread)
    proto = model.proto
    main = reader.scope(main_graph(model), Scope(), {})
    functions = {}
    for (domain, name, overload), function in model.functions.items():
        full = "::".join(each for each in (domain, name, overload) if each)
        functions[full] = reader.scope(function_graph(model, function, (full,)), Scope((full,)), {})
        functions[full].settings = reader.settings(function)
    metadata = {f"metadata/{each.key}": each.value for each in proto.metadata_props}
    for key in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if getattr(proto, key):
            metadata[key] = str(getattr(proto, key))
    if proto.graph.name:
        metadata["name"] = proto.graph.name
    opsets = {domain or "ai.onnx": str(version) for domain, version in model.opsets.items()}
    return Structure(ONNX, source, main, functions, opsets, metadata, made_of=proto)


class _Reader:
    def __init__(self, model: OnnxModel, unread: list[FileError] | None) -> None:
        self._model = model
        self._unread = unread

    def scope(self, graph: OnnxGraph, scope: Scope, outer: Names) -> Scope:
        """Fill `scope` with the items of a graph and of its bodies; `outer` are the values that it can capture."""
        types = self._types(graph)
        names: dict[str, Ref] = dict(outer)
        items: list[Item] = []

        def add(item: Item) -> Item:
            items.append(item)
            for index, output in enumerate(item.outputs):
                if output.names:
                    names[output.names[0]] = Ref(item, index)
            return item

        constants = [self._initializer(each, scope) for each in graph.initializers]
        for sparse in () if graph.kind == "function" else graph.proto.sparse_initializer:
            tensor = dense_from_sparse(sparse, self._model.files)
            constants.append(self._constant(sparse.values.name, tensor, scope))
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
            for body in _then_first(graph.bodies(node)) if node.attribute else ():
                tag = body.kind if body.kind not in item.bodies else f"{body.kind}/{len(item.bodies)}"
                item.bodies[tag] = self.scope(body, Scope(body.scope, item, tag), names)
            if item.bodies:
                _connect(node, item, self._model.opsets)
                item.captures = _captured(item)
        scope.items = in_order(items)
        for name in graph.output_names:
            dtype, shape = types.get(name, ("", ""))
            if graph.kind == "model":
                dtype, shape = dtype or "?", shape or "[...]"
            scope.results.append(Result(name, self._ref(name, names, scope), dtype, shape))
        return scope

    def settings(self, function: Any) -> dict[str, str]:
        """The opsets and attributes of a function."""
        found = {f"opset {each.domain or 'ai.onnx'}": str(each.version) for each in function.opset_import}
        found |= {f"attribute {name}": "required" for name in function.attribute}
        return found | {f"attribute {each.name}": self._text(each) for each in function.attribute_proto}

    def _ref(self, name: str, names: Names, scope: Scope) -> Ref | None:
        """The value of a name; a name that nothing defines stands for itself."""
        if not name:
            return None
        return names.get(name) or Ref(Item("undefined", name, scope, outputs=[Output((name,))]), 0)

    def _types(self, graph: OnnxGraph) -> dict[str, tuple[str, str]]:
        if graph.kind == "function":
            return {}
        proto = graph.proto
        return {each.name: _shown(each) for each in (*proto.value_info, *proto.output, *proto.input)}

    def _initializer(self, proto: Any, scope: Scope) -> Item:
        try:
            return self._constant(proto.name, self._tensor(proto), scope)
        except FileError as error:
            if self._unread is None:
                raise
            self._unread.append(error)
        port = tensor_port(proto)
        return Item("Constant", proto.name, scope, outputs=[Output((proto.name,), port.type, _dims(port.shape or ()))])

    def _constant(self, name: str, tensor: Tensor, scope: Scope) -> Item:
        output = Output((name,), tensor.dtype.name, _dims(tensor.shape))
        return Item("Constant", name, scope, outputs=[output], data=Data.of(tensor))

    def _tensor(self, proto: Any) -> Tensor:
        return tensor_from(proto, self._model.files)

    def _item(self, node: Any, scope: Scope, types: Mapping[str, tuple[str, str]]) -> Item:
        outputs = [_output(name, types) for name in node.output]
        item = Item(operator_of(node), node.name, scope, outputs=outputs, made_of=node)
        item.info = {each.key: each.value for each in getattr(node, "metadata_props", ())}
        if node.doc_string:
            item.info["doc_string"] = node.doc_string
        if item.operator == "Constant" and len(node.attribute) == 1:
            tensor = self._value(node.attribute[0])
            if tensor is not None:
                item.data = Data.of(tensor)
                item.outputs = [Output(each.names, tensor.dtype.name, _dims(tensor.shape)) for each in outputs]
                return item
        overload = getattr(node, "overload", "")
        if overload:
            item.attributes["overload"] = overload
        for attribute in node.attribute:
            if attribute.type not in (_GRAPH, _GRAPHS):
                item.attributes[attribute.name] = self._text(attribute)
        return item

    def _value(self, attribute: Any) -> Tensor | None:
        """The value of a Constant; None if it is that of a function's attribute."""
        name = attribute.name
        if attribute.ref_attr_name:
            return None
        if name == "value":
            return self._tensor(attribute.t)
        if name == "sparse_value":
            return dense_from_sparse(attribute.sparse_tensor, self._model.files)
        if name in ("value_string", "value_strings"):
            texts = np.empty(len(attribute.strings), object)
            texts[:] = list(attribute.strings)
            return ArrayTensor(texts if name.endswith("s") else np.array(attribute.s, object), string)
        values = {
            "value_float": lambda: np.float32(attribute.f), "value_int": lambda: np.int64(attribute.i),
            "value_floats": lambda: np.array(attribute.floats, np.float32),
            "value_ints": lambda: np.array(attribute.ints, np.int64),
        }  # fmt: skip
        return ArrayTensor(np.asarray(values[name]())) if name in values else None

    def _text(self, attribute: Any) -> str:
        kind = attribute.type
        if attribute.ref_attr_name:
            return f"@{attribute.ref_attr_name}"
        if kind == _FLOAT:
            return f"{attribute.f:.9g}"
        if kind == _INT:
            return str(attribute.i)
        if kind == _STRING:
            return attribute.s.decode(errors="replace")
        if kind == _TENSOR:
            return _tensor_text(self._tensor(attribute.t))
        if kind == _FLOATS:
            return f"[{', '.join(f'{each:.9g}' for each in attribute.floats)}]"
        if kind == _INTS:
            return f"[{', '.join(map(str, attribute.ints))}]"
        if kind == _STRINGS:
            return f"[{', '.join(each.decode(errors='replace') for each in attribute.strings)}]"
        data = attribute.SerializeToString(deterministic=True)
        return f"{len(data)} bytes {blake2b(data, digest_size=6).hexdigest()}"


def _tensor_text(tensor: Tensor) -> str:
    type_ = f"{tensor.dtype}{_dims(tensor.shape)}"
    if tensor.size <= SMALL:
        return f"{type_} {show_array(tensor)}"
    content = blake2b(digest_size=6)
    for block in tensor.blocks():
        content.update(block)
    return f"{type_} {content.hexdigest()}"


def _output(name: str, types: Mapping[str, tuple[str, str]]) -> Output:
    return Output((name,) if name else (), *types.get(name, ("", "")))


def _shown(proto: Any) -> tuple[str, str]:
    """The element type and dimensions that a value is declared with; "" for what is not declared."""
    port = declared(proto.name, proto.type)
    dtype = "" if port.type == "?" else port.type
    return dtype, "" if port.shape is None else _dims(port.shape)


def _dims(shape: Iterable[Any]) -> str:
    return f"[{','.join(map(shown_dim, shape))}]"


def _then_first(bodies: Iterable[OnnxGraph]) -> list[OnnxGraph]:
    """Bodies in the order of the attributes, but the then branch before the else branch, as in an IR."""
    return sorted(bodies, key=lambda body: body.kind == "else_branch")


def _captured(owner: Item) -> list[Ref]:
    """The outer values that the bodies of a node read, each once, in the order of use."""
    scopes = {id(scope) for body in owner.bodies.values() for scope in body.all()}
    found: dict[tuple[int, int], Ref] = {}
    for body in owner.bodies.values():
        for scope in body.all():
            refs: list[Ref | None] = [ref for item in scope.items for ref in item.inputs]
            refs += [result.ref for result in scope.results]
            for ref in refs:
                if ref is not None and id(ref.item.scope) not in scopes:
                    found.setdefault((id(ref.item), ref.output), ref)
    return list(found.values())


# -- what feeds the bodies of Loop, Scan and If


def _connect(node: Any, item: Item, opsets: Mapping[str, int]) -> None:
    bodies = list(item.bodies.values())
    kind = "" if domain_of(node) else node.op_type
    if kind == "Loop" and len(bodies) == 1:
        _connect_loop(item, bodies[0])
    elif kind == "Scan" and len(bodies) == 1 and opsets.get("", 9) >= 9:
        _connect_scan(node, item, bodies[0])
    elif kind == "If":
        item.input_names, item.direct = ("condition",), 1
        item.drains = [
            Drain("selected", {tag: _at(body.results, place) for tag, body in item.bodies.items()})
            for place in range(len(item.outputs))
        ]
    else:
        for body in bodies:
            for place, parameter in enumerate(body.parameters):
                parameter.feed = Feed(f"input {place}")
        # How the outputs depend on those of the bodies only the operator knows: they are compared one by one.
        longest = max((len(body.results) for body in bodies), default=0)
        item.drains = [
            Drain("body output", {tag: _at(body.results, place) for tag, body in item.bodies.items()})
            for place in range(longest)
        ]


def _connect_loop(item: Item, body: Scope) -> None:
    item.input_names, item.direct = ("trip count", "execution condition"), 2
    states = item.inputs[2:]
    for place, parameter in enumerate(body.parameters):
        if place < 2:
            parameter.feed = Feed(("iteration number", "condition")[place])
        elif place - 2 < len(states):
            parameter.feed = Feed("merged", states[place - 2], _at(body.results, place - 1))
    item.condition = _at(body.results, 0)
    for place in range(len(item.outputs)):
        kind = "final" if place < len(states) else "concatenated"
        item.drains.append(Drain(kind, {"body": _at(body.results, place + 1)}))


def _connect_scan(node: Any, item: Item, body: Scope) -> None:
    lists = {each.name: list(each.ints) for each in node.attribute if each.name in SCAN_ATTRIBUTES}
    count = next((each.i for each in node.attribute if each.name == "num_scan_inputs"), 0)
    item.direct = 0
    item.mapped = {key: item.attributes.pop(key) for key in SCAN_ATTRIBUTES if key in item.attributes}
    states = len(item.inputs) - count
    for place, parameter in enumerate(body.parameters):
        source = item.inputs[place] if place < len(item.inputs) else None
        if place < states:
            parameter.feed = Feed("merged", source, _at(body.results, place))
        else:
            parameter.feed = Feed("sliced", source, None, _scanned(lists, "input", place - states))
    for place in range(len(item.outputs)):
        settings = {} if place < states else _scanned(lists, "output", place - states)
        item.drains.append(Drain("concatenated" if settings else "final", {"body": _at(body.results, place)}, settings))


def _scanned(lists: Mapping[str, Sequence[int]], side: str, place: int) -> dict[str, str]:
    """The axis and direction of a scan input or output."""
    axes, directions = lists.get(f"scan_{side}_axes", ()), lists.get(f"scan_{side}_directions", ())
    backward = place < len(directions) and bool(directions[place])
    return {
        "axis": str(axes[place] if place < len(axes) else 0),
        "direction": "reverse" if backward else "forward",
    }


def _at(results: Sequence[Result], place: int) -> Ref | None:
    return results[place].ref if place < len(results) else None
