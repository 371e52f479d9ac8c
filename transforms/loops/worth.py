"""Whether it is worth an input or an output of a loop to compute something for all steps at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.dimension import Dimension
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.recurrent import Recurrent
from mo_loop.transforms.loops.memory_bound import size_of, usual
from mo_loop.transforms.loops.step_costs import LANES

CHEAP = (Constant, Parameter, Result, ops.Movement, ops.Convert, ops.ShapeOf, ops.Concat, ops.Barrier)
"""Operations that only move elements."""

DEAR = (ops.MatMul, ops.Einsum, ops.Filtered, Recurrent)
"""Operations that take longer than an iteration, and less time for all steps together."""

SHARE = 0.25
"""The cost of an operation of elements in an iteration, relative to an input or an output of the loop: the runtime
executes several as one."""

PRODUCT = 2
"""The cost of a small product in an iteration."""

LARGE = 1 << 16
"""The bytes of operands from which on a product costs more than any port."""


AT_ONCE = 1 << 18
"""The computation without use that is always allowed: about as much as that of an iteration."""


def is_too_much(nodes: Iterable[Node], beside: Iterable[Value], times: float) -> bool:
    """Whether it takes much longer to compute `nodes` than to read some tensors, which the model has made."""
    return sum(map(_work, nodes)) > max(AT_ONCE, times * size_of(beside))


def _work(node: Node) -> int:
    """The approximate number of bytes that an element-wise operation writes in the time that `node` takes."""
    depth: Dimension = 1
    if isinstance(node, ops.MatMul):
        depth = node.operands[0].type.dims[-2 if node.transpose_a and node.operands[0].type.rank > 1 else -1]
    return size_of(node.outputs) * max(1, usual(depth) // LANES)


def is_work(nodes: Collection[Node]) -> bool:
    """Whether one of `nodes` computes."""
    return any(not isinstance(node, CHEAP) for node in nodes)


def is_worth(gone: Collection[Node], ports_less: int, ports_more: int) -> bool:
    """Whether a loop is faster without some nodes and ports of its body, and with some other ports."""
    work = [node for node in gone if not isinstance(node, CHEAP)]
    saved = sum(
        PRODUCT if isinstance(node, DEAR) else SHARE if isinstance(node, ops.Elementwise) else 1 for node in work
    )
    return saved + ports_less > ports_more or any(map(_reads_large, work))


def _reads_large(node: Node) -> bool:
    """Whether a product reads so much in each iteration that the cost of ports is negligible."""
    return isinstance(node, DEAR) and size_of(node.operands) > LARGE
