"""A state of the graph as data for other tools: the node-link form of networkx, as a dictionary that JSON can hold.

    data = node_link(state)
    networkx.node_link_graph(data, edges="edges")
    state_of(data)                                      # the state again

Nodes are the records of mo_loop/page/node_records.py, by id; their inputs are edges. A control-flow node holds its
bodies in the same form. docs/dump.md describes the form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mo_loop.page.node_records import Record, State

ELSEWHERE = frozenset({"scope", "inputs", "bodies"})
"""What the form says otherwise than a record: by nesting and by edges."""


def node_link(state: State, **about: Any) -> Record:
    """The whole graph; `about` is added to what the form says about the graph itself."""
    members: dict[str, list[Record]] = {name: [] for name in state.scopes}
    for number in sorted(state.nodes):
        record = state.nodes[number]
        members[record["scope"]].append(record)
    return _graph(state, members, "", about)


def _graph(state: State, members: Mapping[str, list[Record]], scope: str, about: Mapping[str, Any]) -> Record:
    nodes = []
    for record in members[scope]:
        node = _node(record)
        if "bodies" in record:
            node["bodies"] = [_graph(state, members, body, {}) for body in record["bodies"]]
        nodes.append(node)
    described = {key: value for key, value in state.scopes[scope].items() if key not in ("id", "owner")}
    return _data({**about, "scope": scope, **described}, nodes, edges(members[scope], state.nodes))


def state_of(data: Record) -> State:
    """The state that `node_link` described. Raises KeyError, TypeError and others if the data have another form."""
    state = State()
    _add(data, None, state)
    return state


def _add(data: Record, owner: int | None, state: State) -> None:
    """Add a graph with its bodies."""
    about = data["graph"]
    scope = about["scope"]
    state.scopes[scope] = {
        "id": scope, "owner": owner, "tag": about["tag"], "name": about["name"],
        "parameters": about["parameters"], "results": about["results"],
    } | ({"info": about["info"]} if "info" in about else {})  # fmt: skip
    inputs: dict[int, dict[int, list[int]]] = {node["id"]: {} for node in data["nodes"]}
    for edge in data["edges"]:
        inputs[edge["target"]][edge["key"]] = [edge["source"], edge["output"]]
    for node in data["nodes"]:
        given = inputs[node["id"]]
        count = len(given) + len(node.get("absent", ()))
        record = {key: value for key, value in node.items() if key not in ("absent", "bodies")}
        record |= {"scope": scope, "inputs": [given.get(port) for port in range(count)]}
        state.nodes[node["id"]] = record
        for body in node.get("bodies", ()):
            _add(body, node["id"], state)
        if "bodies" in node:
            record["bodies"] = [body["graph"]["scope"] for body in node["bodies"]]


def _data(graph: Record, nodes: list[Record], links: list[Record]) -> Record:
    return {"directed": True, "multigraph": True, "graph": graph, "nodes": nodes, "edges": links}


def _node(record: Record) -> Record:
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
