"""The slices that the body of a counted loop reads, recognised by how it uses the iteration number.

    for i in range(n):
        X[i]            Gather(X, i)                  forward, without the axis
        X[:, i:i+1]     Slice(X, [i], [i + 1])        forward, a dimension of 1 at axis 1
        X[n - 1 - i]    Gather(X, (n - 1) - i)        backward; Gather(X, -1 - i) is the same

The iteration number is followed as factor * i + offset through additions, subtractions and changes of shape.

Other reads and writes by an index: `indexed_reads` finds which of them are those of its own step.

    for i in range(n): x[i]                     the step's own element: in one step of a sequence that is x[0]
    for i in range(n): x[max(i - 1, 0)]         an element of another step, which one step alone does not have

The first index is the iteration number, or a state that starts at 0 and grows by 1 in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mo_loop.graph import Dim, Dimension, i32, i64, normalise_axis
from mo_loop.ops.control import Control, Iteration, Loop
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Invariant, Merged
from mo_loop.support.traversal import reached
from mo_loop.transforms.vocabulary import F, Graph, Node, Parameter, Value, is_static, ops


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


_INDEXED = (
    ops.Gather, ops.GatherND, ops.GatherElements, ops.Slice, ops.ScatterUpdate, ops.ScatterNDUpdate,
    ops.ScatterElementsUpdate,
)

IsStep = Callable[[Dimension], bool]


def has_one_element(dim: Dimension) -> bool:
    """Whether an axis of this size counts as the axis of the sequence, which has one step."""
    return dim == 1


def indexed_reads(node: Iteration, is_step: IsStep = has_one_element) -> list[Node]:
    """The nodes that index an outer tensor or a state of a loop, along an axis of steps, by a number that the loop
    carries.

    Reads in the bodies of inner loops and branches are among them.
    """
    carried = {entry.parameter for entry in node.back_edges if entry.parameter.output.dtype.is_integer}
    if isinstance(node, Loop) and node.iteration is not None:
        carried.add(node.iteration)
    whole = {entry.parameter for entry in node.input_map if isinstance(entry, Invariant)}
    whole |= {entry.parameter for entry in node.back_edges}
    return [
        each for each in _all_nodes(node.body)
        if isinstance(each, _INDEXED) and _source(each.operands[0], node).node in whole
        and _has_step_axis(each, is_step) and _depends(each.operands[1], carried, node)
    ]


def indexed_data(node: Iteration) -> Iterator[tuple[Value, int]]:
    """The outer tensors that a loop indexes by the number of its step, and the axes."""
    outer = {entry.parameter.output: value for entry, value in node.fed if isinstance(entry, Invariant)}
    for reader in indexed_reads(node):
        source, axis = outer.get(_source(reader.operands[0], node)), _indexed_axis(reader)
        if source is not None and axis is not None:
            yield source, axis


def lengths_by_index(node: Iteration) -> Iterator[Dimension]:
    """The sizes of the axes that a loop indexes by the number of its step."""
    for reader in indexed_reads(node, lambda dim: isinstance(dim, Dim)):
        axis = _indexed_axis(reader)
        if axis is not None and isinstance(reader, ops.Gather) and _is_step_number(node, reader):
            yield reader.operands[0].type.dims[axis]


def obstacle_of_reads(node: Iteration) -> tuple[str, str] | None:
    """The reason why the indices of a loop need more than one step, and the advice."""
    for reader in indexed_reads(node):
        if not isinstance(reader, ops.Gather | ops.ScatterUpdate):
            text = f"reads or writes its sequence by an index that it carries ({reader.label})"
            return text, "export the loop as a Scan, or read the sequence with Gather"
    return obstacle_of_places(node)


def obstacle_of_places(node: Iteration, is_step: IsStep = has_one_element) -> tuple[str, str] | None:
    """The obstacle of a loop that reads or writes the element of another step."""
    for reader in indexed_reads(node, is_step):
        if isinstance(reader, ops.Gather | ops.ScatterUpdate) and not _is_step_number(node, reader):
            text = f"reads or writes its sequence at another place than that of the step ({reader.label})"
            return text, "export a loop whose index is the iteration number, or carry what other steps read as a state"
    return None


def index_with_zero(node: Iteration) -> None:
    """X[i]  ->  X[0] where X has one element along that axis: in one step of a sequence that is the one of the step."""
    for reader in indexed_reads(node):
        index = reader.operands[1]
        if is_static(index.shape):
            zero = F.Constant(np.zeros(index.type.dims, np.int64), graph=reader.graph, dtype=index.dtype)
        else:
            zero = index * 0
        reader.graph.set_input(reader, 1, zero)


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.ordered():
        yield node
        for body in node.bodies:
            yield from _all_nodes(body)


def _source(value: Value, loop: Iteration) -> Value:
    """The value in the body of the loop that a value in an inner body is."""
    while value.graph is not loop.body and isinstance(value.node, Parameter):
        owner = value.graph.owner
        assert isinstance(owner, Control)
        entry = next((each for each in owner.input_map if value.node in vars(each).values()), None)
        outer = owner.outer(value.node)
        if outer is None or isinstance(entry, Merged):
            return value
        value = outer
    return value


def _depends(value: Value, carried: set[Parameter], loop: Iteration) -> bool:
    """Whether a value is computed from one of the Parameters of the loop."""

    def sources(node: Node) -> list[Node]:
        owner = node.graph.owner
        if isinstance(node, Parameter) and node.graph is not loop.body and isinstance(owner, Control):
            outer = owner.outer(node)
            return [] if outer is None else [outer.node]
        return [each.node for each in node.operands]

    return any(node in carried for node in reached([value.node], sources))


def _has_step_axis(node: Node, is_step: IsStep) -> bool:
    """Whether the axis that is indexed is one of steps; where it is not known, whether any axis is."""
    shape, axis = node.operands[0].shape, _indexed_axis(node)
    if shape is None:
        return False
    return is_step(shape[axis]) if axis is not None else any(map(is_step, shape))


def _indexed_axis(node: Node) -> int | None:
    return node.along[0] if isinstance(node, ops.Gather | ops.ScatterUpdate) and node.along else None


def _is_step_number(loop: Iteration, reader: Node) -> bool:
    """Whether the index of a read is the number of the iteration: i, or a state that starts at 0 and grows by 1."""
    (data, index), axis = reader.operands[:2], _indexed_axis(reader)
    last = None if axis is None else data.type.dims[axis] - 1
    value = _plain(index, loop, last)
    if isinstance(loop, Loop) and value.node is loop.iteration:
        return True
    for entry, first in loop.fed:
        if isinstance(entry, Merged) and entry.parameter.output is value:
            start = first.type.integers
            return start is not None and not any(start) and _is_next(entry, loop, last)
    return False


def _is_next(entry: Merged, loop: Iteration, last: Dimension | None) -> bool:
    """Whether the next value of a state is the state + 1."""
    node = _plain(entry.result.value, loop, last).node
    if not isinstance(node, ops.Add):
        return False
    a, b = node.operands
    state = entry.parameter.output
    return any(
        _plain(one, loop, last) is state and other.type.integers is not None and set(other.type.integers) == {1}
        for one, other in ((a, b), (b, a))
    )


def _plain(value: Value, loop: Iteration, last: Dimension | None) -> Value:
    """The integer, from 0 to `last`, before operations that do not change such a one."""
    while True:
        value = _source(value, loop)
        before = _before(value, loop, last)
        if before is None:
            return value
        value = before


def _before(value: Value, loop: Iteration, last: Dimension | None) -> Value | None:
    node = value.node
    inputs = list(node.operands)
    if isinstance(node, ops.SameElements):
        return inputs[0]
    if isinstance(node, ops.Convert):
        is_same = inputs[0].dtype.is_integer and value.dtype.is_integer and value.dtype.bits >= 32
        return inputs[0] if is_same else None
    if isinstance(node, ops.Maximum | ops.Minimum):  # as exporters keep an index within its bounds
        bound: Dimension | None = 0 if isinstance(node, ops.Maximum) else last
        others = [a for a, b in (inputs, reversed(inputs)) if bound is not None and _is_all(b, bound)]
        return others[0] if others else None
    if isinstance(node, ops.Select) and isinstance(inputs[0].node, ops.Less):  # i + n if i < 0 else i
        index, zero = inputs[0].node.operands
        is_same = _is_all(zero, 0) and _plain(index, loop, last) is _plain(inputs[2], loop, last)
        return inputs[2] if is_same else None
    return None


def _is_all(value: Value, wanted: Dimension) -> bool:
    known = value.type.known
    return known is not None and all(each == wanted for each in known.reshape(-1))
