"""The LSTMSequence, GRUSequence or RNNSequence that is equivalent to a cell in a loop.

x [time, batch, input], h [batch, hidden]  ->  x [batch, time, input], h [batch, 1, hidden]  ->  the sequence
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import Dimension, low
from mo_loop.graph.types import i32
from mo_loop.ops.base import Constant
from mo_loop.ops.movement import FAR
from mo_loop.transforms.front.recurrence.cells import Gate, RecognisedCell
from mo_loop.transforms.front.recurrence.columns import width_of


@dataclass(frozen=True)
class Leaf:
    """A slice that the body reads: `value` in the body, of `outer` along `axis`, in reverse order if `reverse`."""

    value: Value
    outer: Value
    axis: int
    reverse: bool


@dataclass(frozen=True)
class EmittedOutputs:
    """All hidden states [batch, time, hidden] in the order of the slices, and the final states [batch, hidden]."""

    node: Any
    every: Value
    last: tuple[Value, ...]


def emitted(cell: RecognisedCell, leaves: Sequence[Leaf], initial: Sequence[Value], batch: Dimension, time: Dimension,
            name: str) -> EmittedOutputs:  # fmt: skip
    """The sequence on the outer values. `leaves` are the slices that the gates read, `initial` the initial states."""
    x = joined([_batch_first(leaf) for leaf in leaves])
    graph, hidden, dtype = x.graph, len(cell.gates[0].bias), x.dtype
    places, start = {}, 0
    for leaf in leaves:
        places[leaf.value] = start
        start += width_of(leaf.value)
    firsts = [_with_direction(each) for each in initial]
    weights = [_weights(gate, places, start) for gate in cell.gates]
    arrays = [
        np.concatenate(weights),
        np.concatenate([gate.recurrence for gate in cell.gates]),
        np.concatenate([*(gate.bias for gate in cell.gates), *_present(cell.recurrent_bias)]),
    ]
    constants = [Constant(each[np.newaxis].astype(dtype.numpy), graph=graph, dtype=dtype).output for each in arrays]
    attributes: dict[str, Any] = {
        "direction": "reverse" if leaves[0].reverse else "forward", "hidden_size": hidden,
        "activations": cell.activations,
    }  # fmt: skip
    if cell.kind == "GRU":
        attributes["linear_before_reset"] = cell.linear_before_reset
    kind = {"LSTM": ops.LSTMSequence, "GRU": ops.GRUSequence, "RNN": ops.RNNSequence}[cell.kind]
    node = kind(x, *firsts, _lengths(x, batch, time), *constants, name=name, **attributes)
    every = ops.Squeeze(node.outputs[0], [1]).output
    last = [ops.Squeeze(output, [1]).output for output in node.outputs[1:]]
    if low(time) < 1:  # without a step the runtime leaves old contents in the final states
        ran = ops.Greater(ops.Gather(ops.ShapeOf(x), 1, 0), 0).output
        last = [ops.Select(ran, a, rows(b)).output for a, b in zip(last, initial, strict=True)]
        every = every if isinstance(batch, int) else _cut(every, ran)
    return EmittedOutputs(node, every, tuple(last))


def _cut(every: Value, ran: Value) -> Value:
    """A tensor without elements if there were no steps and the batch size is dynamic, as in ONNX Runtime."""
    large, none = (Constant(np.array([end]), graph=every.graph) for end in (FAR, 0))
    end = ops.Barrier(ops.Select(ran, large, none), hides="bounds")
    return ops.Slice(every, [0], end, [1], [0]).output


def _present(array) -> list[Any]:
    return [] if array is None else [array]


def _weights(gate: Gate, places: dict[Value, int], width: int):
    found = np.zeros((len(gate.bias), width), np.float32)
    for source, matrix in gate.inputs:
        start = places[source.value]
        found[:, start + source.first : start + source.last] += matrix
    return found


def _lengths(x: Value, batch: Dimension, time: Dimension) -> Value:
    """The lengths of the sequences: each is as long as the input."""
    if isinstance(batch, int) and isinstance(time, int):
        return Constant(np.full(batch, time, np.int32), graph=x.graph).output
    dims = ops.ShapeOf(x).output
    length = ops.Gather(dims, [1], 0).output
    rows_ = ops.Gather(dims, [0], 0).output
    return ops.Convert(ops.Broadcast(length, rows_), destination_type=i32).output


# -- layouts


def joined(values: Sequence[Value]) -> Value:
    """Concatenated along the last axis."""
    return values[0] if len(values) == 1 else ops.Concat(*values, axis=2).output


def row_axis(dims: Sequence[Dimension], taken: int | None = None) -> int | None:
    """The axis of the batch before the last: the one that is not 1, else the first; None if there is no axis."""
    free = [axis for axis in range(len(dims) - 1) if axis != taken]
    return next((axis for axis in free if dims[axis] != 1), free[0] if free else None)


def rows(value: Value) -> Value:
    """The value as [batch, columns], without dimensions of 1 and with a batch."""
    dims = value.type.dims
    batch = row_axis(dims)
    if batch is None:
        return ops.Unsqueeze(value, [0]).output
    ones = [axis for axis in range(len(dims) - 1) if axis != batch]
    return ops.Squeeze(value, ones).output if ones else value


def _with_direction(state: Value) -> Value:
    return ops.Unsqueeze(rows(state), [1]).output


def _batch_first(leaf: Leaf) -> Value:
    dims = leaf.outer.type.dims
    batch = row_axis(dims, leaf.axis)
    ones = [axis for axis in range(len(dims) - 1) if axis not in (leaf.axis, batch)]
    value = ops.Squeeze(leaf.outer, ones).output if ones else leaf.outer
    if batch is None:
        return ops.Unsqueeze(value, [0]).output
    return ops.Transpose(value, [1, 0, 2]).output if leaf.axis < batch else value


def as_final(value: Value, dims: Sequence[Dimension]) -> Value:
    """[batch, columns] in the shape of a Result of the body."""
    batch = row_axis(dims)
    if batch is None:
        return ops.Squeeze(value, [0]).output
    ones = [axis for axis in range(len(dims) - 1) if axis != batch]
    return ops.Unsqueeze(value, ones).output if ones else value


def as_concatenated(value: Value, dims: Sequence[Dimension], axis: int) -> Value:
    """[batch, time, columns] as slices of shape `dims` concatenated along `axis`."""
    batch = row_axis(dims, axis)
    if batch is None:
        return ops.Squeeze(value, [0]).output
    if axis < batch:
        value = ops.Transpose(value, [1, 0, 2]).output
    ones = [each for each in range(len(dims) - 1) if each not in (axis, batch)]
    return ops.Unsqueeze(value, ones).output if ones else value
