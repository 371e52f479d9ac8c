"""ATen, by which PyTorch exports an operator of its own under its name: embedding and embedding_bag."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mo_loop import ops
from mo_loop.errors import ModelError, UnsupportedError
from mo_loop.frontend.context import Context
from mo_loop.frontend.ops.shared import vector
from mo_loop.frontend.registry import translates
from mo_loop.graph import Value

SUM, MEAN = 0, 1
"""The modes of embedding_bag; the third one is the maximum."""


class Bags(NamedTuple):
    """What embedding_bag computes besides the sum of rows."""

    mode: int
    weights: Value | None
    ends_with_length: bool
    """Whether the offsets end with the number of indices."""
    padding: int
    """The index that counts for nothing; -1 for none."""


@translates("ATen", since=1)
@translates("ATen", since=1, domain="org.pytorch.aten")
def aten(
    table, *arguments, operator: str, overload_name: str = "", include_last_offset: int = 0, mode: int = 0,
    padding_idx: int = -1, scale_grad_by_freq: int = 0, sparse: int = 0, node: Context,
):  # fmt: skip
    """The arguments after the tensors are attributes, or inputs as in the signature of the operator in PyTorch."""
    inputs = (table, *arguments)
    if operator == "embedding":
        return ops.Gather(inputs[0], inputs[1], 0)
    if operator != "embedding_bag":
        raise UnsupportedError(f"the operator {operator!r} of PyTorch has no translation", code="ML302")
    if any(node.wants(place) for place in range(1, len(node.outputs))):
        raise UnsupportedError("the other outputs of embedding_bag serve training", code="ML302")
    if len(inputs) > 4:
        mode, include_last_offset = _number(inputs, 4), _number(inputs, 7)
        given = Bags(mode, inputs[6] if len(inputs) > 6 else None, bool(include_last_offset), _number(inputs, 8, -1))
    else:
        weights = inputs[-1] if _has_weights(inputs) else None
        given = Bags(mode, weights, bool(include_last_offset), padding_idx)
    if given.mode not in (SUM, MEAN) or (given.mode == MEAN and given.weights is not None):
        raise UnsupportedError(
            f"embedding_bag of mode {given.mode}{' with weights' if given.weights is not None else ''}", code="ML302",
            hint="modes 0 (sum) and 1 (mean) are translated",
        )  # fmt: skip
    packed = len(inputs) == 2 or (inputs[1].rank == 2 and _has_weights(inputs))
    return _summed(inputs[0], inputs[1], None if packed else inputs[2], given)


def _has_weights(inputs: tuple[Any, ...]) -> bool:
    """Whether the last input holds weights: (table, indices, weights) or (table, indices, offsets, weights)."""
    return inputs[-1] is not None and len(inputs) > 2 and bool(inputs[-1].dtype.is_float)


def _number(inputs: tuple[Any, ...], place: int, default: int = 0) -> int:
    """The value of an argument that is an input."""
    if len(inputs) <= place or inputs[place] is None:
        return default
    array = inputs[place].constant
    if array is None or array.size != 1:
        raise ModelError(f"the argument {place} of embedding_bag is not a constant number", code="ML227")
    return int(array.item())


def _summed(table: Value, indices: Value, offsets: Value | None, bags: Bags):
    weights = bags.weights
    if bags.padding >= 0:
        counts = ops.Convert(
            ops.NotEqual(indices, np.array(bags.padding, indices.dtype.numpy)), destination_type=table.dtype
        )
        weights = counts.output if weights is None else ops.Multiply(weights, counts).output
    if offsets is not None and bags.ends_with_length:
        offsets = ops.Slice(offsets, [0], [-1], [1], [0]).output
    total = _bags(table, indices, offsets, weights)
    if bags.mode == SUM:
        return total
    ones = ops.Broadcast(
        np.ones((), table.dtype.numpy), ops.Concat(ops.Gather(ops.ShapeOf(table), [0], 0), np.array([1]), axis=0)
    )
    count = _bags(ones.output, indices, offsets, weights)
    return ops.Divide(total, ops.Maximum(count, 1))


def _bags(table: Value, indices: Value, offsets: Value | None, weights: Value | None):
    if offsets is None:
        return ops.EmbeddingBagPackedSum(table, indices, weights).output
    if weights is None:
        return ops.EmbeddingBagOffsetsSum(table, vector(indices), offsets).output
    default = np.array(-1, indices.dtype.numpy)
    return ops.EmbeddingBagOffsetsSum(table, vector(indices), offsets, default, vector(weights)).output
