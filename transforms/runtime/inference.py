"""What the runtime infers of sizes, and of numbers that are computed from sizes: intervals, some of them wrong."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.shape import Dimension, high, is_static, low
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Control, Final, If, Loop

UNKNOWN_TO_INFERENCE = (Control, ops.Barrier, ops.CumSum, ops.RandomUniform, ops.ReverseSequence)
"""Operations at which the runtime's inference of bounds stops."""


# -- sizes


def has_hidden_sizes(value: Value) -> bool:
    return isinstance(value.node, ops.Barrier) and value.node.hides == "bounds"


def is_bound_tighter(value: Value) -> bool:
    """Whether the runtime may know bounds of `value` that inference here does not: those of an inner loop's Result.

    Here a state that grows has no bounds; the runtime uses those that the Result has by itself.
    """
    pending, seen = [value], set()
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        node = each.node
        if has_hidden_sizes(each):
            continue
        if isinstance(node, Loop):
            if isinstance(node.output_map[each.index], Final) and not is_static(each.shape):
                return True
        elif isinstance(node, If):
            entry = node.output_map[each.index]
            pending += [entry.then.value, entry.else_.value]
        else:
            pending += list(node.operands)
    return False


def is_bounded(dim: Dimension) -> bool:
    return high(dim) is not None or low(dim) > 0


def covers(wide: Dimension, narrow: Dimension) -> bool:
    if wide == narrow:
        return True
    hi_wide, hi_narrow = high(wide), high(narrow)
    return low(wide) <= low(narrow) and (hi_wide is None or (hi_narrow is not None and hi_narrow <= hi_wide))


# -- numbers


def has_bounds(node: Node, bounded: dict[Value, bool]) -> bool:
    """Whether the runtime infers bounds for the outputs of `node`: it reads only dimensions and constants."""
    if isinstance(node, UNKNOWN_TO_INFERENCE) or not node.inputs:
        return False
    if isinstance(node, ops.ShapeOf):
        return True
    return any(value in bounded for value in node.inputs) and all(
        value in bounded or is_known(value) for value in node.inputs
    )


def may_be_negative(node: Node, bounded: dict[Value, bool]) -> bool:
    """Whether an input of `node`, or the difference that it computes, may be negative."""
    if isinstance(node, ops.ShapeOf):
        return False
    return isinstance(node, ops.Subtract | ops.Negative) or any(
        bounded[value] if value in bounded else _has_negative(value) for value in node.operands
    )


def _has_negative(value: Value) -> bool:
    numbers = value.type.integers if value.constant is None else value.constant
    return bool(np.any(np.less(np.asarray(numbers), 0)))


def is_known(value: Value | None) -> bool:
    return value is None or isinstance(value.node, Constant) or value.type.integers is not None
