"""Port maps, interpreted: the sources of the parameters of bodies, and the targets of their results.

    ports = ports_of(node)                # {"inputs": [{"role": "Merged", "port": 2, "parameter": ..., ...}], ...}
    connect(item, ports, inner, ends)     # sets the feeds of the parameters and the drains of the item

An entry names a parameter or result by a key: the node of a Graph, an id in a dump, a place in an ONNX model or a layer
of a file. Records of nodes (node_records.py) have entries with ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mo_loop.look.records.structure import Drain, Feed, Item, Ref
from mo_loop.ops.control import If

Ports = Mapping[str, Any]

SETTINGS = ("axis", "start", "end", "stride", "part_size", "declared", "direction")
"""The facts of an entry beside its ends; only an ONNX model has a `direction`."""

ENDS = ("parameter", "result", "then", "else_")
"""The nodes to which an entry refers."""

INPUT_NAMES = {"Loop": ("trip count", "execution condition"), "If": ("condition",)}
"""The inputs that do not feed a body."""


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


def renamed(ports: Ports, key: Callable[[Any], Any]) -> dict[str, Any]:
    """A port map with other keys."""
    found = dict(ports)
    for side in ("inputs", "outputs"):
        found[side] = [
            {name: key(value) if name in ENDS and value is not None else value for name, value in entry.items()}
            for entry in ports[side]
        ]
    for name in ("iteration", "condition"):
        if ports.get(name) is not None:
            found[name] = key(ports[name])
    return found


def branch_key(tag: str) -> str:
    """The name in an entry of a value in a branch of If."""
    start = tag.partition("_")[0]
    return "else_" if start == "else" else start


def connect(item: Item, ports: Ports, inner: Mapping[Any, Item], ends: Mapping[Any, Ref | None]) -> None:
    """Set the feeds and drains of an item that has its bodies; `inner` and `ends` are the parameters, and the values
    that the results read, by their keys."""
    item.input_names = INPUT_NAMES.get(item.operator, ())
    item.direct = len(item.input_names)

    def end(key: Any) -> Ref | None:
        return None if key is None else ends[key]

    for entry in ports["inputs"]:
        role, source = entry["role"], item.input(entry["port"])
        if role == "Branched":
            for name in ("then", "else_"):
                if entry.get(name) is not None:
                    inner[entry[name]].feed = Feed("invariant", source)
        elif entry["port"] < item.direct and item.is_loop:  # in ONNX the condition is a state of the body
            inner[entry["parameter"]].feed = Feed("condition")
        else:
            after = end(entry["result"]) if role == "Merged" else None
            inner[entry["parameter"]].feed = Feed(role.lower(), source, after, _settings(entry))
    for entry in ports["outputs"]:
        names = {tag: branch_key(tag) if entry["role"] == "Selected" else "result" for tag in item.bodies}
        sources = {tag: end(entry[name]) for tag, name in names.items()}
        item.drains.append(Drain(entry["role"].lower(), sources, _settings(entry)))
    if ports.get("iteration") is not None:
        inner[ports["iteration"]].feed = Feed("iteration number")
    if ports.get("condition") is not None:
        item.condition = ends[ports["condition"]]


def _settings(entry: Mapping[str, Any]) -> dict[str, str]:
    found = {key: entry[key] for key in SETTINGS if key in entry}
    return {key: str(tuple(value) if isinstance(value, list) else value) for key, value in found.items()}
