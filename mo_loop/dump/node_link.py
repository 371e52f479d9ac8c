"""A graph as data for other tools: the node-link form of networkx, as a dictionary that JSON can hold.

    data = node_link_data(graph)
    networkx.node_link_graph(data, edges="edges")

A control-flow node holds its bodies in the same form.
"""

from __future__ import annotations

from typing import Any

import networkx as nx

from mo_loop.graph import Graph, Node
from mo_loop.ops.base import Constant, Result
from mo_loop.ops.control import Control
from mo_loop.text.attributes import show_attribute
from mo_loop.text.literals import show_data
from mo_loop.text.spelling import show_type


def node_link_data(graph: Graph) -> dict[str, Any]:
    """Nodes with ids, types and attributes; edges with ports."""
    numbers: dict[Node, int] = {node: number for number, node in enumerate(graph.ordered())}
    plain = nx.MultiDiGraph(name=graph.name)
    for node, number in numbers.items():
        plain.add_node(number, **_described(node))
    for node, number in numbers.items():
        for port, value in enumerate(node.inputs):
            if value is not None:
                plain.add_edge(numbers[value.node], number, key=port, output=value.index, type=show_type(value.type))
    plain.graph["parameters"] = [numbers[node] for node in graph.parameters]
    plain.graph["results"] = [numbers[node] for node in graph.results]
    if graph.rt_info:
        plain.graph["rt_info"] = show_attribute(graph.rt_info, Any)
    data: dict[str, Any] = nx.node_link_data(plain, edges="edges")
    return data


def _described(node: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "op": type(node).__name__,
        "opset": node.opset,
        "name": node.name,
        "outputs": [{"type": show_type(value.type), "names": list(value.names)} for value in node.outputs],
    }
    maps: set[str] = set()
    if isinstance(node, Control):
        maps = {"body", "then_body", "else_body", "input_map", "output_map", "iteration", "condition"}
        found["bodies"] = [node_link_data(body) for body in node.bodies]
        found["port_map"] = _port_map(node)
    attributes = {k: show_attribute(v, node._kinds[k]) for k, v in node.attribute_values().items() if k not in maps}
    if attributes:
        found["attributes"] = attributes
    if isinstance(node, Constant):
        found["value"] = show_data(node.tensor, 16)
    if isinstance(node, Result):
        found["names"] = list(node.output_names)
    if getattr(node, "_rt_info", None):
        found["rt_info"] = show_attribute(node.rt_info, Any)
    return found


def _port_map(node: Any) -> dict[str, Any]:
    """Entries as dictionaries; nodes of a body are the numbers that they have in it."""
    numbers = {inner: number for body in node.bodies for number, inner in enumerate(body.ordered())}

    def plain(entry: Any) -> dict[str, Any]:
        values = {key: numbers[value] if isinstance(value, Node) else value for key, value in vars(entry).items()}
        return {"role": type(entry).__name__, **values}

    found: dict[str, Any] = {
        "inputs": [plain(entry) for entry in node.input_map],
        "outputs": [plain(entry) for entry in node.output_map],
    }
    for key in ("iteration", "condition"):
        if getattr(node, key, None) is not None:
            found[key] = numbers[getattr(node, key)]
    return found
