"""Opens the models of a comparison: a path, a ModelProto, a Model, a Graph; and refuses those that cannot be compared.

`described(structure)`: the same as records and scopes.

An ONNX model is shown as it is in its file: initializers are Constants, inputs are Parameters, outputs are Results, and
the port maps of Loop, Scan and If are those that their inputs and outputs mean. Tensors without a declared type have
the one that inference finds. Other models are described by their Graph, as in a conversion.
"""

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

from mo_loop.errors import FileError, UsageError
from mo_loop.graph import ArrayTensor, FileTensor, Graph
from mo_loop.look.records.data import Contents, described_constant
from mo_loop.look.records.node_records import Describer, GraphState, Ports, Record, renamed
from mo_loop.look.records.structure import DUMP, IR, ONNX, Item, Output, OutputRecord, Ref, ScopeRecord, Structure
from mo_loop.look.records.trip_counts import set_trip_counts
from mo_loop.ops.arithmetic import Convert
from mo_loop.ops.base import Constant
from mo_loop.support.files import refuse_device
from mo_loop.text.attributes import show_attribute

if TYPE_CHECKING:
    import onnx

    from mo_loop.converted_model import Model

AnyModel: TypeAlias = "str | os.PathLike[str] | onnx.ModelProto | Model | Graph"
"""A model of any kind: the path of its file, an ONNX model in memory, or a converted one."""

_WORDS = {ONNX: "an ONNX model", IR: "an IR", DUMP: "a dump"}

_HEAD = 4096


def opened(
    source: Any, unread: list[FileError] | None = None, *, weights: bool = True, allowed: Sequence[str] = (),
    widened: bool = False,
) -> Structure:
    """The structure of a model. With `unread` an ONNX model can be without the files of its weights; the errors are
    added to it. Without `weights` those of an ONNX model and its attributes are not read, and tensors that it does not
    declare have the types that inference finds. `allowed` are folders besides that of the model whose files may hold
    external data. With `widened` the weights that an IR stores as f16 are constants in their former type.

    Raises:
        FileError: the file cannot be read, or is of another kind.
        InputError: the model is damaged.
    """
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    graph: Any = source if isinstance(source, Graph) else getattr(source, "graph", None)
    kind = IR if isinstance(graph, Graph) else ONNX
    if path is not None:
        refuse_device(path)
        kind = kind_of(path)
    name = "model" if path is None else os.fspath(source)
    if kind == ONNX:
        return _of_onnx(source if path is None else path, name, unread, weights, allowed)
    from mo_loop.look.records.of_graph import structure_of, structure_of_state

    if path is not None and kind != IR:
        from mo_loop.look.records.node_link import checked, state_at, state_of_text

        state = state_at(path) if kind == "json" else state_of_text(path, name)
        return checked(name, lambda: structure_of_state(state, name))
    layers: dict[Any, str] = {}
    if path is not None:
        from mo_loop.ir.reader import read_with_ids

        graph, layers = read_with_ids(path)
    else:
        name = graph.name or ("graph" if graph is source else "model")
        graph = graph.clone() if widened else graph  # the caller keeps the graph
    if widened:
        _widen(graph)
    structure = structure_of(graph, name)
    structure.layers = layers
    return structure


def require_same_kind(old: Structure, new: Structure) -> None:
    """UsageError if the models are of different kinds."""
    if old.kind == new.kind:
        return
    one, other = _WORDS[old.kind], _WORDS[new.kind]
    hint = "compare files of one kind: two .onnx, two .xml, or two files of --dump"
    if {old.kind, new.kind} == {ONNX, IR}:
        hint = "mo_loop.layer_map finds the layers that each node became; mo_loop.verify compares the numbers"
    if DUMP in (old.kind, new.kind) and IR in (old.kind, new.kind):
        hint = "a dump has other names for operations and types than an IR: compare two files of --dump, or two .xml"
    raise UsageError(f"{old.source} is {one}, {new.source} is {other}", why="they have different nodes", hint=hint)


def kind_of(path: Path) -> str:
    """The kind of a file, by its content, else by its name. A file that cannot be read counts as an ONNX model, which
    gives the right error."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError:
        return IR if path.suffix.lower() == ".xml" and not path.is_dir() else ONNX
    if path.suffix.lower() == ".xml" or head.startswith((b"<?xml", b"<net")):
        return IR
    if path.suffix.lower() == ".json" or (head.startswith(b"{") and b'"directed"' in head):
        return "json"
    return "text" if path.suffix.lower() == ".txt" else ONNX


def _of_onnx(
    source: Any, name: str, unread: list[FileError] | None, weights: bool, allowed: Sequence[str]
) -> Structure:
    from mo_loop.frontend.declared_types import with_inferred_types
    from mo_loop.frontend.model import check_names_on_error
    from mo_loop.frontend.model import opened as opened_onnx
    from mo_loop.frontend.onnx_graphs import require_external_data
    from mo_loop.look.records.of_onnx import structure_of_onnx

    model = opened_onnx(source, allowed)
    if not weights:
        model = with_inferred_types(model)
    with check_names_on_error(model.proto):
        if weights and unread is None:
            require_external_data(model)
        return structure_of_onnx(model, name, unread, weights=weights)


def _widen(graph: Graph) -> None:
    """Convert(Constant f16), marked as decompression  ->  Constant f32, in all bodies of a graph, which is changed in
    place. It forgets that its weights were compressed."""
    for scope in graph.scopes():
        for node in list(scope.of(Convert)):
            source = node.inputs[0]
            if "decompression" not in node.rt_info or source is None or not isinstance(source.node, Constant):
                continue
            array = source.node.array.astype(node.output.dtype.numpy)
            wide = Constant(ArrayTensor(array), graph=scope, dtype=node.output.dtype, name=node.name)
            wide.origins = node.origins
            wide.output.take_names(node.output)
            node.output.replace_with(wide.output)
            scope.remove(node)
            if not source.is_used:
                scope.remove(source.node)
    parameters = graph.rt_info.get("conversion_parameters")
    if isinstance(parameters, dict):
        graph.rt_info["conversion_parameters"] = {k: v for k, v in parameters.items() if k != "compress_to_fp16"}


def described(structure: Structure, contents: Contents) -> GraphState:
    """The records of a model, by the ids that its items, results and scopes get. `contents` names its constants, also
    those of another model that it is compared with."""
    if isinstance(structure.made_of, GraphState):  # of a dump: it has the ids, and the records have their trip counts
        return structure.made_of
    if structure.kind == ONNX:
        state = _onnx_state(structure, contents)
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


def written(structure: Structure, state: GraphState) -> dict[int, Record]:
    """The places of the nodes of a state in the files of an IR: the ids of layers, and the offsets of constants."""
    found: dict[int, Record] = {}
    for each in (each for scope in structure.scopes() for each in scope.entries):
        layer, tensor = structure.layers.get(each.made_of, ""), getattr(each.made_of, "tensor", None)
        if each.id in state.nodes and layer.isdecimal():
            found[each.id] = {"layer": int(layer)}
            if isinstance(tensor, FileTensor):
                found[each.id]["offset"] = tensor.offset
    return found


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


def _onnx_state(structure: Structure, contents: Contents) -> GraphState:
    """Number the items and results of an ONNX model, and make their records."""
    from mo_loop.look.records.of_onnx import inferred_outputs

    state, numbers, outputs = GraphState(), count(), inferred_outputs(structure)
    file = PurePath(structure.source).name
    for scope in structure.scopes():
        for each in scope.entries:
            each.id = next(numbers)
        if scope.path:
            scope.id = f"function/{scope.path[0]}" if scope.owner is None else f"{scope.owner.id}/{scope.tag}"

    def record(item: Item | OutputRecord, scope: ScopeRecord, op: str, *inputs: Ref | None, **more: Any) -> Record:
        """The record of an item or result; those of items that nothing defines, but it reads, are added to the state.
        """
        for ref in inputs:
            if ref is not None and ref.item.id < 0:
                ref.item.id = next(numbers)
                made = [{"type": "?", "names": [ref.item.name]}]
                state.nodes[ref.item.id] = record(ref.item, ref.item.scope, "undefined", outputs=made)
        refs = [None if ref is None else [ref.item.id, ref.output] for ref in inputs]
        head = {"id": item.id, "scope": scope.id, "op": op, "opset": "", "name": item.name}
        return head | {"inputs": refs, "outputs": []} | more

    for start in (structure.main, *structure.functions.values()):
        own = {key.removeprefix("opset "): text for key, text in start.settings.items() if key.startswith("opset ")}
        opsets = structure.opsets | own  # a function and its bodies have their own
        for scope in start.all():
            state.scopes[scope.id] = {
                "id": scope.id, "owner": None if scope.owner is None else scope.owner.id,
                "tag": scope.tag or scope.id.replace("/", " ", 1),
                "name": scope.path[-1] if scope.path else structure.metadata.get("name", ""),
                "parameters": [each.id for each in scope.parameters], "results": [each.id for each in scope.results],
            } | ({"info": show_attribute(scope.settings, Any)} if scope.settings else {})
            for item in scope.items:
                made = [{"type": _type(output), "names": list(output.names)} for output in outputs[item]]
                is_input = item in scope.parameters
                op, opset = ("Parameter", "") if is_input else (item.operator, _version(item, opsets))
                found = state.nodes[item.id] = record(item, scope, op, *item.inputs, outputs=made, opset=opset)
                if item.attributes or item.mapped:
                    found["attributes"] = item.attributes | item.mapped
                if item.data is not None and item.data.tensor is not None:
                    found |= described_constant(item.data.tensor, contents, f"{file}: {item.label}")
                if item.info:
                    found["info"] = show_attribute(item.info, Any)
                if item.bodies:
                    found["bodies"] = [body.id for body in item.bodies.values()]
                    found |= {} if item.ports is None else {"port_map": _port_map(item.ports)}
            for each in scope.results:
                state.nodes[each.id] = record(each, scope, "Result", each.ref, names=[each.name])
    return state


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
