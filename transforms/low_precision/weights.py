"""Quantised constants and the nodes that decompress them.

Layers in 8 bits whose sums saturate on processors without VNNI, and matrix products whose activations the runtime
rounds to 8 bits in a run without options.

    layers = integer_layers(graph)
    [each.node for each in layers if each.saturates]
    len(rounded_products(graph))

Without VNNI instructions a processor adds two products of 8 bits in 16 bits. Activations of s8 become u8 first, so the
sum of 255 * a and 255 * b fits if no two weights of one sign in a column sum to more than 128. Which weights are
neighbours depends on the kernel. Measured on OpenVINO 2026.4.1 for SSE4.1, AVX2 and AVX-512; depthwise convolutions
multiply in 32 bits, and transposed convolutions of s8 lose the last bit of the weights on AVX-512.

On a processor with VNNI the runtime (DYNAMIC_QUANTIZATION_GROUP_SIZE, 32 by default) quantises the f32 activations of a
product with compressed weights in groups of 32 along the summed axis. It does so for weights of u8 and u4, and of i8
and i4 without zero points, with scales for each row or for blocks of at least 4 elements that fit the groups.
"""

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from mo_loop.errors import ConversionWarning
from mo_loop.graph import ArrayTensor, DeferredTensor, Shape, Tensor, i4, i8, normalise_axis, u4, u8
from mo_loop.ops.quantization import Array, FakeQuantize, pairs_exceed, spread
from mo_loop.transforms.vocabulary import Constant, F, Graph, Node, Value, ops, source_of


def is_weights(value: Value | None) -> bool:
    """Whether a value is a dequantised constant that keeps its type of at most 8 bits."""
    node = None if value is None else value.node
    if not isinstance(node, ops.Dequantize) or not all(isinstance(each.node, Constant) for each in node.operands):
        return False
    return node.operands[0].type.dtype.bits <= 8


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

    def grouped(self, groups: int) -> "StoredWeights":
        """The same weights with their first axis divided into groups; scales vary along it at most."""
        made = copy(self)
        made.shape = made.full = (groups, self.shape[0] // groups, *self.shape[1:])
        one, each_slice = [1, 1], [groups, self.shape[0] // groups]
        made.parameters = [
            each.reshape([*(one if each.size == 1 else each_slice), *[1] * (len(self.shape) - 1)])
            for each in self.parameters
        ]
        return made

    def centred(self) -> "StoredWeights":
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
        x = F.Convert(narrow, destination_type=node.to)
        if sign < 0:
            x = -x
        if self.has_zero_points:
            kind = node.inputs[2].type.dtype
            zero = F.Constant(ArrayTensor(self.parameters[1], kind), graph=graph).astype(node.to)
            x = x - zero if sign > 0 else x + zero
        scale = (sign * self.parameters[0].astype(np.float32)).astype(node.to.numpy)
        x = x * Constant(scale, graph=graph, dtype=node.to)
        return x if self.full == self.shape else F.Reshape(x, list(self.shape))


def _extremes(numbers: Array, zero: Array) -> Array:
    """Numbers minus their zero points, or the least and the largest of them."""
    if zero.min() < zero.max():
        return numbers - zero
    return np.array([numbers.min(), numbers.max()], np.int16) - zero.reshape(-1)[:1]


LEVELS = 256
"""The levels of a FakeQuantize that the runtime computes in 8 bits."""

PRODUCTS = (ops.MatMul, ops.Filtered)

KEEPING_8_BITS = (
    ops.View, ops.Transpose, ops.Slice, ops.Gather, ops.Split, ops.VariadicSplit, ops.Concat, ops.DepthToSpace,
    ops.Pooling, ops.Pad, ops.Interpolate, ops.ReLU,
)
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
    node = None if value is None else source_of(value, KEEPING_8_BITS).node
    return node if isinstance(node, FakeQuantize) and node.levels <= LEVELS else None


def _is_symmetric(quantised: FakeQuantize) -> bool:
    ends = [each.node for each in quantised.inputs[3:5] if each is not None]
    low, high = (float(each.array.min()) if isinstance(each, Constant) else 0.0 for each in ends)
    return low < 0 and abs(low + high) <= 0.02 * high


def _weights(value: Value) -> Constant | None:
    """The integers of weights that the runtime multiplies as such."""
    node = source_of(value, _DECOMPRESSING).node
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


GROUP = 32
LEAST_BLOCK = 4
"""The runtime expands weights of smaller blocks when it compiles the model."""
PROPERTY = "DYNAMIC_QUANTIZATION_GROUP_SIZE"

_UNSIGNED, _SIGNED = (u8, u4), (i8, i4)


def rounded_products(graph: Graph) -> list[Node]:
    """The products in all scopes, unless the model switches the rounding off."""
    options = graph.rt_info.get("runtime_options", {})
    if str(options.get(PROPERTY, GROUP)) == "0" or options.get("EXECUTION_MODE_HINT") == "ACCURACY":
        return []
    return [node for scope in graph.scopes() for node in scope.of(ops.MatMul) if _is_rounded(node)]


def rounding_text(count: int) -> str:
    """The sentence of the warning and of the diagnostic."""
    products = "matrix product has" if count == 1 else "matrix products have"
    return (
        f"{count} {products} compressed weights: on processors with VNNI the runtime rounds the activations to 8 bits "
        f"in groups of {GROUP}, unless {PROPERTY} is 0"
    )


def rounding_warning(graph: Graph) -> ConversionWarning | None:
    """One warning for all such products; None if there is none."""
    found = rounded_products(graph)
    return ConversionWarning(rounding_text(len(found)), where=found[0].origin, code="ML500") if found else None


def _is_rounded(product: ops.MatMul) -> bool:
    activations, weights = product.operands
    if isinstance(weights.node, Constant):
        return False
    shape = weights.shape
    if activations.dtype.bits != 32 or shape is None or len(shape) < 2 or not all(isinstance(d, int) for d in shape):
        return False
    if any(size != 1 for size in shape[:-2]) or has_quantised_activations(product):
        return False  # several matrices, or a product of integers
    columns, summed = shape[-2:] if product.transpose_b else shape[:-3:-1]
    scaled = source_of(weights, (ops.Transpose, ops.Convert)).node
    if isinstance(scaled, ops.Reshape) and scaled.output.only_use and scaled.operands[0].rank == len(shape) + 1:
        scaled = scaled.operands[0].node  # blocks are a dimension of their own
    if columns in (0, 1) or not isinstance(scaled, ops.Multiply):
        return False
    integers, zero = _decompressed(scaled.operands[0])
    if integers is None or not (integers.dtype in _UNSIGNED or (integers.dtype in _SIGNED and zero is None)):
        return False
    if zero is not None and zero.dtype not in _UNSIGNED:
        return False
    parameters = (scaled.operands[1], zero)
    return all(_fits(each, int(str(columns)), int(str(summed))) for each in parameters if each is not None)


def _decompressed(x: Value) -> tuple[Value | None, Value | None]:
    """The constant integers of (Convert(integers) - Convert(zero)), and the zero point."""
    zero = None
    if isinstance(x.node, ops.Subtract):
        x, second = x.node.operands
        zero = second.node.operands[0] if isinstance(second.node, ops.Convert) else second
    if not isinstance(x.node, ops.Convert) or x.only_use is None:  # the runtime expands what others read, too
        return None, None
    source = x.node.operands[0]
    return (source, zero) if isinstance(source.node, Constant) else (None, None)


def _fits(parameter: Value, columns: int, summed: int) -> bool:
    """Whether there is one scale or zero point for each column, or for each block that fits the groups."""
    count = math.prod(dim if isinstance(dim, int) else 0 for dim in parameter.shape or ())
    groups = max(1, count // columns if count % columns == 0 else count)
    size, rest = divmod(summed, groups)
    return rest == 0 and size >= LEAST_BLOCK and (groups == 1 or size % min(GROUP, size) == 0)
