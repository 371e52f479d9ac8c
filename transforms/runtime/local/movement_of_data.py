"""Movement of data that the runtime computes wrongly, or does not compile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.dimension import Dimension, high
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.graph.types import i64, u2, u4
from mo_loop.ops.activation import PReLU
from mo_loop.ops.arithmetic import Binary
from mo_loop.ops.base import Constant
from mo_loop.ops.reduction import Reduction
from mo_loop.ops.slicing import FAR
from mo_loop.target import CRASH, ERROR, Gap
from mo_loop.transforms.operands import behind, order_of
from mo_loop.transforms.pattern import any_input, wrap_type
from mo_loop.transforms.predicates import is_constant, type_matches
from mo_loop.transforms.replace import drop_dead, replace_node
from mo_loop.transforms.runtime.inference import may_be_empty
from mo_loop.transforms.runtime.local.rule import LocalRule


class ReduceBeforeTranspose(LocalRule):
    """Reduce(Transpose(x, order), axes)  ->  Transpose of what is left of Reduce(x, order[axes]), if its order changes

    The runtime does this itself, past a Convert too, and its own Transpose is wrong if at most one dimension is left.
    """

    instead = "the reduction before the `Transpose`, along the axes that move there"
    avoids = (Gap(
        "reduction-of-transpose",
        "a reduction of a `Transpose` to a scalar or vector, without kept dimensions, reads and writes memory "
        "that does not belong to the tensors", until="2025.2.0",
    ),)  # fmt: skip

    pattern = wrap_type(Reduction, attributes={"keep_dims": False})

    def form(self, node: Reduction) -> Node | None:
        data, axes = node.operands
        convert = data.node if isinstance(data.node, ops.Convert) else None
        transpose = (convert.operands[0] if convert else data).node
        order = order_of(transpose) if isinstance(transpose, ops.Transpose) else None
        if order is None or axes.type.integers is None:
            return None
        x = transpose.operands[0]
        if x.rank is None:
            return None
        gone = {normalise_axis(axis, len(order)) for axis in axes.type.integers}
        left = [axis for place, axis in enumerate(order) if place not in gone]
        if convert:
            x = ops.Convert(x, destination_type=convert.destination_type).output
        reduced = type(node)(x, sorted(order[place] for place in gone), keep_dims=False)
        return reduced if left == sorted(left) else ops.Transpose(reduced, [sorted(left).index(axis) for axis in left])


END = 2**31 - 1
"""The largest end of a Slice. FAR is that of ends that are computed, too."""

MOVES = (ops.Reshape, ops.Squeeze, ops.Unsqueeze, ops.Transpose)
"""Operations that may change only the shape."""


class SqueezeReducedDimensions(LocalRule):
    """Reshape(Reduce(x : [2,5,3], [1]), [6,1])  ->  Reshape(Squeeze(Reduce(x, [1], keep_dims), [1]), [6,1])

    The runtime takes a Reshape, or what it makes one, to as many dimensions for the one that restores the reduced ones.
    """

    instead = "a reduction that keeps its dimensions, and `Squeeze`"
    avoids = (Gap(
        "reshaped-reduction",
        "a `Reshape` to as many dimensions, or a `Transpose` that moves only dimensions of 1, behind a reduction that "
        "does not keep its dimensions, is left out",
    ),)  # fmt: skip

    pattern = wrap_type(MOVES)

    def form(self, node: Node) -> Node | None:
        source = node.operands[0]
        while _is_reshape(source.node):
            source = source.node.operands[0]
        reduction = source.node
        if not isinstance(reduction, Reduction) or reduction.keep_dims or not source.rank or not _is_reshape(node):
            return None
        data, axes = reduction.operands
        moved = node.outputs[0]
        if axes.type.integers is None or moved.rank not in (None, source.rank) or moved.shape == source.shape:
            return None
        replace_node(reduction, ops.Squeeze(type(reduction)(data, axes, keep_dims=True), axes))
        return node


def _is_reshape(node: Node) -> bool:
    """Whether the runtime computes `node` as a Reshape: also a Transpose that moves only dimensions of 1."""
    if isinstance(node, ops.Transpose):
        order, dims = order_of(node), node.operands[0].shape
        long = [axis for axis in order or () if dims is not None and dims[axis] != 1]
        return order is not None and dims is not None and long == sorted(long)
    return isinstance(node, MOVES)


class TransposeToSqueezeUnsqueeze(LocalRule):
    """Transpose(x : [1,N,2], [1, 2, 0])  ->  Unsqueeze(Squeeze(x, 0), 2), where N may be 0"""

    instead = "`Squeeze` and `Unsqueeze`"
    avoids = (Gap(
        "transpose-of-ones",
        "a `Transpose` that moves only dimensions of 1 becomes a `Reshape` to the current sizes, in which a size "
        "of 0 is misread",
    ),)  # fmt: skip

    pattern = wrap_type(ops.Transpose)

    def form(self, node: ops.Transpose) -> Node | None:
        x, places = node.operands[0], order_of(node)
        if x.shape is None or places is None:
            return None
        ones = [axis for axis, dim in enumerate(x.shape) if dim == 1]
        others = [axis for axis in places if axis not in ones]
        if not ones or others != sorted(others) or not any(may_be_empty(x.shape[axis]) for axis in others):
            return None
        return ops.Unsqueeze(ops.Squeeze(x, ones), [place for place, axis in enumerate(places) if axis in ones])


class MoveSqueezeBeforeBinary(LocalRule):
    """Squeeze(f(Unsqueeze(x, 0), Unsqueeze(y, 1)), 0)  ->  f(x, Unsqueeze(y, 1)), for an element-wise f and any axes"""

    instead = "no `Unsqueeze` and no `Squeeze`"
    avoids = (Gap(
        "squeezed-binary",
        "a `Squeeze` behind an element-wise operation with an `Unsqueeze` of that dimension removes a dimension of its "
        "other input too, if that is another `Unsqueeze` with fewer dimensions",
    ),)  # fmt: skip

    pattern = wrap_type(ops.Squeeze, wrap_type(Binary), any_input())

    def form(self, node: ops.Squeeze) -> Node | None:
        data, axes = node.operands
        values, rank = data.node.operands, data.rank
        if rank is None or axes.type.integers is None:
            return None
        gone = {normalise_axis(axis, rank) - rank for axis in axes.type.integers}
        moved = {axis for axis in gone if all(axis in _inserted(each) or axis < -each.type.rank for each in values)}
        operands = [_without(each, moved) for each in values]
        if operands == list(values):
            return None
        made = type(data.node)(*operands, **data.node.attribute_values())
        return ops.Squeeze(made, _left(gone, moved, rank)) if gone > moved else made


def _inserted(value: Value) -> set[int]:
    """The axes, counted from the end, that an Unsqueeze inserts; none if it is not the result of one."""
    axes = value.node.operands[1].type.integers if isinstance(value.node, ops.Unsqueeze) else None
    return {normalise_axis(axis, value.rank) - value.type.rank for axis in axes or ()}


def _without(value: Value, gone: set[int]) -> Value:
    """`value` without the axes that are `gone`, which an Unsqueeze inserts as far as it has them."""
    inserted = _inserted(value)
    if not inserted & gone:
        return value
    source = value.node.operands[0]
    return ops.Unsqueeze(source, _left(inserted, gone, value.type.rank)).output if inserted - gone else source


def _left(axes: set[int], gone: set[int], rank: int) -> list[int]:
    """Those of `axes`, counted from the end of `rank` dimensions, that are not `gone`, counted from the new start."""
    return sorted(rank + axis - sum(-rank <= each < axis for each in gone) for axis in axes - gone)


class EndSliceBehindBounds(LocalRule):
    """x[-3 : 2^30]  ->  x[-3 : 2^31 - 1], where inference allows x more than 2^30 elements along the axis"""

    instead = "an end of 2^31 - 1, which the runtime takes for none"
    avoids = (Gap(
        "slice-within-bounds",
        "a `Slice` of the last elements, to an end below the upper bound of the dimension, is empty: a tensor that is "
        "reversed has an upper bound",
    ),)  # fmt: skip

    pattern = wrap_type(ops.Slice)

    def form(self, node: ops.Slice) -> Node | None:
        x, _, end, *_ = node.operands
        ends, axes = end.type.integers, node.operands[4].type.integers if len(node.operands) > 4 else None
        if ends is None or axes is None or x.rank is None or not isinstance(end.node, Constant):
            return None
        tops = [high(x.type.dims[normalise_axis(axis, x.rank)]) for axis in axes]
        far = [abs(stop) == FAR and (top or 0) > FAR for stop, top in zip(ends, tops, strict=True)]
        if not any(far):
            return None
        new = [(END if stop > 0 else -END) if is_far else stop for stop, is_far in zip(ends, far, strict=True)]
        node.graph.set_input(node, 2, Constant(np.array(new), graph=node.graph, dtype=end.dtype).output)
        return node


class MoveWithSixDimensions(LocalRule):
    """Reshape(Transpose(Reshape(x : [N,1,3,2], [1, -1, 3, 1, 2]), order), shape)  ->  the same with [1, 1, -1, 3, 1, 2]

    The runtime reads the second of four or five dimensions as the number of groups.
    """

    instead = "a `Transpose` of six dimensions"
    avoids = (Gap(
        "dynamic-groups",
        "a `Reshape` of four dimensions, of which only the first is dynamic, to four or five whose second is "
        "dynamic, then a `Transpose` and a `Reshape`, is taken for a shuffle of channels, and the model does not "
        "compile", severity=ERROR,
    ),)  # fmt: skip

    pattern = wrap_type(ops.Transpose)

    def form(self, node: ops.Transpose) -> Node | None:
        x, places = node.operands[0], order_of(node)
        groups = x.node
        if not isinstance(groups, ops.Reshape) or places is None:
            return None
        if x.rank not in (4, 5) or isinstance(x.type.dims[1], int) or not _is_reshaped(node):
            return None
        given = groups.operands[0]
        if given.rank != 4 or not all(isinstance(dim, int) for dim in given.type.dims[1:]):
            return None
        ones = list(range(6 - x.rank))
        moved = ops.Transpose(ops.Unsqueeze(x, ones), [*ones, *(place + len(ones) for place in places)])
        return ops.Squeeze(moved, ones)


def _is_reshaped(node: ops.Transpose) -> bool:
    return any(isinstance(use.node, ops.Reshape | ops.Squeeze | ops.Unsqueeze) for use in node.output.uses)


class CountAxesFromEnd(LocalRule):
    """Gather(x, [2, 0, 1], 1)  ->  Gather(x, [2, 0, 1], 1 - rank), and Concat of a Split in this order likewise
    Gather(Unsqueeze(x, 1), [0, 0], 1)  ->  Gather(Unsqueeze(x, 1), [0, 0], 1 - rank)
    ReduceMax(Concat(x, y) along 0)  ->  ReduceMax(Concat(x, y) along -rank), and ReduceMin

    An order of channels that is its own inverse, as that of reversed ones, is correct without a PReLU or a Pad behind,
    and faster. A Gather along the axis that an Unsqueeze inserts is correct for a scalar index.
    """

    instead = "an axis below 0, which is not recognised"
    avoids = (
        Gap(
            "channel-order",
            "a `Gather`, or a `Concat` of a `Split`, that permutes channels is moved into the weights of the "
            "Convolutions behind as the inverse permutation",
        ),
        Gap(
            "channel-order-of-slopes",
            "channels in reverse order are moved past a `PReLU`, whose slopes keep their order",
        ),
        Gap(
            "channel-order-of-pad",
            "channels in reverse order are moved past a `Pad` that adds or removes channels; the model may not compile",
        ),
        Gap(
            "gather-of-inserted-axis",
            "a `Gather` along the axis that an `Unsqueeze` inserts is removed with it, and the dimensions of its "
            "indices are lost",
        ),
        Gap(
            "reduced-concat",
            "`ReduceMax` and `ReduceMin` of two joined tensors become the elementwise maximum and minimum of the "
            "tensors", until="2026.0.0",
        ),
    )  # fmt: skip

    pattern = wrap_type((ops.Gather, ops.Concat))

    def form(self, node: ops.Gather | ops.Concat) -> Node | None:
        return self._gather(node) if isinstance(node, ops.Gather) else self._concat(node)

    def _gather(self, node: ops.Gather) -> Node | None:
        x, indices, axis = node.operands
        at = axis.type.integers
        if x.rank is None or at is None or at[0] < 0 or node.batch_dims:
            return None
        if not _is_repeated(x, at[0], indices) and not _is_permuted(node, at[0], x.type.dims[at[0]], indices):
            return None
        node.graph.set_input(node, 2, Constant(np.int64(at[0] - x.rank), graph=node.graph).output)
        drop_dead([axis.node])
        return node

    def _concat(self, node: ops.Concat) -> Node | None:
        rank, axis = node.output.rank, node.axis
        if axis < 0 or rank is None or not (_is_reduced(node) or _is_inverted(node, axis, _split_places(node))):
            return None
        node.axis -= rank
        return node


def _is_repeated(x: Value, axis: int, indices: Value) -> bool:
    """Whether the runtime removes a Gather with the Unsqueeze before it, and loses the dimensions of the indices."""
    return isinstance(x.node, ops.Unsqueeze) and x.type.dims[axis] == 1 and indices.rank != 0


def _is_permuted(node: ops.Gather, axis: int, size: Dimension, indices: Value) -> bool:
    """Whether the indices are an order of channels that the runtime would apply wrongly."""
    order = indices.type.integers
    if order is None or indices.rank != 1 or (isinstance(size, int) and size != len(order)):
        return False
    return _is_inverted(node, axis, [each % len(order) for each in order])


def _is_reduced(node: Node) -> bool:
    return any(isinstance(use.node, ops.ReduceMax | ops.ReduceMin) for use in node.output.uses)


def _split_places(node: Node) -> list[int]:
    """Which outputs of one Split the inputs of a Concat are; empty if they are others."""
    values = node.operands
    sources = {each.node for each in values}
    return [each.index for each in values] if len(sources) == 1 and isinstance(values[0].node, ops.Split) else []


def _is_inverted(node: Node, axis: int, order: Sequence[int]) -> bool:
    """Whether `order` is a permutation along `axis` that the runtime would apply wrongly to what reads `node`."""
    if sorted(order) != list(range(len(order))) or list(order) == sorted(order):
        return False
    if any(order[each] != place for place, each in enumerate(order)):
        return True
    return any(isinstance(each, PReLU) or _pads(each, axis) for each in node.graph.descendants([node]))


def _pads(node: Node, axis: int) -> bool:
    """Whether `node` may add places along `axis`, or remove some."""
    if not isinstance(node, ops.Pad):
        return False
    widths = [each.type.integers for each in node.operands[1:3]]
    return any(each is None or len(each) <= axis or each[axis] for each in widths)


class CountIndicesFromStart(LocalRule):
    """GatherElements(x, i)  ->  GatherElements(x, i < 0 ? i + n : i), where n is the size of x along the axis
    GatherND(x, i)        ->  GatherND(x, i < 0 ? i + n : i), where n are the sizes of x along the indexed axes

    Indices that a Broadcast repeats are counted before it: the runtime would move the Broadcast past the operations
    (see PreserveEmptyBroadcasts).
    """

    instead = "the index plus the size"
    avoids = (Gap(
        "elements-counted-from-end", "`GatherElements` and `GatherND` read outside the tensor for an index below 0",
        until="2025.2.0",
    ),)  # fmt: skip

    pattern = wrap_type((ops.GatherElements, ops.GatherND))

    def form(self, node: ops.GatherElements | ops.GatherND) -> Node | None:
        x, indices = node.operands
        axes = _indexed_axes(node)
        repeated = indices.node if isinstance(indices.node, ops.Broadcast) else None
        given = indices if repeated is None else repeated.operands[0]
        if isinstance(axes, list) and (given.rank != indices.rank or given.type.dims[-1] != len(axes)):
            repeated, given = None, indices
        if axes is None or _is_from_start(given):
            return None
        size = ops.Gather(ops.ShapeOf(x), axes, 0)
        count = size if given.dtype is i64 else ops.Convert(size, destination_type=given.dtype)
        counted = ops.Select(ops.Less(given, 0), ops.Add(given, count), given).output
        if repeated is not None:
            counted = ops.Broadcast(counted, *repeated.inputs[1:], **repeated.attribute_values()).output
        node.graph.set_input(node, 1, counted)
        return node


def _indexed_axes(node: ops.GatherElements | ops.GatherND) -> int | list[int] | None:
    """The axes of the data that the last dimension of the indices stands for, or the one axis; None if not known."""
    x, indices = node.operands
    if isinstance(node, ops.GatherElements):
        return None if x.rank is None else normalise_axis(node.axis, x.rank)
    depth = indices.type.dims[-1] if indices.rank else None
    return list(range(node.batch_dims, node.batch_dims + depth)) if isinstance(depth, int) else None


def _is_from_start(indices: Value) -> bool:
    indices = behind(indices, (ops.Barrier, ops.GatherElements, ops.Convert, ops.Slice, ops.Transpose))
    node = indices.node
    if isinstance(node, Constant):
        return bool((node.array >= 0).all())
    if isinstance(node, ops.TopK):
        return indices is node.outputs[1]
    if isinstance(node, ops.NonZero):
        return True
    return isinstance(node, ops.Select) and _is_below_zero(node)


def _is_below_zero(node: ops.Select) -> bool:
    """Whether its condition is that its last input is below 0. Later rules place Barriers between the operations."""
    condition, _, indices = (behind(each, ops.Barrier) for each in node.operands)
    if not isinstance(condition.node, ops.Less):
        return False
    compared, zero = condition.node.operands
    return behind(compared, ops.Barrier) is indices and zero.type.integers == (0,)


class DropBatchesOfOne(LocalRule):
    """Gather(x : [1,5,3], i : [1,4], 1, batch_dims 1)  ->  Gather(x, Squeeze(i, 0), 1)"""

    instead = "`Gather` without `batch_dims`"
    avoids = (Gap(
        "batched-gathers",
        "`Gather` with `batch_dims` and known dimensions of 1 before the axis crashes, or gives wrong values",
        severity=CRASH,
    ),)  # fmt: skip

    pattern = wrap_type(ops.Gather)

    def form(self, node: ops.Gather) -> Node | None:
        x, indices, axis = node.operands
        if not node.batch_dims or indices.rank is None:
            return None
        batch = normalise_axis(node.batch_dims, indices.rank) if node.batch_dims < 0 else node.batch_dims
        ones = (1,) * batch
        if ones not in [each.type.dims[:batch] for each in (x, indices) if each.rank is not None]:
            return None
        return ops.Gather(x, ops.Squeeze(indices, list(range(batch))), axis)


class WidenTwoBitConstants(LocalRule):
    """Convert(Constant : u2)  ->  Convert(Constant : u4), and so for the constants of a Dequantize"""

    instead = "a constant of four bits"
    avoids = (Gap(
        "two-bit-constants", "the elements of a constant of two bits are read in reverse order within each byte",
        until="2025.2.0",
    ),)  # fmt: skip

    pattern = wrap_type((ops.Convert, ops.Dequantize), any_input(is_constant() & type_matches(u2)), ...)

    def form(self, node: ops.Convert | ops.Dequantize) -> Node:
        for port, each in enumerate(node.inputs):
            if each is not None and each.dtype is u2 and isinstance(each.node, Constant):
                wide = ArrayTensor(each.node.array.astype(u4.numpy), u4)
                node.graph.set_input(node, port, Constant(wide, graph=node.graph).output)
                drop_dead([each.node])
        return node
