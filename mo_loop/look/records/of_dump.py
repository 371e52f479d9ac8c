"""The structure of a JSON file of `--dump`: of the records in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mo_loop.errors import InputError
from mo_loop.look.records.data import Data
from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.look.records.of_graph import flat, split
from mo_loop.look.records.port_entries import connect
from mo_loop.look.records.reading import checked, state_at
from mo_loop.look.records.structure import DUMP, Item, Output, OutputRecord, Ref, ScopeRecord, Structure, in_order
from mo_loop.text.attributes import parse_attribute
from mo_loop.text.scanner import Scanner


def structure_of_file(path: Path, source: str) -> Structure:
    """The structure of the graph that a .json file of a dump describes.

    Raises:
        FileError: it is not a file of a dump, or it has only the changes of a pass and a file before it is missing.
    """
    state = state_at(path)
    return checked(source, lambda: _structure(state, source))


def _structure(state: GraphState, source: str) -> Structure:
    members: dict[str, list[Record]] = {name: [] for name in state.scopes}
    for record in state.nodes.values():
        members[record["scope"]].append(record)
    about = state.scopes[""]
    metadata = _info(about.get("info")) | ({"name": about["name"]} if about.get("name") else {})
    return Structure(DUMP, source, _scope(state, members, "", ScopeRecord()), metadata=metadata, made_of=state)


def _scope(state: GraphState, members: Mapping[str, list[Record]], name: str, scope: ScopeRecord) -> ScopeRecord:
    records, about = members[name], state.scopes[name]
    items = {record["id"]: _item(record, scope) for record in records if record["op"] != "Result"}

    def refs(record: Record) -> list[Ref | None]:
        return [None if each is None else Ref(items[each[0]], each[1]) for each in record["inputs"]]

    for record in records:
        if record["id"] in items:
            item = items[record["id"]]
            item.inputs = refs(record)
            while item.inputs and item.inputs[-1] is None:
                item.inputs.pop()
            if "bodies" in record:
                _bodies(record, item, state, members)
    scope.items = in_order(list(items.values()))
    scope.parameters = [items[number] for number in about["parameters"]]
    for place, number in enumerate(about["results"]):
        record = state.nodes[number]
        ref = next(iter(refs(record)), None)
        names = [*record.get("names", ()), *(() if ref is None else ref.item.outputs[ref.output].names)]
        scope.results.append(OutputRecord((*names, record["name"])[0] or f"output {place}", ref))
    if scope.owner is not None:
        scope.info = _info(about.get("info"))
    return scope


def _item(record: Record, scope: ScopeRecord) -> Item:
    outputs = [Output(tuple(each["names"]), *split(each["type"])) for each in record["outputs"]]
    data = None
    if "value" in record:
        shown = record["content"] if "content" in record else record["value"]
        data = Data.written(f"{outputs[0].dtype}{outputs[0].shape}", shown)
    return Item(
        operator=record["op"],
        name=record["name"],
        scope=scope,
        version=f"opset{record['opset']}",
        attributes=dict(record.get("attributes", {})),
        outputs=outputs,
        data=data,
        info=_info(record.get("info")),
        made_of=record["id"],
    )


def _bodies(record: Record, item: Item, state: GraphState, members: Mapping[str, list[Record]]) -> None:
    inner: dict[int, Item] = {}
    ends: dict[int, Ref | None] = {}
    tags = ("body",) if len(record["bodies"]) == 1 else ("then_body", "else_body")
    for tag, name in zip(tags, record["bodies"], strict=True):
        body = _scope(state, members, name, ScopeRecord((*item.scope.path, item.label, tag), item, tag))
        item.bodies[tag] = body
        inner |= zip(state.scopes[name]["parameters"], body.parameters, strict=True)
        ends |= zip(state.scopes[name]["results"], [each.ref for each in body.results], strict=True)
    connect(item, record["port_map"], inner, ends)


def _info(shown: str | None) -> dict[str, str]:
    """rt_info, which a dump holds as text."""
    if not shown:
        return {}
    try:
        return dict(flat(parse_attribute(Scanner(shown), Any)))
    except InputError:
        return {"": shown}
