"""What the runtime can compute before the first inference."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control
from mo_loop.ops.random import RandomUniform


def is_computable(value: Value, known: dict[Value, bool]) -> bool:
    """Whether a value depends only on constants and static shapes. `known` caches the answers."""
    pending = [value]
    while pending:
        current = pending[-1]
        node = current.node
        if current in known:
            pending.pop()
        elif isinstance(node, Constant) or _is_static_shape(node):
            known[current] = True
        elif isinstance(node, Parameter | Control | RandomUniform) or _is_hidden(node):
            known[current] = False
        else:
            open_ = [each for each in node.operands if each not in known]
            if open_:
                pending += open_
            else:
                known[current] = all(known[each] for each in node.operands)
    return known[value]


def _is_hidden(node: Node) -> bool:
    return isinstance(node, ops.Barrier) and node.hides != "memory" and (node.hides == "value" or bool(node.axes))


def _is_static_shape(node: Node) -> bool:
    return isinstance(node, ops.ShapeOf) and is_static(node.operands[0].shape)
