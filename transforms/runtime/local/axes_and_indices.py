"""Gathers, and other operations along an axis or of indices, that the runtime computes wrongly."""

import operator
from collections.abc import Sequence
from functools import reduce

import numpy as np

from mo_loop.graph.dimension import Dimension, may_be_one, open_symbols
from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.exact import is_not_negative
from mo_loop.ops.movement import END
from mo_loop.target import CRASH, GPU, NEVER, Processor
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.replace import drop_dead
from mo_loop.transforms.runtime.inference import is_computable, is_inferred
from mo_loop.transforms.runtime.local.rule import is_tiny_product, rule
from mo_loop.transforms.vocabulary import Constant, F, Gap, Node, Value, ops, source_of


@rule(
    wrap_type((ops.Gather, ops.Concat)), "an axis below 0, which is not recognised",
    Gap(
        "channel-order",
        "a `Gather`, or a `Concat` of a `Split`, that permutes channels is moved into the weights of the following "
        "Convolutions as the inverse permutation; so is a `Gather` that reads a channel twice, once by an index below "
        "0",
    ),
    Gap("channel-order-of-slopes", "channels in reverse order are moved past a `PReLU`, whose slopes keep their order"),
    Gap(
        "channel-order-of-pad",
        "channels in reverse order are moved past a `Pad` that adds or removes channels; the model may not compile",
    ),
    Gap(
        "gather-of-inserted-axis",
        "a `Gather` along the axis that an `Unsqueeze` inserts is removed with it, and the dimensions of its indices "
        "are lost",
    ),
    Gap(
        "reduced-concat",
        "`ReduceMax` and `ReduceMin` of two joined tensors become the elementwise maximum and minimum of the tensors",
        until="2026.0.0",
    ),
)
def CountAxesFromEnd(node: ops.Gather | ops.Concat) -> Node | None:
    """Gather(x, [2, 0, 1], 1)  ->  Gather(x, [2, 0, 1], 1 - rank), and Concat of a Split in this order likewise
    Gather(Unsqueeze(x, 1), [0, 0], 1)  ->  Gather(Unsqueeze(x, 1), [0, 0], 1 - rank), and from -1 to rank - 1
    ReduceMax(Concat(x, y) along 0)  ->  ReduceMax(Concat(x, y) along -rank), and ReduceMin

    An order of channels that is its own inverse, as that of reversed ones, is correct without a PReLU or a Pad after
    it, and faster. A Gather along the axis that an Unsqueeze inserts is correct for a scalar index.
    """
    if isinstance(node, ops.Concat):
        rank, axis = node.output.rank, node.axis
        if axis < 0 or rank is None or not (_is_reduced(node) or _is_inverted(node, axis, _split_places(node))):
            return None
        node.axis -= rank
        return node
    x, indices, axis = node.operands
    at = axis.type.integers
    if x.rank is None or at is None or node.batch_dims:
        return None
    place = normalise_axis(at[0], x.rank)
    from_end = place - x.rank
    if _is_repeated(x, at[0], indices):
        counted = from_end if at[0] >= 0 else place
    elif at[0] >= 0 and _is_permuted(node, place, x.type.dims[place], indices):
        counted = from_end
    else:
        return None
    node.graph.set_input(node, 2, F.Constant(np.int64(counted), graph=node.graph))
    drop_dead([axis.node])
    return node


def _is_repeated(x: Value, axis: int, indices: Value) -> bool:
    """Whether the runtime removes a Gather with the Unsqueeze before it, and loses the dimensions of the indices.

    It compares the two axes as they are written: 0 and -4 of 4 dimensions are not equal to it.
    """
    inserted = x.node.operands[1].type.integers if isinstance(x.node, ops.Unsqueeze) else None
    return inserted is not None and axis in inserted and indices.rank != 0


def _is_permuted(node: ops.Gather, axis: int, size: Dimension, indices: Value) -> bool:
    """Whether the indices are an order of channels that the runtime would apply wrongly."""
    order = indices.type.integers
    if order is None or indices.rank == 0 or (isinstance(size, int) and size != len(order)):
        return False
    places = [each % len(order) for each in order]
    if indices.rank != 1 and len(set(places)) == len(order):
        return True  # its dimensions would be lost, also if the order is that of x
    repeated_unseen = len(set(places)) < len(set(order)) == len(order)  # as in [1, -1, -3] of three channels
    return repeated_unseen or _is_inverted(node, axis, places)


def _is_reduced(node: Node) -> bool:
    return any(isinstance(use.node, ops.ReduceMax | ops.ReduceMin) for use in node.output.uses)


def _split_places(node: Node) -> list[int]:
    """The numbers of the outputs of one Split that are the inputs of a Concat; empty if the inputs are others."""
    values = node.operands
    sources = {each.node for each in values}
    return [each.index for each in values] if len(sources) == 1 and isinstance(values[0].node, ops.Split) else []


def _is_inverted(node: Node, axis: int, order: Sequence[int]) -> bool:
    """Whether `order` is a permutation along `axis` that the runtime would apply wrongly to the readers of `node`."""
    if sorted(order) != list(range(len(order))) or list(order) == sorted(order):
        return False
    if any(order[each] != place for place, each in enumerate(order)):
        return True
    return any(isinstance(each, ops.PReLU) or _pads(each, axis) for each in node.graph.descendants([node]))


def _pads(node: Node, axis: int) -> bool:
    """Whether `node` may add places along `axis`, or remove some: a Pad, also one that PadTinyProduct makes."""
    if not isinstance(node, ops.Pad):
        return isinstance(node, ops.MatMul) and is_tiny_product(node)
    widths = [each.type.integers for each in node.operands[1:3]]
    return any(each is None or len(each) <= axis or each[axis] for each in widths)


@rule(wrap_type((ops.GatherElements, ops.GatherND)), "the index plus the size", Gap(
    "elements-counted-from-end", "`GatherElements` and `GatherND` read outside the tensor for an index below 0",
    until="2025.2.0",
))
def CountIndicesFromStart(node: ops.GatherElements | ops.GatherND) -> Node | None:
    """GatherElements(x, i)  ->  GatherElements(x, i < 0 ? i + n : i), where n is the size of x along the axis
    GatherND(x, i)        ->  GatherND(x, i < 0 ? i + n : i), where n are the sizes of x along the indexed axes

    Indices that a Broadcast repeats are counted before it: the runtime would move the Broadcast past the operations
    (see PreserveEmptyBroadcasts).
    """
    x, indices = node.operands
    axes = _indexed_axes(node)
    repeated = indices.node if isinstance(indices.node, ops.Broadcast) else None
    given = indices if repeated is None else repeated.operands[0]
    if isinstance(axes, list) and (given.rank != indices.rank or given.type.dims[-1] != len(axes)):
        repeated, given = None, indices
    if axes is None or _is_from_start(given):
        return None
    counted = _from_start(given, x, axes)
    if repeated is not None:
        counted = F.Broadcast(counted, *repeated.inputs[1:], **repeated.attribute_values())
    node.graph.set_input(node, 1, counted)
    return node


def _indexed_axes(node: ops.GatherElements | ops.GatherND) -> int | list[int] | None:
    """The axes of the data that the last dimension of the indices indexes, or the one axis; None if not known."""
    x, indices = node.operands
    if isinstance(node, ops.GatherElements):
        return None if x.rank is None else normalise_axis(node.axis, x.rank)
    depth = indices.type.dims[-1] if indices.rank else None
    return list(range(node.batch_dims, node.batch_dims + depth)) if isinstance(depth, int) else None


def _from_start(indices: Value, x: Value, axes: int | list[int]) -> Value:
    """Indices of x along the axes, counted from the start: constants if the sizes are known."""
    sizes = [x.type.dims[each] for each in np.atleast_1d(axes)]
    given = indices.node.array if isinstance(indices.node, Constant) else None
    if given is not None and all(isinstance(each, int) for each in sizes):
        counted = np.where(given < 0, given + np.array(sizes, given.dtype), given)
        if (counted >= 0).all():  # others are outside x: an error while the model runs
            return F.Constant(counted, graph=indices.node.graph)
    size = F.Gather(x.sizes, axes, 0).astype(indices.dtype)
    if given is None or given.size != 1:
        return F.Select(indices < 0, indices + size, indices)
    # A scalar: the rules of constants with one element and more dimensions do not see the nodes that this rule makes.
    number = F.Constant(given.reshape(()), graph=indices.node.graph)
    counted = F.Select(number < 0, size + number, number)
    return F.Unsqueeze(counted, list(range(given.ndim - counted.type.rank)))


def _is_from_start(indices: Value) -> bool:
    counted = source_of(indices, ops.Movement | ops.Barrier | ops.Convert).node
    return is_not_negative(indices) or (isinstance(counted, ops.Select) and _is_below_zero(counted))


def _is_below_zero(node: ops.Select) -> bool:
    """Whether its condition is that its last input is below 0. Later rules place Barriers between the operations."""
    condition, _, indices = (source_of(each, ops.Barrier) for each in node.operands)
    if not isinstance(condition.node, ops.Less):
        return False
    compared, zero = condition.node.operands
    return zero.type.integers == (0,) and _is_equal(source_of(compared, ops.Barrier), indices)


def _is_equal(a: Value, b: Value) -> bool:
    """Whether two values are one, or copies of a constant for different readers."""
    if not isinstance(a.node, Constant) or not isinstance(b.node, Constant):
        return a is b
    return a.dtype is b.dtype and np.array_equal(a.node.array, b.node.array)


@rule(wrap_type(ops.GatherElements), "a start below all elements", Gap(
    "slice-before-elements",
    "a `Slice` from 0 on before `GatherElements` is removed, also along other axes, and with indices below 0",
))
def SliceFromBelowZero(node: ops.GatherElements) -> Node | None:
    """GatherElements(Slice(x, 0, e, 1), i)  ->  GatherElements(Slice(x, -2^31 + 1, e, 1), i)

    A Slice along the axis of the indices alone may go, if none of them is below 0.
    """
    x, indices = node.operands
    if not isinstance(x.node, ops.Slice):
        return None
    _, starts, _, steps, *axes = x.node.operands
    at = starts.type.integers
    if at is None or any(at) or set(steps.type.integers or ()) != {1}:
        return None
    sliced = axes[0].type.integers if axes else tuple(range(len(at)))
    is_along_indices = sliced is not None and x.rank is not None and {
        normalise_axis(each, x.rank) for each in sliced
    } == {normalise_axis(node.axis, x.rank)}
    if is_along_indices and _is_from_start(indices):
        return None
    node.graph.set_input(x.node, 1, F.Constant(np.full(len(at), -END, starts.dtype.numpy), graph=node.graph))
    drop_dead([starts.node])
    return node


@rule(wrap_type(ops.Gather), "`Gather` without `batch_dims`", Gap(
    "batched-gathers",
    "`Gather` with `batch_dims` and known dimensions of 1 before the axis crashes, or gives wrong values",
    severity=CRASH, on={Processor.SSE41: NEVER},
))
def DropBatchesOfOne(node: ops.Gather) -> Node | None:
    """Gather(x : [1,5,3], i : [1,4], 1, batch_dims 1)  ->  Gather(x, Squeeze(i, 0), 1)
    Gather(x : [N,5,3], i : [N,4], 1, batch_dims 1)  ->  Gather(Reshape(x, [-1, 3]), i + [[0], [5], ...], 0)
    """
    x, indices, axis = node.operands
    if not node.batch_dims or indices.rank is None:
        return None
    batch = node.batches(indices.rank)
    ones = (1,) * batch
    if ones in [each.type.dims[:batch] for each in (x, indices) if each.rank is not None]:
        return ops.Gather(x, F.Squeeze(indices, list(range(batch))), axis)
    at = None if x.rank is None or axis.type.integers is None else normalise_axis(axis.type.integers[0], x.rank)
    before = () if at is None else x.type.dims[:at]
    if at is None or not open_symbols(before) or not all(dim == 1 or may_be_one(dim) for dim in before):
        return None
    return _of_all_rows(x, indices, at, batch)


def _of_all_rows(x: Value, indices: Value, at: int, batch: int) -> Node:
    """The Gather along an axis of tensors that have one row for each place before this axis."""
    rank, more = x.type.rank, indices.type.rank - batch
    length = x.size(at)
    before = [x.size(axis) for axis in range(at)]
    count = reduce(operator.mul, before)
    numbers = F.Range(0, count * length, length, output_type=indices.dtype)
    size: Value | int = length
    if isinstance(length, Value):  # of as many dimensions: see RaiseRankOfFused
        size = F.Unsqueeze(F.Convert(length, destination_type=indices.dtype), list(range(indices.type.rank)))
    starts = numbers.reshape([*before, *[1] * more])
    places = indices if is_not_negative(indices) else F.Select(indices < 0, indices + size, indices)
    rows = F.Unsqueeze(places, list(range(batch, at))) if at > batch else places
    return ops.Gather(x.reshape([-1, *(x.size(axis) for axis in range(at + 1, rank))]), rows + starts, 0)


@rule(wrap_type(ops.Gather), "a `Gather` with indices of one more dimension, and a `Squeeze`", Gap(
    "rows-in-order",
    "a `Gather` with `batch_dims` is removed if the indices of all rows together are 0, 1, 2, ... to the end of the "
    "axis",
))
def GatherWithOneMoreDimension(node: ops.Gather) -> Node | None:
    """Gather(x : [2,2], [[0], [1]], 1, batch_dims 1)  ->  Squeeze(Gather(x, [[[0]], [[1]]], 1, batch_dims 1), 2)

    The runtime compares the numbers of all rows with 0, 1, 2, ... up to the size of the axis. It does so only if the
    ranks of the input and the output are equal.
    """
    x, indices, axis = node.operands
    at = axis.type.integers
    if not node.batch_dims or at is None or x.rank is None or node.output.rank != x.rank:
        return None
    place = normalise_axis(at[0], x.rank)
    if not _may_be_in_order(indices, x.type.dims[place]):
        return None
    rank = len(indices.type.dims)
    return ops.Squeeze(F.Gather(x, F.Unsqueeze(indices, [rank]), axis, batch_dims=node.batches(rank)), [place + 1])


def _may_be_in_order(indices: Value, size: Dimension) -> bool:
    """Whether the indices of several rows may be the numbers up to `size` when the runtime knows them and the size."""
    numbers = indices.constant
    if numbers is None:
        return is_computable(indices, {}, of_sizes=True)
    return (size == numbers.size or not isinstance(size, int)) and np.array_equal(
        numbers.ravel(), np.arange(numbers.size)
    )


@rule(wrap_type(ops.Gather), "indices of one more dimension", Gap(
    "gpu-element-of-each-batch",
    "a `Gather` of one element of each batch has the rank of its input if that has one element there", device=GPU,
))
def GatherRowsOfBatches(node: ops.Gather) -> Node | None:
    """Gather(x : [N,K,C], i : [N], 1) {batch_dims: 1}  ->  Squeeze(Gather(x, Unsqueeze(i, 1), 1) {batch_dims: 1}, 1)

    The plugin takes a Gather of all elements along an axis for its input.
    """
    x, indices, axes = node.operands
    axis = axes.type.integers
    is_one_each = bool(indices.rank) and node.batches(indices.rank) == indices.rank
    if not is_one_each or axis is None or x.rank is None or is_inferred(indices):
        return None
    found = F.Gather(x, F.Unsqueeze(indices, [indices.rank]), axes, batch_dims=indices.rank)
    return ops.Squeeze(found, [axis[0] % x.rank])
