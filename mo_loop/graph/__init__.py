"""The graph: nodes, values and uses in the form of networkx, with types, shapes, constant data and origins."""

from mo_loop.graph.graph import Graph
from mo_loop.graph.node import Node, Use, Value

__all__ = ["Graph", "Node", "Use", "Value"]
