"""The changes of a pass as text: statements by scope, in the notation of mo_loop.text. And as a picture for Graphviz:
the nodes that it added (green), changed (yellow) and removed (red, dashed), and their neighbours, in the clusters of
their bodies.

    # what EliminateGather changed: 0 nodes added, 2 removed, 1 changed
    # before: 000_loaded
    - %g = Gather(%x, [0], 1) {batch_dims: 0} : f32[2,1]
    ~ %y = ReLU(%x) : f32[2,1] names "y"
      was %y = ReLU(%g) : f32[2,1] names "y"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mo_loop.look.records.node_records import GraphState, Record
from mo_loop.text.dot import HEAD
from mo_loop.text.dot import quoted as dot_quoted
from mo_loop.text.spelling import WORD, quoted

LONGEST = 24
"""Characters of a name that is a label."""

INLINE = 40
"""Characters up to which the value of a constant without a name replaces its label."""

NUMBERS = ("axis", "start", "end", "stride", "part_size", "declared")
"""The numbers of an entry of a port map besides its nodes; their defaults follow."""

_DEFAULTS = {"start": 0, "end": -1, "stride": 1, "part_size": 1, "declared": []}

COLORS = {"added": "#c8ecc8", "changed": "#f7ebb0", "removed": "#f7c9c4", "context": "#ffffff"}

READERS = 4
"""The largest number of unchanged readers of a node that are shown."""

Nodes = dict[int, tuple[str, Record]]
"""By id: the status of a node and its record."""


class Labels:
    """Labels of values by the ids of their nodes, the same in all files of a run: `add`, or `17` if another node has
    the label, or the name is not a word. A label is not given to another node when its node is removed."""

    def __init__(self) -> None:
        self._labels: dict[int, str] = {}
        self._taken: set[str] = set()

    def of(self, number: int, name: str) -> str:
        """The label of a node, which keeps it when it is renamed."""
        found = self._labels.get(number)
        if found is None:
            fits = len(name) <= LONGEST and name not in self._taken and WORD.fullmatch(name)
            found = self._labels[number] = name if fits else str(number)
            self._taken.add(found)
        return found


def delta_text(
    before: GraphState, after: GraphState, change: Record, labels: Labels, defaults: Mapping[str, Mapping[str, str]],
    name: str, previous: str,
) -> str:
    """The changes of the pass `name`; `defaults` are the attributes of the operations that are left out."""
    old, new = _Statements(before, labels, defaults), _Statements(after, labels, defaults)
    counts = len(change["added"]), len(change["removed"]), len(change["changed"])
    lines = [f"# what {name} changed: {counts[0]} nodes added, {counts[1]} removed, {counts[2]} changed"]
    lines += [f"# before: {previous}"] if previous else []
    added = {record["id"] for record in change["added"]}
    by_scope: dict[str, list[str]] = {}
    for number in change["removed"]:
        by_scope.setdefault(before.nodes[number]["scope"], []).append(f"- {old.of(number)}")
    for record in (*change["changed"], *change["added"]):
        number, shown = record["id"], by_scope.setdefault(record["scope"], [])
        statement = new.of(number)
        shown.append(f"{'+' if number in added else '~'} {statement}")
        former = statement if number in added else old.of(number)
        if former != statement:
            shown.append(f"  was {former}")
    for scope in change["scopes"]:
        by_scope.setdefault(scope["id"], [])[:0] = new.ends(scope["id"], old)
    for scope in sorted(by_scope, key=lambda scope: (scope.count("/"), scope)):
        lines += [*_title(scope, before, after), *by_scope[scope]]
    return "".join(f"{line}\n" for line in lines)


def state_text(state: GraphState, labels: Labels, defaults: Mapping[str, Mapping[str, str]]) -> str:
    """All statements of a part of a graph."""
    statements = _Statements(state, labels, defaults)
    lines: list[str] = []
    for scope in state.scopes:
        lines += _title(scope, state, state)
        lines += [f"  {statements.of(number)}" for number, each in state.nodes.items() if each["scope"] == scope]
    return "".join(f"{line}\n" for line in lines)


def _title(scope: str, before: GraphState, after: GraphState) -> Iterator[str]:
    if not scope:
        return
    state = after if scope in after.scopes else before
    found = state.scopes[scope]
    owner = state.nodes[found["owner"]]
    yield f"{found['tag']} {quoted(found['name'])} of {owner['op']} {quoted(owner['name'])} ({scope})"


class _Statements:
    """The statements of one state."""

    def __init__(self, state: GraphState, labels: Labels, defaults: Mapping[str, Mapping[str, str]]) -> None:
        self._state = state
        self._labels = labels
        self._defaults = defaults

    def of(self, number: int) -> str:
        record = self._state.nodes[number]
        outputs = ", ".join(f"%{self._label(number, port)}" for port in range(len(record["outputs"])))
        left = f"{outputs} = {record['op']}" if outputs else record["op"]
        if "value" in record:
            left += f" {record.get('content', record['value'])}"
        elif record["op"] != "Parameter":
            left += f"({', '.join(map(self._input, record['inputs']))})"
        usual = self._defaults.get(record["op"], {})
        return left + end_of(record, usual, [f"{key}: {shown}" for key, shown in self._port_map(record)])

    def ends(self, scope: str, old: _Statements) -> Iterator[str]:
        """The differences of the order of the parameters and results, and of the information about the graph, from
        `old`."""
        for key in ("parameters", "results", "info"):
            shown, before = self._about(scope, key), old._about(scope, key)
            if before is not None and shown != before:
                yield f"~ {key}: {shown}"
                yield f"  was {key}: {before}"

    def _about(self, scope: str, key: str) -> str | None:
        found = self._state.scopes.get(scope)
        if found is None:
            return None
        return str(found.get(key, "")) if key == "info" else ", ".join(map(self._end, found[key]))

    def _label(self, number: int, port: int) -> str:
        record = self._state.nodes[number]
        label = self._labels.of(number, record["name"])
        return label if len(record["outputs"]) == 1 else f"{label}.{port}"

    def _input(self, source: Any) -> str:
        if source is None:
            return "_"
        record = self._state.nodes[source[0]]
        if "value" in record and not record["name"] and len(record["value"]) <= INLINE:
            return str(record["value"])
        return f"%{self._label(*source)}"

    def _port_map(self, record: Record) -> Iterator[tuple[str, str]]:
        ports = record.get("port_map", {})
        for key in ("iteration", "condition"):
            if key in ports:
                yield key, self._end(ports[key])
        for key in ("inputs", "outputs"):
            if ports.get(key):
                yield f"{key[:-1]}_map", f"[{', '.join(map(self._entry, ports[key]))}]"

    def _entry(self, entry: Record) -> str:
        parts = [self._end(entry[key]) for key in ("parameter", "result", "then", "else_") if key in entry]
        parts += [f"{key}: {entry[key]}" for key in NUMBERS if key in entry and entry[key] != _DEFAULTS.get(key)]
        return f"{entry['role']}({', '.join(parts)})"

    def _end(self, number: int | None) -> str:
        """A Parameter, or a Result by the label of the value that it reads."""
        if number is None:
            return "_"
        record = self._state.nodes[number]
        return f"%{self._label(number, 0)}" if record["outputs"] else f"@{self._label(*record['inputs'][0])}"


def end_of(record: Record, usual: Mapping[str, str], ports: Sequence[str] = ()) -> str:
    """Attributes that are not as `usual`, types, names and additional info, as in the texts of whole graphs."""
    outputs, name = record["outputs"], record["name"]
    attributes = [*ports]
    for key, shown in record.get("attributes", {}).items():
        if usual.get(key) != shown:
            attributes.append(f"{key}: {shown}")
    text = f" {{{', '.join(attributes)}}}" if attributes else ""
    if outputs:
        text += f" : {', '.join([output['type'] for output in outputs])}"
    if name:
        text += f" {quoted(name)}"
    lists = [record["names"]] if "names" in record else [output["names"] for output in outputs]
    while lists and not lists[-1]:
        lists.pop()
    if lists:
        text += f" names {', '.join([' '.join(map(quoted, each)) if each else '_' for each in lists])}"
    return text + (f" info {record['info']}" if "info" in record else "")


# -- pictures


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
        yield f"  subgraph {dot_quoted('cluster_' + scope['id'])} {{"
        yield f"    label={dot_quoted(title)};"
        pad = "    "
    for number, (status, record) in nodes.items():
        if record["scope"] == scope["id"]:
            style = ', style="rounded,filled,dashed"' if status == "removed" else ""
            yield f'{pad}n{number} [label={dot_quoted(_label(record))}, fillcolor="{COLORS[status]}"{style}];'
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
            parts = [f"label={dot_quoted(note)}"] if note else []
            parts += [f'headlabel="{port}"'] if len(record["inputs"]) > 1 else []
            parts += ["style=dashed", 'color="#c05040"'] if status == "removed" else []
            yield f"  n{source[0]} -> n{number}" + (f" [{', '.join(parts)}]" if parts else "") + ";"


def _note(text: str, shapes: bool, types: bool) -> str:
    """The label of an edge, of `f32[2,N]`: all of it, `f32`, `[2,N]`, or nothing."""
    dtype, bracket, dims = text.partition("[")
    if shapes == types or "(" in dtype:
        return text if shapes or types else ""
    return dtype if types else bracket + dims
