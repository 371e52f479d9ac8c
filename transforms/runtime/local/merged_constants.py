"""Constants that the runtime merges where their product or sum is not a number of the type."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mo_loop.graph.types import f16
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.runtime.local.rule import maximum_rule
from mo_loop.transforms.vocabulary import Constant, Gap, Node, Use, Value, ops

FACTORS = (ops.Multiply, ops.Divide)
ADDENDS = (ops.Add, ops.Subtract)


def _is_behind_constants(value: Value) -> bool:
    """Whether the operand that is not constant comes from another operation with a constant."""
    found = None
    for each in value.node.inputs:
        if each is not None and not isinstance(each.node, Constant):
            if found is not None:
                return False
            found = each.node
    return isinstance(found, (*FACTORS, *ADDENDS, ops.Negative))


@maximum_rule(wrap_type((*FACTORS, *ADDENDS), when=_is_behind_constants), "`max(y, y)` between the two operations", Gap(
    "constants-merged-to-infinity",
    "the constants of `(x + c) * s` and `(x * s) * t` are multiplied with each other, also where the product is "
    "infinite or 0",
))  # fmt: skip
def MaximumBetweenConstants(node: Node) -> Use | None:
    """(x + c) * s  ->  max(x + c, x + c) * s, where c * s is beyond the largest number of the type

    The runtime computes x * s + c * s, x * (s * t) for (x * s) * t, and x + (c + d) for (x + c) + d. A product of
    constants may be infinite, or 0, where the result is an ordinary number: a zero point of 128 times the scale of a
    quantised attention mask, for example. No constant passes the maximum.
    """
    operand = _operand(node)
    return Use(node, operand[1]) if operand is not None and _leave_the_type(node) else None


class _Reach(NamedTuple):
    """The effect of the constants of a node and of those before it: the largest and the smallest factor, and the sum of
    the addends, each multiplied by the factors after it."""

    most: float
    least: float
    total: float


_NOTHING = _Reach(1.0, 1.0, 0.0)


def _leave_the_type(node: Node) -> bool:
    """Whether the constants of `node` and of the operations before it have a product or a sum that is infinite, or a
    product that is 0."""
    numbers = np.finfo(np.float16 if node.outputs[0].dtype is f16 else np.float32)
    sizes, before = _sizes(node), _before(node)
    if sizes is None or before is None:
        return False
    reach = _behind(node, sizes, _reach(before))
    return max(reach.most, reach.total) > float(numbers.max) or reach.least < float(numbers.tiny)


def _reach(node: Node) -> _Reach:
    """The reach of the chain that `node` ends. It is kept until the graph changes, for the next node of the chain."""
    known: dict[Node, _Reach] = node.graph.note("reach of constants", dict)
    chain: list[tuple[Node, tuple[float, float]]] = []
    current: Node | None = node
    while current is not None and current not in known and (sizes := _sizes(current)) is not None:
        chain.append((current, sizes))
        current = _before(current)
    reach = _NOTHING if current is None else known.get(current, _NOTHING)
    for each, sizes in reversed(chain):
        own = _behind(each, sizes, _NOTHING)
        both = _behind(each, sizes, reach)
        reach = known[each] = _Reach(max(own.most, both.most), min(own.least, both.least), both.total)
    return reach


def _behind(node: Node, sizes: tuple[float, float], reach: _Reach) -> _Reach:
    least, most = sizes if isinstance(node, FACTORS) else (1.0, 1.0)
    addend = sizes[1] if isinstance(node, ADDENDS) else 0.0
    return _Reach(most * reach.most, least * reach.least, addend + most * reach.total)


def _before(node: Node) -> Node | None:
    """The operation with a constant whose result only `node` reads."""
    operand = _operand(node)
    if operand is None or operand[0].only_use is None or _operand(operand[0].node) is None:
        return None
    return operand[0].node


def _operand(node: Node) -> tuple[Value, int] | None:
    """The one operand that is not constant, and its port."""
    if isinstance(node, ops.Negative):
        return node.operands[0], 0
    if not isinstance(node, FACTORS + ADDENDS) or not node.outputs[0].dtype.is_float:
        return None
    found = [(value, port) for port, value in enumerate(node.operands) if not isinstance(value.node, Constant)]
    return found[0] if len(found) == 1 else None


def _sizes(node: Node) -> tuple[float, float] | None:
    """The smallest and the largest number that the constant multiplies or adds, without signs; 1 for no constant, and
    None where one is not finite."""
    constants = [each.node for each in node.operands if isinstance(each.node, Constant)]
    if not constants:
        return 1.0, 1.0
    array = constants[0].array
    if array.size == 1:  # most of them
        least = most = abs(float(array.item()))
        if least == 0 and isinstance(node, FACTORS):
            return None
    else:
        sizes = np.abs(array.astype(np.float64)).ravel()
        sizes = sizes[sizes != 0] if isinstance(node, FACTORS) else sizes
        if not sizes.size:
            return None
        least, most = float(sizes.min()), float(sizes.max())
    if not math.isfinite(most):
        return None
    is_divisor = isinstance(node, ops.Divide) and constants[0].output is node.inputs[1]
    return (1 / most, 1 / least) if is_divisor else (least, most)
