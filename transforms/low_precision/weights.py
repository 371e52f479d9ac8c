"""Quantised constants and the nodes that decompress them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.tensor import ArrayTensor, DeferredTensor, Tensor
from mo_loop.graph.types import i8, u8
from mo_loop.ops.quantization import spread
from mo_loop.transforms.vocabulary import Constant, Value, ops

Array = np.ndarray[Any, Any]


def is_weights(value: Value | None) -> bool:
    """Whether a value is a dequantised constant that keeps its type of at most 8 bits."""
    node = None if value is None else value.node
    if not isinstance(node, ops.Dequantize) or any(
        each is not None and not isinstance(each.node, Constant) for each in node.inputs
    ):
        return False
    return node.inputs[0] is not None and node.inputs[0].type.dtype.bits <= 8


class StoredWeights:
    """A quantised constant: its scale and zero point (`parameters`), and the axes along which they vary."""

    def __init__(self, node: ops.Dequantize) -> None:
        self.node = node
        self.tensor: Tensor = node.inputs[0].node.tensor
        self.shape: tuple[int, ...] = self.tensor.shape
        rank = len(self.shape)
        given = [each.node.array for each in node.inputs[1:] if each is not None]
        parameters = [each if each.ndim else each.reshape([1] * rank) for each in given]
        at, size = normalise_axis(node.axis, rank) if node.block_size else -1, node.block_size
        if not size:
            parameters = [spread(each, node.axis, self.shape) for each in parameters]
        elif self.shape[at] % size and self.shape[at] > size:  # the last block is shorter than the others
            parameters = [spread(each, at, self.shape, size) for each in parameters]
        self.block_axis = at if size and self.shape[at] > size and self.shape[at] % size == 0 else None
        self.full = self.shape
        self.axes = {each for array in parameters for each, count in enumerate(array.shape) if count > 1}
        if self.block_axis is not None:
            self.full = (*self.shape[:at], self.shape[at] // size, size, *self.shape[at + 1 :])
            parameters = [np.expand_dims(each, at + 1) for each in parameters]
        elif node.divided:
            self.full = (self.shape[0], 1, *self.shape[1:])
            parameters = [np.expand_dims(each, 1) for each in parameters]
        self.parameters = parameters

    @property
    def has_zero_points(self) -> bool:
        return len(self.parameters) > 1

    def grouped(self, groups: int) -> StoredWeights:
        """The same weights with their first axis divided into groups; scales vary along it at most."""
        made = copy(self)
        made.shape = made.full = (groups, self.shape[0] // groups, *self.shape[1:])
        one, each_slice = [1, 1], [groups, self.shape[0] // groups]
        made.parameters = [
            each.reshape([*(one if each.size == 1 else each_slice), *[1] * (len(self.shape) - 1)])
            for each in self.parameters
        ]
        return made

    def centred(self) -> StoredWeights:
        """The same numbers in i8 without zero points if they fit, else themselves; computed when the .bin is written.

        The runtime convolves with integers only if the weights are of this form.
        """
        if not self.has_zero_points or self.tensor.dtype not in (i8, u8) or not self.tensor.size:
            return self
        if self.node.inputs[2].type.dtype is not self.tensor.dtype:
            return self  # a zero point in floating point
        zero = self.parameters[1].astype(np.int16)
        made, tensor = copy(self), self.tensor.reshaped(self.full)
        moved = _extremes(tensor.array(), zero)
        if moved.min() < -128 or moved.max() > 127:
            return self

        def blocks() -> Iterator[bytes | memoryview]:
            yield (tensor.array() - zero).astype(np.int8).tobytes()

        made.tensor = DeferredTensor(i8, self.shape, blocks, tensor.files)
        made.parameters = self.parameters[:1]
        return made

    def decompressed(self, sign: int) -> Value:
        """sign * (sign * w - sign * zero point) * scale, where w has its own type."""
        node, graph = self.node, self.node.graph
        constant = node.inputs[0].node
        narrow = Constant(self.tensor.reshaped(self.full), graph=graph, name=constant.name)
        narrow.origins = constant.origins
        x = ops.Convert(narrow, destination_type=node.to).output
        if sign < 0:
            x = ops.Negative(x).output
        if self.has_zero_points:
            kind = node.inputs[2].type.dtype
            zero = Constant(ArrayTensor(self.parameters[1], kind), graph=graph).output
            if kind is not node.to:
                zero = ops.Convert(zero, destination_type=node.to).output
            x = (ops.Subtract if sign > 0 else ops.Add)(x, zero).output
        scale = (sign * self.parameters[0].astype(np.float32)).astype(node.to.numpy)
        x = ops.Multiply(x, Constant(scale, graph=graph, dtype=node.to)).output
        return x if self.full == self.shape else ops.Reshape(x, list(self.shape)).output


def _extremes(numbers: Array, zero: Array) -> Array:
    """Numbers minus their zero points, or the least and the largest of them."""
    if zero.min() < zero.max():
        return numbers - zero
    return np.array([numbers.min(), numbers.max()], np.int16) - zero.reshape(-1)[:1]
