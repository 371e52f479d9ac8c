"""The changes of a pass as Graphviz dot: the nodes that it added (green), changed (yellow) and removed (red, dashed),
and their neighbours, in the clusters of their bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.text.dot import HEAD, quoted

COLORS = {"added": "#c8ecc8", "changed": "#f7ebb0", "removed": "#f7c9c4", "context": "#ffffff"}

READERS = 4
"""The largest number of unchanged readers of a node that are shown."""

Nodes = dict[int, tuple[str, Record]]
"""By id: the status of a node and its record."""


def delta_dot(before: GraphState, after: GraphState, change: Record, *, shapes: bool, types: bool) -> str:
    """The neighbourhood of the changed nodes; `shapes` and `types` label the edges."""
    return _picture(_shown(before, after, change), [before, after], shapes, types)


def state_dot(state: GraphState, *, shapes: bool, types: bool) -> str:
    """All nodes of a state."""
    return _picture({number: ("context", record) for number, record in state.nodes.items()}, [state], shapes, types)


def _picture(nodes: Nodes, states: list[GraphState], shapes: bool, types: bool) -> str:
    scopes = {name: scope for state in states for name, scope in state.scopes.items()}
    places = {name: place for place, name in enumerate(scopes)}
    lines = ["digraph delta {", *HEAD]
    for scope in sorted({record["scope"] for _, record in nodes.values()}, key=places.__getitem__):
        owner = scopes[scope]["owner"]
        known = next((state.nodes[owner] for state in reversed(states) if owner in state.nodes), None)
        lines += _cluster(scopes[scope], known, nodes)
    lines += _edges(nodes, shapes, types)
    return "".join(f"{line}\n" for line in [*lines, "}"])


def _shown(before: GraphState, after: GraphState, change: Record) -> Nodes:
    nodes: Nodes = {number: ("removed", before.nodes[number]) for number in change["removed"]}
    for status in ("changed", "added"):
        nodes |= {record["id"]: (status, record) for record in change[status]}
    own = dict(nodes)
    for status, record in own.values():
        state = before if status == "removed" else after
        for source in record["inputs"]:
            if source is not None and source[0] not in nodes:
                nodes[source[0]] = ("context", state.nodes[source[0]])
    left = dict.fromkeys(own, READERS)
    for number, record in after.nodes.items():
        if number not in nodes:
            for source in record["inputs"]:
                if source is not None and left.get(source[0], 0):
                    left[source[0]] -= 1
                    nodes[number] = ("context", record)
    return nodes


def _cluster(scope: Record, owner: Record | None, nodes: Nodes) -> Iterator[str]:
    """The nodes of a scope, in a cluster unless it is the main graph."""
    pad = "  "
    if owner is not None:
        title = f"{scope['tag']} of {owner['name'] or owner['op']}"
        yield f"  subgraph {quoted('cluster_' + scope['id'])} {{"
        yield f"    label={quoted(title)};"
        pad = "    "
    for number, (status, record) in nodes.items():
        if record["scope"] == scope["id"]:
            style = ', style="rounded,filled,dashed"' if status == "removed" else ""
            yield f'{pad}n{number} [label={quoted(_label(record))}, fillcolor="{COLORS[status]}"{style}];'
    if owner is not None:
        yield "  }"


def _label(record: Record) -> str:
    lines = [record["op"], record["name"]]
    if "value" in record:
        lines.append(record["value"] if len(record["value"]) <= 40 else record["outputs"][0]["type"])
    return "\n".join(filter(None, lines))


def _edges(nodes: Nodes, shapes: bool, types: bool) -> Iterable[str]:
    for number, (status, record) in nodes.items():
        for port, source in enumerate(record["inputs"]):
            if source is None or source[0] not in nodes:
                continue
            outputs = nodes[source[0]][1]["outputs"]  # those that a removed node read can be gone
            note = _note(outputs[source[1]]["type"], shapes, types) if source[1] < len(outputs) else ""
            parts = [f"label={quoted(note)}"] if note else []
            parts += [f'headlabel="{port}"'] if len(record["inputs"]) > 1 else []
            parts += ["style=dashed", 'color="#c05040"'] if status == "removed" else []
            yield f"  n{source[0]} -> n{number}" + (f" [{', '.join(parts)}]" if parts else "") + ";"


def _note(text: str, shapes: bool, types: bool) -> str:
    """The label of an edge, of `f32[2,N]`: all of it, `f32`, `[2,N]`, or nothing."""
    dtype, bracket, dims = text.partition("[")
    if shapes == types or "(" in dtype:
        return text if shapes or types else ""
    return dtype if types else bracket + dims
