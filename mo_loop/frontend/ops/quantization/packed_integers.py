"""Integers of 2 and 4 bits that a model stores in bytes, the first of them in the lowest bits."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.vocabulary import UnsupportedError, Value, ops
from mo_loop.graph.tensor import viewed
from mo_loop.graph.types import f32, u2, u4, u8
from mo_loop.ops.base import Constant, Identity

KINDS = {2: u2, 4: u4, 8: u8}
"""Bits -> the element type of constants."""


def require_bits(bits: int) -> None:
    """UnsupportedError unless the IR has such integers."""
    if bits not in KINDS:
        raise UnsupportedError(
            f"weights of {bits} bits: the IR has integers of 2, 4 and 8 bits", code="ML316",
            hint="quantise the weights to 4 or 8 bits",
        )  # fmt: skip


def unpacked(packed: Value, bits: int, shape: Sequence[int]) -> Value:
    """The integers in bytes, in a shape; a constant keeps its bytes, anything else is computed in u8.

    Each row of the last axis begins with a new byte, and bits after it in the last byte are unused.
    """
    constant, per_byte = constant_of(packed), 8 // bits
    length = shape[-1]
    full = (*shape[:-1], -(-length // per_byte) * per_byte)
    if constant is None:
        return _cut(_computed(packed, bits, full), length)
    whole = ops.Constant(viewed(constant.tensor, KINDS[bits], full), graph=packed.graph, name=constant.name)
    if full == tuple(shape):
        return whole
    cut = np.ascontiguousarray(whole.constant[..., :length])
    return ops.Constant(cut, graph=packed.graph, dtype=KINDS[bits], name=constant.name)


def constant_of(value: Value | None) -> Constant | None:
    """The constant that a value is, or None."""
    while value is not None and isinstance(value.node, Identity):
        value = value.node.inputs[0]
    return value.node if value is not None and isinstance(value.node, Constant) else None


def _computed(packed: Value, bits: int, shape: Sequence[int]) -> Value:
    """The parts of each byte by divisions in f32, which has all integers of 8 bits."""
    if bits == 8:
        return ops.Reshape(packed, list(shape))
    rest: Any = ops.Convert(ops.Reshape(packed, [*shape[:-1], -1, 1]), destination_type=f32)
    parts = []
    for _ in range(8 // bits - 1):
        higher = ops.Floor(rest * (1 / (1 << bits)))
        parts.append(rest - higher * (1 << bits))
        rest = higher
    joined = ops.Concat(*parts, rest, axis=len(shape))
    return ops.Convert(ops.Reshape(joined, list(shape)), destination_type=u8)


def _cut(x: Value, length: int) -> Value:
    assert x.shape is not None
    return x if x.shape[-1] == length else ops.Slice(x, [0], [length], [1], [len(x.shape) - 1])


def middle(like: Value, bits: int) -> Value:
    """2 ^ (bits - 1), the zero point of symmetric weights, of the type of `like`."""
    number = np.array(1 << (bits - 1)).astype(like.dtype.numpy)
    return ops.Constant(number, graph=like.graph, dtype=like.dtype)


def is_empty(value: Value) -> bool:
    """Whether a dimension is 0."""
    return value.shape is not None and 0 in value.shape
