"""A model that was opened for a comparison as records and scopes: `described(structure)`.

An ONNX model is shown as it is in its file: initializers are Constants, inputs are Parameters, outputs are Results, and
the port maps of Loop, Scan and If are those that their inputs and outputs mean. Tensors without a declared type have
the one that inference finds. Other models are described by their Graph, as in a conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from mo_loop.graph.tensor import FileTensor
from mo_loop.look.records.constant_records import Contents, described_constant
from mo_loop.look.records.node_records import Describer, GraphState, Record
from mo_loop.look.records.of_onnx import inferred_outputs
from mo_loop.look.records.port_entries import Ports, renamed
from mo_loop.look.records.structure import ONNX, Item, Output, Ref, ScopeRecord, Structure
from mo_loop.look.records.trip_counts import set_trip_counts
from mo_loop.text.attributes import show_attribute


@dataclass
class Described:
    """A model as a state, with the ids of the items and results of its structure."""

    structure: Structure
    state: GraphState
    items: dict[Item, int]
    results: dict[int, int]
    """By the identity of a Result: equal ones can be in several scopes."""
    scopes: dict[ScopeRecord, str]
    id_of: Callable[[Any], int]
    """The id of a Node of a graph, or of another object that an item describes."""


def described(structure: Structure, contents: Contents) -> Described:
    """The records of a model. `contents` names its constants, also those of another model that it is compared with."""
    if structure.kind == ONNX:
        found = _of_onnx(structure, contents)
    elif isinstance(structure.made_of, GraphState):  # of a dump, whose records have their trip counts
        return _described_by(structure, structure.made_of, int)
    else:
        describer = Describer(contents)
        state = describer.state(structure.made_of)
        found = _described_by(structure, state, describer.id)
    set_trip_counts(found.state)
    return found


def _described_by(structure: Structure, state: GraphState, id_of: Callable[[Any], int]) -> Described:
    """A model whose state is known; `id_of` gives the id of the object that an item describes."""
    items = {item: id_of(item.made_of) for scope in structure.scopes() for item in scope.items}
    found = Described(structure, state, items, {}, {structure.main: ""}, id_of)
    for item, number in items.items():
        found.scopes |= dict(zip(item.bodies.values(), state.nodes[number].get("bodies", ()), strict=True))
    for scope, name in found.scopes.items():
        found.results |= zip(map(id, scope.results), state.scopes[name]["results"], strict=True)
    return found


def facts(structure: Structure) -> list[tuple[str, str]]:
    """The facts about a model as a whole, as names and texts."""
    found = [("format", structure.kind)]
    found += [(f"opset {domain}", version) for domain, version in structure.opsets.items()]
    return found + [(key.removeprefix("metadata/"), text) for key, text in structure.metadata.items()]


def written(model: Described, state: GraphState) -> Record:
    """The places of the nodes of a state in the files of an IR: the ids of layers, and the offsets of constants."""
    layers, offsets = {}, {}
    for node, layer in model.structure.layers.items():
        number = model.id_of(node)
        if number in state.nodes and layer.isdecimal():
            layers[number] = int(layer)
            tensor = getattr(node, "tensor", None)
            if isinstance(tensor, FileTensor):
                offsets[number] = tensor.offset
    return {"layers": layers, "offsets": offsets}


def body_of(state: GraphState, scope: str) -> GraphState:
    """One body with those below it as a state. Nodes outside that it reads are kept without their own inputs."""
    below = {scope}
    found = GraphState()
    for name, record in state.scopes.items():  # outer before inner
        if name == scope:
            found.scopes[""] = record | {"id": "", "owner": None}
        elif record["owner"] is not None and state.nodes[record["owner"]]["scope"] in below:
            below.add(name)
            found.scopes[name] = record
    inner = [record for record in state.nodes.values() if record["scope"] in below]
    read = {ref[0] for record in inner for ref in record["inputs"] if ref is not None}
    for number in read - {record["id"] for record in inner}:
        outer = {key: value for key, value in state.nodes[number].items() if key not in ("bodies", "port_map")}
        found.nodes[number] = outer | {"scope": "", "inputs": []}
    for record in inner:
        found.nodes[record["id"]] = record if record["scope"] != scope else record | {"scope": ""}
    return found


def _of_onnx(structure: Structure, contents: Contents) -> Described:
    found = Described(structure, GraphState(), {}, {}, {}, int)
    functions = {scope: name for name, scope in structure.functions.items()}
    for scope in structure.scopes():
        for item in scope.items:
            found.items[item] = len(found.items) + len(found.results)
        for each in scope.results:
            found.results[id(each)] = len(found.items) + len(found.results)
        if scope.owner is not None:
            found.scopes[scope] = f"{found.items[scope.owner]}/{scope.tag}"
        else:
            found.scopes[scope] = f"function/{functions[scope]}" if scope in functions else ""
    _OnnxRecords(found, contents).add()
    return found


class _OnnxRecords:
    """Adds the records and scopes of an ONNX model whose items have ids."""

    def __init__(self, model: Described, contents: Contents) -> None:
        self._model = model
        self._contents = contents
        self._file = PurePath(model.structure.source).name
        self._undefined: dict[tuple[ScopeRecord, str], int] = {}
        self._outputs = inferred_outputs(model.structure)

    def add(self) -> None:
        for scope in self._model.structure.scopes():
            self._scope(scope)

    def _scope(self, scope: ScopeRecord) -> None:
        model = self._model
        name = model.scopes[scope]
        record: Record = {
            "id": name, "owner": None if scope.owner is None else model.items[scope.owner],
            "tag": scope.tag or name.replace("/", " ", 1),
            "name": scope.path[-1] if scope.path else model.structure.metadata.get("name", ""),
            "parameters": [model.items[item] for item in scope.parameters],
            "results": [model.results[id(each)] for each in scope.results],
        }  # fmt: skip
        if scope.settings:
            record["info"] = show_attribute(scope.settings, Any)
        model.state.scopes[name] = record
        opsets = self._opsets(scope)
        inputs = set(scope.parameters)
        for item in scope.items:
            found = self._record(item, name, opsets, item in inputs)
            model.state.nodes[found["id"]] = found
        for each in scope.results:
            number = model.results[id(each)]
            model.state.nodes[number] = {
                "id": number, "scope": name, "op": "Result", "opset": "", "name": each.name,
                "inputs": [self._ref(each.ref)], "outputs": [], "names": [each.name],
            }  # fmt: skip

    def _opsets(self, scope: ScopeRecord) -> dict[str, str]:
        """The versions of the domains: a function and its bodies have their own."""
        at = scope
        while at.owner is not None:
            at = at.owner.scope
        own = {key.removeprefix("opset "): text for key, text in at.settings.items() if key.startswith("opset ")}
        return self._model.structure.opsets | own

    def _record(self, item: Item, scope: str, opsets: dict[str, str], is_input: bool) -> Record:
        found: Record = {
            "id": self._model.items[item], "scope": scope,
            "op": "Parameter" if is_input else item.operator, "opset": _version(item, opsets, is_input),
            "name": item.name, "inputs": [self._ref(ref) for ref in item.inputs],
            "outputs": [{"type": _type(output), "names": list(output.names)} for output in self._outputs[item]],
        }  # fmt: skip
        if item.attributes or item.mapped:
            found["attributes"] = item.attributes | item.mapped
        if item.data is not None and item.data.tensor is not None:
            found |= described_constant(item.data.tensor, self._contents, f"{self._file}: {item.label}")
        if item.info:
            found["info"] = show_attribute(item.info, Any)
        if item.bodies:
            found["bodies"] = [self._model.scopes[body] for body in item.bodies.values()]
            if item.ports is not None:
                found["port_map"] = self._port_map(item, item.ports)
        return found

    def _ref(self, ref: Ref | None) -> list[int] | None:
        if ref is None:
            return None
        number = self._model.items.get(ref.item)
        return [self._add_undefined(ref.item) if number is None else number, ref.output]

    def _add_undefined(self, item: Item) -> int:
        """The record of a name that nothing defines."""
        key = item.scope, item.name
        if key not in self._undefined:
            number = len(self._model.items) + len(self._model.results) + len(self._undefined)
            self._undefined[key] = number
            self._model.state.nodes[number] = {
                "id": number, "scope": self._model.scopes[item.scope], "op": "undefined", "opset": "",
                "name": item.name, "inputs": [], "outputs": [{"type": "?", "names": [item.name]}],
            }  # fmt: skip
        return self._undefined[key]

    def _port_map(self, item: Item, ports: Ports) -> Record:
        """The port map with ids; slices are described as in an IR."""
        ids: dict[Any, int] = {}
        for body in item.bodies.values():
            ids |= {parameter: self._model.items[parameter] for parameter in body.parameters}
            ids |= {(body, place): self._model.results[id(each)] for place, each in enumerate(body.results)}
        found = renamed(ports, ids.__getitem__)
        for side in ("inputs", "outputs"):
            found[side] = [
                _slice(entry) if entry["role"] in ("Sliced", "Concatenated") else entry for entry in found[side]
            ]
        return found


def _slice(entry: Record) -> Record:
    start, end, stride = (-1, 0, -1) if entry.pop("direction", "") == "reverse" else (0, -1, 1)
    return entry | {"axis": entry.get("axis", 0), "start": start, "end": end, "stride": stride, "part_size": 1}


def _version(item: Item, opsets: dict[str, str], is_input: bool) -> int | str:
    """The version of the operator set, with its domain if that is not the default one."""
    if is_input or item.made_of is None:
        return ""
    domain, _, _ = item.operator.rpartition("::")
    version = opsets.get(domain or "ai.onnx", "")
    if domain:
        return f"{domain} {version}".rstrip()
    return int(version) if version else ""


def _type(output: Output) -> str:
    """The type; ? if it is neither declared nor inferred."""
    if not output.shape and output.dtype and not output.dtype.endswith(")"):
        return f"{output.dtype}[...]"
    return f"{output.dtype or '?'}{output.shape}"
