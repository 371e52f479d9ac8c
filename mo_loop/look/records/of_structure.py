"""A model that was opened for a comparison as records and scopes: `described(structure)`.

An ONNX model is shown as it is in its file: initializers are Constants, inputs are Parameters, outputs are Results, and
the port maps of Loop, Scan and If are those that their inputs and outputs mean. Tensors without a declared type have
the one that inference finds. Other models are described by their Graph, as in a conversion.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from mo_loop.graph.tensor import FileTensor
from mo_loop.look.records.data import Contents, described_constant
from mo_loop.look.records.node_records import Describer, GraphState, Record
from mo_loop.look.records.of_onnx import inferred_outputs
from mo_loop.look.records.port_entries import Ports, renamed
from mo_loop.look.records.structure import ONNX, Item, Output, Ref, ScopeRecord, Structure
from mo_loop.look.records.trip_counts import set_trip_counts
from mo_loop.text.attributes import show_attribute


def described(structure: Structure, contents: Contents) -> GraphState:
    """The records of a model, by the ids that its items, results and scopes get. `contents` names its constants, also
    those of another model that it is compared with."""
    if isinstance(structure.made_of, GraphState):  # of a dump: it has the ids, and the records have their trip counts
        return structure.made_of
    if structure.kind == ONNX:
        state = _OnnxRecords(structure, contents).state
    else:
        describer = Describer(contents)
        state = describer.state(structure.made_of)
        for scope in structure.scopes():
            for each in scope.entries:
                each.id = describer.id(each.made_of)
            for item in scope.items:
                for body, name in zip(item.bodies.values(), state.nodes[item.id].get("bodies", ()), strict=True):
                    body.id = name
    set_trip_counts(state)
    return state


def facts(structure: Structure) -> list[tuple[str, str]]:
    """The facts about a model as a whole, as names and texts."""
    found = [("format", structure.kind)]
    found += [(f"opset {domain}", version) for domain, version in structure.opsets.items()]
    return found + [(key.removeprefix("metadata/"), text) for key, text in structure.metadata.items()]


def written(structure: Structure, state: GraphState) -> Record:
    """The places of the nodes of a state in the files of an IR: the ids of layers, and the offsets of constants."""
    layers, offsets = {}, {}
    for each in (each for scope in structure.scopes() for each in scope.entries):
        layer = structure.layers.get(each.made_of, "")
        if each.id in state.nodes and layer.isdecimal():
            layers[each.id] = int(layer)
            tensor = getattr(each.made_of, "tensor", None)
            if isinstance(tensor, FileTensor):
                offsets[each.id] = tensor.offset
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


class _OnnxRecords:
    """Numbers the items and results of an ONNX model, and makes their records: `state`."""

    def __init__(self, structure: Structure, contents: Contents) -> None:
        self.state = GraphState()
        self._structure = structure
        self._contents = contents
        self._file = PurePath(structure.source).name
        self._undefined: dict[tuple[ScopeRecord, str], int] = {}
        self._outputs = inferred_outputs(structure)
        self._count = 0
        for scope in structure.scopes():
            for each in scope.entries:
                each.id = self._next()
            if scope.path:
                scope.id = f"function/{scope.path[0]}" if scope.owner is None else f"{scope.owner.id}/{scope.tag}"
        for scope in structure.scopes():
            self._scope(scope)

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def _scope(self, scope: ScopeRecord) -> None:
        record: Record = {
            "id": scope.id, "owner": None if scope.owner is None else scope.owner.id,
            "tag": scope.tag or scope.id.replace("/", " ", 1),
            "name": scope.path[-1] if scope.path else self._structure.metadata.get("name", ""),
            "parameters": [each.id for each in scope.parameters], "results": [each.id for each in scope.results],
        }  # fmt: skip
        if scope.settings:
            record["info"] = show_attribute(scope.settings, Any)
        self.state.scopes[scope.id] = record
        at = scope
        while at.owner is not None:
            at = at.owner.scope
        own = {key.removeprefix("opset "): text for key, text in at.settings.items() if key.startswith("opset ")}
        opsets = self._structure.opsets | own  # a function and its bodies have their own
        for item in scope.items:
            self.state.nodes[item.id] = self._record(item, opsets, is_input=item in scope.parameters)
        for each in scope.results:
            self.state.nodes[each.id] = {
                "id": each.id, "scope": scope.id, "op": "Result", "opset": "", "name": each.name,
                "inputs": [self._ref(each.ref)], "outputs": [], "names": [each.name],
            }  # fmt: skip

    def _record(self, item: Item, opsets: dict[str, str], *, is_input: bool) -> Record:
        found: Record = {
            "id": item.id, "scope": item.scope.id,
            "op": "Parameter" if is_input else item.operator, "opset": "" if is_input else _version(item, opsets),
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
            found["bodies"] = [body.id for body in item.bodies.values()]
            if item.ports is not None:
                found["port_map"] = _port_map(item.ports)
        return found

    def _ref(self, ref: Ref | None) -> list[int] | None:
        if ref is None:
            return None
        return [self._add_undefined(ref.item) if ref.item.id < 0 else ref.item.id, ref.output]

    def _add_undefined(self, item: Item) -> int:
        """The record of a name that nothing defines."""
        key = item.scope, item.name
        if key not in self._undefined:
            number = self._undefined[key] = self._next()
            self.state.nodes[number] = {
                "id": number, "scope": item.scope.id, "op": "undefined", "opset": "",
                "name": item.name, "inputs": [], "outputs": [{"type": "?", "names": [item.name]}],
            }  # fmt: skip
        return self._undefined[key]


def _port_map(ports: Ports) -> Record:
    """The port map with ids; slices are described as in an IR."""
    found = renamed(ports, lambda end: end.id)
    for entry in (*found["inputs"], *found["outputs"]):
        if entry["role"] in ("Sliced", "Concatenated"):
            backward = entry.pop("direction", "") == "reverse"
            start, end, stride = (-1, 0, -1) if backward else (0, -1, 1)
            entry |= {"axis": entry.get("axis", 0), "start": start, "end": end, "stride": stride, "part_size": 1}
    return found


def _version(item: Item, opsets: dict[str, str]) -> int | str:
    """The version of the operator set, with its domain if that is not the default one."""
    if item.made_of is None:
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
