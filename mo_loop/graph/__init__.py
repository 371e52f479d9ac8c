"""Nodes, values and their uses, held by networkx, and what they are made of: types, shapes, constant data, origins."""

from mo_loop.graph.graph import Graph, Node, Use, Value

__all__ = ["Graph", "Node", "Use", "Value"]
