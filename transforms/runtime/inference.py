"""The inference of the runtime: sizes, numbers computed from sizes, and values that it can compute before an inference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.dimension import Dimension, high, low
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control, If, Loop
from mo_loop.ops.filling import RandomUniform
from mo_loop.ops.port_map import Final
from mo_loop.support.reached import reached

UNKNOWN_TO_INFERENCE = (Control, ops.Barrier, ops.CumSum, ops.RandomUniform, ops.ReverseSequence)
"""Operations at which the runtime's inference of bounds stops."""


# -- sizes


def has_hidden_sizes(value: Value) -> bool:
    return isinstance(value.node, ops.Barrier) and value.node.hides == "bounds"


def is_bound_tighter(value: Value) -> bool:
    """Whether the runtime may know bounds of `value` that inference here does not: those of an inner loop's Result.

    Here a state that grows has no bounds; the runtime uses those that the Result has by itself.
    """
    open_ = ((each, each.node) for each in reached([value], _sources_of_bounds) if not is_static(each.shape))
    return any(isinstance(node, Loop) and isinstance(node.output_map[each.index], Final) for each, node in open_)


def _sources_of_bounds(value: Value) -> Sequence[Value]:
    """The values from which the runtime infers bounds of a value."""
    node = value.node
    if has_hidden_sizes(value) or isinstance(node, Loop):
        return ()
    if isinstance(node, If):
        entry = node.output_map[value.index]
        return entry.then.value, entry.else_.value
    return node.operands


def is_bounded(dim: Dimension) -> bool:
    return high(dim) is not None or low(dim) > 0


def may_be_empty(dim: Dimension) -> bool:
    """Whether a size that is not known may be 0."""
    return not isinstance(dim, int) and low(dim) == 0


def has_constant_sizes(reader: Node) -> bool:
    """Whether a reader is a Reshape whose pattern holds all sizes of its output that are known."""
    pattern = reader.inputs[1] if isinstance(reader, ops.Reshape) else None
    if pattern is None or not isinstance(pattern.node, Constant):
        return False
    sizes = zip(reader.outputs[0].type.dims, pattern.type.integers or (), strict=False)
    return all(size == dim or not isinstance(dim, int) for dim, size in sizes)


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


def is_inferred(value: Value) -> bool:
    """Whether the runtime may infer numbers of `value`, or their bounds: it depends on constants and sizes alone."""
    known = Constant | ops.ShapeOf
    sources = reached([value], lambda each: () if isinstance(each.node, known) else each.node.operands)
    unknown = (Parameter, *UNKNOWN_TO_INFERENCE)
    return all(isinstance(x.node, known) or (x.node.inputs and not isinstance(x.node, unknown)) for x in sources)


def is_computable(value: Value, known: dict[Value, bool], *, of_sizes: bool = False) -> bool:
    """Whether a value depends only on constants and static shapes, or shapes that a reshape may make static.

    `known` caches the answers.
    """

    def is_size(node: Node) -> bool:
        return isinstance(node, ops.ShapeOf) and (of_sizes or is_static(node.operands[0].shape))

    pending = [value]
    while pending:
        current = pending[-1]
        node = current.node
        if current in known:
            pending.pop()
        elif isinstance(node, Constant) or is_size(node):
            known[current] = True
        elif isinstance(node, Parameter | RandomUniform) or _is_hidden(node):
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
