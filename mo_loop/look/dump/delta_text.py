"""The changes of a pass as text: statements by scope, in the notation of mo_loop.text. And as a picture for Graphviz:
the nodes that it added (green), changed (yellow) and removed (red, dashed), and their neighbours, in the clusters of
their bodies.

    # what EliminateGather changed: 0 nodes added, 2 removed, 1 changed
    # before: 000_loaded
    - %g = Gather(%x, [0], 1) {batch_dims: 0} : f32[2,1]
    ~ %y = ReLU(%x) : f32[2,1] names "y"
      was %y = ReLU(%g) : f32[2,1] names "y"
"""

from collections.abc import Container, Iterable, Iterator

from mo_loop.graph import Graph, Value
from mo_loop.look.records.node_records import Describer, GraphState, Record
from mo_loop.text.dot import HEAD, type_note
from mo_loop.text.dot import quoted as dot_quoted
from mo_loop.text.printer import statement, to_text
from mo_loop.text.spelling import WORD, quoted

LONGEST = 24
"""Characters of a name that is a label."""

COLORS = {"added": "#c8ecc8", "changed": "#f7ebb0", "removed": "#f7c9c4", "context": "#ffffff"}

READERS = 4
"""The largest number of unchanged readers of a node that are shown."""

Nodes = dict[int, tuple[str, Record]]
"""By id: the status of a node and its record."""


class Statements:
    """The statements of the nodes of a run by their ids.

    Labels are the same in all files of a run: `add`, or `17` if another node has the label, or the name is not a word.
    A label is not given to another node when its node is removed.
    """

    def __init__(self, describer: Describer) -> None:
        self._describer = describer
        self._labels: dict[int, str] = {}
        self._taken: set[str] = set()
        self._texts: dict[int, str] = {}

    def label(self, value: Value) -> str:
        """The label of a value. A node keeps it when it is renamed."""
        node = value.node
        return self._label(self._describer.id(node), node.name, value.index, len(node.outputs))

    def _label(self, number: int, name: str, port: int, count: int) -> str:
        found = self._labels.get(number)
        if found is None:
            fits = len(name) <= LONGEST and name not in self._taken and WORD.fullmatch(name)
            found = self._labels[number] = name if fits else str(number)
            self._taken.add(found)
        return found if count == 1 else f"{found}.{port}"

    def read(self, graph: Graph, numbers: Container[int]) -> None:
        """Make the statements of these nodes of the graph."""
        for node in (node for scope in graph.scopes() for node in scope.ordered()):
            number = self._describer.id(node)
            if number in numbers:
                self._texts[number] = statement(node, self.label)

    def of_graph(self, graph: Graph, state: GraphState) -> str:
        """The text of the graph that the state describes."""
        if not self._texts:
            self.read(graph, state.nodes)  # later only what changes is read
        return to_text(graph, label=self.label)

    def of_part(self, graph: Graph, state: GraphState) -> str:
        """The statements of those nodes of the graph that the state has."""
        self.read(graph, state.nodes)
        lines: list[str] = []
        for scope in state.scopes:
            lines += _title(scope, state, state)
            members = (number for number, each in state.nodes.items() if each["scope"] == scope)
            lines += [f"  {self._texts[number]}" for number in members]
        return "".join(f"{line}\n" for line in lines)

    def of_delta(
        self, before: GraphState, after: GraphState, graph: Graph, change: Record, name: str, previous: str
    ) -> str:
        """The changes of the pass `name`, after which there is this graph."""
        counts = len(change["added"]), len(change["removed"]), len(change["changed"])
        lines = [f"# what {name} changed: {counts[0]} nodes added, {counts[1]} removed, {counts[2]} changed"]
        lines += [f"# before: {previous}"] if previous else []
        added = {record["id"] for record in change["added"]}
        by_scope: dict[str, list[str]] = {}
        for number in change["removed"]:
            by_scope.setdefault(before.nodes[number]["scope"], []).append(f"- {self._texts.pop(number)}")
        former = {record["id"]: self._texts[record["id"]] for record in change["changed"]}
        self.read(graph, added | former.keys())
        for record in (*change["changed"], *change["added"]):
            number, shown = record["id"], by_scope.setdefault(record["scope"], [])
            shown.append(f"{'+' if number in added else '~'} {self._texts[number]}")
            if number not in added and former[number] != self._texts[number]:
                shown.append(f"  was {former[number]}")
        for scope in change["scopes"]:
            by_scope.setdefault(scope["id"], [])[:0] = self._ends(scope["id"], before, after)
        for scope in sorted(by_scope, key=lambda scope: (scope.count("/"), scope)):
            lines += [*_title(scope, before, after), *by_scope[scope]]
        return "".join(f"{line}\n" for line in lines)

    def _ends(self, scope: str, before: GraphState, after: GraphState) -> Iterator[str]:
        """The differences of the order of the parameters and results, and of the information about the graph."""
        for key in ("parameters", "results", "info") if scope in before.scopes else ():
            old, new = (
                str(state.scopes[scope].get(key, "")) if key == "info"
                else ", ".join(self._end(state, each) for each in state.scopes[scope][key])
                for state in (before, after)
            )
            if new != old:
                yield f"~ {key}: {new}"
                yield f"  was {key}: {old}"

    def _end(self, state: GraphState, number: int) -> str:
        """A Parameter, or a Result by the label of the value that it reads."""
        is_parameter = bool(state.nodes[number]["outputs"])
        number, port = (number, 0) if is_parameter else state.nodes[number]["inputs"][0]
        record = state.nodes[number]
        return ("%" if is_parameter else "@") + self._label(number, record["name"], port, len(record["outputs"]))


def _title(scope: str, before: GraphState, after: GraphState) -> Iterator[str]:
    if not scope:
        return
    state = after if scope in after.scopes else before
    found = state.scopes[scope]
    owner = state.nodes[found["owner"]]
    yield f"{found['tag']} {quoted(found['name'])} of {owner['op']} {quoted(owner['name'])} ({scope})"


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
            note = type_note(outputs[source[1]]["type"], shapes, types) if source[1] < len(outputs) else ""
            parts = [f"label={dot_quoted(note)}"] if note else []
            parts += [f'headlabel="{port}"'] if len(record["inputs"]) > 1 else []
            parts += ["style=dashed", 'color="#c05040"'] if status == "removed" else []
            yield f"  n{source[0]} -> n{number}" + (f" [{', '.join(parts)}]" if parts else "") + ";"
