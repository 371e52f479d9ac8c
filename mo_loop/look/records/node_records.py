"""Nodes and scopes of a Graph as plain data, with ids that stay the same while passes change the graph.

    describer = Describer()
    state = describer.state(graph)
    state.nodes[0]         # {"id": 0, "scope": "", "op": "Parameter", "opset": 1, "name": "x", "inputs": [], ...}
    state.scopes["3/body"]        # {"id": "3/body", "owner": 3, "tag": "body", "parameters": [4], "results": [7], ...}
    later = describer.state(graph)       # after a pass; unchanged nodes have the same dictionaries as before

docs/dump.md describes both.

Port maps, interpreted: the sources of the parameters of bodies, and the targets of their results.

    ports = ports_of(node)                # {"inputs": [{"role": "Merged", "port": 2, "parameter": ..., ...}], ...}
    connect(item, renamed(ports, found))  # sets the feeds of the parameters and the drains of the item

The ends of an entry are nodes of a Graph, ids in a dump, or, for `connect`, the items and results of a Structure.
Records of nodes (node_records.py) have entries with ids.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mo_loop.graph import Graph, Node, Tensor
from mo_loop.look.records.data import LIMIT, SHOWN, Contents, described_constant
from mo_loop.look.records.structure import Drain, Feed, Item, OutputRecord, Ref
from mo_loop.ops.base import Constant, Result
from mo_loop.ops.control import Control, If
from mo_loop.ops.front import Opaque
from mo_loop.text.attributes import show_attribute
from mo_loop.text.literals import show_data
from mo_loop.text.spelling import show_type

Ports = Mapping[str, Any]

SETTINGS = ("axis", "start", "end", "stride", "part_size", "declared", "direction")
"""The facts of an entry beside its ends; only an ONNX model has a `direction`."""

ENDS = ("parameter", "result", "then", "else_")
"""The nodes to which an entry refers."""

INPUT_NAMES = {"Loop": ("trip count", "execution condition"), "If": ("condition",)}
"""The inputs that do not feed a body."""

SCAN_ATTRIBUTES = (
    "num_scan_inputs", "scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions",
)


def tags(node: Any) -> tuple[str, ...]:
    """The tags of the bodies of a node of a Graph, in their order."""
    if not node.bodies:
        return ()
    return ("then_body", "else_body") if isinstance(node, If) else ("body",)


def ports_of(node: Any) -> dict[str, Any]:
    """The port map of a node of a Graph."""
    found: dict[str, Any] = {
        side: [{"role": type(each).__name__, "port": port, **vars(each)} for port, each in enumerate(entries, first)]
        for side, entries, first in (("inputs", node.input_map, node.first_data_port), ("outputs", node.output_map, 0))
    }
    return found | {
        key: getattr(node, key) for key in ("iteration", "condition") if getattr(node, key, None) is not None
    }


def renamed(ports: Ports, end: Callable[[Any], Any]) -> dict[str, Any]:
    """A port map with other ends."""
    found = dict(ports)
    for side in ("inputs", "outputs"):
        found[side] = [
            {name: end(value) if name in ENDS and value is not None else value for name, value in entry.items()}
            for entry in ports[side]
        ]
    for name in ("iteration", "condition"):
        if ports.get(name) is not None:
            found[name] = end(ports[name])
    return found


def connect(item: Item, ports: Ports) -> None:
    """Set the port map of an item that has its bodies, with the feeds and drains that it describes."""
    item.ports = ports
    item.input_names = INPUT_NAMES.get(item.operator, ())
    item.direct = len(item.input_names)
    for entry in ports["inputs"]:
        role, source = entry["role"], item.input(entry["port"])
        if role == "Branched":
            for name in ("then", "else_"):
                if entry.get(name) is not None:
                    entry[name].feed = Feed("invariant", source)
        elif entry["port"] < item.direct and item.is_loop:  # in ONNX the condition is a state of the body
            entry["parameter"].feed = Feed("condition")
        else:
            after = ref_of(entry["result"]) if role == "Merged" else None
            entry["parameter"].feed = Feed(role.lower(), source, after, _settings(entry))
    for entry in ports["outputs"]:
        names = {tag: branch_key(tag) if entry["role"] == "Selected" else "result" for tag in item.bodies}
        sources = {tag: ref_of(entry[name]) for tag, name in names.items()}
        item.drains.append(Drain(entry["role"].lower(), sources, _settings(entry)))
    if ports.get("iteration") is not None:
        ports["iteration"].feed = Feed("iteration number")
    item.condition = ref_of(ports.get("condition"))


def ref_of(end: OutputRecord | None) -> Ref | None:
    """The value that a result reads; None for one that is missing in a damaged model."""
    return None if end is None else end.ref


def _settings(entry: Mapping[str, Any]) -> dict[str, str]:
    found = {key: entry[key] for key in SETTINGS if key in entry}
    return {key: str(tuple(value) if isinstance(value, list) else value) for key, value in found.items()}


def branch_key(tag: str) -> str:
    """The name in an entry of a value in a branch of If."""
    start = tag.partition("_")[0]
    return "else_" if start == "else" else start


_HELD = frozenset({"body", "then_body", "else_body", "input_map", "output_map", "iteration", "condition"})
Record = dict[str, Any]

_OPSET = re.compile("opset([0-9]{1,4})")


@dataclass
class GraphState:
    """A graph as plain data: records by id, producers before consumers in each scope, and scopes by id."""

    nodes: dict[int, Record] = field(default_factory=dict)
    scopes: dict[str, Record] = field(default_factory=dict)


class Describer:
    """Describes graphs. A node and a body keep their ids as long as they are in the described graph.

    A record is made again only if the node was changed: the costs of a later `state` are about a microsecond a node.
    """

    def __init__(self, contents: Contents | None = None) -> None:
        """`contents` names constants, also those of another graph."""
        self._ids: dict[Node, int] = {}
        self._next = 0
        self._records: dict[Node, tuple[Fields, Record]] = {}  # what a record was made of, and the record
        self._scopes: dict[Graph, str] = {}
        self._owned: dict[str, int] = {}  # how many bodies an owner has had under a tag
        self._contents = contents or Contents()

    def id(self, node: Node) -> int:
        """The id of a node, which gets one if it has none."""
        found = self._ids.get(node)
        if found is None:
            found = self._ids[node] = self._next
            self._next += 1
        return found

    def known(self, node: Node) -> int | None:
        """The id of a node that was described, else None."""
        return self._ids.get(node)

    def continue_with(self, old: Graph, clone: Graph) -> None:
        """Give the nodes of `clone`, which `old.clone()` made and a pass may have changed, the ids of their originals.

        The copies are numbered in the order of the originals.
        """
        copies = {node.id: node for node in clone.ordered()}
        for place, node in enumerate(old.ordered()):
            copy = copies.get(place)
            if copy is None or type(copy) is not type(node) or copy.name != node.name or node not in self._ids:
                continue
            self._ids[copy] = self._ids.pop(node)
            for old_body, new_body in zip(node.bodies, copy.bodies, strict=True):
                self._scopes[new_body] = self._scopes.pop(old_body)
                self.continue_with(old_body, new_body)

    def state(self, graph: Graph) -> GraphState:
        """The graph with its bodies."""
        state = GraphState()
        self._describe(graph, "", None, "", state)
        if len(self._ids) > len(state.nodes):  # removed nodes are not kept alive
            self._ids = {node: number for node, number in self._ids.items() if number in state.nodes}
            self._records = {node: made for node, made in self._records.items() if node in self._ids}
            self._scopes = {body: name for body, name in self._scopes.items() if name in state.scopes}
        return state

    def _describe(self, graph: Graph, scope: str, owner: Node | None, tag: str, state: GraphState) -> None:
        ids = self._ids
        for node in graph.ordered():  # new nodes are numbered in this order
            self.id(node)
        found: Record = {
            "id": scope, "owner": None if owner is None else self.id(owner), "tag": tag, "name": graph.name,
            "parameters": [self.id(node) for node in graph.parameters],
            "results": [self.id(node) for node in graph.results],
        }
        if graph.rt_info:
            found["info"] = show_attribute(graph.rt_info, Any)
        state.scopes[scope] = found
        nodes, records = state.nodes, self._records
        for node in graph.ordered():
            made_of = _fields(node)
            known = records.get(node)
            if known is None or not _same(known[0], made_of):
                record = self.record(node, scope)  # an equal one stays
                known = records[node] = made_of, record if known is None or known[1] != record else known[1]
            nodes[ids[node]] = known[1]
            if node.bodies:
                for name, body in zip(tags(node), node.bodies, strict=True):
                    self._describe(body, self._scope(body, node, name), node, name, state)

    def _scope(self, body: Graph, owner: Node, tag: str) -> str:
        """The id of a body: that of its first owner with a tag. It keeps it when it moves to another owner."""
        found = self._scopes.get(body)
        if found is None:
            name = f"{self.id(owner)}/{tag}"
            count = self._owned[name] = self._owned.get(name, 0) + 1
            found = self._scopes[body] = name if count == 1 else f"{name}{count}"
        return found

    def record(self, node: Any, scope: str) -> Record:
        """One node."""
        op = type(node).__name__
        found: Record = {
            "id": self.id(node), "scope": scope, "op": op, "opset": node.opset_name if node.library else node.opset,
            "name": node.name,
            "inputs": [None if value is None else [self.id(value.node), value.index] for value in node.inputs],
            "outputs": [{"type": show_type(value.type), "names": list(value.names)} for value in node.outputs],
        }
        attributes = shown_attributes(node)
        if isinstance(node, Opaque):  # a layer of an IR that is kept as it is in the file
            opset = _OPSET.fullmatch(node.version)
            found |= {"op": node.kind, "opset": int(opset[1]) if opset else node.version}
            attributes = {key: str(value) for key, value in node.data.items()}
        if attributes:
            found["attributes"] = attributes
        tensor = node.tensor if isinstance(node, Constant) else getattr(node, "blob", None)
        if tensor is not None:
            found |= self._constant(tensor)
        if isinstance(node, Result):
            found["names"] = list(node.output_names)
        if getattr(node, "_rt_info", None):
            found["info"] = show_attribute(node.rt_info, Any)
        if node.origins:
            found["origins"] = [
                ["/".join(map(str, each.scope)), str(each.node), str(each.operator), str(each.output)]
                for each in node.origins
            ]
        if isinstance(node, Control):
            found["bodies"] = [self._scope(body, node, tag) for tag, body in zip(tags(node), node.bodies, strict=True)]
            found["port_map"] = renamed(ports_of(node), self.id)
        return found

    def _constant(self, tensor: Tensor) -> Record:
        found = described_constant(tensor, self._contents)
        if tensor.size <= SHOWN and len(found["value"]) <= LIMIT:  # all of it
            return found
        content = show_data(tensor, SHOWN)
        return found if content == found["value"] else found | {"content": content}


Fields = tuple[Any, ...]


def _fields(node: Any) -> Fields:
    """All that a record is made of, but for the ids: if it is the same, the record is. A graph never changes its nodes,
    so the scope is the same, too."""
    types = [(value.type, value.names) for value in node.outputs]
    ports = [None if value is None else value.index for value in node.inputs]
    info = repr(getattr(node, "_rt_info", None))
    return node.inputs, ports, node.name, node.origins, info, types, tuple(node.__dict__.values())


def _same(old: Fields, new: Fields) -> bool:
    """Whether both have the same fields. Fields that cannot be compared count as different."""
    try:
        return old == new
    except ValueError:  # arrays
        return False


def shown_attributes(node: Any) -> dict[str, str]:
    """The attributes of a node as text, but for those that are described as bodies and port maps."""
    is_control = isinstance(node, Control)
    return {
        key: show_attribute(value, node._kinds[key])
        for key, value in node.attribute_values().items()
        if not (is_control and key in _HELD)
    }
