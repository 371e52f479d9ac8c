"""A graph as networkx reads it, made from the uses of the values when an algorithm asks for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from mo_loop.graph.node import Node, Value

Edges = dict[Node, dict[int, dict[str, Value]]]
"""The edges of one node, as networkx has them: neighbour -> input port -> {"value": the Value}."""


def networkx_view(nodes: dict[Node, dict[str, Any]]) -> Any:
    """A networkx.MultiDiGraph over the nodes of a graph, each with the data that networkx keeps for it."""
    from networkx import MultiDiGraph

    view = MultiDiGraph()
    view._node = nodes
    view._succ, view._pred = _Neighbours(nodes, _successors), _Neighbours(nodes, _predecessors)
    return view


class _Neighbours(Mapping[Node, Edges]):
    """The successors or the predecessors of every node, made when networkx asks for them."""

    def __init__(self, nodes: Collection[Node], edges: Callable[[Node], Edges]) -> None:
        self._nodes, self._edges = nodes, edges

    def __getitem__(self, node: Node) -> Edges:
        if node not in self._nodes:
            raise KeyError(node)
        return self._edges(node)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def _successors(node: Node) -> Edges:
    found: Edges = {}
    for output in node.outputs:
        for consumer, port in output.uses:
            found.setdefault(consumer, {})[port] = {"value": output}
    return found


def _predecessors(node: Node) -> Edges:
    found: Edges = {}
    for port, value in enumerate(node.inputs):
        if value is not None:
            found.setdefault(value.node, {})[port] = {"value": value}
    return found
