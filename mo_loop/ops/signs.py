"""Which integers are at least 0, as far as the operations before them show it."""

from collections.abc import Sequence

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import least
from mo_loop.ops.element_kinds import WIDE_INTEGERS

_MOST = 64
"""Values before the one in question that are looked at; if there are more, nothing is proven."""

_OF_FIRST = (
    ops.Movement, ops.Barrier, ops.CumSum, ops.Mod, ops.ReduceMax, ops.ReduceMin, ops.ReduceProd, ops.ReduceSum,
)  # fmt: skip
"""Operations whose results are not negative if the numbers of their first input are not."""

_OF_ALL = (ops.Add, ops.Concat, ops.Divide, ops.Minimum, ops.Multiply)
"""Operations whose results are not negative if no number of any input is."""


def is_not_negative(value: Value) -> bool:
    """Whether all elements of a tensor of integers are known to be at least 0, where nothing overflows."""
    seen: set[Value] = set()
    asked = [value]
    while asked:
        value = asked.pop()
        if value in seen or _is_from_zero(value):
            continue
        seen.add(value)
        needed = _needed(value)
        if not needed or len(seen) > _MOST:
            return False
        asked.extend(needed)
    return True


def _is_from_zero(value: Value) -> bool:
    """Whether the operation alone shows it, or the elements that inference knows."""
    node, known = value.node, value.type.known
    if known is not None:
        return all(least(each) >= 0 for each in known.flat)
    if isinstance(node, ops.Constant):
        return bool((node.array >= 0).all())
    if isinstance(node, ops.TopK):
        return value is node.outputs[1]
    return isinstance(node, ops.NonZero | ops.ShapeOf | ops.Abs)


def _needed(value: Value) -> Sequence[Value]:
    """The values that must not be negative for this one to be at least 0; none if the operation does not show them."""
    node = value.node
    if isinstance(node, _OF_FIRST):
        return node.operands[:1]
    if isinstance(node, _OF_ALL):
        return node.operands
    if isinstance(node, ops.Maximum):
        return [each for each in node.operands if _is_from_zero(each)] or node.operands
    if isinstance(node, ops.Select | ops.FloorMod):
        return node.operands[1:]
    if isinstance(node, ops.Range):
        return node.operands[::2]
    if isinstance(node, ops.Convert) and node.operands[0].dtype in WIDE_INTEGERS.types >= {value.dtype}:
        return node.operands
    return ()
