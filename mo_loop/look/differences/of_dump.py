"""The structure of a JSON file of `--dump`: nodes and edges in the node-link form of networkx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mo_loop.errors import InputError
from mo_loop.look.differences.data import Data
from mo_loop.look.differences.of_graph import LOOP_INPUTS, SETTINGS, TAGS, flat, split
from mo_loop.look.differences.structure import DUMP, Drain, Feed, Item, Output, Ref, Result, Scope, Structure, in_order
from mo_loop.look.dump.node_link import node_link
from mo_loop.look.dump.reading import is_delta, not_of_dump, read_file, state_at
from mo_loop.text.attributes import parse_attribute
from mo_loop.text.scanner import Scanner

FIRST_DATA_PORT = {"Loop": 2, "If": 1}


def structure_of_file(path: Path, source: str) -> Structure:
    """The structure of the graph that a .json file of a dump stands for.

    Raises:
        FileError: it is no file of a dump, or it has only what a pass changed and a file before it is missing.
    """
    data = read_file(path)
    return structure_of_json(node_link(state_at(path)) if is_delta(data) else data, source)


def structure_of_json(data: Any, source: str) -> Structure:
    """The structure of a whole graph. FileError if the data have another form."""
    try:
        main = _scope(data, Scope())
        metadata = _info(data["graph"].get("info"))
        if data["graph"].get("name"):
            metadata["name"] = data["graph"]["name"]
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise not_of_dump(source, f"its JSON has another form: {type(error).__name__} {error}") from None
    return Structure(DUMP, source, main, metadata=metadata, made_of=data)


def _scope(data: Mapping[str, Any], scope: Scope) -> Scope:
    nodes = {node["id"]: node for node in data["nodes"]}
    items = {number: _item(node, scope) for number, node in nodes.items() if node["op"] != "Result"}
    reads: dict[Any, dict[int, Ref]] = {number: {} for number in nodes}
    for edge in data["edges"]:
        reads[edge["target"]][edge["key"]] = Ref(items[edge["source"]], edge["output"])
    for number, item in items.items():
        ports = reads[number]
        item.inputs = [ports.get(port) for port in range(max(ports, default=-1) + 1)]
        if "bodies" in nodes[number]:
            _bodies(nodes[number], item)
    scope.items = in_order(list(items.values()))
    scope.parameters = [items[number] for number in data["graph"]["parameters"]]
    for place, number in enumerate(data["graph"]["results"]):
        ref = reads[number].get(0)
        names = [*nodes[number].get("names", ()), *(() if ref is None else ref.item.outputs[ref.output].names)]
        known = (*names, nodes[number]["name"])[0] or f"output {place}"
        scope.results.append(Result(known, ref))
    if scope.owner is not None:
        scope.info = _info(data["graph"].get("info"))
    return scope


def _item(node: Mapping[str, Any], scope: Scope) -> Item:
    outputs = [Output(tuple(each["names"]), *split(each["type"])) for each in node["outputs"]]
    data = None
    if "value" in node:
        data = Data.written(f"{outputs[0].dtype}{outputs[0].shape}", node.get("content", node["value"]))
    return Item(
        operator=node["op"],
        name=node["name"],
        scope=scope,
        version=f"opset{node['opset']}",
        attributes=dict(node.get("attributes", {})),
        outputs=outputs,
        data=data,
        info=_info(node.get("info")),
        made_of=node["id"],
    )


def _bodies(node: Mapping[str, Any], item: Item) -> None:
    bodies: Sequence[Any] = node["bodies"]
    tags = ("body",) if len(bodies) == 1 else TAGS
    inner: list[dict[int, Item]] = []
    ends: list[dict[int, Ref | None]] = []
    for tag, data in zip(tags, bodies, strict=True):
        body = _scope(data, Scope((*item.scope.path, item.label, tag), item, tag))
        item.bodies[tag] = body
        inner.append(dict(zip(data["graph"]["parameters"], body.parameters, strict=True)))
        ends.append(dict(zip(data["graph"]["results"], [each.ref for each in body.results], strict=True)))
    ports = node["port_map"]
    item.direct = FIRST_DATA_PORT.get(item.operator, 0)
    item.input_names = ("condition",) if item.operator == "If" else LOOP_INPUTS[: item.direct]
    for place, entry in enumerate(ports["inputs"]):
        port = item.direct + place
        _feed(entry, item.inputs[port] if port < len(item.inputs) else None, inner, ends)
    item.drains = [_drain(entry, ends) for entry in ports["outputs"]]
    if "iteration" in ports:
        inner[0][ports["iteration"]].feed = Feed("iteration number")
    if "condition" in ports:
        item.condition = ends[0][ports["condition"]]


def _feed(
    entry: Mapping[str, Any], source: Ref | None, inner: list[dict[int, Item]], ends: list[dict[int, Ref | None]]
) -> None:
    if entry["role"] == "Branched":
        for key, parameters in zip(("then", "else_"), inner, strict=True):
            if entry[key] is not None:
                parameters[entry[key]].feed = Feed("invariant", source)
        return
    after = ends[0][entry["result"]] if entry["role"] == "Merged" else None
    settings = _settings(entry) if entry["role"] == "Sliced" else {}
    inner[0][entry["parameter"]].feed = Feed(entry["role"].lower(), source, after, settings)


def _drain(entry: Mapping[str, Any], ends: list[dict[int, Ref | None]]) -> Drain:
    kind = entry["role"].lower()
    if "then" in entry:
        return Drain(kind, {"then_body": ends[0][entry["then"]], "else_body": ends[1][entry["else_"]]})
    return Drain(kind, {"body": ends[0][entry["result"]]}, _settings(entry))


def _settings(entry: Mapping[str, Any]) -> dict[str, str]:
    found = {key: entry[key] for key in SETTINGS if key in entry}
    return {key: str(tuple(value) if isinstance(value, list) else value) for key, value in found.items()}


def _info(shown: str | None) -> dict[str, str]:
    """rt_info, which a dump holds as text."""
    if not shown:
        return {}
    try:
        return dict(flat(parse_attribute(Scanner(shown), Any)))
    except InputError:
        return {"": shown}
