"""The rules by which operators gain a dimension of steps, by class: those that move elements (shapes, slices, pieces,
repetitions, and elements that are read, written and found by index), those of elements, products and batches, and all
rules together.
"""

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

from mo_loop.graph.dimension import low
from mo_loop.ops import recurrent
from mo_loop.ops.lengths import as_i64, joined
from mo_loop.ops.linear import subscripts
from mo_loop.ops.movement import FAR
from mo_loop.transforms.loops.lifted import (
    Lifted,
    Rule,
    Steps,
    axis_after_steps,
    beside,
    moved,
    numbers,
    shifted,
    squeezed,
    unsqueezed,
    vector,
    with_inputs,
)
from mo_loop.transforms.vocabulary import F, Node, Value, is_static, ops, source_of


def shape_of(node: ops.ShapeOf, xs: Sequence[Lifted], steps: Steps) -> Lifted:
    """All steps have one shape"""
    return Lifted(with_inputs(node, xs[0].value)[1:FAR], False)


def reshape(node: ops.Reshape, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """reshape(x, pattern)  ->  reshape(x, [T, *pattern])"""
    x, pattern = xs
    dims = node.output.shape
    if pattern.varies or dims is None or pattern.rank != 1:
        return None
    if is_static(dims):
        return F.Reshape(x.value, joined([steps.count, *dims], x.value), name=node.name)
    items = pattern.value.known
    # A size that follows from the others cannot follow from no elements, so there must be steps.
    may_be_empty = low(x.value.type.dims[0]) < 1
    if items is None or any(isinstance(item, int) and item < 0 and may_be_empty for item in items.flat):
        return None
    if node.special_zero:
        return with_inputs(node, x.value, ops.Concat(vector(0), pattern.value, axis=0))
    first = joined([steps.count], x.value)
    return F.Reshape(x.value, F.Concat(first, as_i64(pattern.value), axis=0), name=node.name)


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
    places = sorted(axis_after_steps(axis, x.rank) for axis in set(axes))
    if len(places) == 1:
        return squeezed(x.value, places[0])
    return F.Squeeze(x.value, vector(*places), name=node.name) if places else x.value


def unsqueeze(node: ops.Unsqueeze, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """unsqueeze(x, axes)  ->  unsqueeze(x, axes + 1)"""
    x, axes = xs[0], numbers(xs[1])
    if axes is None:
        return None
    return unsqueezed(x.value, sorted(axis_after_steps(axis, x.rank + len(axes)) for axis in axes))


def transpose(node: ops.Transpose, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """transpose(x, order)  ->  transpose(x, [0, *order + 1])"""
    x, order = xs[0], numbers(xs[1])
    if order is None:
        return None
    order = order or tuple(reversed(range(x.rank)))
    return with_inputs(node, x.value, vector(0, *(axis_after_steps(axis, x.rank) for axis in order)))


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
    places = vector(*(axis_after_steps(axis, x.rank) for axis in known))
    return with_inputs(node, x.value, *(each.value for each in bounds[:3]), places)


def pad(node: ops.Pad, xs: Sequence[Lifted | None], steps: Steps) -> Value | None:
    """pad(x, begin, end)  ->  pad(x, [0, *begin], [0, *end])"""
    x, begin, end, *value = xs
    assert x is not None and begin is not None and end is not None
    if any(each is not None and each.varies for each in (begin, end, *value)):
        return None
    pads = [F.Concat(vector(0), as_i64(each.value), axis=0) for each in (begin, end)]
    return with_inputs(node, x.value, *pads, *(None if each is None else each.value for each in value))


def tile(node: ops.Tile, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """tile(x, repeats)  ->  tile(x, [1, *repeats])"""
    x, repeats = xs
    count = repeats.dims[0] if repeats.rank == 1 else None
    if repeats.varies or not isinstance(count, int) or count < x.rank:
        return None
    return with_inputs(node, steps.wide(x, count), ops.Concat(vector(1), as_i64(repeats.value), axis=0))


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
    target = F.Concat(front, target, axis=0)
    if node.mode == "explicit":
        axes = numbers(mapping[0]) if mapping else None
        if axes is None:
            return None
        return with_inputs(node, x.value, target, vector(0, *(axis + 1 for axis in axes)))
    return with_inputs(node, steps.wide(x, rank), target)


def at_least(node: ops.AtLeast, xs: Sequence[Lifted], steps: Steps) -> Value:
    """sizes that inference cannot see"""
    return with_inputs(node, xs[0].value, sizes=(0, *node.sizes))


def gather(node: ops.Gather, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """data[indices]: of one tensor by the indices of all steps, or of the tensor of each step"""
    data, indices, axis = xs
    known = numbers(axis)
    if known is None:
        return None
    at = axis_after_steps(known[0], data.rank) - 1
    batches = node.batches(indices.rank)
    if not data.varies and not batches:
        counted = source_of(indices.value, ops.Unsqueeze | ops.Convert)
        if indices.rank <= 1 and is_count(counted) and counted.type.dims == (data.dims[at],):
            row = moved(data.value, at, 0)  # data[0], data[1], ... to the end
            return unsqueezed(row, [at + 1]) if indices.rank else row
        made: Value = with_inputs(node, data.value, indices.value, vector(at)[0])
        return moved(made, at, 0)
    if not indices.varies and not batches:
        return with_inputs(node, data.value, indices.value, vector(at + 1)[0])
    pair = (steps.each(data), steps.each(indices))
    return with_inputs(node, *pair, vector(at + 1)[0], batch_dims=batches + 1)


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
        return with_inputs(node, data.value, indices.value)
    return with_inputs(node, steps.each(data), steps.each(indices), batch_dims=node.batch_dims + 1)


def one_hot(node: ops.OneHot, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """a new dimension with `on` at the index"""
    indices, *others = xs
    if not indices.varies or any(each.varies for each in others):
        return None
    axis = node.axis if node.axis < 0 else node.axis + 1
    return with_inputs(node, indices.value, *(each.value for each in others), axis=axis)


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


# -- elements, reductions and normalisations over axes


def broadcasting(node: ops.Binary, xs: Sequence[Lifted], steps: Steps) -> Value:
    """f(a, b)"""
    rank = max(x.rank for x in xs)
    return with_inputs(node, *(steps.wide(x, rank) for x in xs), auto_broadcast="numpy")


def of_first(node: ops.Op, xs: Sequence[Lifted | None], steps: Steps) -> Value | None:
    """f(x), with scalars that are the same in every step"""
    first, *others = xs
    if first is None or any(x is not None and (x.varies or x.rank) for x in others):
        return None
    return with_inputs(node, first.value, *(None if x is None else x.value for x in others))


def with_slopes(node: ops.PReLU, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """A vector of slopes has one for each element along dimension 1 of the body value, if there is one; other slopes
    broadcast to it"""
    x, slope = xs
    if slope.varies:
        return None
    if slope.rank == 1 and slope.dims[0] != 1:
        shape = vector(1, 1, -1, *[1] * (x.rank - 2)) if x.rank > 1 else vector(1, -1)
        return with_inputs(node, x.value, ops.Reshape(slope.value, shape))
    return with_inputs(node, x.value, slope.value)


# -- products


def mat_mul(node: ops.MatMul, xs: Sequence[Lifted], steps: Steps) -> Value:
    """a b for each step; vectors that vary are the rows of one matrix, if the other matrix is the same in all steps"""
    a, b = xs
    if a.rank == 1 and not b.varies and b.rank <= 2:
        return with_inputs(node, a.value, b.value, transpose_a=False)
    if b.rank == 1 and not a.varies and a.rank == 2:  # A b  ->  b A^T
        return with_inputs(node, b.value, a.value, transpose_a=False, transpose_b=not node.transpose_a)
    rank = max(a.rank, b.rank, 2)
    left = _matrices(a, rank, 1, steps)
    right = _matrices(b, rank, 2, steps)
    product: Value = with_inputs(
        node, left, right, transpose_a=node.transpose_a and a.rank > 1, transpose_b=node.transpose_b and b.rank > 1
    )
    if b.rank == 1:
        product = squeezed(product, product.type.rank - 1)
    if a.rank == 1:
        product = squeezed(product, product.type.rank - 2 + (b.rank == 1))
    return product


def _matrices(x: Lifted, rank: int, place: int, steps: Steps) -> Value:
    """An operand as matrices: a vector on the left is a row, one on the right a column."""
    if x.rank > 1:
        return steps.wide(x, rank)
    if not x.varies:
        return unsqueezed(x.value, [place - 1])
    return steps.wide(Lifted(unsqueezed(x.value, [place]), True), rank)


def einsum(node: ops.Einsum, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """ij,jk->ik  ->  Tij,jk->Tik"""
    terms, result = subscripts(node.equation)
    letter = next((each for each in ascii_letters if each not in node.equation), None)
    if letter is None or "." in node.equation:
        return None
    left = ",".join(letter + term if x.varies else term for term, x in zip(terms, xs, strict=True))
    return with_inputs(node, *(x.value for x in xs), equation=f"{left}->{letter}{result}")


# -- a batch as first dimension, into which the steps go: [T, N, ...] becomes [T * N, ...] and back


def over_batch(node: Any, xs: Sequence[Lifted | None], steps: Steps, batched: int = 1) -> Any:
    """f(x [N, ...], weights)  ->  f(x [T * N, ...], weights); the first `batched` inputs have the batch"""
    inner, others = xs[:batched], xs[batched:]
    # The second output of a MaxPool counts places from the first batch.
    counts_places = batched == 1 and any(output.is_used for output in node.outputs[1:])
    if counts_places or any(x is not None and x.varies for x in others):
        return None
    first = next(x for x in inner if x is not None and x.varies)
    batch = first.value.size(1)
    rest = [None if x is None else x.value for x in others]
    made = with_inputs(node, *(None if x is None else steps.folded(x) for x in inner), *rest)
    values = made if isinstance(made, tuple) else (made,)
    unfolded = tuple(steps.unfolded(each, batch) for each in values)
    return unfolded[0] if len(unfolded) == 1 else unfolded


def cell(node: recurrent.Cell, xs: Sequence[Lifted | None], steps: Steps) -> Any:
    """a recurrent cell: x and states have the batch"""
    return over_batch(node, xs, steps, 3 if isinstance(node, ops.LSTMCell) else 2)


def sequence(node: recurrent.Sequence, xs: Sequence[Lifted | None], steps: Steps) -> Any:
    """a recurrent layer: x, states and lengths have the batch"""
    return over_batch(node, xs, steps, 4 if isinstance(node, ops.LSTMSequence) else 3)


def two(node: Any, xs: Sequence[Lifted | None], steps: Steps) -> Value | None:
    """f(x [N, ...], y [N, ...])"""
    return over_batch(node, xs, steps, 2)


OVER_BATCH: dict[type, Rule] = {
    ops.Filtered: over_batch,
    ops.Pooling: over_batch,
    ops.BatchNormInference: over_batch,
    ops.DepthToSpace: over_batch,
    ops.SpaceToDepth: over_batch,
    ops.GridSample: two,
    recurrent.Cell: cell,
    recurrent.Sequence: sequence,
}
RULES: dict[type, Rule] = {
    ops.Binary: broadcasting,
    ops.Select: broadcasting,
    ops.Elementwise: of_first,
    ops.Identity: of_first,
    ops.PReLU: with_slopes,
    ops.AlongAxis: shifted,
    ops.Reduction: shifted,
    ops.MVN: shifted,
    ops.NormalizeL2: shifted,
    ops.CumSum: shifted,
    ops.MatMul: mat_mul,
    ops.Einsum: einsum,
    **MOVEMENTS,
    **OVER_BATCH,
}
"""Class of an operation -> its rule; a class without an entry has that of its next base."""


def rule_of(node: Node) -> Rule | None:
    """The rule of an operation; None if it has none."""
    return next((RULES[cls] for cls in type(node).__mro__ if cls in RULES), None)
