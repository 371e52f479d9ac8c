"""The layouts of sequences in tensors, and the sequence operations on each layout.

    ElementKind      fixed for a state of a loop: element type, known dimensions, the axis along which elements differ
    Layout    a sequence of that kind: its tensors

    Stacked   S[N, ...]         elements of one shape         at(i) = S[i]                append: Concat, one more row
    Joined    J, L[N]           elements differ on one axis   at(i) = J[O[i] : O[i+1]]    append: Concat of both
    Packed    D[?], T[N, R]     elements of any shape         at(i) = D[O[i] : O[i+1]] reshaped to T[i]

O are the offsets, the running sums of the sizes. Positions may be negative; a position out of range is not detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np

from mo_loop.graph import ElementType, SequenceType, TensorType, assume_fixed, fresh, i64
from mo_loop.transforms.front.sequence_lowering import shapes
from mo_loop.transforms.loops.lifted import moved
from mo_loop.transforms.vocabulary import F, Graph, Value


@dataclass(frozen=True)
class _Layout:
    """A layout whose first fields are its tensors."""

    @property
    def tensors(self) -> tuple[Value, ...]:
        return tuple(each for each in vars(self).values() if isinstance(each, Value))

    def like(self, tensors: Sequence[Value]) -> Self:
        """A sequence of the same kind in other tensors."""
        return replace(self, **dict(zip(vars(self), tensors, strict=False)))


@dataclass(frozen=True)
class Stacked(_Layout):
    """Elements of one shape: S[N, ...]."""

    stack: Value

    def sequence(self) -> Value:
        return F.StackedSequence(self.stack)

    def length(self) -> Value:
        return shapes.rows(self.stack)

    def at(self, place: Value) -> Value:
        return F.Gather(self.stack, place, 0)

    def extended(self, other: Stacked) -> Stacked:
        return Stacked(F.Concat(self.stack, other.stack, axis=0))

    def inserted(self, item: Stacked, place: Value) -> Stacked:
        position = shapes.as_list(place)
        if (whole := shapes.before_erasing(self.stack, place)) is not None:  # list[i] = x
            return Stacked(F.ScatterUpdate(whole, position, item.stack, np.int64(0)))
        first, last = shapes.cut(self.stack, 0, None, position), shapes.cut(self.stack, 0, position, None)
        return Stacked(F.Concat(first, item.stack, last, axis=0))

    def erased(self, place: Value | None) -> Stacked:
        if place is None or shapes.known(place) == -1:
            return Stacked(shapes.cut(self.stack, 0, None, shapes.numbers(self.stack.graph, [-1])))
        if shapes.known(place) == 0:
            return Stacked(shapes.cut(self.stack, 0, shapes.numbers(self.stack.graph, [1]), None))
        position = shapes.from_front(shapes.as_list(place), shapes.size(self.stack, 0))
        rest = shapes.cut(self.stack, 0, shapes.plus(position, np.array([1])), None)
        return Stacked(F.Concat(shapes.cut(self.stack, 0, None, position), rest, axis=0))

    def concatenated(self, axis: int, new_axis: bool) -> Value:
        front = moved(self.stack, 0, axis)
        return front if new_axis else shapes.merged(front, axis)


class _InParts(_Layout):
    """Elements side by side along an axis of a first tensor; a second one has a row for each of them."""

    axis: int

    def _sizes(self) -> Value:
        """The sizes of the elements along the axis."""
        raise NotImplementedError

    def length(self) -> Value:
        return shapes.rows(self.tensors[1])

    def extended(self, other: Self) -> Self:
        axes = (self.axis, 0)
        pairs = zip(self.tensors, other.tensors, axes, strict=True)
        return self.like([F.Concat(own, more, axis=axis) for own, more, axis in pairs])

    def inserted(self, item: Self, place: Value) -> Self:
        data, rows = self.tensors
        position = shapes.from_front(shapes.as_list(place), shapes.size(rows, 0))
        start = F.Gather(shapes.offsets(self._sizes()), position, 0)
        data = _spliced(data, self.axis, start, start, item.tensors[0])
        return self.like([data, _spliced(rows, 0, position, position, item.tensors[1])])

    def erased(self, place: Value | None) -> Self:
        """Without the element at a position, by default the last one."""
        data, rows = self.tensors
        last = shapes.numbers(rows.graph, [-1])
        position = shapes.from_front(last if place is None else shapes.as_list(place), shapes.size(rows, 0))
        data = _spliced(data, self.axis, *bounds(self._sizes(), position))
        return self.like([data, _spliced(rows, 0, position, shapes.plus(position, np.array([1])))])


@dataclass(frozen=True)
class Joined(_InParts):
    """Elements concatenated along `axis`, and their sizes along it, L[N]."""

    data: Value
    sizes: Value
    axis: int

    def _sizes(self) -> Value:
        return self.sizes

    def sequence(self) -> Value:
        return F.JoinedSequence(self.data, self.sizes, axis=self.axis)

    def at(self, place: Value) -> Value:
        start, stop = bounds(self.sizes, shapes.from_front(shapes.as_list(place), shapes.size(self.sizes, 0)))
        return shapes.cut(self.data, self.axis, start, stop)

    def concatenated(self, axis: int, new_axis: bool) -> Value:
        return self.data if axis == self.axis and not new_axis else packed(self).concatenated(axis, new_axis)


@dataclass(frozen=True)
class Packed(_InParts):
    """Elements flattened and concatenated, D[?], and the table of their shapes, T[N,R].

    `dims` holds the dimensions that all elements have, -1 for the others. Elements of rank 0 are held with rank 1;
    `dims` is () for them.
    """

    data: Value
    table: Value
    dims: tuple[int, ...]

    axis = 0

    def sequence(self) -> Value:
        return F.PackedSequence(self.data, self.table, dims=self.dims)

    def at(self, place: Value) -> Value:
        position = shapes.from_front(shapes.as_list(place), shapes.size(self.table, 0))
        start, stop = bounds(self._sizes(), position)
        # The runtime takes a 0 that it finds in a pattern for "copy this dimension".
        row = F.Barrier(F.Gather(self.table, position, 0), hides="bounds").reshape([max(len(self.dims), 1)])
        dims = [dim if dim >= 0 else F.Gather(row, [i], 0) for i, dim in enumerate(self.dims)]
        return shapes.reshaped(shapes.cut(self.data, 0, start, stop), dims)

    def concatenated(self, axis: int, new_axis: bool) -> Value:
        if new_axis:
            return moved(shapes.reshaped(self.data, [shapes.size(self.table, 0), *self._common()]), 0, axis)
        dims = self._common(but=axis)
        sizes = F.Gather(self.table, np.array(axis), 1)
        total = F.Gather(shapes.offsets(sizes), [-1], 0)  # [1] to the runtime, even for unknown N
        data = self.data if axis == 0 else self._interleaved(axis, dims, sizes, total)
        return shapes.reshaped(data, [*dims[:axis], total, *dims[axis + 1 :]])

    def _interleaved(self, axis: int, dims: Sequence[Value | int], sizes: Value, total: Value) -> Value:
        """Rows in the order of the result: row j of block p comes from the element i with O[i] <= j < O[i+1].

        Element i has `before` blocks of `sizes[i]` rows of `after` numbers: row before*O[i] + p*sizes[i] + j - O[i].
        """
        graph = self.data.graph
        before, after = (shapes.product(graph, part) for part in (dims[:axis], dims[axis + 1 :]))
        row = F.Range(np.int64(0), F.Reshape(total, np.zeros(0, np.int64)), np.int64(1), output_type=i64)
        element = _owner(row, F.CumSum(sizes, 0))
        start = F.Gather(shapes.offsets(sizes), element, 0)
        local = row - start
        blocks = F.Range(
            shapes.numbers(graph, 0), F.Reshape(before, np.zeros(0, np.int64)), shapes.numbers(graph, 1),
            output_type=i64,
        )
        place = shapes.column(blocks) * F.Gather(sizes, element, 0) + (before * start + local)
        return F.Gather(F.Reshape(self.data, shapes.vector(graph, [before * total, after])), place.reshape([-1]), 0)

    def _sizes(self) -> Value:
        return F.ReduceProd(self.table, [1])

    def _common(self, but: int = -1) -> list[Value | int]:
        """The dimensions that all elements have; 0 if there is no element and the type does not say."""
        found: list[Value | int] = []
        for axis, dim in enumerate(self.dims):
            if dim >= 0 or axis == but:
                found.append(max(dim, 0))
                continue
            none = shapes.numbers(self.table.graph, [0])
            sizes = F.Concat(F.Gather(self.table, np.array(axis), 1), none, axis=0)
            found.append(F.ReduceMax(sizes, [0], keep_dims=True))
        return found


Layout: TypeAlias = Stacked | Joined | Packed


@dataclass(frozen=True)
class ElementKind:
    """The fixed part of a sequence that tensors hold. `dims` are the dimensions of an element, -1 where they differ."""

    dtype: ElementType
    dims: tuple[int, ...]
    always_packed: bool = False

    @classmethod
    def of(cls, type_: SequenceType, always_packed: bool = False) -> ElementKind | None:
        """The kind of a sequence type; None for elements of unknown rank or type.

        Assumption if elements have declared sizes: forms for elements of unknown sizes are several times slower.
        """
        element = type_.element
        if element.dtype is None or element.shape is None:
            return None
        assume_fixed(element.shape)
        return cls(element.dtype, tuple(d if isinstance(d, int) else -1 for d in element.shape), always_packed)

    @property
    def way(self) -> type[Layout]:
        if self.always_packed or self.dims.count(-1) > 1:
            return Packed
        return Joined if -1 in self.dims else Stacked

    @property
    def axis(self) -> int:
        return self.dims.index(-1)

    def types(self) -> tuple[TensorType, ...]:
        """The types of the tensors, for any length."""
        if self.way is Stacked:
            return (TensorType(self.dtype, (fresh(), *self.dims)),)
        if self.way is Joined:
            dims = tuple(fresh() if dim < 0 else dim for dim in self.dims)
            return TensorType(self.dtype, dims), TensorType(i64, (fresh(),))
        return TensorType(self.dtype, (fresh(),)), TensorType(i64, (fresh(), max(len(self.dims), 1)))

    def made(self, tensors: Sequence[Value]) -> Layout:
        """The sequence that these tensors hold."""
        if self.way is Stacked:
            return Stacked(*tensors)
        data, beside = tensors
        return Joined(data, beside, self.axis) if self.way is Joined else Packed(data, beside, self.dims)

    def empty(self, graph: Graph) -> Layout:
        first, *rest = self.types()
        shape = [0 if not isinstance(dim, int) else dim for dim in first.dims]
        data = F.Constant(np.zeros(shape, self.dtype.numpy), graph=graph, dtype=self.dtype)
        return self.made([data, *(shapes.numbers(graph, np.zeros([0, *each.dims[1:]])) for each in rest)])

    def of_items(self, items: Sequence[Value]) -> Layout:
        """The sequence of these elements, at least one."""
        graph = items[0].graph
        if self.way is Stacked:
            return Stacked(shapes.joined([F.Unsqueeze(each, [0]) for each in items], 0))
        if self.way is Joined:
            sizes = shapes.vector(graph, [shapes.dims_of(each)[self.axis] for each in items])
            return Joined(shapes.joined(items, self.axis), sizes, self.axis)
        flat = shapes.joined([each.reshape([-1]) for each in items], 0)
        lines = [F.Unsqueeze(each.sizes, [0]) if self.dims else shapes.numbers(graph, [[1]]) for each in items]
        return Packed(flat, shapes.joined(lines, 0), self.dims)

    def of_layout(self, layout: Layout) -> Layout:
        """The same sequence in the layout of this kind."""
        if self.way is Packed:
            loose = packed(layout)
            return Packed(loose.data, loose.table, self.dims)  # later elements may differ in more dimensions
        if isinstance(layout, self.way) and not (isinstance(layout, Joined) and layout.axis != self.axis):
            return layout
        if self.way is Joined:
            if isinstance(layout, Stacked):
                data = layout.concatenated(self.axis, new_axis=False)
                each = shapes.size(layout.stack, self.axis + 1)
                return Joined(data, shapes.repeated(each, shapes.size(layout.stack, 0), data.graph), self.axis)
            loose = packed(layout)
            source = Packed(loose.data, loose.table, self.dims)
            sizes = F.Gather(loose.table, np.array(self.axis), 1)
            return Joined(source.concatenated(self.axis, new_axis=False), sizes, self.axis)
        loose = packed(layout)
        return Stacked(shapes.reshaped(loose.data, [shapes.size(loose.table, 0), *self.dims]))


def packed(layout: Layout) -> Packed:
    """Any sequence as Packed."""
    if isinstance(layout, Packed):
        return layout
    graph = layout.tensors[0].graph
    if isinstance(layout, Stacked):
        dims = shapes.dims_of(layout.stack)
        flat = layout.stack.reshape([-1])
        line = shapes.vector(graph, dims[1:] or [1])
        table = F.Broadcast(line, shapes.vector(graph, [dims[0], max(len(dims) - 1, 1)]))
        return Packed(flat, table, _static(layout.stack.type.dims[1:]))
    dims = shapes.dims_of(layout.data)
    if not isinstance(dims[layout.axis], int):  # the runtime may confuse the size of a Concat with another one
        dims[layout.axis] = F.Gather(shapes.offsets(layout.sizes), [-1], 0)
    count = shapes.size(layout.sizes, 0)
    columns = [layout.sizes if i == layout.axis else shapes.repeated(dim, count, graph) for i, dim in enumerate(dims)]
    table = shapes.joined([shapes.column(each) for each in columns], 1)
    flat = layout.data if layout.axis == 0 else _separated(layout, dims)
    static = _static(layout.data.type.dims)
    return Packed(flat.reshape([-1]), table, (*static[: layout.axis], -1, *static[layout.axis + 1 :]))


def _separated(layout: Joined, dims: Sequence[Value | int]) -> Value:
    """The rows of joined data in the order of the elements: the inverse of `Packed._interleaved`.

    Row r belongs to the element i with before*O[i] <= r < before*O[i+1]; with k = r - before*O[i] it is row
    O[i] + k mod sizes[i] of block k div sizes[i].
    """
    graph, axis = layout.data.graph, layout.axis
    before, after = (shapes.product(graph, part) for part in (dims[:axis], dims[axis + 1 :]))
    total = shapes.vector(graph, [dims[axis]])
    count = F.Reshape(before * total, np.zeros(0, np.int64))
    row = F.Range(shapes.numbers(graph, 0), count, shapes.numbers(graph, 1), output_type=i64)
    element = _owner(row, F.CumSum(layout.sizes, 0) * before)
    start = F.Gather(shapes.offsets(layout.sizes), element, 0)
    sizes = F.Maximum(F.Gather(layout.sizes, element, 0), np.int64(1))
    local = row - start * before
    within = local % sizes
    block = F.Divide(local - within, sizes)  # divisible: the runtime may round otherwise
    place = block * total + (start + within)
    return F.Gather(F.Reshape(layout.data, shapes.vector(graph, [before * total, after])), place, 0)


def _owner(row: Value, ends: Value) -> Value:
    """For each row the number of parts that end at or before it: the index of its part."""
    return F.ReduceSum(F.Convert(F.GreaterEqual(shapes.column(row), ends), destination_type=i64), [1])


def bounds(sizes: Value, position: Value) -> tuple[Value, Value]:
    """Start and end of the part at a position ([1], not negative)."""
    starts = shapes.offsets(sizes)
    next_ = shapes.plus(position, np.array([1]))
    return F.Gather(starts, position, 0), F.Gather(starts, next_, 0)


def _spliced(x: Value, axis: int, start: Value, stop: Value, *between: Value) -> Value:
    """x[:start], the values `between`, x[stop:], concatenated."""
    return F.Concat(shapes.cut(x, axis, None, start), *between, shapes.cut(x, axis, stop, None), axis=axis)


def _static(dims: Sequence[Any]) -> tuple[int, ...]:
    return tuple(dim if isinstance(dim, int) else -1 for dim in dims)
