"""Operators that move elements without changing them: Reshape, Squeeze, Transpose, Concat, Split, Slice and others."""

import numpy as np

from mo_loop.frontend.ops.shared import constant_like, integers, near, ones, ranked, require_choice, zeros
from mo_loop.frontend.rank_variants import SQUEEZED, decided
from mo_loop.frontend.vocabulary import Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.dimension import may_be_one
from mo_loop.graph.shape import assume_fixed, assume_ones, element_count, normalise_axis
from mo_loop.ops.infer import vector_length
from mo_loop.ops.lengths import FAR, as_i64, joined
from mo_loop.ops.ranges import Outputs, Positive
from mo_loop.target import CRASH, Gap

AVOIDS = (
    Gap(
        "slice-of-computed-axes",
        "`Slice` of a tensor of known shape with constant bounds and axes known only at run time crashes",
        "steps that cannot be folded", CRASH, rule="translator of Slice",
    ),
)
"""The errors of the runtime that these translators avoid."""


@translates("Reshape", since=1)
def reshape_1(data, *, shape: tuple[int, ...] = ()):
    """The shape is an attribute; 0 copies a dimension."""
    return ops.Reshape(data, list(shape), special_zero=True)


@translates("Reshape", since=5, without="allowzero")
@translates("Reshape", since=14)
def reshape(data, shape, *, allowzero: int = 0):
    """With `allowzero` 0 is a dimension of no elements."""
    pattern = integers(shape)
    return ops.Reshape(data, shape if pattern is None else list(pattern), special_zero=not allowzero)


@translates("Flatten", since=1)
def flatten(x, *, axis: int = 1):
    """A matrix: the dimensions before `axis` are its rows, those from `axis` on its columns."""
    if x.rank is None and axis in (0, 1):
        return ops.Reshape(x, [1, -1] if axis == 0 else [0, -1], special_zero=axis == 1)
    rank = ranked(x)
    at = axis + rank if axis < 0 else axis
    if not 0 <= at <= rank:
        raise ModelError(f"axis {axis} is outside a tensor of rank {rank}", code="ML227")
    before, after = x.type.dims[:at], x.type.dims[at:]
    if at == 1 and rank == 2:
        return x.reshape([None, None])
    rows, columns = element_count(before), element_count(after)
    # -1 has no meaning together with a dimension of 0, so it is used only if no dimension is 0.
    if isinstance(rows, int) and rows > 0 and not isinstance(columns, int):
        columns = -1
    elif isinstance(columns, int) and columns > 0 and not isinstance(rows, int):
        rows = -1
    sides = [
        size if isinstance(size, int)
        else ops.ReduceProd(x.sizes[first:end], [0], keep_dims=True)
        for size, first, end in ((rows, 0, at), (columns, at, x.rank))
    ]
    return x.reshape(sides)


@translates("Squeeze", since=1)
def squeeze_1(data, *, axes: tuple[int, ...] | None = None, node: Context):
    """The axes are an attribute."""
    return _squeeze(data, axes, node)


@translates("Squeeze", since=13)
def squeeze_13(data, axes=None, *, node: Context):
    """The axes are an input."""
    if axes is None or integers(axes) is not None:
        return _squeeze(data, integers(axes), node)
    assume_fixed(data.shape or ())
    rank, count = _ranks(data, axes)
    return ops.Reshape(data, ops.Gather(data.sizes, _others(axes, rank, count), 0))


def _squeeze(data: Value, axes: tuple[int, ...] | None, node: Context):
    if axes:
        return ops.Squeeze(data, list(axes))
    if data.shape is None:
        raise UnsupportedError(
            "it has no axes, and the rank of the input is unknown", code="ML314",
            hint="give the model inputs static shapes, or the operator its axes",
        )
    assume_ones(data.shape)
    ones = [axis for axis, dim in enumerate(data.shape) if dim == 1]
    kept = [axis for axis in range(len(data.shape)) if axis not in ones]
    doubtful = [axis for axis in kept if may_be_one(data.shape[axis])]
    if not doubtful or node.forced_rank() == len(kept):
        return ops.Squeeze(data, ones) if ones else data
    forced, rank, least = node.forced_rank(), node.forced_rank(declared=True), len(kept) - len(doubtful)
    narrower = decided(data, SQUEEZED, rank) if rank is not None and rank < len(kept) else None
    if rank is not None and narrower is not None:
        if forced is None:
            node.doubt_rank(least, len(kept), rank)
        return narrower
    result = ops.Squeeze(data, ones) if ones else ops.Identity(data)
    node.scope.set_least_rank(result, least if doubtful == kept[:1] else SQUEEZED)
    return result


@translates("Unsqueeze", since=1)
def unsqueeze_1(data, *, axes: tuple[int, ...]):
    """The axes are an attribute."""
    return ops.Unsqueeze(data, list(axes)) if axes else data


@translates("Unsqueeze", since=13)
def unsqueeze_13(data, axes):
    """The axes are an input."""
    known = integers(axes)
    if known is not None:
        return ops.Unsqueeze(data, list(known)) if known else data
    rank, count = _ranks(data, axes)
    kept = _others(axes, rank + count, count)
    return ops.Reshape(data, ops.ScatterUpdate(ones([rank + count], np.int64), kept, data.sizes, 0))


def _ranks(data: Value, axes: Value) -> tuple[int, int]:
    """The rank of the data and the number of axes that are themselves known only at run time."""
    count = axes.type.dims[0] if axes.rank == 1 else None
    if not isinstance(count, int):
        message = "the axes and their number are known only at run time"
        raise UnsupportedError(message, code="ML314", hint="make the axes a constant")
    return ranked(data), count


def _others(axes: Value, rank: int, count: int) -> Value:
    """The positions of `rank` that are not among `count` axes, in order."""
    places = axes % constant_like(axes, rank)
    mask = ops.ScatterUpdate(ones([rank], np.int32), places, zeros([count], np.int32), 0)
    return ops.NonZero(mask).reshape([rank - count])


@translates("Transpose", since=1, one_rank="data")
def transpose(data, *, perm: tuple[int, ...] | None = None):
    """Without `perm` the dimensions are reversed."""
    if data.rank == 0:
        return data
    order = tuple(reversed(range(data.rank or 0))) if perm is None else perm
    return ops.Transpose(data, np.array(order, np.int64))


@translates("Concat", since=1, defaults={"axis": 1})
@translates("Concat", since=4)
def concat(*inputs, axis: int):
    """From opset 4 on the axis is required."""
    return ops.Concat(*inputs, axis=axis)


@translates("Split", since=1)
@translates("Split", since=2, without="sizes")
def split_1(input, sizes=None, *, axis: int = 0, split: tuple[int, ...] | None = None, node: Context):
    """The sizes are an attribute; in opset 1 also an input of the data's type."""
    return _split(input, as_i64(sizes), axis, node) if sizes is not None else _split(input, split, axis, node)


@translates("Split", since=13, without="num_outputs")
@translates("Split", since=18)
def split(input, split=None, *, axis: int = 0, num_outputs: Outputs | None = None, node: Context):
    """The sizes are an input; with `num_outputs` the last piece may be smaller."""
    if split is not None or num_outputs is None:
        return _split(input, split, axis, node)
    length = None if input.rank is None else input.size(normalise_axis(axis, input.rank))
    if isinstance(length, int):
        size = -(-length // num_outputs)
        if length % num_outputs == 0:
            return ops.Split(input, axis, num_splits=num_outputs)
        return ops.VariadicSplit(input, axis, [size] * (num_outputs - 1) + [length - size * (num_outputs - 1)])
    if length is None:
        length = ops.Gather(input.sizes, axis, 0)
    rounded = (length + (num_outputs - 1)) // num_outputs
    return ops.VariadicSplit(input, axis, joined([rounded] * (num_outputs - 1) + [-1], input))


def _split(x: Value, sizes, axis: int, node: Context):
    count = len(node.outputs)
    if sizes is None:
        return ops.Split(x, axis, num_splits=count)
    if isinstance(sizes, Value):
        known = integers(sizes)
        if known is None:
            return ops.VariadicSplit(x, axis, sizes.reshape([count]))
        sizes = known
    if len(sizes) != count:
        raise ModelError(f"split has {len(sizes)} sizes for {count} outputs", code="ML227")
    return ops.VariadicSplit(x, axis, list(sizes))


NO_BOUND = 10**9
"""From here on a constant bound of Slice means the end, as exporters of JAX write it. A GPU allocates memory for the
largest size, and this one would not fit into it."""


@translates("Slice", since=1)
def slice_1(data, *, starts: tuple[int, ...], ends: tuple[int, ...], axes: tuple[int, ...] | None = None):
    """The bounds are attributes."""
    places = list(range(len(starts))) if axes is None else list(axes)
    return ops.Slice(data, near(starts, NO_BOUND), near(ends, NO_BOUND), [1] * len(starts), places)


@translates("Slice", since=10, one_rank="data")
def slice_10(data, starts, ends, axes=None, steps=None):
    """The bounds are inputs, and there are steps."""
    bounds = [
        value if (known := integers(value)) is None else near(known, NO_BOUND) for value in (starts, ends)
    ]
    count = next((len(bound) for bound in bounds if isinstance(bound, list)), None)
    if count is None:
        count = vector_length(starts.type)
    if steps is not None:
        step = steps if integers(steps) is None else near(integers(steps) or ())
    elif count is not None:
        step = [1] * count
    else:
        step = ops.Broadcast(1, starts.sizes, graph=starts.graph)
    if axes is None:
        places = None if count is None else list(range(count))
    elif integers(axes) is not None:
        places = list(integers(axes) or ())
    else:
        places = axes
        # If only the axes are known at run time, the runtime reads them too early and crashes.
        given = as_i64(step) if isinstance(step, Value) else np.array(step, np.int64)
        step = ops.Select(as_i64(axes) < FAR, given, np.int64(0))
    return ops.Slice(data, *bounds, step, places)


@translates("DepthToSpace", since=1, without="mode")
@translates("DepthToSpace", since=11, one_rank="input")
def depth_to_space(input, *, blocksize: Positive, mode: str = "DCR"):
    """Depth, column, row; or column, row, depth."""
    return ops.DepthToSpace(input, mode=_block_mode(mode), block_size=blocksize)


@translates("SpaceToDepth", since=1, without="mode")
@translates("SpaceToDepth", since=28, one_rank="input")
def space_to_depth(input, *, blocksize: Positive, mode: str = "DCR"):
    """Depth, column, row; or column, row, depth."""
    return ops.SpaceToDepth(input, mode=_block_mode(mode), block_size=blocksize)


def _block_mode(mode: str) -> str:
    require_choice("mode", mode, ("DCR", "CRD"))
    return "blocks_first" if mode == "DCR" else "depth_first"


@translates("ReverseSequence", since=10, one_rank="input")
def reverse_sequence(input, sequence_lens, *, batch_axis: int = 1, time_axis: int = 0):
    """Reverses the first elements of each batch entry along time, as many as its length."""
    return ops.ReverseSequence(input, sequence_lens, batch_axis=batch_axis, seq_axis=time_axis)
