"""The structure of a JSON file of `--dump`: nodes and edges in the node-link form of networkx."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mo_loop.errors import InputError
from mo_loop.look.records.data import Data
from mo_loop.look.records.node_link import node_link
from mo_loop.look.records.of_graph import flat, split
from mo_loop.look.records.port_entries import connect
from mo_loop.look.records.reading import is_delta, not_of_dump, read_file, state_at
from mo_loop.look.records.structure import DUMP, Item, Output, Ref, Result, Scope, Structure, in_order
from mo_loop.text.attributes import parse_attribute
from mo_loop.text.scanner import Scanner


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
    inner: dict[int, Item] = {}
    ends: dict[int, Ref | None] = {}
    tags = ("body",) if len(node["bodies"]) == 1 else ("then_body", "else_body")
    for tag, data in zip(tags, node["bodies"], strict=True):
        body = _scope(data, Scope((*item.scope.path, item.label, tag), item, tag))
        item.bodies[tag] = body
        inner |= zip(data["graph"]["parameters"], body.parameters, strict=True)
        ends |= zip(data["graph"]["results"], [each.ref for each in body.results], strict=True)
    connect(item, node["port_map"], inner, ends)


def _info(shown: str | None) -> dict[str, str]:
    """rt_info, which a dump holds as text."""
    if not shown:
        return {}
    try:
        return dict(flat(parse_attribute(Scanner(shown), Any)))
    except InputError:
        return {"": shown}
