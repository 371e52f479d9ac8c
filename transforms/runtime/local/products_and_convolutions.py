"""Products and convolutions that the runtime computes wrongly, or does not compile; tensors whose channels it keeps
last, and reads as if they were first.
"""

from typing import Any

import numpy as np

from mo_loop.graph.dimension import low, now
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.ops.movement import FAR
from mo_loop.target import CRASH, ERROR, NEVER, Processor, ReleaseRange, without_avx512
from mo_loop.transforms.pattern import any_input, wrap_type
from mo_loop.transforms.predicates import is_constant, rank_equals
from mo_loop.transforms.runtime.local.rule import is_doubled, is_tiny_product, maximum_rule, rule
from mo_loop.transforms.vocabulary import Constant, F, Gap, Node, Result, Use, Value, is_static, ops, order_of


def _is_outer_product(value: Value) -> bool:
    """Whether the first operand of the MatMul has columns of one element."""
    x = value.node.operands[0]
    return x.rank is not None and x.rank >= 2 and x.type.dims[-1] == 1


@rule(
    wrap_type(
        ops.MatMul, any_input(), any_input(is_constant() & rank_equals(2)), when=_is_outer_product,
        attributes={"transpose_a": False},
    ),
    "`Multiply`",
    Gap(
        "inner-products-of-one",
        "two consecutive matrix products with inner dimensions of 1 do not compile (\"Layout rank can't be larger\")",
        severity=ERROR, since="2025.3.0", on={Processor.SSE41: NEVER},
    ),
)
def MatMulToMultiply(node: ops.MatMul) -> Node:
    """MatMul(x : [..., N, 1], w : [1, M])  ->  x * w, where w is a Constant

    The runtime merges consecutive products of this kind, also with elementwise operations between them.
    """
    x, weights = node.operands
    source: Any = weights.node
    row = weights
    if node.transpose_b:
        row = F.Constant(ArrayTensor(source.array.reshape(1, -1), weights.dtype), graph=node.graph, name=source.name)
    return ops.Multiply(x, row)


def _has_vector(value: Value) -> bool:
    """Whether the MatMul has a vector after a matrix, or a constant one before a stack of matrices."""
    first, second = value.node.operands
    ranks = first.rank or 0, second.rank or 0
    return (ranks[1] == 1 and ranks[0] >= 2) or (ranks[0] == 1 and ranks[1] >= 3 and isinstance(first.node, Constant))


@rule(
    wrap_type(ops.MatMul, when=_has_vector), "the vector as a matrix, and `Squeeze`",
    Gap(
        "factor-behind-product-with-vector",
        "a product of a stack of matrices with a constant vector, and then with a constant factor, does not compile, "
        "or is wrong where the length of the vector is not known before run time", since="2025.2.0",
    ),
    Gap(
        "factors-of-rows-behind-vector",
        "constant factors of the rows after a product of a matrix with a vector multiply the columns",
    ),
)
def VectorToMatrix(node: ops.MatMul) -> Node:
    """MatMul(x : [..., N, K], w : [K])  ->  Squeeze(MatMul(x, w : [K, 1])), and so a constant before a stack

    The runtime multiplies the second operand by a factor that follows the product, as if the product had its rank.
    """
    first, second = node.operands
    if second.rank == 1:
        return ops.Squeeze(F.MatMul(first, _as_matrix(second, 1), transpose_a=node.transpose_a), [-1])
    return ops.Squeeze(F.MatMul(_as_matrix(first, 0), second, transpose_b=node.transpose_b), [-2])


def _as_matrix(vector: Value, axis: int) -> Value:
    """The vector with a dimension of 1 at this axis."""
    source: Any = vector.node
    if not isinstance(source, Constant):
        return F.Unsqueeze(vector, [axis])
    array = ArrayTensor(np.expand_dims(source.array, axis), vector.dtype)
    return F.Constant(array, graph=vector.graph, name=source.name)


@rule(wrap_type(ops.MatMul, when=lambda y: is_tiny_product(y.node)), "three zeros after the inner dimension", Gap(
    "product-of-two-columns",
    "a `MatMul` of at most two rows, an inner dimension of at most two and two columns gives wrong numbers in the "
    "second column, if the columns are not constant or the row is a vector", since="2025.3.0",
    on={Processor.AVX512_CORE: NEVER, Processor.AVX2: NEVER},
))
def PadTinyProduct(node: ops.MatMul) -> Node:
    """MatMul(a : [..., N, K], b : [..., K, 2])  ->  MatMul(Pad(a), Pad(b)), with K + 3 columns and rows

    where N and K are, or may be, at most 2, and b is not a constant matrix or a is a vector
    """
    a, b = node.operands
    padded = (_padded(a, -2 if node.transpose_a and a.rank > 1 else -1), _padded(b, -1 if node.transpose_b else -2))
    return ops.MatMul(*padded, transpose_a=node.transpose_a, transpose_b=node.transpose_b)


def _padded(x: Value, axis: int) -> Value:
    """`x` with three zeros at the end of an axis."""
    ends = np.zeros(len(x.type.dims), np.int64)
    ends[axis] = 3
    return F.Pad(x, np.zeros_like(ends), ends, np.zeros((), x.dtype.numpy))


@rule(wrap_type(ops.Convolution), "a stride of 1, and every so many places of the result", Gap(
    "convolution-of-padding",
    "a `Convolution` whose filter sees nothing but padding at every place along the last dimension crashes: a stride "
    "skips the only elements", severity=CRASH, until="2024.6.0", on=without_avx512(NEVER),
))
def SliceConvolution(node: ops.Convolution) -> Node | None:
    """Convolution(x, w) of stride s along the last dimension  ->  Slice(Convolution(x, w) of stride 1, of step s)

    where the stride is larger than the filter, and the first place lies in the padding: then every place may. If they
    all do, the runtime crashes until 2024.6. It also does for a Pad before the Convolution, because it merges the two.
    """
    x, filters = node.operands
    stride, reach = node.strides[-1], _reaches(node, filters)[-1]
    if node.auto_pad != "explicit" or node.pads_begin[-1] <= reach or stride <= reach + 1:
        return None
    dense = type(node)(
        x, filters, strides=(*node.strides[:-1], 1), dilations=node.dilations, pads_begin=node.pads_begin,
        pads_end=node.pads_end, auto_pad="explicit",
    )
    return ops.Slice(dense, [0], [FAR], [stride], [-1])


def _is_beyond(node: ops.Convolution, filters: Value) -> bool:
    """Whether the filter may lie completely in the padding."""
    if node.auto_pad != "explicit":
        return False
    pads = zip(node.pads_begin, node.pads_end, strict=True)
    return any(max(pair) > reach for pair, reach in zip(pads, _reaches(node, filters), strict=True))


def _reaches(node: ops.Convolution, filters: Value) -> list[int]:
    """The distance from the first to the last element of the filter in each dimension; 0 where it is unknown or the
    filter is empty."""
    kernel = filters.type.dims[-len(node.dilations) :]
    return [
        dilation * max(length - 1, 0) if isinstance(length, int) else 0
        for length, dilation in zip(kernel, node.dilations, strict=True)
    ]


@maximum_rule(
    wrap_type(ops.Convolution, wrap_type((ops.Multiply, ops.Divide)), ...), "`max(y, y)` before the convolution",
    Gap(
        "factors-as-many-as-filters",
        "factors that vary along the places before a `Convolution`, as many of them as its filter has, are multiplied "
        "with the weights",
    ),
)
def MaximumBeforeConvolution(node: ops.Convolution) -> Use | None:
    """Convolution(x * c, w : [8,4,3])  ->  Convolution(max(y, y), w), where y is x * c and c : [1,1,3] a Constant"""
    product, filters = node.operands[:2]
    if filters.rank is None:
        return None
    for factors in product.node.operands:  # the product itself may have an unknown rank
        places = factors.type.dims[2 - filters.rank :] if isinstance(factors.node, Constant) else ()
        sizes = filters.type.dims[filters.rank - len(places) :]
        if set(places) - {1} and all(dim in (1, size) for dim, size in zip(places, sizes, strict=True)):
            return Use(node, 0)
    return None


@maximum_rule(
    wrap_type(ops.Convolution), "`max(c, c)` of the convolution before the sum",
    Gap(
        "sum-with-convolution-of-one-channel",
        "a tensor that is added to a `Convolution` of one input channel and dynamic shape is read at other places",
        since="2026.3.1", on=without_avx512(NEVER),
    ),
    Gap(
        "one-channel-added-to-convolution",
        "a tensor of an unknown number of channels that is added to a `Convolution` of dynamic shape is refused if it "
        "has one", severity=ERROR,
    ),
    Gap(
        "known-size-added-to-convolution",
        "a tensor that is added to a `Convolution` is refused if one of the two is broadcast along a dimension whose "
        "size is known before run time for only one of them", severity=ERROR,
    ),
)
def MaximumBeforeSum(node: ops.Convolution) -> Use | None:
    """Convolution(x : [N, 1, ...], w) + y  ->  max(c, c) + y, where c is the Convolution and y is known at run time

    for dynamic shapes, if x has one channel, or another size of y is known than of the convolution, also with
    activations and constants before the sum. The runtime adds y in the convolution, and reads it at other places, or
    refuses to broadcast it.
    """
    _, filters = node.operands
    use = node.output.only_use
    added = None if use is None or is_static(node.output.shape) else _added(use)
    if use is None or added is None:
        return None
    is_single = type(node) is ops.Convolution and filters.type.dims[1:2] == (1,)
    return use if is_single or _known_apart(node.output, added) else None


def _known_apart(one: Value, other: Value) -> bool:
    """Whether the size of one of two values alone is known in a dimension that both have."""
    return one.rank == other.rank and any(
        isinstance(a, int) != isinstance(b, int) for a, b in zip(one.type.dims, other.type.dims, strict=True)
    )


def _added(use: Use) -> Value | None:
    """The value to which `use` is added, if its reader or the next one with two inputs known at run time adds them."""
    while len(_at_run_time(use.node)) == 1 and len(use.node.outputs) == 1 and use.node.output.only_use is not None:
        use = use.node.output.only_use
    values = _at_run_time(use.node)
    if not isinstance(use.node, ops.Add) or len(values) != 2:
        return None
    return values[1 - use.port]


def _at_run_time(node: Node) -> list[Value]:
    return [each for each in node.operands if not isinstance(each.node, Constant)]


@rule(
    wrap_type(ops.Convolution), "a second output channel, removed afterwards",
    Gap(
        "filter-in-padding",
        "`Convolution` of one input and one output channel returns memory that was never written where the filter lies "
        "completely in the padding", since="2026.3.1", on={Processor.AVX2: ReleaseRange(), Processor.SSE41: NEVER},
    ),
    Gap(
        "padded-volume",
        "a padded `Convolution` of one input and one output channel of dynamic shape in three dimensions reads memory "
        "that was never written", since="2026.3.1", on={Processor.AVX2: ReleaseRange(), Processor.SSE41: NEVER},
    ),
)
def AddOutputChannel(node: ops.Convolution) -> Node | None:
    """Convolution(x : [N, 1, H, W], w : [1, 1, ...])  ->  Slice(Convolution(x, [w, w]), the first channel)

    where the filter lies completely in the padding, or in three padded dimensions of dynamic shape
    """
    x, filters = node.operands
    if not _has_one_channel(node, filters) or not (_is_padded_volume(node, filters) or _is_beyond(node, filters)):
        return None
    made = F.Convolution(
        x, F.Concat(filters, filters, axis=0), strides=node.strides, dilations=node.dilations,
        pads_begin=node.pads_begin, pads_end=node.pads_end, auto_pad=node.auto_pad,
    )
    return ops.Slice(made, [0], [1], [1], [1])


def _has_one_channel(node: ops.Convolution, filters: Value) -> bool:
    """Whether there are no groups, one input and one output channel, and two or more dimensions."""
    return type(node) is ops.Convolution and (filters.rank or 0) >= 4 and filters.type.dims[:2] == (1, 1)


def _is_padded_volume(node: ops.Convolution, filters: Value) -> bool:
    is_padded = node.auto_pad.startswith("same") or any((*node.pads_begin, *node.pads_end))
    return filters.rank == 5 and is_padded and not is_static(node.output.shape)


FUSED = (ops.Unary, ops.Binary, ops.View)
"""Operations that the runtime may compute as a part of the convolution before them."""

PLACING = (ops.Concat, ops.Pad, ops.Slice, ops.MVN)
"""Operations whose layers count elements in the order of their input, where a pool states another one."""


@maximum_rule(wrap_type(ops.Transpose), "`max(x, x)` before the other reader", Gap(
    "convolution-of-shared-view",
    "a `Convolution` reads memory that was never written, if its input is a `Transpose` from channels last to channels "
    "first, of a tensor that is also a part of a `Concat`, a state, or a result of another shape",
))
def MaximumBeforeSharedView(node: ops.Transpose) -> Use | None:
    """Transpose(x, [0,3,1,2]), Unsqueeze(x)  ->  Transpose(x, [0,3,1,2]), Unsqueeze(max(x, x))

    where the Unsqueeze, or another operation that moves nothing, becomes a Result, a part of a Concat or a state, or x
    does one of the last two itself. A convolution keeps channels last, and so reads x in place of the Transpose. If x
    lies in the memory of such a reader, the runtime gives the convolution other memory, in which nothing is written.
    """
    x, order = node.operands[0], order_of(node)
    if order is None or len(order) < 3 or order != (0, len(order) - 1, *range(1, len(order) - 1)):
        return None
    if isinstance(x.node, Constant | ops.Parameter):
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
))
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
))
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
