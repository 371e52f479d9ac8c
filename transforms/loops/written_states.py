"""States to which every step appends, and buffers into which every step writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from mo_loop.graph.dimension import Dimension, least, low
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import i32, i64
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.lengths import as_value
from mo_loop.ops.port_map import Invariant, Merged
from mo_loop.transforms.loops.closed_forms import is_read_only_after
from mo_loop.transforms.loops.lifted import squeezed, unsqueezed, with_sizes
from mo_loop.transforms.loops.loop_pass import LoopPass
from mo_loop.transforms.loops.outer import carried, concatenated, may_be_carried, may_end, with_known_sizes
from mo_loop.transforms.loops.step_rules import is_count
from mo_loop.transforms.port_maps import add_input, captured, drop_unused_ports
from mo_loop.transforms.replace import move_readers, replace_output
from mo_loop.transforms.slice_reads import Index
from mo_loop.transforms.vocabulary import F, Node, Parameter, Result, Value, is_static, ops


class ConcatenateGrowingStates(LoopPass):
    """for t: s = concat(s, x[t])  ->  for t: X[t] = x[t]; then s = concat(s, X)

    A state that nothing reads but its own concatenation, with a piece of length 1, becomes a concatenated output; so
    does one to which steps prepend. The runtime would copy the state in every step. A piece that is repeated, as
    PyTorch exports repeat_interleave, is one of length 1 and a number K[t]: the step then appends X[t] K[t] times.
    """

    def rewrite(self, node: Iteration) -> bool:
        found = [(entry, first, piece) for entry, first in node.fed if (piece := _appended(node, entry)) is not None]
        if not found:
            return self.refuse(node, "no state is only appended to")
        for entry, first, piece in found:
            _concatenate(node, entry, first, piece)
        drop_unused_ports(node)
        return self.accept(node)


@dataclass(frozen=True)
class _Appended:
    """The value that a step appends or prepends to a state: `value`, of length 1 along `axis`, or that `count` times.
    """

    value: Value
    axis: int
    appends: bool
    count: Value | None = None


def _appended(node: Iteration, entry: object) -> _Appended | None:
    """Return the value that a step appends or prepends to a state that nothing else reads."""
    if not isinstance(entry, Merged):
        return None
    state, made = entry.parameter.output, entry.result.value.node
    if not isinstance(made, ops.Concat) or len(made.operands) != 2 or [use.node for use in state.uses] != [made]:
        return None
    if any(not isinstance(use.node, Result) for use in made.output.uses):
        return None
    if any(each.result.value is made.output and each.result is not entry.result for each in node.output_map):
        return None
    (value,) = (value for value in made.operands if value is not state)
    if value.shape is None:
        return None
    axis, appends = normalise_axis(made.axis, len(value.shape)), made.operands[1] is value
    if value.shape[axis] == 1:
        return _Appended(value, axis, appends)
    return _repeated(value, axis) if appends else None


def _repeated(value: Value, axis: int) -> _Appended | None:
    """A Broadcast along one axis, or its Reshape that moves no element, as a piece of length 1 and its number."""
    dims = value.type.dims
    is_flat = isinstance(value.node, ops.Reshape)
    made = value.node.operands[0].node if is_flat else value.node
    if not isinstance(made, ops.Broadcast) or len(made.operands) != 2 or made.output.shape is None:
        return None
    (row, sizes), whole = made.operands, made.output.shape
    if row.rank != len(whole) or sizes.type.dims != (row.rank,):
        return None
    grown = [place for place, (old, new) in enumerate(zip(row.type.dims, whole, strict=True)) if old != new]
    if len(grown) != 1 or row.type.dims[grown[0]] != 1:
        return None
    if not is_flat:
        return _Appended(row, axis, True, F.Gather(sizes, grown, 0))
    pattern = [1 if place == axis else dim if isinstance(dim, int) else -1 for place, dim in enumerate(dims)]
    if _others(dims, axis) != _others(whole, grown[0]) or pattern.count(-1) > 1:
        return None
    one = F.Reshape(row, pattern)
    return _Appended(one, axis, True, F.Gather(sizes, grown, 0))


def _others(dims: Sequence[Dimension], axis: int) -> list[list[Dimension]]:
    """The sizes before an axis and after it, without those of 1."""
    return [[dim for dim in part if dim != 1] for part in (dims[:axis], dims[axis + 1 :])]


def _concatenate(node: Iteration, entry: Merged, first: Value, piece: _Appended) -> None:
    axis, dims = piece.axis, piece.value.type.dims
    finals = [number for number, each in enumerate(node.output_map) if each.result is entry.result]
    added = concatenated(node, piece.value, axis, backwards=not piece.appends)
    if low(node.count) < 1 and not all(isinstance(dim, int) for at, dim in enumerate(dims) if at != axis):
        added = with_sizes(added, axis, [first.size(at) for at in range(len(dims)) if at != axis])
    if piece.count is not None:
        added = F.Gather(added, _places(concatenated(node, piece.count, 0)), axis)
    if first.type.dims[axis] != 0:
        pair = (first, added) if piece.appends else (added, first)
        added = F.Concat(*pair, axis=axis)
    for number in finals:
        move_readers(node.outputs[number], added, node.outputs[number].uses)


def _places(counts: Value) -> Value:
    """0 counts[0] times, 1 counts[1] times, ...: how many of the ends are not after each place."""
    ends = F.CumSum(F.Concat(np.zeros(1, np.int64), counts, axis=0), 0)
    total = F.Gather(ends, [-1], 0)
    marks = F.ScatterElementsUpdate12(
        F.Broadcast(0, total + 1), ends, F.Broadcast(1, ends.sizes), 0, reduction="sum"
    )
    return F.CumSum(marks, 0)[:total] - 1


MOVEMENT = (ops.SameElements, ops.Broadcast, ops.Convert)
"""Operations whose result has no other numbers than their first input."""


class WriteBehindLoops(LoopPass):
    """for t: s[:, t] = x[t]  ->  for t: x[t]; then s[:, 0:T] = X

    A state that the steps write is written once after the loop, at the places of all steps: ScatterNDUpdate with the
    places and the elements of all steps as outputs, for whole slices ScatterUpdate, and if the steps write all slices
    in order, the output is the buffer. In each step the runtime would copy it.

    Of the buffer, the body may read the shape, which never changes; the slice that the step before has written, which
    becomes a state of its own; and the slice that it writes, which has its initial elements.

    All steps must write different places: a column of the indices is factor * t + offset, the same for all places of a
    step, and never below 0, where it would count from the end.
    """

    def rewrite(self, node: Iteration) -> bool:
        read = sum(_forward(node, entry.result.value.node) for entry in node.back_edges)
        found = [each for entry in node.back_edges if (each := _buffer(node, entry)) is not None]
        if not found:
            reason = "it has no state that its steps write at different places, and do not read"
            return self.accept(node, f"reads of written elements: {read}") if read else self.refuse(node, reason)
        for buffer in found:
            if buffer.previous:
                _read_previous(node, buffer)
            if buffer.own:
                whole = captured(node.body, buffer.initial(node))
                for read in buffer.own:
                    node.body.set_input(read, 0, whole)
            if buffer.shapes:
                _read_first_shape(node, buffer)
            outputs = [output for each, output in node.returned if each.result.value is buffer.write.output]
            made = _with_elements(node, buffer) if buffer.axis is None else _with_slices(node, buffer, buffer.axis)
            for output in outputs:
                move_readers(output, made, output.uses)
        drop_unused_ports(node)
        return self.accept(node, f"{len(found)} buffers")


def _forward(node: Iteration, write: Node) -> int:
    """Readers of the slice that the step has written read the elements that it wrote; returns their number."""
    if not _replaces(write):
        return 0
    found = 0
    for axis, column in enumerate(_columns(write.operands[1])):
        place = _index(node, column)
        if place is None or not _is_slice(write, axis):
            continue
        for read in [use.node for use in write.output.uses if isinstance(use.node, ops.Gather)]:
            if _distance(node, place, axis, read) == 0:
                written = write.operands[2]
                replace_output(read.output, written if read.operands[1].rank else squeezed(written, axis))
                node.body.remove(read)
                found += 1
    return found


def _replaces(node: Node) -> TypeGuard[ops.ScatterNDUpdate]:
    """Whether `node` replaces elements, all of known rank, and does not combine them with the old ones."""
    if not isinstance(node, ops.ScatterNDUpdate) or getattr(node, "reduction", "none") != "none":
        return False
    return all(each.shape is not None for each in node.operands)


@dataclass(frozen=True)
class _Buffer:
    """A state that `write` replaces at `place` along a column of the indices.

    `axis` is that of the slice which is replaced as a whole, if it is one. `own` read the slice that the step writes,
    `previous` the one that the step before has written, `shapes` the shape of the buffer.
    """

    entry: Merged
    write: ops.ScatterNDUpdate
    place: Index
    axis: int | None
    own: list[ops.Gather]
    previous: list[ops.Gather]
    shapes: list[ops.ShapeOf]

    def initial(self, node: Iteration) -> Value:
        return next(value for entry, value in node.fed if entry is self.entry)


def _buffer(node: Iteration, entry: Merged) -> _Buffer | None:
    state, write = entry.parameter.output, entry.result.value.node
    if not _replaces(write):
        return None
    data, places, new = write.operands
    if data is not state or not all(may_be_carried(node, each) for each in (places, new)):
        return None
    found = [(axis, _index(node, column)) for axis, column in enumerate(_columns(places))]
    ours = next(((axis, index) for axis, index in found if index is not None and _is_never_repeated(node, index)), None)
    slices = [use.node for use in state.uses if isinstance(use.node, ops.Gather)]
    shapes = [use.node for use in state.uses if isinstance(use.node, ops.ShapeOf)]
    if ours is None or not is_read_only_after(node, entry, write, *slices, *shapes):
        return None
    at, place = ours
    is_known = isinstance(place.offset, int) or _order(node, place, state.type.dims[at])
    axis = at if is_known and _is_slice(write, at) else None
    reads: dict[int | None, list[ops.Gather]] = {}
    for each in slices:
        reads.setdefault(None if axis is None else _distance(node, place, axis, each), []).append(each)
    if None in reads or (1 in reads and not isinstance(place.offset, int)):
        return None
    return _Buffer(entry, write, place, axis, reads.get(0, []), reads.get(1, []), shapes)


def _columns(places: Value) -> list[Value]:
    """Values that make columns of the indices: each place has one of its numbers from them."""
    made = places.node
    if isinstance(made, ops.Concat) and made.axis in (-1, places.type.rank - 1):
        return list(made.operands)
    return [places]


def _is_slice(write: ops.ScatterNDUpdate, axis: int) -> bool:
    """Whether all elements of one slice along an axis are written, in their order."""
    state, places, new = (each.type.dims for each in write.operands)
    columns = _columns(write.operands[1])
    whole = tuple(1 if each == axis else dim for each, dim in enumerate(state))
    depth = len(columns)
    if places != (*whole[:depth], depth) or new != whole:
        return False
    return all(at == axis or _counts_along(column, at) for at, column in enumerate(columns))


def _counts_along(value: Value, axis: int) -> bool:
    """Whether its numbers are 0, 1, 2, ... along an axis, and the same along the others."""
    known, made, dims = value.type.known, value.node, value.type.dims
    if known is not None:
        line = np.arange(known.shape[axis]).reshape([-1 if each == axis else 1 for each in range(known.ndim)])
        return bool(np.array_equal(np.broadcast_to(line, known.shape), known))
    if not isinstance(made, MOVEMENT):
        return axis == 0 and is_count(value)
    inner, at = made.operands[0], made.axis_map(0)[axis]
    if at is not None or not isinstance(made, ops.View):
        return at is not None and inner.type.dims[at] == dims[axis] and _counts_along(inner, at)
    outer_line, inner_line = ([at for at, dim in enumerate(each.type.dims) if dim != 1] for each in (value, inner))
    return outer_line == [axis] and len(inner_line) == 1 and _counts_along(inner, inner_line[0])


def _distance(node: Iteration, place: Index, axis: int, read: ops.Gather) -> int | None:
    """0 if a slice is read at the place that the step writes, 1 at that of the step before; else None."""
    index, at = _index(node, read.operands[1]), read.operands[2].type.integers
    if index is None or at != (axis,) or read.operands[1].shape not in ((), (1,)) or read.batch_dims:
        return None
    return {place: 0, _before(place): 1}.get(index)


def _before(place: Index) -> Index:
    """The place of the step before."""
    return place - Index(0, place.factor)


def _read_previous(node: Iteration, buffer: _Buffer) -> None:
    """Read the slice of the step before from a state of its own."""
    axis = buffer.axis
    assert axis is not None
    first = F.Gather(buffer.initial(node), _before(buffer.place).offset, axis)
    state = Parameter(graph=node.body, type=first.type.without_known())
    entry = Merged(state, Result(squeezed(_slice_of(buffer, axis), axis)))
    for read in buffer.previous:
        replace_output(read.output, unsqueezed(state.output, [axis]) if read.operands[1].rank else state.output)
    add_input(node, entry, first)


def _read_first_shape(node: Iteration, buffer: _Buffer) -> None:
    """Replace the reads of the shape by an invariant input, the shape of the initial value."""
    first = F.ShapeOf(buffer.initial(node), output_type=buffer.shapes[0].output_type)
    parameter = Parameter(graph=node.body, type=buffer.shapes[0].output.type)
    for each in buffer.shapes:
        replace_output(each.output, parameter.output)
    add_input(node, Invariant(parameter), first)


def _with_elements(node: Iteration, buffer: _Buffer) -> Value:
    """The buffer with the elements of all steps at the places of all steps."""
    written = (with_known_sizes(node, carried(node, each), each.type.dims) for each in buffer.write.operands[1:])
    return F.ScatterNDUpdate(buffer.initial(node), *written)


def _with_slices(node: Iteration, buffer: _Buffer, axis: int) -> Value:
    """The buffer with the slices of all steps."""
    initial, piece = buffer.initial(node), _slice_of(buffer, axis)
    order = _order(node, buffer.place, initial.type.dims[axis])
    whole = concatenated(node, piece, axis, backwards=order < 0)
    others = [each for each in range(piece.type.rank) if each != axis]
    if low(node.count) < 1 and not is_static(tuple(piece.type.dims[each] for each in others)):
        whole = with_sizes(whole, axis, [initial.size(each) for each in others])
    if order:
        return whole
    factor, offset = buffer.place.factor, buffer.place.offset
    assert isinstance(offset, int)
    ends = (offset, whole.size(axis) * factor + offset, factor)
    places = F.Range(*(as_value(each, whole.graph) for each in ends), output_type=i64)
    return F.ScatterUpdate(initial, places, whole, axis)


def _order(node: Iteration, place: Index, size: Dimension) -> int:
    """1 if the steps write all `size` slices from the first one on, -1 if from the last one on, else 0."""
    if may_end(node) or node.count != size:
        return 0
    return {Index(1, 0): 1, Index(-1, size - 1): -1}.get(place, 0)


def _slice_of(buffer: _Buffer, axis: int) -> Value:
    """The slice that is written, without the sizes that are computed for it in each step."""
    new = buffer.write.operands[2]
    made = new.node
    source = made.operands[0] if isinstance(made, ops.Reshape) else None
    dims = new.type.dims
    return new if source is None or source.shape != dims[:axis] + dims[axis + 1 :] else unsqueezed(source, [axis])


def _is_never_repeated(node: Iteration, index: Index) -> bool:
    """Whether it differs in all steps, and is never below 0."""
    last = 0 if index.factor > 0 else _steps(node) - 1
    return index.factor != 0 and least(index.factor * last + index.offset) >= 0


def _steps(node: Iteration) -> Dimension:
    """The most steps, of a loop that has any."""
    trip = node.operands[0].type.known if isinstance(node, Loop) else None
    return node.count if trip is None else np.ravel(trip)[0]


def _index(node: Iteration, value: Value) -> Index | None:
    """The iteration number times a factor, plus an offset, if all numbers of `value` are that."""
    if isinstance(node, Loop) and node.iteration is not None and value is node.iteration.output:
        return Index(1, 0)
    if value.dtype not in (i32, i64):
        return None
    known = value.type.known
    if known is not None and known.size:
        first = np.ravel(known)[0]
        return Index(0, first) if all(each == first for each in np.ravel(known)) else None
    made = value.node
    if isinstance(made, MOVEMENT):
        return _index(node, made.operands[0])
    if isinstance(made, ops.Add | ops.Subtract | ops.Multiply):
        a, b = (_index(node, each) for each in made.operands)
        if a is None or b is None:
            return None
        if isinstance(made, ops.Multiply):
            index, times = (a, b.offset) if b.factor == 0 else (b, a.offset)
            if 0 not in (a.factor, b.factor) or not isinstance(times, int):
                return None
            return index * times
        return a + b if isinstance(made, ops.Add) else a - b
    return None
