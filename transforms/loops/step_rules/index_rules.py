"""Operations that read, write and find elements by index."""

from __future__ import annotations

from collections.abc import Sequence

from mo_loop import ops
from mo_loop.graph import Value
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
    unsqueezed,
    vector,
)
from mo_loop.transforms.operands import behind


def gather(node: ops.Gather, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """data[indices]: of one tensor by the indices of all steps, or of the tensor of each step"""
    data, indices, axis = xs
    known = numbers(axis)
    if known is None:
        return None
    at = axis_behind(known[0], data.rank) - 1
    batches = node.batch_dims + (indices.rank if node.batch_dims < 0 else 0)
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


RULES: dict[type, Rule] = {
    ops.Gather: gather,
    ops.GatherElements: beside,
    ops.GatherND: gather_nd,
    ops.ScatterElementsUpdate: beside,
    ops.OneHot: one_hot,
    ops.TopK: shifted,
}
