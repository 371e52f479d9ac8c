"""Scales of quantised tensors that the runtime moves wrongly."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Node, Use, Value
from mo_loop.ops.base import Constant
from transforms.pattern import wrap_type
from transforms.runtime.local.rule import LocalRule, inputs_of

MOVING = (ops.Reshape, ops.Transpose, ops.Squeeze, ops.Unsqueeze, ops.Gather, ops.Slice, ops.Clamp, ops.ReLU)
SUMS = (ops.Add, ops.Subtract)
NEGLIGIBLE = 0.01
"""An epsilon of less than this part of a squared step changes less than the quantisation, whose variance is 1 / 12."""


class MaximumBeforeNormalisation(LocalRule):
    """MVN(a * scale + b)  ->  MVN(max(a * scale + b, itself)), where a * scale is a quantised tensor

    In a graph with a FakeQuantize the runtime moves the scale of a quantised tensor behind a sum, and behind MVN, whose
    result it does not change if epsilon is 0. It keeps epsilon, which it would have to divide by the squared scale.
    The scale does not pass the maximum. It stands behind the first sum, so that all normalisations of a residual
    stream have one.
    """

    pattern = wrap_type(ops.MVN)

    def form(self, node: ops.MVN) -> Node | None:
        if not node.normalize_variance or not node.graph.of(ops.FakeQuantize):
            return None
        found = _scaled(Use(node, 0), node.eps)
        for use in found:
            value = use.node.inputs[use.port]
            assert value is not None
            node.graph.set_input(use.node, use.port, self._maximum(value))
        return node if found else None

    def _maximum(self, value: Value) -> Value:
        for use in value.uses:
            if isinstance(use.node, ops.Maximum) and use.node.inputs == (value, value):
                return use.node.output
        return self.register_new_node(ops.Maximum(value, value)).output


def _scaled(start: Use, epsilon: float) -> list[Use]:
    """Where a scale of which epsilon is not a negligible part could be moved through: behind the first sum on each way
    to the quantised tensor, else at `start`."""
    found: dict[Use, None] = {}
    pending, seen = [(start, start, False)], set[tuple[Value, Use]]()
    while pending:
        use, place, is_sum = pending.pop()
        value = use.node.inputs[use.port]
        if value is None or (value, place) in seen:
            continue
        seen.add((value, place))
        node = value.node
        if isinstance(node, SUMS):
            pending += [(Use(node, port), use, True) for port in (0, 1)]
        elif isinstance(node, MOVING):
            pending.append((Use(node, 0), place, is_sum))
        else:
            scale = _scale(node, is_sum)
            if scale is not None and epsilon > NEGLIGIBLE * scale**2:
                found[place] = None
    return list(found)


def _scale(node: Node, is_sum: bool) -> float | None:
    """The one scale of a quantised tensor; None if it has a zero point and no sum follows, which keeps the scale."""
    if isinstance(node, ops.FakeQuantize):
        low, high = (_number(each) for each in node.inputs[3:])
        if low is None or high is None:
            return None
        step = (high - low) / (node.levels - 1)
        zero = 0 if step == 0 else round(-low / step)
        return step if is_sum or zero in (0, node.levels // 2) else None
    if isinstance(node, ops.Dequantize):
        return _number(node.inputs[1]) if is_sum or len(node.inputs) < 3 else None
    if not isinstance(node, ops.Multiply):
        return None
    source, scale = inputs_of(node)
    has_zero = isinstance(source.node, ops.Subtract)
    converted = inputs_of(source.node)[0] if has_zero else source
    if not isinstance(converted.node, ops.Convert):
        return None
    kind = inputs_of(converted.node)[0].dtype
    is_quantised = kind.is_integer and kind.bits <= 8
    return _number(scale) if is_quantised and (is_sum or not has_zero) else None


def _number(value: Value | None) -> float | None:
    node = None if value is None else value.node
    return float(node.array.reshape(())) if isinstance(node, Constant) and node.tensor.size == 1 else None
