"""Buffers into which every step writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import Dimension, least
from mo_loop.graph.types import i32, i64
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.port_map import Merged
from mo_loop.transforms.loops.closed_forms import is_read_only_behind
from mo_loop.transforms.loops.lifted import squeezed, unsqueezed
from mo_loop.transforms.loops.loop_pass import LoopPass
from mo_loop.transforms.loops.outer import carried, may_be_carried, with_known_sizes
from mo_loop.transforms.port_maps import drop_unused_ports
from mo_loop.transforms.replace import move_readers, replace_output
from mo_loop.transforms.slice_reads import Index

MOVEMENT = (ops.Unsqueeze, ops.Squeeze, ops.Reshape, ops.Broadcast, ops.Identity, ops.Convert)
"""Operations whose result has no other numbers than their first input."""


class WriteBehindLoops(LoopPass):
    """for t: s = ScatterNDUpdate(s, P[t], X[t])  ->  for t: P[t], X[t]; then s = ScatterNDUpdate(s, P, X)

    A state that the steps write is written once after the loop, at the places of all steps. In each step the runtime
    would copy it. The body may read the row that the step before has written: that becomes a state of its own. It reads
    nothing else of the buffer.

    All steps must write different places: a column of the indices is factor * t + offset, the same for all places of a
    step, and never below 0, where it would count from the end.
    """

    def rewrite(self, node: Iteration) -> bool:
        found = [each for entry in node.back_edges if (each := _buffer(node, entry)) is not None]
        if not found:
            return self.refuse(node, "it has no state that its steps write at different places, and do not read")
        for buffer in found:
            if buffer.reads:
                _carry_last_row(node, buffer)
            finals = zip(node.output_map, node.outputs, strict=True)
            outputs = [output for each, output in finals if each.result.value is buffer.write.output]
            written = (_of_all_steps(node, each) for each in buffer.write.operands[1:])
            made = ops.ScatterNDUpdate(buffer.initial(node), *written).output
            for output in outputs:
                move_readers(output, made, output.uses)
        drop_unused_ports(node)
        return self.accept(node, f"{len(found)} buffers")


@dataclass(frozen=True)
class _Buffer:
    """A state that `write` replaces at `place`; `reads` read the row that the step before has written."""

    entry: Merged
    write: ops.ScatterNDUpdate
    place: Index
    reads: list[ops.Gather]

    def initial(self, node: Iteration) -> Value:
        return next(value for entry, value in node.fed if entry is self.entry)


def _buffer(node: Iteration, entry: Merged) -> _Buffer | None:
    state, write = entry.parameter.output, entry.result.value.node
    if not isinstance(write, ops.ScatterNDUpdate) or getattr(write, "reduction", "none") != "none":
        return None
    data, places, new = write.operands
    if data is not state or not all(may_be_carried(node, each) for each in (places, new)):
        return None
    found = (index for column in _columns(places) if (index := _index(node, column)) is not None)
    place = next((index for index in found if _is_never_repeated(node, index)), None)
    reads = [use.node for use in state.uses if isinstance(use.node, ops.Gather)]
    if place is None or not is_read_only_behind(node, entry, write, *reads):
        return None
    if reads and not (_is_row(write) and all(_reads_previous(node, place, each) for each in reads)):
        return None
    return _Buffer(entry, write, place, reads)


def _of_all_steps(node: Iteration, value: Value) -> Value:
    return with_known_sizes(node, carried(node, value), value.type.dims)


def _is_row(write: ops.ScatterNDUpdate) -> bool:
    """Whether one row is written, which has the shape of every row."""
    state, places, new = (each.type.dims for each in write.operands)
    return places == (1, 1) and new[1:] == state[1:]


def _reads_previous(node: Iteration, place: Index, read: ops.Gather) -> bool:
    """Whether a row is read that the step before has written, or before the first step the row at a known place."""
    index = _index(node, read.operands[1])
    is_row = read.operands[2].type.integers == (0,) and read.operands[1].type.dims in ((), (1,)) and not read.batch_dims
    before = Index(place.factor, place.offset - place.factor)
    return is_row and index == before and isinstance(before.offset, int)


def _carry_last_row(node: Iteration, buffer: _Buffer) -> None:
    """Replace the reads by a state, the row that the step before has written."""
    first = ops.Gather(buffer.initial(node), buffer.place.offset - buffer.place.factor, 0).output
    parameter = Parameter(graph=node.body, type=first.type.without_known())
    row = Result(squeezed(buffer.write.operands[2], 0))
    for read in buffer.reads:
        replace_output(read.output, unsqueezed(parameter.output, [0]) if read.operands[1].rank else parameter.output)
    node.input_map = (*node.input_map, Merged(parameter, row))
    node.graph.set_inputs(node, [*node.inputs, first])


def _columns(places: Value) -> Iterable[Value]:
    """Values that make columns of the indices: each place has one of its numbers from them."""
    made = places.node
    if isinstance(made, ops.Concat) and made.axis in (-1, places.type.rank - 1):
        return made.operands
    return (places,)


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
    if isinstance(made, ops.Add | ops.Subtract):
        a, b = (_index(node, each) for each in made.operands)
        if a is not None and b is not None:
            sign = 1 if isinstance(made, ops.Add) else -1
            return Index(a.factor + sign * b.factor, a.offset + sign * b.offset)
    return None
