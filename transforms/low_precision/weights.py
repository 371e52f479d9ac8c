"""Quantised constants and the nodes that decompress them."""

from __future__ import annotations

from copy import copy

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.ops.base import Constant
from mo_loop.ops.quantization import spread


def is_weights(value: Value | None) -> bool:
    """Whether a value is a dequantised constant that keeps its type of at most 8 bits."""
    node = None if value is None else value.node
    if not isinstance(node, ops.Dequantize) or any(
        each is not None and not isinstance(each.node, Constant) for each in node.inputs
    ):
        return False
    return node.inputs[0] is not None and node.inputs[0].type.dtype.bits <= 8


class Weights:
    """A quantised constant: its scale and zero point (`parameters`), and the axes along which they vary."""

    def __init__(self, node: ops.Dequantize) -> None:
        self.node = node
        self.shape: tuple[int, ...] = node.inputs[0].node.tensor.shape
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
        self.parameters = parameters

    def grouped(self, groups: int) -> Weights:
        """The same weights with their first axis divided into groups; scales vary along it at most."""
        made = copy(self)
        made.shape = made.full = (groups, self.shape[0] // groups, *self.shape[1:])
        one, each_slice = [1, 1], [groups, self.shape[0] // groups]
        made.parameters = [
            each.reshape([*(one if each.size == 1 else each_slice), *[1] * (len(self.shape) - 1)])
            for each in self.parameters
        ]
        return made

    def decompressed(self, sign: int) -> Value:
        """sign * (sign * w - sign * zero point) * scale, where w has its own type."""
        node, graph = self.node, self.node.graph
        constant = node.inputs[0].node
        narrow = Constant(constant.tensor.reshaped(self.full), graph=graph, name=constant.name)
        narrow.origins = constant.origins
        kinds = [each.type.dtype for each in node.inputs[1:] if each is not None]
        x = ops.Convert(narrow, destination_type=node.to).output
        if sign < 0:
            x = ops.Negative(x).output
        if len(self.parameters) > 1:
            zero = Constant(ArrayTensor(self.parameters[1], kinds[1]), graph=graph).output
            if kinds[1] is not node.to:
                zero = ops.Convert(zero, destination_type=node.to).output
            x = (ops.Subtract if sign > 0 else ops.Add)(x, zero).output
        scale = (sign * self.parameters[0].astype(np.float32)).astype(node.to.numpy)
        x = ops.Multiply(x, Constant(scale, graph=graph, dtype=node.to)).output
        return x if self.full == self.shape else ops.Reshape(x, list(self.shape)).output
