"""What holds of the values behind Barriers, which the runtime does not know."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.shape import Dimension
from mo_loop.ops.control import Loop


def behind(value: Value) -> Value:
    """The value that a Barrier hides, or several in a row; any other value itself."""
    while isinstance(value.node, ops.Barrier):
        source = value.node.operands[0]
        value = source
    return value


def iterations(node: Loop) -> Dimension:
    """The number of iterations, as far as it is known."""
    trip, go = node.operands[:2]
    return node.count_for(behind(trip).type, behind(go).type)
