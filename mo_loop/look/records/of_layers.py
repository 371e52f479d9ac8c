"""The structure of an IR as in its .xml, also of one that cannot be read as a graph: nothing is inferred.

The .bin is only read where a constant is asked for its values. An edge or an entry of a port map with a missing end is
left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from mo_loop.graph.shape import MOST_DIMENSIONS
from mo_loop.graph.types import BY_PRECISION
from mo_loop.ir.reader.constants import WeightFile
from mo_loop.ir.reader.layer_records import Layer, LayerPort, Link, Net, PortMap
from mo_loop.ir.reader.numbers import integer
from mo_loop.look.records.data import Data
from mo_loop.look.records.of_graph import flat
from mo_loop.look.records.port_entries import branch_key, connect
from mo_loop.look.records.structure import (
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
)


def structure_of_layers(net: Net, path: Path) -> Structure:
    """The structure of the records of the .xml at `path`."""
    main = _Reader(WeightFile(path.with_suffix(".bin"))).scope(net, ScopeRecord())
    return Structure(IR, str(path), main, metadata=dict(flat(net.rt_info, ".")), made_of=net)


class _Reader:
    def __init__(self, weights: WeightFile) -> None:
        self._weights = weights

    def scope(self, net: Net, scope: ScopeRecord) -> ScopeRecord:
        """Fill `scope` with the items of a net and of its bodies."""
        layers = {layer.id: layer for layer in net.layers}
        items = {layer.id: self._item(layer, scope) for layer in net.layers if layer.type != "Result"}
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
                item.bodies[tag] = self.scope(inner, ScopeRecord((*scope.path, item.label, tag), item, tag))
            _connect(layers[id_], item)
        scope.items = in_order(list(items.values()))
        scope.parameters = [items[layer.id] for layer in net.layers if layer.type == "Parameter"]
        for layer in net.layers:
            if layer.type == "Result":
                ref = refs.get((layer.id, layer.inputs[0].label)) if layer.inputs else None
                scope.results.append(_result(layer, ref))
        return scope

    def _item(self, layer: Layer, scope: ScopeRecord) -> Item:
        outputs = [_output(port) for port in layer.outputs]
        info = dict(flat(layer.rt_info))
        item = Item(layer.type, layer.name, scope, layer.version, layer.data, outputs=outputs, info=info, made_of=layer)
        if layer.type == "Parameter":
            names = outputs[0].names if outputs else ()
            dims = shape_of(layer.data.get("shape", ""))
            shape = "[...]" if dims is None else shown_dims(dims)
            item.outputs = [Output(names, layer.data.get("element_type", ""), shape)]
        elif layer.type == "Const":
            dims = shape_of(layer.data.get("shape", "")) or []
            elements = math.prod(dim for dim in dims if isinstance(dim, int))
            item.data = Data.unread(elements, number(layer, "size"), partial(self._weights.tensor, layer))
        return item

def _result(layer: Layer, ref: Ref | None) -> OutputRecord:
    if ref is None:
        return OutputRecord(layer.name, None)
    names = ref.item.outputs[ref.output].names if ref.output < len(ref.item.outputs) else ()
    return OutputRecord((*layer.output_names, *names, ref.item.name)[0], ref)


def _output(port: LayerPort) -> Output:
    known = BY_PRECISION.get(port.precision)
    dims = [dim if dim >= 0 else "?" for dim in port.dims]
    return Output(port.names, known.name if known else port.precision, shown_dims(dims))


def shape_of(text: str) -> Shape:
    """A shape as an attribute spells it: `1,?,2..5`, `...` for an unknown rank."""
    if text.strip() == "...":
        return None
    dims = [each.strip() for each in text.strip().strip("[]").split(",") if each.strip()]
    return [_dim(each) for each in dims] if len(dims) <= MOST_DIMENSIONS else None


def _dim(text: str) -> int | str:
    try:
        dim = integer(text, -1)
    except ValueError:
        return text
    return dim if dim >= 0 else "?"


def number(layer: Layer, key: str) -> int:
    """An attribute of a Const; 0 for other layers."""
    try:
        return integer(layer.data.get(key, ""), 0)
    except ValueError:
        return 0


# -- port maps


def _connect(layer: Layer, item: Item) -> None:
    """Set the port map of an item. An entry with a missing end is left out."""
    ends: dict[tuple[str, str], Any] = {}
    for tag, net in layer.bodies.items():
        for kind, found in (("Parameter", item.bodies[tag].parameters), ("Result", item.bodies[tag].results)):
            ends |= zip([(tag, each.id) for each in net.layers if each.type == kind], found, strict=True)
    if layer.type == "If" and layer.bodies:
        connect(item, _branch_ports(layer, ends))
    elif "body" in layer.bodies:
        connect(item, _iteration_ports(layer, ends))


def _iteration_ports(layer: Layer, ends: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """The port map of a Loop or TensorIterator."""
    found: dict[str, Any] = {"inputs": [], "outputs": []}
    parameters = {id_: end for (tag, id_), end in ends.items() if tag == "body" and isinstance(end, Item)}
    results = {id_: end for (tag, id_), end in ends.items() if tag == "body" and isinstance(end, OutputRecord)}
    states = {parameter: results.get(result) for result, parameter in layer.back_edges}
    map_ = layer.port_maps.get("port_map", PortMap())
    for port, link in _by_port(layer.inputs, map_.inputs):
        if link.layer in parameters:
            state = states.get(link.layer)
            more = {"role": "Invariant"} if state is None else {"role": "Merged", "result": state}
            more = {"role": "Sliced"} | asdict(link.cut) if link.cut is not None else more
            found["inputs"].append({"port": port, "parameter": parameters[link.layer]} | more)
    for port, link in _by_port(layer.outputs, map_.outputs):
        if link.layer in results:
            cut = {"role": "Final"} if link.cut is None else {"role": "Concatenated"} | asdict(link.cut)
            found["outputs"].append({"port": port, "result": results[link.layer]} | cut)
    for link in map_.inputs:
        if link.purpose == "current_iteration" and link.layer in parameters:
            found["iteration"] = parameters[link.layer]
    for link in map_.outputs:
        if link.purpose == "execution_condition" and link.layer in results:
            found["condition"] = results[link.layer]
    return found


def _branch_ports(layer: Layer, ends: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """The port map of an If."""
    keys = {tag: branch_key(tag) for tag in layer.bodies}

    def entries(side: str, kind: type) -> Iterator[tuple[int, str, Any]]:
        for tag, key in keys.items():
            map_ = layer.port_maps.get(tag.replace("body", "port_map"), PortMap())
            for port, link in _by_port(getattr(layer, side), getattr(map_, side)):
                if isinstance(ends.get((tag, link.layer)), kind):
                    yield port, key, ends[tag, link.layer]

    inputs = [{"role": "Branched", "port": port, key: end} for port, key, end in entries("inputs", Item)]
    outputs: list[dict[str, Any]] = [
        {"role": "Selected", "port": port, **dict.fromkeys(keys.values())} for port in range(len(layer.outputs))
    ]
    for port, key, end in entries("outputs", OutputRecord):
        outputs[port][key] = end
    return {"inputs": inputs, "outputs": outputs}


def _by_port(ports: list[LayerPort], links: list[Link]) -> list[tuple[int, Link]]:
    """The entries that name a port of the layer, in the order of the ports."""
    places = {port.label: place for place, port in enumerate(ports)}
    found = [(places[link.port], link) for link in links if link.port is not None and link.port in places]
    return sorted(found, key=lambda each: each[0])
