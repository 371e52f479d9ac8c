"""The names that ONNX nodes read, with those that their bodies capture.

names = NamesRead()
names.of_node(node)        # the inputs of a node and the outer names that its bodies read
names.captured_by(body)    # the outer names that a body (a GraphProto) reads
"""

from __future__ import annotations

from typing import Any

from mo_loop.frontend.onnx_graphs import body_protos


class NamesRead:
    """Remembers what each body captures: bodies are translated more than once."""

    def __init__(self) -> None:
        # By identity, with the message itself: protobuf gives the number of a wrapper that is gone to another one.
        self._captured: dict[int, tuple[Any, frozenset[str]]] = {}

    def of_node(self, node: Any) -> set[str]:
        """The names that a node and its bodies read of the graph it stands in."""
        found = set(node.input)
        found.discard("")
        for body in body_protos(node) if node.attribute else ():
            found |= self.captured_by(body)
        return found

    def captured_by(self, body: Any) -> frozenset[str]:
        """The names that a body reads and does not define."""
        if id(body) not in self._captured:
            used = {entry.name for entry in body.output}.union(*map(self.of_node, body.node))
            self._captured[id(body)] = body, frozenset(used - names_defined_in(body))
        return self._captured[id(body)][1]


def names_defined_in(graph: Any) -> set[str]:
    """The names that a graph gives to its inputs, its initializers and what its nodes make."""
    found = {entry.name for entry in (*graph.input, *graph.initializer)}
    found.update(each.values.name for each in graph.sparse_initializer)
    found.update(name for node in graph.node for name in node.output)
    return found


def all_names_in(graph: Any) -> set[str]:
    """All names that a graph or a body below it defines or reads."""
    found = names_defined_in(graph) | {entry.name for entry in graph.output}
    for node in graph.node:
        found.update(node.input)
        for body in body_protos(node):
            found |= all_names_in(body)
    return found
