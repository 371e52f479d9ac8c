"""Layers in 8 bits whose sums saturate on processors without VNNI.

    layers = integer_layers(graph)
    [each.node for each in layers if each.saturates]

Without VNNI instructions a processor adds two products of 8 bits in 16 bits. Activations of s8 become u8 first, so the
sum of 255 * a and 255 * b fits if no two weights of one sign in a column sum to more than 128. Which weights are
neighbours depends on the kernel. Measured on OpenVINO 2026.4.1 for SSE4.1, AVX2 and AVX-512; depthwise convolutions
multiply in 32 bits, and transposed convolutions of s8 lose the last bit of the weights on AVX-512.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mo_loop import ops
from mo_loop.errors import ConversionWarning
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import Shape
from mo_loop.ops.base import Constant
from mo_loop.ops.quantization import Array, FakeQuantize, pairs_exceed
from mo_loop.transforms.operands import behind

LEVELS = 256
"""The levels of a FakeQuantize that the runtime computes in 8 bits."""

PRODUCTS = (ops.MatMul, ops.Filtered)

_KEEPING = (
    ops.View, ops.Transpose, ops.Slice, ops.Gather, ops.Split, ops.VariadicSplit, ops.Concat, ops.DepthToSpace,
    ops.Pooling, ops.Pad, ops.Interpolate, ops.ReLU,
)  # fmt: skip
"""Operations that the runtime computes in 8 bits between a FakeQuantize and a product."""

_DECOMPRESSING = (ops.Reshape, ops.Transpose, ops.Multiply, ops.Convert)
"""Operations between integers and a product of integers. After others, weights are multiplied as f32."""


@dataclass(frozen=True)
class IntegerLayer:
    """A product that the runtime computes in 8 bits; `weights` is None for two activations."""

    node: Node
    saturates: bool
    weights: Constant | None = None


def integer_layers(graph: Graph) -> Iterator[IntegerLayer]:
    """The products of quantised activations with quantised weights, or with other activations, in all scopes."""
    for scope in graph.scopes():
        if not scope.has(FakeQuantize):
            continue
        for node in (node for kind in PRODUCTS for node in scope.of(kind)):
            weights = None if node.inputs[1] is None else _weights(node.inputs[1])
            if weights is not None and has_quantised_activations(node):
                yield IntegerLayer(node, saturates(node, weights.array), weights)
            elif multiplies_activations(node):
                yield IntegerLayer(node, saturates=True)


def warning_of(graph: Graph) -> ConversionWarning | None:
    """One warning for all layers that saturate; None if there is none."""
    layers = list(integer_layers(graph))
    found = [each.node for each in layers if each.saturates]
    if not found:
        return None
    text = (
        f"{len(found)} of {len(layers)} layers in 8 bits may saturate on processors without VNNI: "
        "--quantization portable, or weights of 7 bits (reduce_range of the quantiser), avoid it"
    )
    return ConversionWarning(text, where=found[0].origin, code="ML508")


def has_quantised_activations(product: Node) -> bool:
    """Whether the first operand is in 8 bits."""
    return _activations(product.inputs[0]) is not None


def multiplies_activations(product: Node) -> bool:
    """Whether both operands are activations in 8 bits: without VNNI they saturate.

    The runtime multiplies u8 by u8 in f32, and so integers with a zero point: the second is symmetric.
    """
    first, second = (_activations(each) for each in product.inputs[:2])
    return first is not None and second is not None and _is_symmetric(second)


def saturates(product: Node, weights: Array) -> bool:
    """Whether a product of activations in 8 bits with the integers of its second operand saturates."""
    shape = product.operands[1].shape
    if isinstance(product, ops.GroupConvolution) and shape is not None and shape[2] == 1:
        return False
    activations = _activations(product.inputs[0])
    if isinstance(product, ops.ConvolutionBackpropData) and activations is not None and _is_symmetric(activations):
        return True
    return pairs_exceed(_columns(product, shape, weights))


def _activations(value: Value | None) -> FakeQuantize | None:
    node = None if value is None else behind(value, _KEEPING).node
    return node if isinstance(node, FakeQuantize) and node.levels <= LEVELS else None


def _is_symmetric(quantised: FakeQuantize) -> bool:
    ends = [each.node for each in quantised.inputs[3:5] if each is not None]
    low, high = (float(each.array.min()) if isinstance(each, Constant) else 0.0 for each in ends)
    return low < 0 and abs(low + high) <= 0.02 * high


def _weights(value: Value) -> Constant | None:
    """The integers of weights that the runtime multiplies as such."""
    node = behind(value, _DECOMPRESSING).node
    is_narrow = isinstance(node, Constant) and node.tensor.dtype.is_integer and node.tensor.dtype.bits <= 8
    return node if is_narrow and isinstance(node, Constant) else None


def _columns(product: Node, shape: Shape, weights: Array) -> Array:
    """One row for each sum of products; a single one if the weights have another shape than the operand."""
    if weights.ndim < 2 or weights.shape != shape:
        return weights.reshape(1, -1)
    if isinstance(product, ops.MatMul):
        rows = weights if product.transpose_b else np.swapaxes(weights, -1, -2)
        return rows.reshape(-1, rows.shape[-1])
    at = int(isinstance(product, ops.GroupConvolution | ops.GroupConvolutionBackpropData))
    rows = np.swapaxes(weights, at, at + 1) if isinstance(product, ops.ConvolutionBackpropData) else weights
    return rows.reshape(math.prod(rows.shape[: at + 1]), -1)
