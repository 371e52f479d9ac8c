"""The vocabulary of passes: the names that nearly every one of them needs, and known facts about the inputs of a node.

    from mo_loop.transforms.vocabulary import F, FunctionPass, Gap, Graph, Value, ops

`ops` has the classes of operations, for patterns and isinstance; `F` has functions of these names, which make a node
and give its output: `F.ReLU(x).reshape([-1]) + 1` is a value, as in translators.

Patterns and their predicates are in pattern.py and predicates.py, replacement is in replace.py.
"""

from collections.abc import Sequence
from typing import Any

from mo_loop import ops
from mo_loop.graph import Graph, Node, Use, Value
from mo_loop.graph.dimension import Dimension
from mo_loop.graph.shape import is_static
from mo_loop.ops import functional as F
from mo_loop.ops.base import Constant, Identity, Op, Parameter, Result
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass, node_pass

__all__ = (
    "Constant", "F", "FunctionPass", "Gap", "Graph", "Identity", "Node", "Op", "Parameter", "Result", "Use", "Value",
    "integers", "is_static", "node_pass", "ones_among", "ops", "order_of", "source_of",
)


def source_of(value: Value, kinds: Any) -> Value:
    """The value before a chain of operations of some kinds that ends with `value`; `value` itself if there is none."""
    while isinstance(value.node, kinds):
        value = value.node.operands[0]
    return value


def integers(node: Node, port: int) -> tuple[int, ...] | None:
    """The numbers of an input where they are known; None also where there is no such input."""
    value = node.inputs[port] if port < len(node.inputs) else None
    return None if value is None else value.type.integers


def ones_among(longer: Sequence[Dimension], shorter: Sequence[Dimension]) -> list[int]:
    """The axes of `longer` that are 1 and without which it equals `shorter`; empty if there are none."""
    axes = []
    rest = list(shorter)
    for axis, dim in enumerate(longer):
        if rest and rest[0] == dim:
            rest.pop(0)
        elif isinstance(dim, int) and dim == 1:
            axes.append(axis)
        else:
            return []
    return axes if not rest else []


def order_of(node: Node) -> tuple[int, ...] | None:
    """The order in which a Transpose takes the dimensions of its input, where it is known."""
    order, rank = integers(node, 1), node.operands[0].rank
    return tuple(reversed(range(rank))) if order == () and rank is not None else order
