"""Operations that move elements without changing them: Transpose, Concat, Split, Slice and others.

The number of elements of a slice of a partly known dimension:

    x[1:] of N        ->  0..        x[1:] of 2..   ->  1..        x[:N] of N  ->  N
    x[-3:] of 0..9    ->  0..3       x[::2] of N    ->  floor(N+1/2)

Negative bounds count from the end, and bounds are clamped to the tensor, as in numpy; but with a negative step a start
before the first element is the first element.
"""

import functools
from typing import Any, Literal

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.graph.dimension import LEAST, Dim, Dimension, fresh, high, least, low, most
from mo_loop.graph.shape import merge_dim, normalise_axis
from mo_loop.graph.types import ElementType, TensorType
from mo_loop.ops.base import Movement, Op
from mo_loop.ops.infer import capped, dims_of, same_dtype, vector_length
from mo_loop.ops.ranges import MOST_OUTPUTS, Outputs
from mo_loop.ops.values import fitting, values_of

FAR = 2**30 - 1
"""Larger bounds mean the end of the tensor, or its beginning if they are negative, also in bounds that are computed.

It is odd: the runtime multiplies bounds of sizes in 32 bits, and takes a size for 0 if the product of its bound is 0.
"""

END = 2**31 - 1
"""The largest bound of a Slice: the runtime computes wrong results for larger ones."""


def sliced_dim(dim: Dimension, start, stop, step) -> Dimension:
    """The number of elements of a slice of a dimension; a bound that is None is not known."""
    if not isinstance(step, int) or step == 0 or start is None or stop is None:
        return fresh(0, high(dim))
    if step < 0:  # the same elements are picked from the reversed tensor by the complements of the bounds
        start, stop, step = -start - 1, -stop - 1, -step
        top = most(start)
        if isinstance(dim, int) and isinstance(start, int):
            start = min(start, max(dim - 1, 0))
        elif top is None or top >= max(low(dim), 1):
            return fresh(0, high(dim))
    begin, end = _place(start, dim), _place(stop, dim)
    if begin is None or end is None:
        return _slice_bounds(dim, start, stop, step)
    span = end - begin
    if isinstance(span, int):
        return -(-max(span, 0) // step)
    return _slice_bounds(dim, start, stop, step) if span.lo < 0 else (span + (step - 1)) // step


def _place(bound, dim: Dimension) -> Dimension | None:
    """The position of a bound of a slice between 0 and `dim`; None if it depends on values."""
    lo, hi = least(bound), most(bound)
    if lo >= FAR:
        return dim
    if lo < 0 and (hi is None or hi >= 0):
        return None
    if isinstance(bound, int) and bound <= -FAR:
        return 0
    place = bound if lo >= 0 else bound + dim
    top, rest = most(place), least(dim - place)
    if rest >= 0 and least(place) >= 0:
        return place
    if top is not None and top <= 0:
        return 0
    remaining = most(dim - place)
    return dim if remaining is not None and remaining <= 0 else None


def _slice_bounds(dim: Dimension, start, stop, step: int) -> Dimension:
    """The least and the largest number of elements of a slice with a positive step."""
    top = high(dim)
    if not isinstance(start, int) or not isinstance(stop, int):
        ends = [top, most(stop) if least(stop) >= 0 else None]  # no position is greater than either
        if (most(start) or 0) < 0 and least(start) > LEAST:
            ends.append(-least(start))
        end = min((each for each in ends if each is not None and each < FAR), default=None)
        return fresh(0, None if end is None else -(-end // step))
    kept = [len(range(*slice(start, stop, step).indices(size))) for size in (low(dim), FAR if top is None else top)]
    if start < 0 <= stop < FAR:  # more elements are not kept of a longer tensor: these begin too late
        most_kept = -(-min(-start, stop) // step)
        return fresh(0, most_kept if top is None else min(most_kept, -(-top // step)))
    endless = top is None and (0 <= start < FAR or start <= -FAR) and (-FAR < stop < 0 or stop >= FAR)
    return fresh(kept[0], None if endless else kept[1])


class Transpose(Movement, opset=1, index=("order",), ranks={"order": 1}):
    """Dimensions in another order; an empty order reverses them. Spec: Transpose-1."""

    def infer(self, x, order):
        if x.shape is None:
            length = vector_length(order)
            return TensorType(x.dtype, tuple(fresh() for _ in range(length)) if length else None)
        if order.integers is None:
            length = vector_length(order)
            self.require(length in (None, 0, len(x.shape)), f"the order has {length} axes, not {len(x.shape)}")
            return TensorType(x.dtype, tuple(fresh() for _ in x.shape))
        axes = order.integers or tuple(reversed(range(len(x.shape))))
        self.require(sorted(axes) == list(range(len(x.shape))), f"order {list(axes)} does not fit rank {len(x.shape)}")
        known = None if x.known is None else x.known.transpose(axes)
        return TensorType(x.dtype, tuple(x.shape[axis] for axis in axes), known)

    def evaluate(self, *inputs):
        return np.transpose(inputs[0], tuple(int(a) for a in inputs[1]) or None)

    def axis_map(self, port):
        order = None if port else self.integers("order")
        return self._no_axes if order is None else order or tuple(reversed(range(len(self._no_axes))))


class Concat(Op, opset=1, along="axis"):
    """Tensors concatenated along an axis. Spec: Concat-1."""

    axis: int

    def infer(self, *xs):
        dtype = same_dtype(*xs)
        ranked = [x for x in xs if x.shape is not None]
        if not ranked:
            return TensorType(dtype, None)
        rank = len(ranked[0].shape)
        self.require(all(len(x.shape) == rank for x in ranked), "the inputs have different ranks")
        axis = normalise_axis(self.axis, rank)
        shape: list[Dimension] = list(ranked[0].shape)
        for x in ranked[1:]:
            for i, dim in enumerate(x.shape):
                shape[i] = shape[i] + dim if i == axis else merge_dim(shape[i], dim)
        if len(ranked) < len(xs):
            shape[axis] = fresh(low(shape[axis]))
        return TensorType(dtype, tuple(shape), self._joined(xs, axis, dtype))

    def _joined(self, xs, axis: int, dtype: ElementType):
        if all(x.known is None for x in xs):
            return None
        parts = [part for part in map(values_of, xs) if part is not None]
        return fitting(np.concatenate(parts, axis=axis), dtype) if len(parts) == len(xs) else None

    def evaluate(self, *inputs):
        return np.concatenate(inputs, axis=self.axis)

    def axis_map(self, port):
        return self._from_end(port)


class Slice(
    Movement, opset=8, keeps_axes=True, index=("start", "stop", "step", "axes"),
    ranks={"start": 1, "stop": 1, "step": 1, "axes": 1},
):
    """Every `step`-th element from `start` to before `stop`, clamped to the tensor. Spec: Slice-8."""

    def infer(self, x, start, stop, step, axes=None):
        given = [each for each in (start, stop, step, axes) if each is not None and each.shape is not None]
        lengths = [each.shape[0] for each in given]
        length = functools.reduce(merge_dim, lengths) if lengths else fresh()
        if x.shape is None:
            return TensorType(x.dtype, None)
        self.require(low(length) <= len(x.shape), f"there are {length} axes, and the rank is {len(x.shape)}")
        shape: list[Dimension] = list(x.shape)
        if axes is not None and axes.integers is None:
            return TensorType(x.dtype, tuple(fresh(0, high(dim)) for dim in shape))
        count = vector_length(start)
        if axes is None and count is None:
            return TensorType(x.dtype, tuple(fresh(0, high(dim)) for dim in shape))
        places = axes.integers if axes is not None else range(count or 0)
        bounds = [self._items(each, len(places)) for each in (start, stop, step)]
        seen: set[int] = set()
        for position, axis in enumerate(places):
            i = normalise_axis(axis, len(shape))
            self.require(i not in seen, f"axis {axis} is given twice")
            self.require(bounds[2][position] != 0, "a step is 0")
            seen.add(i)
            shape[i] = sliced_dim(shape[i], *(items[position] for items in bounds))
        known = None
        if x.known is not None and all(isinstance(item, int) for items in bounds for item in items):
            index = [slice(None)] * x.known.ndim
            for position, axis in enumerate(places):
                index[axis] = _slice(x.known.shape[axis], *(items[position] for items in bounds))
            known = x.known[tuple(index)]
        return TensorType(x.dtype, tuple(shape), known)

    def _items(self, type_, count: int) -> list[Any]:
        if type_.known is None:
            return [None] * count
        items = list(type_.known.reshape(-1))
        self.require(len(items) == count, f"there are {len(items)} bounds or steps for {count} axes")
        return items

    def evaluate(self, *inputs):
        x, start, stop, step = inputs[:4]
        axes = inputs[4] if len(inputs) > 4 and inputs[4] is not None else range(len(start))
        index = [slice(None)] * x.ndim
        for axis, a, b, c in zip(axes, start, stop, step, strict=True):
            index[int(axis)] = _slice(x.shape[int(axis)], int(a), int(b), int(c))
        return x[tuple(index)]


def _slice(size: int, start: int, stop: int, step: int) -> slice:
    """A slice of numpy, where a start before the beginning leaves nothing for a negative step; here it is the first."""
    return slice(max(start, -size) if step < 0 else start, stop, step)


class Split(Movement, opset=1, index=("axis",), ranks={"axis": 0}, along="axis", keeps_axes=True):
    """`num_splits` equal pieces along an axis. Spec: Split-1."""

    num_splits: Outputs

    def infer(self, x, axis):
        if x.shape is None or axis.integers is None:
            shape = None if x.shape is None else tuple(fresh(0, high(dim)) for dim in x.shape)
            return tuple(TensorType(x.dtype, shape) for _ in range(self.num_splits))
        at = normalise_axis(axis.integers[0], len(x.shape))
        dim, count = x.shape[at], self.num_splits
        self.require(not isinstance(dim, int) or dim % count == 0, f"{dim} elements do not divide into {count} pieces")
        return _pieces(x, at, [dim // count] * count)

    def evaluate(self, *inputs):
        return tuple(np.split(inputs[0], self.num_splits, axis=int(inputs[1])))


class VariadicSplit(
    Movement, opset=1, index=("axis", "lengths"), single=("axis",), ranks={"lengths": 1}, along="axis", keeps_axes=True
):
    """Pieces of the given lengths along an axis; -1 is the rest. Spec: VariadicSplit-1."""

    def infer(self, x, axis, lengths):
        count = vector_length(lengths, MOST_OUTPUTS)
        if count is None:
            raise TypeError_("the number of pieces is not known", code="ML235")
        self.require(count > 0, "there are no pieces")
        if x.shape is None or axis.integers is None:
            shape = None if x.shape is None else tuple(fresh(0, high(dim)) for dim in x.shape)
            return tuple(TensorType(x.dtype, shape) for _ in range(count))
        at = normalise_axis(axis.integers[0], len(x.shape))
        if lengths.known is None:
            return _pieces(x, at, [fresh(0, high(x.shape[at])) for _ in range(count)])
        sizes = list(dims_of(lengths.known))
        # An unknown length can be -1; if it is the only one, it is the rest in both cases.
        doubtful = [i for i, size in enumerate(sizes) if isinstance(size, Dim) and size.is_fresh and size.lo < 0]
        for i in doubtful:
            sizes[i] = -1 if len(doubtful) == 1 and -1 not in sizes else fresh(0, high(x.shape[at]))
        vague = [i for i, size in enumerate(sizes) if isinstance(size, Dim)]
        if isinstance(x.shape[at], int) and len(vague) == 1 and -1 not in sizes:
            sizes[vague[0]] = -1  # the other sizes determine it
        sizes = [size if size == -1 else capped(size, x.shape[at]) for size in sizes]
        holes = [i for i, size in enumerate(sizes) if size == -1]
        self.require(len(holes) <= 1, "more than one size is -1")
        total: Any = sum((size for size in sizes if size != -1), start=0)
        if holes:
            rest = x.shape[at] - total
            sizes[holes[0]] = rest if low(rest) >= 0 and not (isinstance(rest, int) and rest < 0) else fresh()
            total = total + rest
        self.require(
            not isinstance(total, int) or not isinstance(x.shape[at], int) or total == x.shape[at],
            f"pieces of {list(sizes)} are not the {x.shape[at]} elements of the axis",
        )
        return _pieces(x, at, sizes)

    def evaluate(self, *inputs):
        x, axis, lengths = inputs
        sizes = [int(size) for size in lengths]
        if -1 in sizes:
            sizes[sizes.index(-1)] = x.shape[int(axis)] - sum(sizes) - 1
        return tuple(np.split(x, np.cumsum(sizes)[:-1], axis=int(axis)))


def _pieces(x, axis: int, sizes: list[Any]) -> tuple[TensorType, ...]:
    shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
    if x.known is None or x.known.ndim != 1 or not all(isinstance(size, int) for size in sizes):
        return tuple(TensorType(x.dtype, shape) for shape in shapes)
    parts = np.split(x.known, np.cumsum(sizes)[:-1])
    return tuple(TensorType(x.dtype, shape, part) for shape, part in zip(shapes, parts, strict=True))


class ReverseSequence(Movement, opset=1, index=("lengths",), ranks={"lengths": 1}, along="seq_axis", keeps_axes=True):
    """The first `lengths[i]` elements along `seq_axis` reversed, i along `batch_axis`. Spec: ReverseSequence-1."""

    batch_axis: int = 0
    seq_axis: int = 1

    def infer(self, x, lengths):
        if x.shape is not None:
            for axis in (self.batch_axis, self.seq_axis):
                normalise_axis(axis, len(x.shape))
            if lengths.shape is not None:
                merge_dim(x.shape[self.batch_axis], lengths.shape[0])  # raises if the shapes do not fit
        return x


class DepthToSpace(Movement, opset=1):
    """Blocks of channels moved into the spatial dimensions. Spec: DepthToSpace-1."""

    mode: Literal["blocks_first", "depth_first"]
    block_size: int

    def infer(self, x):
        if x.shape is None:
            return TensorType(x.dtype, None)
        block, spatial = self.block_size, len(x.shape) - 2
        self.require(spatial > 0, f"the input has rank {len(x.shape)}, and no spatial dimension")
        depth, places = x.shape[1], block**spatial
        self.require(not isinstance(depth, int) or depth % places == 0, f"{depth} channels do not divide by {places}")
        return TensorType(x.dtype, (x.shape[0], depth // places, *(dim * block for dim in x.shape[2:])))


class SpaceToDepth(Movement, opset=1):
    """Spatial blocks moved into the channels. Spec: SpaceToDepth-1."""

    mode: Literal["blocks_first", "depth_first"]
    block_size: int

    def infer(self, x):
        if x.shape is None:
            return TensorType(x.dtype, None)
        block, spatial = self.block_size, len(x.shape) - 2
        self.require(spatial > 0, f"the input has rank {len(x.shape)}, and no spatial dimension")
        for dim in x.shape[2:]:
            self.require(not isinstance(dim, int) or dim % block == 0, f"{dim} does not divide into blocks of {block}")
        return TensorType(x.dtype, (x.shape[0], x.shape[1] * block**spatial, *(dim // block for dim in x.shape[2:])))
