"""Nodes and scopes of a Graph as plain data, with ids that stay the same while passes change the graph.

    describer = Describer()
    state = describer.state(graph)
    state.nodes[0]         # {"id": 0, "scope": "", "op": "Parameter", "opset": 1, "name": "x", "inputs": [], ...}
    state.scopes["3/body"]        # {"id": "3/body", "owner": 3, "tag": "body", "parameters": [4], "results": [7], ...}

docs/dump.md describes both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mo_loop.graph import Graph, Node
from mo_loop.graph.origin import Origin
from mo_loop.ops.base import Constant, Result
from mo_loop.ops.control import Control, If
from mo_loop.text.attributes import show_attribute
from mo_loop.text.literals import show_data
from mo_loop.text.spelling import show_type

VALUES = 16
"""The number of elements of a constant that are shown."""

HELD = frozenset({"body", "then_body", "else_body", "input_map", "output_map", "iteration", "condition"})
"""Attributes of control-flow nodes that are described as bodies and port maps."""

Record = dict[str, Any]


@dataclass
class State:
    """A graph as plain data: records by id, producers before consumers in each scope, and scopes by id."""

    nodes: dict[int, Record] = field(default_factory=dict)
    scopes: dict[str, Record] = field(default_factory=dict)


class Describer:
    """Describes nodes. A node keeps its id for as long as the Describer exists."""

    def __init__(self) -> None:
        self._ids: dict[Node, int] = {}

    def id(self, node: Node) -> int:
        """The id of a node."""
        return self._ids.setdefault(node, len(self._ids))

    def state(self, graph: Graph) -> State:
        """The graph with its bodies."""
        state = State()
        self._scope(graph, "", None, "", state)
        return state

    def _scope(self, graph: Graph, scope: str, owner: Node | None, tag: str, state: State) -> None:
        found: Record = {
            "id": scope, "owner": None if owner is None else self.id(owner), "tag": tag, "name": graph.name,
            "parameters": [self.id(node) for node in graph.parameters],
            "results": [self.id(node) for node in graph.results],
        }  # fmt: skip
        if graph.rt_info:
            found["info"] = show_attribute(graph.rt_info, Any)
        state.scopes[scope] = found
        for node in graph.ordered():
            number = self.id(node)
            state.nodes[number] = self.record(node, scope)
            for name, body in zip(_tags(node), node.bodies, strict=True):
                self._scope(body, f"{number}/{name}", node, name, state)

    def record(self, node: Any, scope: str) -> Record:
        """One node."""
        is_control = isinstance(node, Control)
        found: Record = {
            "id": self.id(node), "scope": scope, "op": type(node).__name__, "opset": node.opset, "name": node.name,
            "inputs": [None if value is None else [self.id(value.node), value.index] for value in node.inputs],
            "outputs": [{"type": show_type(value.type), "names": list(value.names)} for value in node.outputs],
        }  # fmt: skip
        attributes = {
            key: show_attribute(value, node._kinds[key])
            for key, value in node.attribute_values().items()
            if not (is_control and key in HELD)
        }
        if attributes:
            found["attributes"] = attributes
        if isinstance(node, Constant):
            found["value"] = show_data(node.tensor, VALUES)
            found["bytes"] = node.tensor.nbytes
        if isinstance(node, Result):
            found["names"] = list(node.output_names)
        if getattr(node, "_rt_info", None):
            found["info"] = show_attribute(node.rt_info, Any)
        if node.origins:
            found["origins"] = [_origin(each) for each in node.origins]
        if is_control:
            found["bodies"] = [f"{self.id(node)}/{name}" for name in _tags(node)]
            found["port_map"] = self._port_map(node)
        return found

    def _port_map(self, node: Any) -> Record:
        def entry(port: int, each: Any) -> Record:
            values = {key: self.id(value) if isinstance(value, Node) else value for key, value in vars(each).items()}
            return {"role": type(each).__name__, "port": port, **values}

        found: Record = {
            "inputs": [entry(port, each) for port, each in enumerate(node.input_map, node.first_data_port)],
            "outputs": [entry(port, each) for port, each in enumerate(node.output_map)],
        }
        for key in ("iteration", "condition"):
            if getattr(node, key, None) is not None:
                found[key] = self.id(getattr(node, key))
        return found


def _tags(node: Any) -> tuple[str, ...]:
    if not node.bodies:
        return ()
    return ("then_body", "else_body") if isinstance(node, If) else ("body",)


def _origin(origin: Origin) -> list[str]:
    return ["/".join(map(str, origin.scope)), str(origin.node), str(origin.operator), str(origin.output)]
