"""Port maps, interpreted: the sources of the parameters of bodies, and the targets of their results.

    ports = ports_of(node)                # {"inputs": [{"role": "Merged", "port": 2, "parameter": ..., ...}], ...}
    connect(item, renamed(ports, found))  # sets the feeds of the parameters and the drains of the item

The ends of an entry are nodes of a Graph, ids in a dump, or, for `connect`, the items and results of a Structure.
Records of nodes (node_records.py) have entries with ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mo_loop.look.records.structure import Drain, Feed, Item, OutputRecord, Ref, ScopeRecord
from mo_loop.ops.control import If

Ports = Mapping[str, Any]

SETTINGS = ("axis", "start", "end", "stride", "part_size", "declared", "direction")
"""The facts of an entry beside its ends; only an ONNX model has a `direction`."""

ENDS = ("parameter", "result", "then", "else_")
"""The nodes to which an entry refers."""

INPUT_NAMES = {"Loop": ("trip count", "execution condition"), "If": ("condition",)}
"""The inputs that do not feed a body."""

SCAN_ATTRIBUTES = (
    "num_scan_inputs", "scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions",
)  # fmt: skip


def tags(node: Any) -> tuple[str, ...]:
    """The tags of the bodies of a node of a Graph, in their order."""
    if not node.bodies:
        return ()
    return ("then_body", "else_body") if isinstance(node, If) else ("body",)


def ports_of(node: Any) -> dict[str, Any]:
    """The port map of a node of a Graph."""
    found: dict[str, Any] = {
        side: [{"role": type(each).__name__, "port": port, **vars(each)} for port, each in enumerate(entries, first)]
        for side, entries, first in (("inputs", node.input_map, node.first_data_port), ("outputs", node.output_map, 0))
    }
    return found | {
        key: getattr(node, key) for key in ("iteration", "condition") if getattr(node, key, None) is not None
    }


def renamed(ports: Ports, end: Callable[[Any], Any]) -> dict[str, Any]:
    """A port map with other ends."""
    found = dict(ports)
    for side in ("inputs", "outputs"):
        found[side] = [
            {name: end(value) if name in ENDS and value is not None else value for name, value in entry.items()}
            for entry in ports[side]
        ]
    for name in ("iteration", "condition"):
        if ports.get(name) is not None:
            found[name] = end(ports[name])
    return found


def connect(item: Item, ports: Ports) -> None:
    """Set the port map of an item that has its bodies, with the feeds and drains that it describes."""
    item.ports = ports
    item.input_names = INPUT_NAMES.get(item.operator, ())
    item.direct = len(item.input_names)
    for entry in ports["inputs"]:
        role, source = entry["role"], item.input(entry["port"])
        if role == "Branched":
            for name in ("then", "else_"):
                if entry.get(name) is not None:
                    entry[name].feed = Feed("invariant", source)
        elif entry["port"] < item.direct and item.is_loop:  # in ONNX the condition is a state of the body
            entry["parameter"].feed = Feed("condition")
        else:
            after = _read(entry["result"]) if role == "Merged" else None
            entry["parameter"].feed = Feed(role.lower(), source, after, _settings(entry))
    for entry in ports["outputs"]:
        names = {tag: branch_key(tag) if entry["role"] == "Selected" else "result" for tag in item.bodies}
        sources = {tag: _read(entry[name]) for tag, name in names.items()}
        item.drains.append(Drain(entry["role"].lower(), sources, _settings(entry)))
    if ports.get("iteration") is not None:
        ports["iteration"].feed = Feed("iteration number")
    item.condition = _read(ports.get("condition"))


def _read(end: OutputRecord | None) -> Ref | None:
    """The value that a result reads; None for one that is missing in a damaged model."""
    return None if end is None else end.ref


def _settings(entry: Mapping[str, Any]) -> dict[str, str]:
    found = {key: entry[key] for key in SETTINGS if key in entry}
    return {key: str(tuple(value) if isinstance(value, list) else value) for key, value in found.items()}


def branch_key(tag: str) -> str:
    """The name in an entry of a value in a branch of If."""
    start = tag.partition("_")[0]
    return "else_" if start == "else" else start


# -- Loop, Scan and If of ONNX


def connect_onnx(node: Any, item: Item, is_old: bool) -> None:
    """Set the port map of an item. The Scan of operator set 8 (`is_old`) has lengths as its first input."""
    bodies = list(item.bodies.values())
    if item.operator == "If":
        connect(item, {"inputs": [], "outputs": [
            {"role": "Selected", "port": port, **{branch_key(body.tag): _end(body, port) for body in bodies}}
            for port in range(len(item.outputs))
        ]})  # fmt: skip
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
        sources = {tag: _read(_end(body, place)) for tag, body in item.bodies.items()}
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
