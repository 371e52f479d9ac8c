"""The structure of a Graph, an IR that was read or a converted model in memory; and of a dump, a state of records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mo_loop.errors import InputError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import Dim
from mo_loop.graph.types import TensorType
from mo_loop.ir.xml import layer_names, layer_order
from mo_loop.look.records.data import Data
from mo_loop.look.records.node_records import GraphState, Record, shown_attributes
from mo_loop.look.records.port_entries import connect, ports_of, renamed, tags
from mo_loop.look.records.structure import (
    DUMP,
    IR,
    Item,
    Output,
    OutputRecord,
    Ref,
    ScopeRecord,
    Structure,
    in_order,
    split,
)
from mo_loop.ops import base
from mo_loop.ops.opaque import Opaque
from mo_loop.text.attributes import parse_attribute
from mo_loop.text.scanner import Scanner
from mo_loop.text.spelling import show_type


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
            for tag, inner in zip(tags(node), node.bodies, strict=True):
                body = item.bodies[tag] = _of_graph(inner, ScopeRecord((*scope.path, item.label, tag), item, tag))
                ends |= zip((*inner.parameters, *inner.results), (*body.parameters, *body.results), strict=True)
            connect(item, renamed(ports_of(node), ends.__getitem__))
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
    version, attributes = f"opset{node.opset}", shown_attributes(node)
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
        tags = ("body",) if len(record["bodies"]) == 1 else ("then_body", "else_body")
        for tag, name in zip(tags, record["bodies"], strict=True):
            inner = ScopeRecord((*scope.path, item.label, tag), item, tag, id=name)
            body = item.bodies[tag] = _of_records(state, members, inner)
            numbers = (*state.scopes[name]["parameters"], *state.scopes[name]["results"])
            ends |= zip(numbers, (*body.parameters, *body.results), strict=True)
        connect(item, renamed(record["port_map"], ends.__getitem__))
    scope.items = in_order(list(items.values()))
    scope.parameters = [items[number] for number in about["parameters"]]
    for place, number in enumerate(about["results"]):
        record = state.nodes[number]
        ref = next(iter(refs(record)), None)
        names = [*record.get("names", ()), *(() if ref is None else ref.item.outputs[ref.output].names)]
        scope.results.append(OutputRecord((*names, record["name"])[0] or f"output {place}", ref, id=number))
    if scope.owner is not None:
        scope.info = _info(about.get("info"))
    return scope


def _of_record(record: Record, scope: ScopeRecord) -> Item:
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
