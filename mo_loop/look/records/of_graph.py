"""The structure of a Graph, an IR that was read or a converted model in memory; of a dump, a state of records; and of
an IR as in its .xml, also of one that cannot be read as a graph: nothing is inferred there, the .bin is read only where
a constant is asked for its values, and an edge or an entry of a port map with a missing end is left out.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from mo_loop.errors import InputError
from mo_loop.graph import BY_PRECISION, Dim, Graph, Node, TensorType, Value
from mo_loop.ir.reader.layer_records import Layer, LayerPort, Link, Net, PortMap, WeightFile, integer, parse_shape
from mo_loop.ir.xml import layer_names, layer_order
from mo_loop.look.records import node_records
from mo_loop.look.records.data import Data
from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.look.records.structure import (
    DUMP,
    IR,
    Item,
    Output,
    OutputRecord,
    Ref,
    ScopeRecord,
    Shape,
    Structure,
    in_order,
    shown_dims,
    split,
)
from mo_loop.ops import base
from mo_loop.ops.front import Opaque
from mo_loop.text.attributes import parse_attribute
from mo_loop.text.spelling import Scanner, show_type


def structure_of(graph: Graph, source: str) -> Structure:
    """The structure of a graph, with names and types as in an IR."""
    metadata = dict(flat(graph.rt_info))
    if graph.name:
        metadata["name"] = graph.name
    return Structure(IR, source, _of_graph(graph, ScopeRecord()), metadata=metadata, made_of=graph)


def _of_graph(graph: Graph, scope: ScopeRecord) -> ScopeRecord:
    """Fill `scope` with the items of a graph and those of its bodies."""
    order = layer_order(graph)
    names = zip(order, layer_names(order), strict=True)
    items = {node: _of_node(node, name, scope) for node, name in names if not isinstance(node, base.Result)}

    def ref(value: Value | None) -> Ref | None:
        return None if value is None else Ref(items[value.node], value.index)

    for node, item in items.items():
        item.inputs = [ref(value) for value in node.inputs]
    for node, item in items.items():
        if node.bodies:
            ends: dict[Node, Item | OutputRecord] = {}
            for tag, inner in zip(node_records.tags(node), node.bodies, strict=True):
                body = item.bodies[tag] = _of_graph(inner, ScopeRecord((*scope.path, item.label, tag), item, tag))
                ends |= zip((*inner.parameters, *inner.results), (*body.parameters, *body.results), strict=True)
            node_records.connect(item, node_records.renamed(node_records.ports_of(node), ends.__getitem__))
    scope.items = in_order(list(items.values()))
    scope.parameters = [items[node] for node in graph.parameters]
    for place, node in enumerate(graph.results):
        known = (*node.output_names, *node.value.names, node.name)[0] or f"output {place}"
        scope.results.append(OutputRecord(known, ref(node.value), made_of=node))
    if scope.owner is not None:
        scope.info = dict(flat(graph.rt_info))
    return scope


def _of_node(node: Any, name: str, scope: ScopeRecord) -> Item:
    tensor = node.tensor if isinstance(node, base.Constant) else getattr(node, "blob", None)
    info = dict(flat(getattr(node, "_rt_info", None) or {}))
    for (side, port), fields in getattr(node, "port_info", {}).items():
        info |= {f"{side} {port}/{key}": value for key, value in flat(fields)}
    version, attributes = node.opset_name, node_records.shown_attributes(node)
    if isinstance(node, Opaque):
        kept = {key: str(value) for key, value in node.data.items() if key not in ("offset", "size")}
        version, attributes = node.version, kept
    return Item(
        operator=node.type,
        name=name,
        scope=scope,
        version=version,
        attributes=attributes,
        outputs=[Output(tuple(value.names), *_shown_type(value.type)) for value in node.outputs],
        data=None if tensor is None else Data.of(tensor),
        origins=tuple(each.path for each in node.origins),
        info=info,
        made_of=node,
    )


def _shown_type(type_: Any) -> tuple[str, str]:
    """Element type and dimensions as in an IR: a dimension is a number, a range, or `?`."""
    if not isinstance(type_, TensorType):
        return split(show_type(type_))
    if type_.shape is None:
        return str(type_.dtype), "[...]"
    return str(type_.dtype), f"[{','.join(map(_dim, type_.shape))}]"


def _dim(dim: Any) -> str:
    if not isinstance(dim, Dim):
        return str(dim)
    low = max(dim.lo, 0)
    return "?" if low == 0 and dim.hi is None else f"{low}..{'' if dim.hi is None else dim.hi}"


def flat(info: Mapping[str, Any], mark: str = "/", prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested dictionaries as pairs of a path and a text; `mark` separates the keys of a path."""
    for key, value in info.items():
        if isinstance(value, Mapping):
            yield from flat(value, mark, f"{prefix}{key}{mark}")
        else:
            yield f"{prefix}{key}", str(value)


# -- of records


def structure_of_state(state: GraphState, source: str) -> Structure:
    """The structure of a dump. KeyError, TypeError, AttributeError or ValueError for records of another form."""
    members: dict[str, list[Record]] = {name: [] for name in state.scopes}
    for record in state.nodes.values():
        members[record["scope"]].append(record)
    about = state.scopes[""]
    metadata = _info(about.get("info")) | ({"name": about["name"]} if about.get("name") else {})
    return Structure(DUMP, source, _of_records(state, members, ScopeRecord()), metadata=metadata, made_of=state)


def _of_records(state: GraphState, members: Mapping[str, list[Record]], scope: ScopeRecord) -> ScopeRecord:
    """Fill `scope`, which has the id of the records of a graph, with their items and those of its bodies."""
    records, about = members[scope.id], state.scopes[scope.id]
    items = {record["id"]: _of_record(record, scope) for record in records if record["op"] != "Result"}

    def refs(record: Record) -> list[Ref | None]:
        return [None if each is None else Ref(items[each[0]], each[1]) for each in record["inputs"]]

    for number, item in items.items():
        record = state.nodes[number]
        item.inputs = refs(record)
        while item.inputs and item.inputs[-1] is None:
            item.inputs.pop()
        if "bodies" not in record:
            continue
        ends: dict[int, Item | OutputRecord] = {}
        body_tags = ("body",) if len(record["bodies"]) == 1 else ("then_body", "else_body")
        for tag, name in zip(body_tags, record["bodies"], strict=True):
            inner = ScopeRecord((*scope.path, item.label, tag), item, tag, id=name)
            body = item.bodies[tag] = _of_records(state, members, inner)
            numbers = (*state.scopes[name]["parameters"], *state.scopes[name]["results"])
            ends |= zip(numbers, (*body.parameters, *body.results), strict=True)
        node_records.connect(item, node_records.renamed(record["port_map"], ends.__getitem__))
    scope.items = in_order(list(items.values()))
    scope.parameters = [items[number] for number in about["parameters"]]
    for place, number in enumerate(about["results"]):
        record = state.nodes[number]
        ref = next(iter(refs(record)), None)
        names = [*record.get("names", ()), *(() if ref is None else ref.made.names)]
        scope.results.append(OutputRecord((*names, record["name"])[0] or f"output {place}", ref, id=number))
    if scope.owner is not None:
        scope.info = _info(about.get("info"))
    return scope


def _of_record(record: Record, scope: ScopeRecord) -> Item:
    outputs = [Output(tuple(each["names"]), *split(each["type"])) for each in record["outputs"]]
    data = None
    if "value" in record:
        shown = record["content"] if "content" in record else record["value"]
        data = Data((f"{outputs[0].dtype}{outputs[0].shape}", shown), text=shown)
    return Item(
        operator=record["op"],
        name=record["name"],
        scope=scope,
        version=f"opset{opset}" if isinstance(opset := record["opset"], int) else opset,
        attributes=dict(record.get("attributes", {})),
        outputs=outputs,
        data=data,
        info=_info(record.get("info")),
        id=record["id"],
    )


def _info(shown: str | None) -> dict[str, str]:
    """rt_info, which a dump holds as text."""
    if not shown:
        return {}
    try:
        return dict(flat(parse_attribute(Scanner(shown), Any)))
    except InputError:
        return {"": shown}


# -- of layers


def structure_of_layers(net: Net, path: Path) -> Structure:
    """The structure of the records of the .xml at `path`."""
    main = _of_net(net, WeightFile(path.with_suffix(".bin")), ScopeRecord())
    return Structure(IR, str(path), main, metadata=dict(flat(net.rt_info, ".")), made_of=net)


def _of_net(net: Net, weights: WeightFile, scope: ScopeRecord) -> ScopeRecord:
    """Fill `scope` with the items of a net and of its bodies."""
    layers = {layer.id: layer for layer in net.layers}
    items = {layer.id: _of_layer(layer, weights, scope) for layer in net.layers if layer.type != "Result"}
    refs: dict[tuple[str, str], Ref] = {}
    for edge in net.edges:
        made = items.get(edge.from_layer)
        if made is not None:
            labels = [port.label for port in layers[edge.from_layer].outputs]
            place = labels.index(edge.from_port) if edge.from_port in labels else len(labels)
            refs[edge.to_layer, edge.to_port] = Ref(made, place)
    for id_, item in items.items():
        item.inputs = [refs.get((id_, port.label)) for port in layers[id_].inputs]
    for id_, item in items.items():
        for tag, inner in layers[id_].bodies.items():
            item.bodies[tag] = _of_net(inner, weights, ScopeRecord((*scope.path, item.label, tag), item, tag))
        _connect_layer(layers[id_], item)
    scope.items = in_order(list(items.values()))
    scope.parameters = [items[layer.id] for layer in net.layers if layer.type == "Parameter"]
    for layer in net.layers:
        if layer.type == "Result":
            ref = refs.get((layer.id, layer.inputs[0].label)) if layer.inputs else None
            names = (layer.name,) if ref is None else (*layer.output_names, *ref.made.names, ref.item.name)
            scope.results.append(OutputRecord(names[0], ref, made_of=layer))
    return scope


def _of_layer(layer: Layer, weights: WeightFile, scope: ScopeRecord) -> Item:
    outputs = []
    for port in layer.outputs:
        known, dims = BY_PRECISION.get(port.precision), [dim if dim >= 0 else "?" for dim in port.dims]
        outputs.append(Output(port.names, known.name if known else port.precision, shown_dims(dims)))
    info = dict(flat(layer.rt_info))
    item = Item(layer.type, layer.name, scope, layer.version, layer.data, outputs=outputs, info=info, made_of=layer)
    if layer.type == "Parameter":
        names = outputs[0].names if outputs else ()
        sizes = shape_of(layer.data.get("shape", ""))
        shape = "[...]" if sizes is None else shown_dims(sizes)
        item.outputs = [Output(names, layer.data.get("element_type", ""), shape)]
    elif layer.type == "Const":
        sizes = shape_of(layer.data.get("shape", "")) or []
        elements = math.prod(dim for dim in sizes if isinstance(dim, int))
        item.data = Data(elements=elements, nbytes=number(layer, "size"), read=partial(weights.tensor, layer))
    return item


def shape_of(text: str) -> Shape:
    """A shape as an attribute spells it: `1,?,2..5`, `...` for an unknown rank. So does a text that is not a shape."""
    try:
        shape = parse_shape(text)
    except ValueError:
        return None
    return None if shape is None else [dim if isinstance(dim, int) else _dim(dim) for dim in shape]


def number(layer: Layer, key: str) -> int:
    """An attribute of a Const; 0 for other layers."""
    try:
        return integer(layer.data.get(key, ""), 0)
    except ValueError:
        return 0


# -- port maps


def _connect_layer(layer: Layer, item: Item) -> None:
    """Set the port map of an item. An entry with a missing end is left out."""
    if layer.type == "If" and layer.bodies:
        node_records.connect(item, _branch_ports(layer, item.bodies))
    elif "body" in layer.bodies:
        node_records.connect(item, _iteration_ports(layer, item.bodies["body"]))


def _by_id(ends: Iterable[Item | OutputRecord]) -> dict[str, Any]:
    return {end.made_of.id: end for end in ends}


def _iteration_ports(layer: Layer, body: ScopeRecord) -> dict[str, Any]:
    """The port map of a Loop or TensorIterator."""
    found: dict[str, Any] = {"inputs": [], "outputs": []}
    parameters, results = _by_id(body.parameters), _by_id(body.results)
    states = {parameter: results.get(result) for result, parameter in layer.back_edges}
    map_ = layer.port_maps.get("port_map", PortMap())
    for port, link in _by_port(layer.inputs, map_.inputs, parameters):
        state = states.get(link.layer)
        more = {"role": "Invariant"} if state is None else {"role": "Merged", "result": state}
        more = {"role": "Sliced"} | asdict(link.cut) if link.cut is not None else more
        found["inputs"].append({"port": port, "parameter": parameters[link.layer]} | more)
    for port, link in _by_port(layer.outputs, map_.outputs, results):
        cut = {"role": "Final"} if link.cut is None else {"role": "Concatenated"} | asdict(link.cut)
        found["outputs"].append({"port": port, "result": results[link.layer]} | cut)
    purposes = (("iteration", "current_iteration", parameters), ("condition", "execution_condition", results))
    for key, purpose, inner in purposes:
        for link in (*map_.inputs, *map_.outputs):
            if link.purpose == purpose and link.layer in inner:
                found[key] = inner[link.layer]
    return found


def _branch_ports(layer: Layer, bodies: Mapping[str, ScopeRecord]) -> dict[str, Any]:
    """The port map of an If."""
    keys = {tag: node_records.branch_key(tag) for tag in bodies}
    inputs: list[dict[str, Any]] = []
    outputs: list[dict[str, Any]] = [
        {"role": "Selected", "port": port, **dict.fromkeys(keys.values())} for port in range(len(layer.outputs))
    ]
    for tag, key in keys.items():
        map_ = layer.port_maps.get(tag.replace("body", "port_map"), PortMap())
        parameters, results = _by_id(bodies[tag].parameters), _by_id(bodies[tag].results)
        for port, link in _by_port(layer.inputs, map_.inputs, parameters):
            inputs.append({"role": "Branched", "port": port, key: parameters[link.layer]})
        for port, link in _by_port(layer.outputs, map_.outputs, results):
            outputs[port][key] = results[link.layer]
    return {"inputs": inputs, "outputs": outputs}


def _by_port(ports: list[LayerPort], links: list[Link], inner: Mapping[str, Any]) -> list[tuple[int, Link]]:
    """The entries that name a port of the layer and a layer of the body, in the order of the ports."""
    places = {port.label: place for place, port in enumerate(ports)}
    found = [(places[link.port], link) for link in links if link.port in places and link.layer in inner]
    return sorted(found, key=lambda each: each[0])
