"""The slices that the body of a counted loop reads, recognised by how it uses the iteration number.

    for i in range(n):
        X[i]            Gather(X, i)                  forward, without the axis
        X[:, i:i+1]     Slice(X, [i], [i + 1])        forward, a dimension of 1 at axis 1
        X[n - 1 - i]    Gather(X, (n - 1) - i)        backward; Gather(X, -1 - i) is the same

The iteration number is followed as factor * i + offset through additions, subtractions and changes of shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mo_loop.graph.dimension import Dimension
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import i32, i64
from mo_loop.ops.control import Loop
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Invariant
from mo_loop.transforms.vocabulary import Node, Value, ops


@dataclass(frozen=True)
class Index:
    """factor * i + offset, where i is the iteration number."""

    factor: int
    offset: Dimension

    def __add__(self, other: Index) -> Index:
        return Index(self.factor + other.factor, self.offset + other.offset)

    def __sub__(self, other: Index) -> Index:
        return Index(self.factor - other.factor, self.offset - other.offset)

    def __mul__(self, times: int) -> Index:
        return Index(self.factor * times, self.offset * times)


Cut = tuple[int, int, int, int]
"""Start, stop, step and axis of a Slice."""

Items = tuple[Index, ...]
"""The elements of a scalar or vector."""


@dataclass(frozen=True)
class SliceRead:
    """`node` reads slice i of the tensor of `entry`, in reverse order if `reverse`, with a dimension of 1 if `keeps`.

    `rest` holds start, stop, step and axis of the selections of the same Slice along other axes.
    """

    node: ops.Gather | ops.Slice
    entry: Invariant
    axis: int
    reverse: bool
    keeps: bool
    rest: tuple[Cut, ...] = ()

    @property
    def length(self) -> Dimension:
        """The number of slices of the tensor."""
        return self.entry.parameter.output.type.dims[self.axis]


class _OtherUse(Exception):
    """Raised with the reason why the iteration number is used for something other than slices."""


def ends_by_trip_count(loop: Loop) -> bool:
    """Whether its execution condition and its condition are proven true: only the trip count ends the loop."""
    starts = loop.inputs[1]
    return starts is not None and starts.type.integers == (1,) and loop.continues_always


def slice_reads(loop: Loop) -> tuple[list[SliceRead], str]:
    """All reads of slices if the iteration number is used for nothing else; otherwise the reason."""
    if loop.iteration is None:
        return [], "its body does not read the iteration number"
    entries: dict[Node, Invariant] = {e.parameter: e for e in loop.input_map if isinstance(e, Invariant)}
    derived: dict[Value, Items] = {loop.iteration.output: (Index(1, 0),)}
    reads: list[SliceRead] = []
    try:
        for node in loop.body.ordered():
            if not any(value in derived for value in node.inputs):
                continue
            items = _items_made(node, derived)
            if items is not None:
                derived[node.outputs[0]] = items
            elif node.is_used:
                reads.append(_read(node, derived, entries))
    except _OtherUse as other:
        return [], str(other)
    return reads, "" if reads else "it reads no slices"


def _items_made(node: Node, derived: dict[Value, Items]) -> Items | None:
    """The elements that `node` computes from indices; None if its output is not an index."""
    if isinstance(node, ops.Concat):
        parts = [_items(value, derived) for value in node.inputs]
        if any(part is None for part in parts) or node.output.rank != 1:
            return None
        return tuple(item for part in parts if part is not None for item in part)
    if isinstance(node, ops.SameElements | ops.Convert):
        kept = _items(node.inputs[0], derived)
        known = node.output.dtype in (i32, i64) and node.output.rank in (0, 1)
        return kept if known and kept is not None and len(kept) == 1 else None
    if isinstance(node, ops.Add | ops.Subtract) and node.output.rank in (0, 1):
        a, b = (_items(value, derived) for value in node.inputs)
        if a is None or b is None or len(a) != 1 or len(b) != 1:
            return None
        return (a[0] + b[0] if isinstance(node, ops.Add) else a[0] - b[0],)
    return None


def _items(value: Value | None, derived: dict[Value, Items]) -> Items | None:
    if value is None:
        return None
    if value in derived:
        return derived[value]
    known = value.type.known
    return None if known is None or known.ndim > 1 else tuple(Index(0, item) for item in known.flat)


def _read(node: Node, derived: dict[Value, Items], entries: dict[Node, Invariant]) -> SliceRead:
    if not isinstance(node, ops.Gather | ops.Slice):
        raise _OtherUse("the iteration number is used for something other than slices")
    data = node.inputs[0]
    if data is None or data in derived or data.node not in entries or data.rank is None:
        raise _OtherUse(f"a {node.type} by the iteration number reads a tensor computed in the body")
    if isinstance(node, ops.Gather):
        return _gathered(node, derived, entries[data.node])
    return _sliced(node, derived, entries[data.node])


def _gathered(node: ops.Gather, derived: dict[Value, Items], entry: Invariant) -> SliceRead:
    data, index = node.operands[:2]
    items = derived.get(index)
    if items is None or len(items) != 1 or node.batch_dims or node.along is None or index.rank is None:
        raise _OtherUse("a Gather by the iteration number reads several slices, or along an unknown axis")
    (at,) = node.along
    length = data.type.dims[at]
    for reverse, starts in ((False, (0, -length)), (True, (length - 1, -1))):
        if items[0].factor == (-1 if reverse else 1) and items[0].offset in starts:
            return SliceRead(node, entry, at, reverse, keeps=index.rank == 1)
    raise _OtherUse("a Gather by the iteration number does not start at an end")


def _sliced(node: ops.Slice, derived: dict[Value, Items], entry: Invariant) -> SliceRead:
    data = node.operands[0]
    start, stop, step = (_items(value, derived) for value in node.inputs[1:4])
    if start is None or stop is None or step is None:
        raise _OtherUse("a Slice by the iteration number has unknown bounds")
    places = _axes(node, len(start), len(data.type.dims))
    moving = [k for k, bounds in enumerate(zip(start, stop, step, strict=True)) if any(each.factor for each in bounds)]
    if len(moving) != 1:
        raise _OtherUse("a Slice by the iteration number moves along several axes")
    (at,) = moving
    axis = places[at]
    length = data.type.dims[axis]
    first = {1: 0, -1: length - 1}.get(start[at].factor)
    is_piece = stop[at] == start[at] + Index(0, 1) and step[at] == Index(0, 1)
    if not is_piece or first is None or start[at].offset != first:
        raise _OtherUse("a Slice by the iteration number does not read one slice after another from an end")
    rest = _rest(start, stop, step, places, at)
    return SliceRead(node, entry, axis, start[at].factor < 0, keeps=True, rest=rest)


def _axes(node: ops.Slice, count: int, rank: int) -> list[int]:
    axes = node.inputs[4] if len(node.inputs) > 4 else None
    if axes is None:
        return list(range(count))
    if axes.type.integers is None:
        raise _OtherUse("the axes of a Slice by the iteration number are unknown")
    return [normalise_axis(axis, rank) for axis in axes.type.integers]


def _rest(start: Items, stop: Items, step: Items, axes: Sequence[int], at: int) -> tuple[Cut, ...]:
    """The ranges of the Slice along other axes, without axes that are selected as a whole."""
    rest = []
    for place, axis in enumerate(axes):
        first, end, stride = start[place].offset, stop[place].offset, step[place].offset
        if place == at or (first == 0 and stride == 1 and isinstance(end, int) and end >= FAR):
            continue
        if not (isinstance(first, int) and isinstance(end, int) and isinstance(stride, int)) or axis == axes[at]:
            raise _OtherUse("a Slice by the iteration number has unknown bounds along another axis")
        rest.append((first, end, stride, axis))
    return tuple(rest)
