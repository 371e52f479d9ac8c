"""Tensors whose channels the runtime keeps last, and reads as if they were first."""

from __future__ import annotations

from mo_loop.graph.dimension import low, now
from mo_loop.graph.shape import normalise_axis
from mo_loop.target import CRASH, NEVER, Processor
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.runtime.local.rule import is_doubled, maximum_rule
from mo_loop.transforms.vocabulary import Constant, Gap, Parameter, Result, Use, Value, ops, order_of

FUSED = (ops.Unary, ops.Binary, ops.View)
"""Operations that the runtime may compute as a part of the convolution before them."""

PLACING = (ops.Concat, ops.Pad, ops.Slice, ops.MVN)
"""Operations whose layers count elements in the order of their input, where a pool states another one."""


@maximum_rule(wrap_type(ops.Transpose), "`max(x, x)` before the other reader", Gap(
    "convolution-of-shared-view",
    "a `Convolution` reads memory that was never written, if its input is a `Transpose` from channels last to channels "
    "first, of a tensor that is also a part of a `Concat`, a state, or a result of another shape",
))  # fmt: skip
def MaximumBeforeSharedView(node: ops.Transpose) -> Use | None:
    """Transpose(x, [0,3,1,2]), Unsqueeze(x)  ->  Transpose(x, [0,3,1,2]), Unsqueeze(max(x, x))

    where the Unsqueeze, or another operation that moves nothing, becomes a Result, a part of a Concat or a state, or x
    does one of the last two itself. A convolution keeps channels last, and so reads x in place of the Transpose. If x
    lies in the memory of such a reader, the runtime gives the convolution other memory, in which nothing is written.
    """
    x, order = node.operands[0], order_of(node)
    if order is None or len(order) < 3 or order != (0, len(order) - 1, *range(1, len(order) - 1)):
        return None
    if isinstance(x.node, Constant | Parameter):
        return None
    return next((use for use in x.uses if use.node is not node and _lies_in_another(use)), None)


def _lies_in_another(use: Use) -> bool:
    """Whether the runtime may place a value in the memory of what reads it: a Concat, a state, or Results of views."""
    node = use.node
    if isinstance(node, ops.Concat) and node.output.rank is not None:
        before = node.output.type.dims[: normalise_axis(node.axis, node.output.rank)]
        return all(low(dim) <= 1 for dim in before)
    if use.port or not (isinstance(node, ops.View) or (isinstance(node, ops.Transpose) and _moves_ones(node))):
        return isinstance(node, ops.Assign)
    return any(isinstance(each.node, Result) or _lies_in_another(each) for each in node.output.uses)


def _moves_ones(node: ops.Transpose) -> bool:
    """Whether dimensions that are, or may be, 1 are all that a Transpose moves."""
    order, dims = order_of(node), node.operands[0].type.dims
    kept = [axis for axis in order or () if low(dims[axis]) > 1]
    return order is not None and kept == sorted(kept)


@maximum_rule(wrap_type(ops.MVN), "`max(x, x)` before the `MVN`", Gap(
    "normalised-channel",
    "the process ends, or numbers are wrong, if a convolution with one channel has a width of 1 that is known only at "
    "run time, and an `MVN` reads it", severity=CRASH, on={Processor.SSE41: NEVER},
))  # fmt: skip
def MaximumBehindOneChannel(node: ops.MVN) -> Use | None:
    """MVN(y)  ->  MVN(max(y, y)), where y is the only channel of a convolution, of unknown width

    Elementwise operations may be between, and those that insert and remove dimensions of 1.
    The runtime keeps the channels of y last, and normalises it as if they were first, if its width is 1.
    """
    value = node.operands[0]
    while isinstance(value.node, FUSED) and not is_doubled(value.node):
        first, *others = value.node.operands
        value = others[0] if others and isinstance(first.node, Constant) else first
    if not isinstance(value.node, ops.Filtered) or value.rank is None:
        return None
    _, channels, *_, width = value.type.dims
    return Use(node, 0) if now(channels) == 1 and not isinstance(width, int) and low(width) <= 1 else None


@maximum_rule(wrap_type(ops.Pooling), "`max(y, y)` after the pool", Gap(
    "pool-of-one-channel",
    "`Concat`, `Pad`, `Slice` and `MVN` read and write other elements after an `AvgPool` or `MaxPool` with one channel "
    "and a width of 1 that are not both known before run time, also memory that is not theirs", severity=CRASH,
))  # fmt: skip
def MaximumBehindPool(node: ops.Pooling) -> Value | None:
    """Concat(y, x)  ->  Concat(max(y, y), x), where y is an AvgPool or MaxPool with one channel of width 1

    if not both are known. A quantised tensor may keep its only channel last even if it is known.
    """
    y = node.outputs[0]
    _, channels, *_, width = y.type.dims if y.rank else (0, 0, 0)
    if isinstance(channels, int) and (isinstance(width, int) or not node.graph.of(ops.FakeQuantize)):
        return None
    return y if low(channels) <= 1 and low(width) <= 1 and _is_placed(y) else None


def _is_placed(value: Value) -> bool:
    """Whether a layer that moves parts of a tensor reads `value`, also after a FakeQuantize, which a pool computes."""
    return any(
        isinstance(node, PLACING) or (isinstance(node, ops.FakeQuantize) and _is_placed(node.output))
        for node, _ in value.uses
    )
