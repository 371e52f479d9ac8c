"""The names that ONNX nodes read, with those that their bodies capture.

names = NamesRead()
names.of_node(node)        # the inputs of a node and the outer names that its bodies read
names.captured_by(body)    # the outer names that a body (a GraphProto) reads
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mo_loop.frontend.onnx_graphs import body_protos


class NamesRead:
    """The names that nodes and bodies read. Those of a body are cached: it may be translated more than once."""

    def __init__(self) -> None:
        # By id, together with the message: Python gives the id of a released wrapper to another object.
        self._captured: dict[int, tuple[Any, frozenset[str]]] = {}

    def of_node(self, node: Any) -> set[str]:
        """The names in its graph that a node and its bodies read."""
        found = set(node.input)
        found.discard("")
        for body in body_protos(node) if node.attribute else ():
            found |= self.captured_by(body)
        return found

    def listed(self, node: Any) -> Collection[str]:
        """The same names, and maybe an empty one: a tuple for most nodes, with a third of the memory."""
        return self.of_node(node) if node.attribute else tuple(node.input)

    def captured_by(self, body: Any) -> frozenset[str]:
        """The names that a body reads and does not define."""
        if id(body) not in self._captured:
            used = {entry.name for entry in body.output}.union(*map(self.of_node, body.node))
            self._captured[id(body)] = body, frozenset(used - names_defined_in(body))
        return self._captured[id(body)][1]


def names_defined_in(graph: Any) -> set[str]:
    """The names of the inputs, initializers and node outputs of a graph."""
    found = {entry.name for entry in (*graph.input, *graph.initializer)}
    found.update(each.values.name for each in graph.sparse_initializer)
    found.update(name for node in graph.node for name in node.output)
    return found


def all_names_in(graph: Any) -> set[str]:
    """All names that a graph or a body in it defines or reads."""
    found = names_defined_in(graph) | {entry.name for entry in graph.output}
    for node in graph.node:
        found.update(node.input)
        for body in body_protos(node):
            found |= all_names_in(body)
    return found
