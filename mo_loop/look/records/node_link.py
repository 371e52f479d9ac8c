"""A state of the graph as data for other tools: the node-link form of networkx, as a dictionary that JSON can hold.

    data = node_link(state)
    networkx.node_link_graph(data, edges="edges")
    state_of(data)                                      # the state again

Nodes are the records of node_records.py, by id; their inputs are edges. A control-flow node holds its bodies in the
same form. The changes of a pass are a flat graph of the nodes that it added or changed, with those that they read:
`delta_link`. `state_of` and `applied` are the inverse. docs/dump.md describes both forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.support.producers_first import producers_first

HEAD = {"schema": "mo-loop dumped graph", "version": 1}
"""The first keys of a file."""

ELSEWHERE = frozenset({"scope", "inputs", "bodies"})
"""Fields of a record that the form expresses by nesting and by edges."""

FORM = ELSEWHERE | {"absent", "status", "layer", "offset"}
"""Fields of the form that a record does not have."""

SCOPE = ("tag", "name", "parameters", "results", "info")
"""Fields of a scope in the form."""


def node_link(state: GraphState) -> Record:
    """The whole graph."""
    members: dict[str, list[Record]] = {name: [] for name in state.scopes}
    for number in sorted(state.nodes):
        record = state.nodes[number]
        members[record["scope"]].append(record)
    return HEAD | _graph(state, members, "")


def _graph(state: GraphState, members: Mapping[str, list[Record]], scope: str) -> Record:
    nodes = []
    for record in members[scope]:
        node = described_node(record)
        if "bodies" in record:
            node["bodies"] = [_graph(state, members, body) for body in record["bodies"]]
        nodes.append(node)
    return _data(described_graph(state, scope), nodes, edges(members[scope], state.nodes))


def delta_link(before: GraphState, after: GraphState, change: Record, **about: Any) -> Record:
    """The changes of a pass; `about` is added to the facts about the graph as a whole."""
    written = [("added", record) for record in change["added"]] + [("changed", record) for record in change["changed"]]
    nodes = [
        {"status": status, "scope": record["scope"], **described_node(record)}
        | ({"bodies": record["bodies"]} if "bodies" in record else {})
        for status, record in written
    ]  # fmt: skip
    records = [record for _, record in written]
    known = {record["id"] for record in records}
    read = dict.fromkeys(source[0] for record in records for source in record["inputs"] if source is not None)
    nodes += [{"status": "context", **_brief(after.nodes[number])} for number in read if number not in known]
    graph = {
        "delta": True, **about, "removed": [_brief(before.nodes[number]) for number in change["removed"]],
        "scopes": change["scopes"], "removed_scopes": change["removed_scopes"],
    }  # fmt: skip
    return HEAD | _data(graph, nodes, edges(records, after.nodes))


def _brief(record: Record) -> Record:
    return {key: record[key] for key in ("id", "scope", "op", "name")}


def described_graph(state: GraphState, scope: str) -> Record:
    """The facts about a graph itself."""
    return {"scope": scope, **{key: value for key, value in state.scopes[scope].items() if key in SCOPE}}


def _data(graph: Record, nodes: list[Record], links: list[Record]) -> Record:
    return {"directed": True, "multigraph": True, "graph": graph, "nodes": nodes, "edges": links}


def described_node(record: Record) -> Record:
    """A record without its inputs; `absent` are the optional inputs that are not given."""
    node = {key: value for key, value in record.items() if key not in ELSEWHERE}
    if None in record["inputs"]:
        node["absent"] = [port for port, each in enumerate(record["inputs"]) if each is None]
    return node


def edges(records: Iterable[Record], nodes: Mapping[int, Record]) -> list[Record]:
    """An edge for each input of the records, in the order of the ports."""
    return [
        {
            "source": source[0], "target": record["id"], "key": port, "output": source[1],
            "type": nodes[source[0]]["outputs"][source[1]]["type"],
        }
        for record in records for port, source in enumerate(record["inputs"]) if source is not None
    ]  # fmt: skip


# -- and back


def state_of(data: Mapping[str, Any]) -> GraphState:
    """The state that `node_link` wrote, producers before consumers in each scope."""
    state = GraphState()
    _read(data, None, state)
    return in_order(state)


def _read(data: Mapping[str, Any], owner: int | None, state: GraphState) -> None:
    graph = data["graph"]
    scope = graph["scope"]
    described = {key: value for key, value in graph.items() if key in SCOPE}
    state.scopes[scope] = {"id": scope, "owner": owner, **described}
    inputs = _inputs(data)
    for node in data["nodes"]:
        bodies = node.get("bodies")
        state.nodes[node["id"]] = _record(node, scope, inputs[node["id"]])
        if bodies is not None:
            state.nodes[node["id"]]["bodies"] = [body["graph"]["scope"] for body in bodies]
        for body in bodies or ():
            _read(body, node["id"], state)


def applied(state: GraphState, data: Mapping[str, Any]) -> GraphState:
    """The state after the step that `delta_link` wrote; `state` is the one before it."""
    graph = data["graph"]
    gone = {each["id"] for each in graph["removed"]}
    found = GraphState({number: record for number, record in state.nodes.items() if number not in gone})
    removed = set(graph["removed_scopes"])
    found.scopes = {name: scope for name, scope in state.scopes.items() if name not in removed}
    found.scopes |= {scope["id"]: scope for scope in graph["scopes"]}
    inputs = _inputs(data)
    for node in data["nodes"]:
        if node["status"] != "context":
            record = _record(node, node["scope"], inputs[node["id"]])
            found.nodes[node["id"]] = record | ({"bodies": node["bodies"]} if "bodies" in node else {})
    return in_order(found)


def _inputs(data: Mapping[str, Any]) -> dict[int, dict[int, list[int]]]:
    """The inputs of each node by their ports."""
    found: dict[int, dict[int, list[int]]] = {node["id"]: {} for node in data["nodes"]}
    for edge in data["edges"]:
        found[edge["target"]][edge["key"]] = [edge["source"], edge["output"]]
    return found


def _record(node: Mapping[str, Any], scope: str, inputs: Mapping[int, list[int]]) -> Record:
    ports = max([*inputs, *node.get("absent", ())], default=-1) + 1
    record: Record = {"id": node["id"], "scope": scope, "op": node["op"], "opset": node["opset"], "name": node["name"]}
    record["inputs"] = [inputs.get(port) for port in range(ports)]
    return record | {key: value for key, value in node.items() if key not in FORM}


def in_order(state: GraphState) -> GraphState:
    """The same state with producers before consumers, else by id."""
    numbers = sorted(state.nodes)
    places = {number: place for place, number in enumerate(numbers)}
    inputs = (state.nodes[number]["inputs"] for number in numbers)
    order = producers_first([[places[source[0]] for source in each if source is not None] for each in inputs])
    nodes = {numbers[place]: state.nodes[numbers[place]] for place in order}
    return GraphState(nodes, state.scopes)
