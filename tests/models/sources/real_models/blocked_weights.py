"""Weights of matrix products and recurrent layers as small integers after DequantizeLinear, computed with numpy.

    w: float[K, N]   ->   DequantizeLinear(int4[K, N], float[K / 32, N], axis=0, block_size=32)

Each block of `block` elements along the contracted axis has a scale; without blocks, each result channel has one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper, version_converter

OPSET = 21
"""The first opset with `block_size` and four bits."""
LEAST = 4096
"""Elements from which a weight is worth its scales."""


@dataclass(frozen=True)
class Scheme:
    """The type of the integers: `bits` of them, with or without zero point, in blocks of `block` (0: none)."""

    bits: int
    has_zero_point: bool = False
    block: int = 0

    @property
    def onnx_type(self) -> int:
        """The type in ONNX: unsigned with a zero point, else signed."""
        return getattr(TensorProto, f"{'U' if self.has_zero_point else ''}INT{self.bits}")


@dataclass(frozen=True)
class Quantised:
    """Integers, scales and zero points of one weight; blocks lie along `axis`, or `axis` has a scale for each index."""

    integers: np.ndarray
    scales: np.ndarray
    zero_points: np.ndarray | None
    axis: int


SCHEMES = {"int8": Scheme(8), "int4_32": Scheme(4, block=32), "uint4_32": Scheme(4, True, 32),
           "int4_128": Scheme(4, block=128), "uint4_128": Scheme(4, True, 128)}


def quantise(weight: np.ndarray, contracted: int, scheme: Scheme) -> Quantised:
    """The integers nearest to a weight that a product contracts along an axis.

    A weight of rank 3 is that of a recurrent layer: [directions, channels, contracted].
    """
    if not scheme.block:
        channels = 1 if weight.ndim == 3 else 1 - contracted
        rest = tuple(axis for axis in range(weight.ndim) if axis != channels)
        low, high = weight.min(rest, keepdims=True), weight.max(rest, keepdims=True)
        scales, zero_points = _range(low, high, scheme)
        integers = _rounded(weight, scales, zero_points, scheme)
        return Quantised(integers, scales.ravel(), None if zero_points is None else zero_points.ravel(), channels)
    blocks = _in_blocks(weight, contracted, scheme.block)
    scales, zero_points = _range(blocks.min(contracted + 1), blocks.max(contracted + 1), scheme)
    wide = np.repeat(scales, scheme.block, contracted)
    offset = None if zero_points is None else np.repeat(zero_points, scheme.block, contracted)
    return Quantised(_rounded(weight, wide, offset, scheme), scales, zero_points, contracted)


def _in_blocks(weight: np.ndarray, axis: int, block: int) -> np.ndarray:
    """[.., K, ..] as [.., K / block, block, ..]."""
    shape = weight.shape
    return weight.reshape(*shape[:axis], shape[axis] // block, block, *shape[axis + 1 :])


def _range(low: np.ndarray, high: np.ndarray, scheme: Scheme) -> tuple[np.ndarray, np.ndarray | None]:
    """Scales, and zero points if the scheme has them, for numbers from `low` to `high`."""
    steps = 2**scheme.bits - 1
    if not scheme.has_zero_point:
        scales = np.maximum(np.abs(low), np.abs(high)) / np.float32(steps // 2)
        return np.where(scales > 0, scales, 1).astype(np.float32), None
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    scales = (high - low) / np.float32(steps)
    scales = np.where(scales > 0, scales, 1).astype(np.float32)
    return scales, np.clip(np.rint(-low / scales), 0, steps).astype(np.int32)


def _rounded(weight: np.ndarray, scales: np.ndarray, offset: np.ndarray | None, scheme: Scheme) -> np.ndarray:
    low = 0 if scheme.has_zero_point else -(2 ** (scheme.bits - 1))
    values = np.rint(weight / scales) + (0 if offset is None else offset)
    return np.clip(values, low, low + 2**scheme.bits - 1).astype(np.int32)


# -- models


def quantise_weights(model: onnx.ModelProto, scheme: Scheme) -> onnx.ModelProto:
    """A model of opset 21 in which DequantizeLinear makes the large weights of matrix products and recurrent layers."""
    model = version_converter.convert_version(model, OPSET)
    graph = model.graph
    weights = {each.name: each for each in graph.initializer}
    made: dict[tuple[str, int], str] = {}
    added: list[NodeProto] = []
    for node, port, contracted in _readers(graph, weights):
        name = node.input[port]
        weight = numpy_helper.to_array(weights[name])
        is_whole = not scheme.block or weight.shape[contracted] % scheme.block == 0
        if weight.dtype != np.float32 or weight.size < LEAST or not is_whole:
            continue
        if (name, contracted) not in made:
            made[name, contracted] = f"{name}_dequantised_{contracted}"
            result = quantise(weight, contracted, scheme)
            added.append(_dequantise(graph, name, made[name, contracted], result, scheme))
        node.input[port] = made[name, contracted]
    if not added:
        raise ValueError(f"no weight to quantise to {scheme}")
    nodes = [*added, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    _drop_unread(graph)
    return model


def _readers(graph: onnx.GraphProto, weights: dict[str, TensorProto]) -> Iterator[tuple[NodeProto, int, int]]:
    """Nodes that read a weight, the port, and the axis of the weight that is contracted."""
    for node in graph.node:
        if node.op_type in ("MatMul", "Gemm") and node.input[1] in weights and len(weights[node.input[1]].dims) == 2:
            yield node, 1, int(any(each.name == "transB" and each.i for each in node.attribute))
        elif node.op_type in ("LSTM", "GRU", "RNN"):
            yield from ((node, port, 2) for port in (1, 2) if node.input[port] in weights)


def _dequantise(graph: onnx.GraphProto, name: str, result: str, found: Quantised, scheme: Scheme) -> NodeProto:
    """Adds integers, scales and zero points to the graph; the node that makes the weight of them."""
    scales = numpy_helper.from_array(found.scales, f"{name}_scales")
    parts = [_tensor(f"{name}_integers", found.integers, scheme), scales]
    zero_points = found.zero_points
    if zero_points is None and not scheme.block:
        # ONNX Runtime 1.32 adds a scalar where there is none, and then refuses it together with several scales.
        zero_points = np.zeros(found.scales.shape, np.int32)
    if zero_points is not None:
        parts.append(_tensor(f"{name}_zero_points", zero_points, scheme))
    for part in parts:
        part.name = f"{part.name}_{found.axis}"
    graph.initializer.extend(parts)
    inputs = [each.name for each in parts]
    node = helper.make_node("DequantizeLinear", inputs, [result], name=result, axis=found.axis)
    if scheme.block:
        node.attribute.append(helper.make_attribute("block_size", scheme.block))
    return node


def _tensor(name: str, values: np.ndarray, scheme: Scheme) -> TensorProto:
    """Integers as a tensor; two of four bits share a byte, the first in the low half."""
    codes = (values & (2**scheme.bits - 1)).astype(np.uint8).ravel()
    if scheme.bits == 4:
        codes = np.append(codes, np.zeros(codes.size % 2, np.uint8)).reshape(-1, 2)
        codes = codes[:, 0] | codes[:, 1] << 4
    return TensorProto(name=name, dims=values.shape, data_type=scheme.onnx_type, raw_data=codes.tobytes())


def _drop_unread(graph: onnx.GraphProto) -> None:
    """Remove the initializers that nothing reads; bodies may read those of the main graph."""
    read = {port.name for port in graph.output}
    pending = list(graph.node)
    while pending:
        node = pending.pop()
        read.update(node.input)
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs) if attribute.HasField("g") or attribute.graphs else ():
                pending += body.node
                read.update(port.name for port in body.output)
    kept = [each for each in graph.initializer if each.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
