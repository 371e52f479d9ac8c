"""The rules by which operations that move elements gain a dimension of steps: shapes, slices, pieces, repetitions, and
elements that are read, written and found by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import low
from mo_loop.graph.shape import is_static
from mo_loop.ops.lengths import as_i64, joined
from mo_loop.ops.movement import FAR
from mo_loop.transforms.loops.lifted import (
    Lifted,
    Rule,
    Steps,
    again,
    axis_behind,
    beside,
    moved,
    numbers,
    shifted,
    squeezed,
    unsqueezed,
    vector,
)
from mo_loop.transforms.operands import behind


def shape_of(node: ops.ShapeOf, xs: Sequence[Lifted], steps: Steps) -> Lifted:
    """All steps have one shape"""
    whole = again(node, xs[0].value)
    return Lifted(ops.Slice(whole, [1], [FAR], [1], [0]).output, False)


def reshape(node: ops.Reshape, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """reshape(x, pattern)  ->  reshape(x, [T, *pattern])"""
    x, pattern = xs
    dims = node.output.shape
    if pattern.varies or dims is None or pattern.rank != 1:
        return None
    if is_static(dims):
        return ops.Reshape(x.value, joined([steps.count, *dims], x.value), name=node.name).output
    items = pattern.value.known
    # A size that follows from the others cannot follow from no elements, so there must be steps.
    may_be_empty = low(x.value.type.dims[0]) < 1
    if items is None or any(isinstance(item, int) and item < 0 and may_be_empty for item in items.flat):
        return None
    if node.special_zero:
        made: Value = again(node, x.value, ops.Concat(vector(0), pattern.value, axis=0))
        return made
    first = joined([steps.count], x.value)
    return ops.Reshape(x.value, ops.Concat(first, as_i64(pattern.value), axis=0), name=node.name).output


def squeeze(node: ops.Squeeze, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """squeeze(x, axes)  ->  squeeze(x, axes + 1)"""
    x = xs[0]
    axes = numbers(xs[1]) if len(xs) > 1 else ()
    if axes == () and node.output.rank is not None:
        axes = tuple(axis for axis, dim in enumerate(x.dims) if dim == 1)
        if len(axes) != x.rank - node.output.rank:
            return None
    if axes is None or node.output.rank is None:
        return None
    places = sorted(axis_behind(axis, x.rank) for axis in set(axes))
    if len(places) == 1:
        return squeezed(x.value, places[0])
    return ops.Squeeze(x.value, vector(*places), name=node.name).output if places else x.value


def unsqueeze(node: ops.Unsqueeze, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """unsqueeze(x, axes)  ->  unsqueeze(x, axes + 1)"""
    x, axes = xs[0], numbers(xs[1])
    if axes is None:
        return None
    return unsqueezed(x.value, sorted(axis_behind(axis, x.rank + len(axes)) for axis in axes))


def transpose(node: ops.Transpose, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """transpose(x, order)  ->  transpose(x, [0, *order + 1])"""
    x, order = xs[0], numbers(xs[1])
    if order is None:
        return None
    order = order or tuple(reversed(range(x.rank)))
    made: Value = again(node, x.value, vector(0, *(axis_behind(axis, x.rank) for axis in order)))
    return made


def slice_(node: ops.Slice, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """x[start:stop:step] along axes  ->  the same along axes + 1"""
    x, *bounds = xs
    axes = bounds[3:] and bounds[3]
    if any(each.varies for each in bounds) or x.rank is None:
        return None
    if axes:
        known = numbers(axes)
    else:
        count = bounds[0].value.type.dims[0]
        known = tuple(range(count)) if isinstance(count, int) else None
    if known is None:
        return None
    places = vector(*(axis_behind(axis, x.rank) for axis in known))
    made: Value = again(node, x.value, *(each.value for each in bounds[:3]), places)
    return made


def pad(node: ops.Pad, xs: Sequence[Lifted | None], steps: Steps) -> Value | None:
    """pad(x, begin, end)  ->  pad(x, [0, *begin], [0, *end])"""
    x, begin, end, *value = xs
    assert x is not None and begin is not None and end is not None
    if any(each is not None and each.varies for each in (begin, end, *value)):
        return None
    pads = [ops.Concat(vector(0), as_i64(each.value), axis=0) for each in (begin, end)]
    made: Value = again(node, x.value, *pads, *(None if each is None else each.value for each in value))
    return made


def tile(node: ops.Tile, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """tile(x, repeats)  ->  tile(x, [1, *repeats])"""
    x, repeats = xs
    count = repeats.dims[0] if repeats.rank == 1 else None
    if repeats.varies or not isinstance(count, int) or count < x.rank:
        return None
    made: Value = again(node, steps.wide(x, count), ops.Concat(vector(1), as_i64(repeats.value), axis=0))
    return made


def broadcast(node: ops.Broadcast, xs: Sequence[Lifted | None], steps: Steps) -> Value | None:
    """broadcast(x, shape)  ->  broadcast(x, [T, *shape])"""
    x, shape, *mapping = xs
    assert x is not None and shape is not None
    rank = node.output.rank
    if shape.varies or rank is None or not isinstance(shape.dims[0], int):
        return None
    target: Any = as_i64(shape.value)
    missing = rank - shape.dims[0]  # dimensions that a bidirectional broadcast takes from x
    front = joined([1 if node.mode == "bidirectional" else steps.count, *[1] * missing], x.value)
    target = ops.Concat(front, target, axis=0)
    if node.mode == "explicit":
        axes = numbers(mapping[0]) if mapping else None
        if axes is None:
            return None
        return again(node, x.value, target, vector(0, *(axis + 1 for axis in axes)))
    made: Value = again(node, steps.wide(x, rank), target)
    return made


def at_least(node: ops.AtLeast, xs: Sequence[Lifted], steps: Steps) -> Value:
    """sizes that inference cannot see"""
    made: Value = again(node, xs[0].value, sizes=(0, *node.sizes))
    return made


def gather(node: ops.Gather, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """data[indices]: of one tensor by the indices of all steps, or of the tensor of each step"""
    data, indices, axis = xs
    known = numbers(axis)
    if known is None:
        return None
    at = axis_behind(known[0], data.rank) - 1
    batches = node.batches(indices.rank)
    if not data.varies and not batches:
        counted = behind(indices.value, ops.Unsqueeze | ops.Convert)
        if indices.rank <= 1 and is_count(counted) and counted.type.dims == (data.dims[at],):
            row = moved(data.value, at, 0)  # data[0], data[1], ... to the end
            return unsqueezed(row, [at + 1]) if indices.rank else row
        made: Value = again(node, data.value, indices.value, vector(at)[0])
        return moved(made, at, 0)
    if not indices.varies and not batches:
        return again(node, data.value, indices.value, vector(at + 1)[0])
    pair = (steps.each(data), steps.each(indices))
    return again(node, *pair, vector(at + 1)[0], batch_dims=batches + 1)


def is_count(value: Value) -> bool:
    """Whether `value` is 0, 1, 2, ..."""
    made = value.node
    return isinstance(made, ops.Range) and all(
        each.type.integers == (known,) for each, known in ((made.operands[0], 0), (made.operands[2], 1))
    )


def gather_nd(node: ops.GatherND, xs: Sequence[Lifted], steps: Steps) -> Value:
    """data[indices], where the last dimension of the indices is a position"""
    data, indices = xs
    if not data.varies and not node.batch_dims:
        return again(node, data.value, indices.value)
    made: Value = again(node, steps.each(data), steps.each(indices), batch_dims=node.batch_dims + 1)
    return made


def one_hot(node: ops.OneHot, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """a new dimension with `on` at the index"""
    indices, *others = xs
    if not indices.varies or any(each.varies for each in others):
        return None
    axis = node.axis if node.axis < 0 else node.axis + 1
    made: Value = again(node, indices.value, *(each.value for each in others), axis=axis)
    return made


MOVEMENTS: dict[type, Rule] = {
    ops.ShapeOf: shape_of,
    ops.Reshape: reshape,
    ops.Squeeze: squeeze,
    ops.Unsqueeze: unsqueeze,
    ops.Transpose: transpose,
    ops.Concat: beside,
    ops.Slice: slice_,
    ops.Split: shifted,
    ops.VariadicSplit: shifted,
    ops.Pad: pad,
    ops.Tile: tile,
    ops.Broadcast: broadcast,
    ops.AtLeast: at_least,
    ops.Gather: gather,
    ops.GatherElements: beside,
    ops.GatherND: gather_nd,
    ops.ScatterElementsUpdate: beside,
    ops.OneHot: one_hot,
    ops.TopK: shifted,
}
