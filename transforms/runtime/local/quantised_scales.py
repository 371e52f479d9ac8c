"""Scales of quantised tensors that the runtime moves wrongly."""

import numpy as np

from mo_loop.support.traversal import reached
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.runtime.local.rule import OF_WEIGHTS, is_one_element, is_weights, maximum_rule, rule
from mo_loop.transforms.vocabulary import Constant, F, Gap, Node, Use, Value, ops, source_of

MOVING = (ops.View, ops.Transpose, ops.Gather, ops.Slice, ops.Clamp, ops.ReLU)
SUMS = (ops.Add, ops.Subtract)
PRODUCTS = (ops.MatMul, ops.Filtered)
NEGLIGIBLE = 0.01
"""An epsilon of less than this part of a squared step changes less than the quantisation, whose variance is 1 / 12."""


@rule(wrap_type(ops.MVN), "`max(x, x)` before the `MVN`", Gap(
    "epsilon-of-quantised", "the scale of a quantised tensor is moved after an `MVN` whose epsilon stays as it is",
))
def MaximumBeforeNormalisation(node: ops.MVN) -> Node | None:
    """MVN(a * scale + b)  ->  MVN(max(a * scale + b, itself)), where a * scale is a quantised tensor

    In a graph with a FakeQuantize the runtime moves the scale of a quantised tensor after a sum, and after MVN, whose
    result it does not change if epsilon is 0. It keeps epsilon, which it would have to divide by the squared scale.
    The scale does not pass the maximum. It follows the first sum, so that all normalisations of a residual
    stream have one.
    """
    if not node.normalize_variance or not node.graph.of(ops.FakeQuantize):
        return None
    found = _scaled(Use(node, 0), node.eps)
    for use in found:
        node.graph.set_input(use.node, use.port, _maximum(use.node.operands[use.port]))
    return node if found else None


def _maximum(value: Value) -> Value:
    """max(value, value), which may be there already."""
    for use in value.uses:
        if isinstance(use.node, ops.Maximum) and use.node.inputs == (value, value):
            return use.node.output
    return F.Maximum(value, value)


@maximum_rule(wrap_type(ops.AvgPool, attributes={"exclude_pad": False}), "`max(x, x)` before the `AvgPool`", Gap(
    "average-of-padding",
    "the zero point of a quantised tensor is moved after an `AvgPool` that counts the zeros of the padding",
))
def MaximumBeforeAverage(node: ops.AvgPool) -> Use | None:
    """AvgPool(x)  ->  AvgPool(max(x, x)), where x is a quantised tensor with a zero point and padding is counted

    In a graph with a FakeQuantize the padding, which is 0, would become the zero point.
    """
    (value,) = node.operands
    is_padded = node.auto_pad.startswith("same") or any((*node.pads_begin, *node.pads_end))
    is_moved = is_padded and node.graph.of(ops.FakeQuantize) and _has_zero_point(value)
    return Use(node, 0) if is_moved else None


@maximum_rule(wrap_type(ops.Clamp), "`max(x, x)` before the `Clamp`", Gap(
    "clamp-between-steps",
    "a `Clamp` of a quantised tensor is computed in its integers, to which the bounds are rounded: 6 becomes 5.96",
    since="2025.4.1",
))
def MaximumBeforeClamp(node: ops.Clamp) -> Use | None:
    """Clamp(x, 0, 6)  ->  Clamp(max(x, x), 0, 6), where x is a quantised tensor, and 6 is between two of its steps"""
    steps = _steps(source_of(node.operands[0], MOVING).node)
    if steps is None:
        return None
    bounds = np.array([each for each in (node.min, node.max) if np.isfinite(each)]).reshape(-1, 1) / steps.reshape(-1)
    return Use(node, 0) if np.any(np.abs(bounds - np.round(bounds)) > NEGLIGIBLE) else None


def _steps(node: Node) -> np.ndarray | None:
    """The steps of a quantised tensor, one or one for each channel; None if it is none, or they are not constant."""
    if isinstance(node, ops.FakeQuantize):
        return None if (found := _low_and_steps(node)) is None else found[1]
    step = _scale(node, is_sum=True)
    return None if step is None else np.array(step)


def _low_and_steps(node: ops.FakeQuantize) -> tuple[np.ndarray, np.ndarray] | None:
    """The least results and the steps; None if they are not constant."""
    ends = [each.node.array.astype(np.float64) for each in node.operands[3:] if isinstance(each.node, Constant)]
    return (ends[0], np.maximum(ends[1] - ends[0], 1e-30) / (node.levels - 1)) if len(ends) == 2 else None


@maximum_rule(wrap_type(ops.Convolution), "`max(x, x)` before the `Convolution`", Gap(
    "stride-of-scaled-convolution",
    "a `Convolution` with a stride, filters of one place and scaled weights in 8-bit floats, of a tensor that a number "
    "multiplies or divides, loses the stride before a `Reshape` or a `Transpose`", since="2026.4.1",
))
def MaximumBeforeStride(node: ops.Convolution) -> Use | None:
    """Convolution(x * n, w)  ->  Convolution(max(x * n, x * n), w), of stride 2 or more, where w has 1 x 1 filters of
    8-bit floats and scales"""
    x, weights = node.operands
    scaled = isinstance(x.node, ops.Multiply | ops.Divide) and any(map(is_one_element, x.node.operands))
    if not scaled or max(node.strides) == 1 or any(size != 1 for size in weights.type.dims[2:]):
        return None
    stored = source_of(weights, OF_WEIGHTS).dtype
    return Use(node, 0) if is_weights(weights) and stored.is_float and stored.bits == 8 else None


def _has_zero_point(value: Value) -> bool:
    """Whether a quantised tensor with a zero point, or a sum, comes here without a product or a maximum between."""
    ends = (Constant, ops.FakeQuantize, ops.Maximum, *PRODUCTS)
    sources = reached([value.node], lambda node: [] if isinstance(node, ends) else [x.node for x in node.operands])
    return any(
        isinstance(node, SUMS) or (isinstance(node, ops.FakeQuantize) and _is_asymmetric(node)) for node in sources
    )


def _is_asymmetric(node: ops.FakeQuantize) -> bool:
    """Whether one of its zero points is neither the least integer nor the middle."""
    found = _low_and_steps(node)
    if found is None:
        return True
    low, steps = found
    return not np.all(np.isin(np.round(-low / steps), (0, node.levels // 2)))


def _scaled(start: Use, epsilon: float) -> list[Use]:
    """The values through which a scale could be moved of which epsilon is not a negligible part: after the first sum
    on each way to the quantised tensor, else at `start`."""
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
    source, scale = node.operands
    has_zero = isinstance(source.node, ops.Subtract)
    converted = source.node.operands[0] if has_zero else source
    if not isinstance(converted.node, ops.Convert):
        return None
    kind = converted.node.operands[0].dtype
    is_quantised = kind.is_integer and kind.bits <= 8
    return _number(scale) if is_quantised and (is_sum or not has_zero) else None


def _number(value: Value | None) -> float | None:
    node = None if value is None else value.node
    return float(node.array.reshape(())) if isinstance(node, Constant) and node.tensor.size == 1 else None
