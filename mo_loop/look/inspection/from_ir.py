"""inspect_ir: the inspection of an IR. It reads the .xml, and only constants of a few bytes of the .bin."""

from __future__ import annotations

import math
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.graph.types import BY_NAME
from mo_loop.ir.reader.numbers import integer
from mo_loop.ir.reader.parse import records
from mo_loop.ir.reader.records import Layer, Link, Net, PortMap
from mo_loop.ir.reader.records import LayerPort as IrPort
from mo_loop.look.inspection.description import (
    Branch,
    Control,
    ExternalFile,
    Inspection,
    Operator,
    Port,
    ScopeSize,
    Sliced,
    State,
)
from mo_loop.look.inspection.ir_ports import port_of, shape_of
from mo_loop.look.inspection.states_of_ir import states_of

_TRANSPARENT = ("Convert", "Squeeze", "Unsqueeze", "Reshape")
_COPIES = ("Maximum", "LogicalOr")


def inspect_ir(path: Path) -> Inspection:
    """Inspect the IR at `path`. Raises FileError, IrError and UnsupportedError as `records` does."""
    net, version = records(path)
    weights = path.with_suffix(".bin")
    nets = [_Net(each, kind, outer, weights) for each, kind, outer in _all(net)]
    by_net = {each.net: each for each in nets}
    main = nets[0]
    metadata = dict(_flat(net.rt_info))
    constants = [layer for each in nets for layer in each.net.layers if layer.type == "Const"]
    needed = max((_number(layer, "offset") + _number(layer, "size") for layer in constants), default=0)
    external = [ExternalFile(weights.name, len(constants), needed, _file_size(weights))] if constants else []
    versions = Counter(layer.version for each in nets for layer in each.net.layers)
    return Inspection(
        file=os.fspath(path),
        format="ir",
        file_bytes=path.stat().st_size,
        name=net.name,
        ir_version=version,
        producer=metadata.get("Runtime_version") or metadata.get("MO_version") or "",
        opsets=dict(sorted(versions.items())),
        metadata=metadata,
        inputs=[main.parameter(layer) for layer in net.layers if layer.type == "Parameter"],
        outputs=[main.fed(layer, 0) for layer in net.layers if layer.type == "Result"],
        operators=_operators(nets),
        scopes=[each.size() for each in nets],
        control=_controls(main, by_net),
        external=external,
        states=states_of(net, weights, lambda each: by_net[each].producer),
    )


def _all(net: Net) -> list[tuple[Net, str, str]]:
    """(net, kind, path of the enclosing net), outer before inner."""
    found: list[tuple[Net, str, str]] = []
    stack = [(net, "model", "")]
    while stack:
        here, kind, outer = stack.pop()
        found.append((here, kind, outer))
        stack += reversed([(body, tag, here.path) for layer in here.layers for tag, body in layer.bodies.items()])
    return found


class _Net:
    """One net with its edges resolved; an edge with a missing end is left out."""

    def __init__(self, net: Net, kind: str, outer: str, weights: Path) -> None:
        self.net = net
        self.kind = kind
        self.outer = outer
        self.weights = weights
        self.layers = {layer.id: layer for layer in net.layers}
        self.feeds = {(each.to_layer, each.to_port): (each.from_layer, each.from_port) for each in net.edges}

    def producer(self, layer: Layer, label: str | None) -> tuple[Layer, IrPort | None] | None:
        """The layer and the port that feed an input."""
        source = self.feeds.get((layer.id, label or ""))
        made = self.layers.get(source[0]) if source else None
        if source is None or made is None:
            return None
        return made, next((port for port in made.outputs if port.label == source[1]), None)

    def fed(self, layer: Layer, place: int) -> Port:
        """The value that an input reads; for a Result the output of the model."""
        label = layer.inputs[place].label if place < len(layer.inputs) else None
        found = self.producer(layer, label)
        if found is None:
            return Port(layer.name)
        made, port = found
        names = layer.output_names or (port.names if port else ()) or (made.name,)
        return port_of(names[0], port)

    def parameter(self, layer: Layer) -> Port:
        port = layer.outputs[0] if layer.outputs else None
        name = (port.names if port and port.names else (layer.name,))[0]
        return Port(name, layer.data.get("element_type", "?"), shape_of(layer.data.get("shape", "")))

    def size(self) -> ScopeSize:
        counts = Counter(layer.type for layer in self.net.layers)
        sizes = [_constant_size(layer) for layer in self.net.layers if layer.type == "Const"]
        elements, data = sum(count for count, _ in sizes), sum(size for _, size in sizes)
        nodes, kind = len(self.net.layers), self.kind
        return ScopeSize(self.net.path, kind, nodes, len(sizes), elements, data, dict(counts.most_common()))

    def source(self, layer: Layer, place: int) -> str:
        """The source of a trip count or condition, as text."""
        label = layer.inputs[place].label if place < len(layer.inputs) else None
        found = self.producer(layer, label)
        seen: set[str] = set()
        while found is not None and self._hands_on(found[0]) and found[0].id not in seen:  # else a cycle
            seen.add(found[0].id)
            found = self.producer(found[0], found[0].inputs[0].label)
        if found is None:
            return "none"
        made = found[0]
        if made.type == "Const":
            return f"constant {_value(made, self.weights)}".rstrip()
        if made.type == "Parameter":
            return f"input {self.parameter(made).name}" if self.kind == "model" else f"{made.name} of {self.owner}"
        return f"computed ({made.type})"

    @property
    def owner(self) -> str:
        """The name of the layer that this body belongs to."""
        return self.net.path.removesuffix(f"/{self.kind}").removeprefix(f"{self.outer}/" if self.outer else "")

    def _hands_on(self, layer: Layer) -> bool:
        """Whether a layer returns its input, possibly in another shape or type, or as a copy: max(x, x)."""
        if layer.type in _TRANSPARENT:
            return bool(layer.inputs)
        feeds = [self.feeds.get((layer.id, port.label)) for port in layer.inputs]
        return layer.type in _COPIES and len(feeds) == 2 and feeds[0] == feeds[1] is not None


def _operators(nets: list[_Net]) -> list[Operator]:
    """All layer types, the most frequent first; a constant counts once for each type that reads it."""
    found: dict[str, Operator] = {}
    for each in nets:
        readers: dict[str, set[str]] = {}
        for layer in each.net.layers:
            found.setdefault(layer.type, Operator(layer.type)).count += 1
            for port in layer.inputs:
                for constant in _constants_behind(each, layer, port.label):
                    readers.setdefault(constant.id, set()).add(layer.type)
        for id_, types in readers.items():
            elements, size = _constant_size(each.layers[id_])
            for type_ in types:
                found[type_].elements += elements
                found[type_].bytes += size
    return sorted(found.values(), key=lambda each: (-each.count, each.name))


def _constants_behind(net: _Net, layer: Layer, label: str) -> Iterator[Layer]:
    """The constant that an input reads, directly or through the Convert of a compressed constant."""
    found = net.producer(layer, label)
    if found is not None and found[0].type == "Convert" and found[0].inputs:
        found = net.producer(found[0], found[0].inputs[0].label)
    if found is not None and found[0].type == "Const":
        yield found[0]


# -- control flow


def _controls(net: _Net, by_net: dict[Net, _Net]) -> list[Control]:
    return [_control(net, layer, by_net) for layer in net.net.layers if layer.bodies]


def _control(net: _Net, layer: Layer, by_net: dict[Net, _Net]) -> Control:
    control = Control(layer.where, layer.type, net.net.path)
    for tag, body in layer.bodies.items():
        children = _controls(by_net[body], by_net)
        control.branches.append(Branch(tag, body.path, len(body.layers), children))
    if layer.type == "If":
        control.condition = net.source(layer, 0)
        links = [link for tag in ("then_port_map", "else_port_map") for link in _map(layer, tag).inputs]
        control.captures = sorted({_outer(net, layer, link).name for link in links if link.port is not None})
        return control
    if "body" not in layer.bodies:
        return control
    _iteration(control, net, layer, by_net[layer.bodies["body"]])
    return control


def _iteration(control: Control, net: _Net, layer: Layer, body: _Net) -> None:
    states = {parameter for _, parameter in layer.back_edges}
    for link in _map(layer, "port_map").inputs:
        inner = body.layers.get(link.layer)
        name = inner.name if inner is not None else ""
        if link.port is None:
            continue
        outer = _outer(net, layer, link)
        if link.cut is not None:
            control.scan_inputs.append(Sliced(outer.name, link.cut.axis, link.cut.stride < 0, outer))
        elif link.layer in states:
            control.states.append(State(name, outer))
        else:
            control.captures.append(outer.name)
    control.captures = sorted(set(control.captures))
    outputs = {port.label: port for port in layer.outputs}
    for link in _map(layer, "port_map").outputs:
        result = body.layers.get(link.layer)
        if link.purpose == "execution_condition" and result is not None:
            source = body.source(result, 0)
            control.goes_on = {"constant 1": "always", "constant 0": "never"}.get(source, source)
        if link.cut is not None:
            port = outputs.get(link.port or "")
            name = port.names[0] if port and port.names else layer.name
            control.scan_outputs.append(Sliced(name, link.cut.axis, link.cut.stride < 0, port_of(name, port)))
    if layer.type == "Loop":
        control.trip_count, control.condition = net.source(layer, 0), net.source(layer, 1)
    else:
        control.trip_count = next((each.length for each in control.scan_inputs), "none")


def _map(layer: Layer, tag: str) -> PortMap:
    return layer.port_maps.get(tag) or PortMap()


def _outer(net: _Net, layer: Layer, link: Link) -> Port:
    """The outer value that an entry of a port map connects with the body."""
    labels = [port.label for port in layer.inputs]
    if link.port not in labels:
        return Port(f"port {link.port}")
    return net.fed(layer, labels.index(link.port))


# -- values


def _constant_size(layer: Layer) -> tuple[int, int]:
    shape = shape_of(layer.data.get("shape", "")) or []
    return math.prod(dim for dim in shape if isinstance(dim, int)), _number(layer, "size")


def _number(layer: Layer, key: str) -> int:
    try:
        return integer(layer.data.get(key, ""), 0)
    except ValueError:
        return 0


def _value(layer: Layer, weights: Path) -> str:
    """The number in a Const of one element as text; empty if it cannot be read."""
    dtype = BY_NAME.get(layer.data.get("element_type", ""))
    elements, size = _constant_size(layer)
    if dtype is None or dtype.bits < 8 or elements != 1 or size != dtype.bits // 8 or _file_size(weights) is None:
        return ""
    try:
        with open(weights, "rb") as file:
            file.seek(_number(layer, "offset"))
            values: Any = np.frombuffer(file.read(size), dtype.numpy)
    except (OSError, ValueError):
        return ""
    if values.size != 1:
        return ""
    return str(int(values[0]) if values.dtype.kind in "biu" else values[0])


def _file_size(path: Path) -> int | None:
    """The size of a regular file; None if there is none: to open a pipe would wait for ever."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _flat(info: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in info.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)
