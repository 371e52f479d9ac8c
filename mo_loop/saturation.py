"""Layers in 8 bits whose sums saturate on processors without VNNI.

    layers = integer_layers(graph)
    [each.node for each in layers if each.saturates]

Without VNNI instructions a processor adds two products of 8 bits in 16 bits. Activations of s8 become u8 first, so the
sum of 255 * a and 255 * b fits if no two weights of one sign in a column sum to more than 128. Which weights are
neighbours depends on the kernel. Measured on OpenVINO 2026.4.1 for SSE4.1, AVX2 and AVX-512; depthwise convolutions
multiply in 32 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mo_loop.errors import ConversionWarning
from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Constant
from mo_loop.ops.convolution import Convolution, ConvolutionBackpropData, GroupConvolution, GroupConvolutionBackpropData
from mo_loop.ops.linear import MatMul
from mo_loop.ops.quantization import Array, FakeQuantize, pairs_exceed, quantised_constant

LEVELS = 256
"""The levels of a FakeQuantize that the runtime computes in 8 bits."""

_KEEPING = frozenset(
    (
        "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "StridedSlice", "Gather", "Split", "VariadicSplit",
        "Concat", "DepthToSpace", "MaxPool", "AvgPool", "Pad", "Interpolate", "ReLU",
    )
)  # fmt: skip
"""Operations that the runtime computes in 8 bits between a FakeQuantize and a product."""

_EXPANDING = frozenset(("Negative", "Subtract", "Add"))
"""Operations on weights after which the runtime multiplies them as f32."""


@dataclass(frozen=True)
class IntegerLayer:
    """A product that the runtime computes in 8 bits; `weights` is None for two activations."""

    node: Node
    saturates: bool
    weights: Constant | None = None


def integer_layers(graph: Graph) -> Iterator[IntegerLayer]:
    """The products of quantised activations with quantised weights, or with other activations, in all scopes."""
    for scope in graph.scopes():
        if not scope.of(FakeQuantize):
            continue
        for node in (*scope.of(MatMul), *scope.of(Convolution), *scope.of(ConvolutionBackpropData)):
            x, w = node.inputs[:2]
            if x is None or w is None or _activations(x) is None:
                continue
            other = _activations(w)
            if other is not None:
                if _is_signed(other):
                    yield IntegerLayer(node, saturates=True)
            elif (weights := _weights(w)) is not None:
                yield _layer(node, w, weights)


def warning_of(graph: Graph) -> ConversionWarning | None:
    """One warning for all layers that saturate; None if there is none."""
    layers = list(integer_layers(graph))
    found = [each.node for each in layers if each.saturates]
    if not found:
        return None
    text = (
        f"{len(found)} of {len(layers)} layers in 8 bits may saturate on processors without VNNI: weights of 7 bits "
        "(reduce_range of the quantiser) or --quantization exact avoid it"
    )
    return ConversionWarning(text, where=found[0].origin, code="ML508")


def _activations(value: Value) -> FakeQuantize | None:
    node = value.node
    while str(getattr(node, "type", "")) in _KEEPING and node.inputs[0] is not None:
        node = node.inputs[0].node
    return node if isinstance(node, FakeQuantize) and node.levels <= LEVELS else None


def _is_signed(quantised: FakeQuantize) -> bool:
    """Whether the range is symmetric: the runtime multiplies u8 by u8 in f32, and so integers with a zero point."""
    ends = [each.node for each in quantised.inputs[3:5] if each is not None]
    low, high = (float(each.array.min()) if isinstance(each, Constant) else 0.0 for each in ends)
    return low < 0 and abs(low + high) <= 0.02 * high


def _weights(value: Value) -> Constant | None:
    """The integers of weights that the runtime multiplies as such."""
    constant = quantised_constant(value)
    node = value.node
    while constant is not None and node is not constant and node.inputs[0] is not None:
        if str(getattr(node, "type", "")) in _EXPANDING:
            return None
        node = node.inputs[0].node
    return constant if constant is not None and constant.tensor.dtype.is_integer else None


def _layer(node: Node, value: Value, constant: Constant) -> IntegerLayer:
    is_depthwise = isinstance(node, GroupConvolution) and value.shape is not None and value.shape[2] == 1
    saturates = not is_depthwise and pairs_exceed(_columns(node, value, constant.array))
    return IntegerLayer(node, saturates, constant)


def _columns(node: Node, value: Value, weights: Array) -> Array:
    """One row for each sum of products; a single one if the weights have another shape than the operand."""
    if weights.ndim < 2 or weights.shape != value.shape:
        return weights.reshape(1, -1)
    if isinstance(node, MatMul):
        rows = weights if node.transpose_b else np.swapaxes(weights, -1, -2)
        return rows.reshape(-1, rows.shape[-1])
    at = int(isinstance(node, GroupConvolution | GroupConvolutionBackpropData))
    rows = np.swapaxes(weights, at, at + 1) if isinstance(node, ConvolutionBackpropData) else weights
    return rows.reshape(math.prod(rows.shape[: at + 1]), -1)
