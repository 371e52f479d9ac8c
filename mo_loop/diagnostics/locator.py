"""Where findings stand in the ONNX model.

locator.at("loop/step/add")     # from the path that an error or a warning names
locator.of(node)                # from a node of the finished graph, as far as names tell
"""

from __future__ import annotations

from mo_loop.diagnostics.diagnostic import Place
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import OnnxGraph, Places, label, operator_of
from mo_loop.graph import Node
from mo_loop.ops.base import Parameter

_FAR = 64
"""How many nodes are looked at behind one that is not named after an ONNX node."""


class Locator:
    """Finds places in one model."""

    def __init__(self, model: OnnxModel) -> None:
        self._places = Places(model)

    def at(self, path: str) -> Place:
        """What stands at a scope path: a node, a value or a body."""
        found = self._places.find(path)
        if found is None:
            return Place(path, node=path)
        scope, node = found
        if node is not None:
            return Place(path, scope.path, label(node), operator_of(node))
        if path == scope.path:  # a body, or the function that a node calls
            return Place(path, path, operator="" if scope.owner is None else operator_of(scope.owner))
        name = path.removeprefix(f"{scope.path}/")
        made = self._places.made(scope.path, [name])
        return Place(path, scope.path, name, "" if made is None else operator_of(made[1]))

    def of(self, node: Node) -> Place:
        """The ONNX node that a node was made for. One of several has no name of its own: what it leads to has it."""
        owner = node.graph.owner
        scope = "" if owner is None else f"{self.of(owner).path}/{node.graph.name}"
        found = self._made_for(node, scope)
        if found is not None:
            return Place(found[0].path_of(found[1]), scope, label(found[1]), operator_of(found[1]))
        name = node.name or kind_of(node)
        return Place(
            f"{scope}/{name}" if scope else name, scope, name, "" if isinstance(node, Parameter) else kind_of(node)
        )

    def _made_for(self, node: Node, scope: str) -> tuple[OnnxGraph, object] | None:
        found = self._places.made(scope, [node.name, *(name for value in node.outputs for name in value.names)])
        if found is not None or node.name or isinstance(node, Parameter):
            return found
        queue, seen = [node], {node}
        for each in queue:
            for use in (use for value in each.outputs for use in value.uses):
                if use.node in seen or len(queue) > _FAR:
                    continue
                seen.add(use.node)
                queue.append(use.node)
                names = [use.node.name, *(name for value in use.node.outputs for name in value.names)]
                found = self._places.made(scope, names)
                if found is not None:
                    return found
        return None


def kind_of(node: Node) -> str:
    """The type of an operation as the IR spells it."""
    return str(getattr(node, "type", type(node).__name__))
