"""A state of the graph as data for other tools: the node-link form of networkx, as a dictionary that JSON can hold.

    data = node_link(state)                             # spelled(data) is its text
    networkx.node_link_graph(data, edges="edges")
    state_of(data)                                      # the state again

Nodes are the records of node_records.py, by id; their inputs are edges. A control-flow node holds its bodies in the
same form. The changes of a pass are a flat graph of the nodes that it added or changed, with those that they read:
`delta_link`. `state_of` and `applied` are the inverse. docs/dump.md describes both forms.

    dump = read_dump("steps")                           # the graph at any step, from the .json files of a folder
    [each.name for each in dump.steps]                  # "loaded", then a pass for each file
    dump.state(3), dump.graph(3)                        # a state of records, and the whole graph in the node-link form

A file names the one before it. Only the files that a step needs are read.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mo_loop.errors import FileError, InputError
from mo_loop.look.records.node_records import Describer, GraphState, Record
from mo_loop.look.records.trip_counts import set_trip_counts
from mo_loop.support.files import reason_of, refuse_device
from mo_loop.support.traversal import producers_first
from mo_loop.text import parse

HEAD = {"schema": "mo-loop dumped graph", "version": 1}
"""The first keys of a file."""

ELSEWHERE = frozenset({"scope", "inputs", "bodies"})
"""Fields of a record that the form expresses by nesting and by edges."""

FORM = ELSEWHERE | {"absent", "status", "layer", "offset"}
"""Fields of the form that a record does not have."""

spelled = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode

SCOPE = ("tag", "name", "parameters", "results", "info")
"""Fields of a scope in the form."""

Read = TypeVar("Read")

_NAME = re.compile(r"(\d{3,})_([\w.-]+)\.json")


def node_link(state: GraphState, more: Mapping[int, Record] | None = None) -> Record:
    """The whole graph; `more` is added to the records of nodes, by id."""
    members: dict[str, list[Record]] = {name: [] for name in state.scopes}
    for number in sorted(state.nodes):
        record = state.nodes[number]
        members[record["scope"]].append(record)
    return HEAD | _graph(state, members, "", more or {})


def _graph(state: GraphState, members: Mapping[str, list[Record]], scope: str, more: Mapping[int, Record]) -> Record:
    about = {"scope": scope, **{key: value for key, value in state.scopes[scope].items() if key in SCOPE}}
    nodes = []
    for record in members[scope]:
        node = described_node(record) | more.get(record["id"], {})
        if "bodies" in record:
            node["bodies"] = [_graph(state, members, body, more) for body in record["bodies"]]
        nodes.append(node)
    edges = _edges(members[scope], state)
    return {"directed": True, "multigraph": True, "graph": about, "nodes": nodes, "edges": edges}


def delta_link(before: GraphState, after: GraphState, change: Record, **about: Any) -> Record:
    """The changes of a pass; `about` is added to the facts about the graph as a whole."""
    written = [("added", record) for record in change["added"]] + [("changed", record) for record in change["changed"]]
    nodes = [
        {"status": status, "scope": record["scope"], **described_node(record)}
        | ({"bodies": record["bodies"]} if "bodies" in record else {})
        for status, record in written
    ]
    records = [record for _, record in written]
    known = {record["id"] for record in records}
    read = dict.fromkeys(source[0] for record in records for source in record["inputs"] if source is not None)
    nodes += [{"status": "context", **_brief(after.nodes[number])} for number in read if number not in known]
    graph = {
        "delta": True, **about, "removed": [_brief(before.nodes[number]) for number in change["removed"]],
        "scopes": change["scopes"], "removed_scopes": change["removed_scopes"],
    }
    edges = _edges(records, after)
    return HEAD | {"directed": True, "multigraph": True, "graph": graph, "nodes": nodes, "edges": edges}


def _edges(records: list[Record], state: GraphState) -> list[Record]:
    """The inputs of nodes of a state."""
    return [
        {
            "source": source[0], "target": record["id"], "key": port, "output": source[1],
            "type": state.nodes[source[0]]["outputs"][source[1]]["type"],
        }
        for record in records for port, source in enumerate(record["inputs"]) if source is not None
    ]


def _brief(record: Record) -> Record:
    return {key: record[key] for key in ("id", "scope", "op", "name")}


def described_node(record: Record) -> Record:
    """A record without its inputs; `absent` are the optional inputs that are not given."""
    node = {key: value for key, value in record.items() if key not in ELSEWHERE}
    if None in record["inputs"]:
        node["absent"] = [port for port, each in enumerate(record["inputs"]) if each is None]
    return node


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


# -- the files of a dump


@dataclass(frozen=True)
class DumpStep:
    """A .json file of a dump: the place of the pass in the run, its name, and the file."""

    place: int
    name: str
    file: Path


class Dump:
    """The states of one run."""

    def __init__(self, folder: Path, steps: list[DumpStep]) -> None:
        self.folder = folder
        self.steps = steps
        self._states: dict[Path, GraphState] = {}

    def state(self, step: int) -> GraphState:
        """The graph after a step, by its index in `steps`; a negative one counts from the end."""
        file = self.steps[step].file
        if file not in self._states:
            self._states[file] = state_at(file, self._states)
        return self._states[file]

    def graph(self, step: int) -> Record:
        """The whole graph after a step, in the node-link form of networkx."""
        return node_link(self.state(step))


def read_dump(folder: str | os.PathLike[str]) -> Dump:
    """The dump in a folder.

    Raises:
        FileError: it has no .json file of a dump, or a file is damaged or missing.
    """
    path = Path(folder)
    found = []
    for file in sorted(path.iterdir()) if path.is_dir() else ():
        match = _NAME.fullmatch(file.name)
        if match is not None and not file.name.endswith(".full.json"):
            found.append(DumpStep(int(match[1]), match[2], file))
    if not found:
        raise FileError(
            f"{path} has no .json file of a dump", code="ML214",
            hint="write one with mo-loop convert MODEL --dump DIR, with json among the formats",
        )
    return Dump(path, found)


def state_at(file: Path, known: dict[Path, GraphState] | None = None) -> GraphState:
    """The graph that a file of a dump describes: it is applied to the files before it.

    Raises:
        FileError: the file, or one before it, is missing or damaged.
    """
    known = {} if known is None else known
    later: dict[Path, Any] = {}
    at = file
    while at not in known:
        data = read_file(at, None if at is file else file)
        graph = data.get("graph") if isinstance(data, dict) else None
        if not isinstance(graph, dict) or graph.get("delta") is not True:
            known[at] = checked(at, partial(state_of, data))
            break
        later[at] = data
        at = at.with_name(f"{Path(str(graph.get('previous'))).name}.json")
        if at in later:
            raise not_of_dump(file, "it is before itself")
    for each, data in reversed(later.items()):
        known[each] = checked(each, partial(applied, known[at], data))
        at = each
    return known[file]


def state_of_text(file: Path, source: str) -> GraphState:
    """The graph in a text file of a dump; `source` is its name for people.

    Raises:
        FileError: it is not the text of a graph, or has only the changes of a pass.
    """
    try:
        text = file.read_text("utf-8")
        if re.match(r"# what .* changed: ", text):
            raise FileError(
                f"{source} has only the changes of a pass", code="ML214",
                hint="give the .json file of the same step: it is applied to the files before it",
            )
        state = Describer().state(parse(text))
    except FileError:
        raise
    except (InputError, UnicodeDecodeError) as error:
        raise not_of_dump(source, str(error).splitlines()[0]) from None
    set_trip_counts(state)
    return state


def read_file(file: Path, needed_by: Path | None = None) -> Any:
    """The data of a .json file."""
    refuse_device(file)
    try:
        return json.loads(file.read_bytes())
    except OSError as error:
        why, hint = reason_of(error), ""
        if needed_by is not None:
            why = f"{needed_by.name} needs it: {why}"
            hint = "a file of a step has only the changes: keep the files before it"
        raise FileError(f"{file} cannot be read", why=why, hint=hint, code="ML212") from None
    except (ValueError, RecursionError) as error:
        raise not_of_dump(file, f"it is not JSON: {error}") from None


def not_of_dump(source: str | Path, why: str) -> FileError:
    """The error for a file that no dump wrote."""
    return FileError(
        f"{source} is not a graph of --dump", why=why, code="ML214",
        hint="give a .json or .txt file that mo-loop convert --dump wrote",
    )


def checked(source: str | Path, read: Callable[[], Read]) -> Read:
    """Return the result of `read`; FileError if its data have another form."""
    try:
        return read()
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise not_of_dump(source, f"its JSON has another form: {type(error).__name__} {error}") from None
