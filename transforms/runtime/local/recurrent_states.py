"""States of recurrent operations that the runtime does not compile."""

from __future__ import annotations

from collections.abc import Sequence

from mo_loop.ops.control import Control
from mo_loop.ops.recurrent import Recurrent
from mo_loop.support.traversal import reached
from mo_loop.target import ERROR
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.runtime.inference import has_constant_sizes, is_computable
from mo_loop.transforms.runtime.local.rule import rule
from mo_loop.transforms.vocabulary import Constant, Gap, Node, Op, Parameter, Value, ops, order_of

READS = (ops.Gather, ops.GatherElements, ops.GatherND)
"""Operations with indices of which the known sizes of the output do not depend on their numbers."""


@rule(wrap_type(Recurrent), "a `Reshape` of the input to the size of the batch", Gap(
    "batch-of-constant-state",
    "a recurrent operation with a constant state does not compile if the runtime does not infer the batch size of its "
    "input: after a `Pad`, `Slice` or `Tile` of computed sizes, for example", severity=ERROR,
))  # fmt: skip
def ReshapeToBatchOfState(node: Recurrent) -> Node | None:
    """LSTMSequence(Transpose(Pad(x, n, m), [0, 2, 1]), h : [2,1,4], ...)  ->  the same of Reshape(Pad(...), [2, 0, 0])

    for a constant h. The Reshape is before the Transpose: the runtime merges a Transpose into the operation.
    """
    states = node.operands[1 : 3 if isinstance(node, ops.LSTMCell | ops.LSTMSequence) else 2]
    known: dict[Value, bool] = {}
    size = next((each.type.dims[0] for each in states if each.rank and is_computable(each, known)), None)
    reader: Node = node
    axis = 0
    while isinstance(reader.operands[0].node, ops.Transpose) and (order := order_of(reader.operands[0].node)):
        reader, axis = reader.operands[0].node, order[axis]
    x = reader.operands[0]
    if not isinstance(size, int) or x.rank is None or has_inferred_size(x, axis):
        return None
    shape = [size if each == axis else 0 for each in range(x.rank)]
    node.graph.set_input(reader, 0, ops.Reshape(x, shape, special_zero=True).output)
    return node


def has_inferred_size(value: Value, axis: int) -> bool:
    """Whether the runtime surely infers the known size along an axis: it does not come from a computed number."""
    pattern = value.node.operands[1].type.integers if isinstance(value.node, ops.Reshape) else None
    if pattern is not None and pattern[axis] == value.type.dims[axis]:
        return True
    return not any(_may_hide(each.node) for each in reached([value], _sources_of_sizes))


def _sources_of_sizes(value: Value) -> Sequence[Value]:
    node = value.node
    if has_constant_sizes(node):
        return ()
    return node.operands[:1] if isinstance(node, Recurrent) else node.operands


def _may_hide(node: Node) -> bool:
    if isinstance(node, Parameter):
        return node.graph.owner is not None
    if isinstance(node, Control | ops.Barrier) or not isinstance(node, Op):
        return True
    computed = (node.inputs[port] for port in node.index_ports if port < len(node.inputs))
    return not isinstance(node, READS) and any(each and not isinstance(each.node, Constant) for each in computed)
