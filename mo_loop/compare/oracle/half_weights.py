"""The weights of an IR that stores them as f16, in the model that ONNX Runtime runs.

    halved = with_half_weights(proto, graph)        # None if the IR has no weights in f16 that the model has in f32
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mo_loop.frontend.onnx_graphs import graph_protos
from mo_loop.graph import Graph
from mo_loop.graph.types import f16
from mo_loop.ops.base import Constant
from mo_loop.ops.casting import Convert

LARGEST = float(np.finfo(np.float16).max)


def has_half_weights(ir: Graph) -> bool:
    """Whether an IR stores weights in f16 and computes with them in another type."""
    return next(_compressed(ir), None) is not None


def with_half_weights(model: Any, ir: Graph) -> Any:
    """A copy of a ModelProto in which the weights that the IR has as f16 are those numbers, in their former type.

    They are known by their content, in any order: the IR may have transposed them.
    """
    halved = {_content(each) for each in _compressed(ir)}
    if not halved:
        return None
    copy, changed = onnx.ModelProto(), False
    copy.CopyFrom(model)
    for tensor in _tensors(copy):
        if tensor.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE) or np.prod(tensor.dims) < 2:
            continue
        array = numpy_helper.to_array(tensor)
        half = _as_half(array)
        if _content(half) in halved:
            tensor.CopyFrom(numpy_helper.from_array(half.astype(array.dtype), tensor.name))
            changed = True
    return copy if changed else None


def _compressed(ir: Graph) -> Iterator[np.ndarray]:
    for scope in ir.scopes():
        for node in scope.of(Convert):
            source = node.inputs[0]
            if "decompression" not in node.rt_info or source is None or source.dtype is not f16:
                continue
            if isinstance(source.node, Constant):
                yield source.node.array


def _tensors(model: Any) -> Iterator[Any]:
    for graph in graph_protos(model):
        yield from getattr(graph, "initializer", ())
        for node in graph.node:
            yield from (each.t for each in node.attribute if each.type == onnx.AttributeProto.TENSOR)


def _as_half(array: np.ndarray) -> np.ndarray:
    finite = np.isfinite(array)
    with np.errstate(over="ignore"):
        return np.where(finite, np.clip(array, -LARGEST, LARGEST), array).astype(np.float16)


def _content(array: np.ndarray) -> bytes:
    return sha256(np.sort(array, axis=None).tobytes()).digest()
