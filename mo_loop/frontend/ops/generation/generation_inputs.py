"""The parts that the operators of generation share: inputs as the bodies read them, lengths, rows and padding."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import full, repeated_numbers
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Context, UnsupportedError, Value, ops
from mo_loop.graph.types import i32
from mo_loop.ops.front import Failed
from mo_loop.ops.lengths import as_value, dimension, joined

LOWEST = np.finfo(np.float32).min
"""The score of a token that must not be chosen, as in ONNX Runtime."""


class Given:
    """Values of the graph of a node, for the node itself and for the bodies of its loop."""

    def __init__(self, node: Context, values: Mapping[str, Value | None]) -> None:
        self.scope = Scope(node.graph, node.scope, node.scope.path)
        self._path = node.path
        for name, value in values.items():
            self.add(name, value)

    def add(self, name: str, value: Value | None) -> None:
        if value is not None:
            self.scope.values[f"{self._path}:{name}"] = value

    def find(self, scope: Scope, name: str) -> Value | None:
        """The value in `scope`, which is that of the node or of a body; None if it is not given."""
        return scope.find(f"{self._path}:{name}")

    def at(self, scope: Scope, name: str) -> Value:
        return scope[f"{self._path}:{name}"]


def filled(item: Any, like: Value, *dims: Any) -> Value:
    """A tensor of one number; the dimensions are ints and scalar Values."""
    array = np.asarray(item)
    if all(isinstance(each, int) for each in dims):
        return ops.Constant(full(dims, array, array.dtype), graph=like.graph)
    return ops.Broadcast(array, joined(dims, like))


def repeated(x: Value, count: Any, axis: int = 0) -> Value:
    """Each slice along an axis `count` times, one after another: a prompt for each of its beams."""
    if count == 1:
        return x
    rows = dimension(x, axis)
    if isinstance(rows, int) and isinstance(count, int):
        return ops.Gather(x, repeated_numbers(rows, count), axis)
    column = ops.Unsqueeze(counted(rows, x), 1)
    return ops.Gather(x, ops.Reshape(ops.Broadcast(column, joined([rows, count], x)), [-1]), axis)


def marked(tokens: Value, vocabulary: int) -> Value:
    """[N, vocabulary] of boolean: the numbers in tokens [N, L]. Larger numbers are left out."""
    rows = dimension(tokens, 0)
    inside = ops.Minimum(tokens, np.array(vocabulary, np.int32))
    ones = inside * np.int32(0) + np.int32(1)
    counted = ops.ScatterElementsUpdate(filled(np.int32(0), tokens, rows, vocabulary + 1), inside, ones, 1)
    return ops.Slice(counted, [0], [vocabulary], [1], [1]) > np.int32(0)


def padded(sequences: Value, length: Any, item: int) -> Value:
    """[N, L] with a number appended until L is `length`."""
    missing = as_value(length, sequences.graph) - as_value(dimension(sequences, 1), sequences.graph)
    ends = joined([0, missing], sequences)
    fill = np.array(item, np.int32)
    longer = ops.Pad(sequences, np.zeros(2, np.int64), ends, fill, pad_mode="constant")
    if not isinstance(length, int) or longer.type.dims[1] == length:
        return longer
    # The length is known, but not to follow from the one before and the pads.
    return ops.Reshape(longer, [0, length], special_zero=True)


def all_true(flags: Value) -> Value:
    """A scalar."""
    return ops.ReduceLogicalAnd(flags, np.arange(flags.type.known_rank), keep_dims=False)


def not_translated(values: Sequence[Value]) -> Value | None:
    """A value of unknown rank, because a node that computes it could not be translated; that node reports why."""
    unknown = next((value for value in values if value.rank is None), None)
    if unknown is not None and not unknown.graph.of(Failed):
        raise UnsupportedError("a decoder whose logits or caches have unknown rank", code="ML314")
    return unknown


def as_i32(value: Value) -> Value:
    return value if value.dtype is i32 else ops.Convert(value, destination_type=i32)
