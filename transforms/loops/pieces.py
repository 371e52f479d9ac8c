"""Steps of a loop apart from it: their number, inputs and outputs, and the replacement of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mo_loop.graph.dimension import least
from mo_loop.graph.types import i64
from mo_loop.ops.control import Control, Iteration, TensorIterator
from mo_loop.ops.lengths import Length, dimension, joined
from mo_loop.ops.port_map import Concatenated, Sliced
from mo_loop.transforms.replace import move_readers, replace_output
from mo_loop.transforms.vocabulary import Graph, Result, Value, is_static, ops

SIZES = "the runtime may find that it does not need an input, and refuses several slices in an iteration then"
"""Why a loop that `reads_only_sizes` keeps one step in an iteration."""

FEW = "few_steps"
"""The name of a branch for a loop that has few steps."""

ANY_SIZES = "any_sizes"
"""The name of a branch for other sizes than the declared ones."""


def loops_in(body: Graph) -> list[Iteration]:
    """The loops of a body and of the bodies in it."""
    return [each for scope in body.scopes() for each in scope.nodes_with_bodies() if isinstance(each, Iteration)]


def number_of_steps(node: Iteration) -> Value:
    """The number of steps, a scalar that is not below 0."""
    if isinstance(node, TensorIterator):
        entry, value = next((entry, value) for entry, value in node.fed if isinstance(entry, Sliced))
        return ops.Gather(ops.ShapeOf(value), entry.axis, 0).output
    trip = node.operands[0]
    trip = ops.Convert(trip, destination_type=i64).output if trip.dtype is not i64 else trip
    trip = ops.Reshape(trip, []).output if trip.shape != () else trip
    known = trip.type.known
    return trip if known is not None and least(known.reshape(-1)[0]) >= 0 else ops.Maximum(trip, 0).output


def put_in_place(node: Iteration, loop: Control, values: Sequence[Value]) -> None:
    """Readers of the outputs of `node` read `values`."""
    loop.rt_info.update(node.rt_info)
    for output, value in zip(node.outputs, values, strict=True):
        if value.node is loop:
            replace_output(output, value)  # a layer of several outputs keeps its name
        elif output.is_used:
            move_readers(output, value, output.uses)
    node.graph.remove(node)


def in_order(pieces: Sequence[Value], entry: Sliced | Concatenated) -> list[Value]:
    """Pieces along the axis in the order of the steps, and pieces of the steps in the order along the axis."""
    return list(pieces) if entry.stride > 0 else list(reversed(pieces))


def part_of(value: Value, entry: Sliced, start: Length, stop: Length, count: Length) -> Value:
    """The slices of the steps from `start` to `stop` of `count`."""
    if isinstance(stop, int) and (start, stop) == (0, count):
        return value
    first, end = (start, stop) if entry.stride > 0 else (count - stop, count - start)
    return ops.Slice(value, joined([first], value), joined([end], value), [1], [entry.axis]).output


def is_widened(entry: Concatenated) -> bool:
    """Whether the pieces of steps are concatenated along the axis after that of the loop, which moves no element."""
    return isinstance((*entry.result.value.type.dims[entry.axis + 1 :], None)[0], int)


def one_piece(steps: Value, entry: Concatenated) -> Concatenated:
    """The k pieces of an iteration as one, because the runtime concatenates no others on GPUs: [.., 1, k, d, ..]."""
    declared = (*entry.declared[: entry.axis + 1], -1, *entry.declared[entry.axis + 1 :]) if entry.declared else ()
    return replace(entry, result=Result(ops.Unsqueeze(steps, [entry.axis]).output), declared=declared)


def as_steps(y: Value, entry: Concatenated, count: int, *, moved: bool = True) -> Value:
    """The steps of all iterations, of `count` in each: [.., n, k, d, ..]  ->  [.., n k, d, ..]

    If the axes behind have not `moved`, y is [.., n, k d, ..].
    """
    dims, axis, behind = y.type.dims, entry.axis, entry.result.value.type.dims[entry.axis + 1 :]
    shape: list[Any] = [*dims[:axis], dims[axis] * count, *behind]
    unknown = [at for at, size in enumerate(shape) if not isinstance(size, int)]
    if len(unknown) == 1 and 0 not in shape:
        shape[unknown[0]] = -1
    else:
        for at in unknown:
            size = dimension(y, at + 1 if moved and at > axis else at)
            shape[at] = size * count if at == axis else size
    return ops.Reshape(y, joined(shape, y)).output


def as_number(number: Value, iteration: Value) -> Value:
    """A number with the type and the shape of an iteration number."""
    if number.dtype is not iteration.dtype:
        number = ops.Convert(number, destination_type=iteration.dtype).output
    dims = list(iteration.type.dims) if is_static(iteration.shape) else []
    return number if list(number.type.dims) == dims else ops.Reshape(number, dims).output
