"""Expected values of an ONNX model: from ONNX Runtime, or from the reference evaluator of the onnx package.

Both answer `run(feeds)` with (name, value) in the order of the model's outputs. Values are arrays, or lists of arrays
for sequences, or None for an empty optional.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

_LEVELS = {
    "none": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}


class OnnxRuntime:
    """ONNX Runtime on one CPU thread.

    `model` is a path, the bytes of a model, or a ModelProto. `optimise` is one of none, basic, extended, all: the
    unoptimised graph is the better reference, the optimised one is faster.
    """

    def __init__(self, model: Any, optimise: str = "none") -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, _LEVELS[optimise])
        source = model if isinstance(model, bytes) else str(model) if isinstance(model, (str, Path)) else _bytes(model)
        self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs that need a value."""
        return [port.name for port in self._session.get_inputs()]

    def run(self, feeds: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """One inference. Feeds that are not inputs of the model are ignored."""
        known = {port.name: feeds[port.name] for port in self._session.get_inputs() if port.name in feeds}
        names = [port.name for port in self._session.get_outputs()]
        types = [port.type for port in (*self._session.get_inputs(), *self._session.get_outputs())]
        if not any(_is_foreign(kind) for kind in types):
            plain = {name: _ort_value(value) for name, value in known.items()}
            return list(zip(names, self._session.run(names, plain), strict=True))
        return list(zip(names, self._run_foreign(names, known), strict=True))

    def _run_foreign(self, names: list[str], feeds: Mapping[str, Any]) -> list[Any]:
        """An element type that numpy lacks is passed as raw memory together with its ONNX type."""
        from onnx import helper
        from onnxruntime import OrtValue

        values = {}
        for name, array in feeds.items():
            kind = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
            values[name] = OrtValue.ortvalue_from_numpy_with_onnx_type(_raw(np.asarray(array)), kind)
        found = []
        for value in self._session.run_with_ort_values(names, values):
            dtype = helper.tensor_dtype_to_np_dtype(value.element_type())
            if not _is_ml_dtype(dtype):
                found.append(value.numpy())
                continue
            data = ctypes.string_at(value.data_ptr(), int(np.prod(value.shape())) * dtype.itemsize)
            found.append(np.frombuffer(data, dtype=dtype).reshape(value.shape()).copy())
        return found


class Reference:
    """The reference evaluator of the onnx package: slow, and complete for the standard operators."""

    def __init__(self, model: Any) -> None:
        from onnx.reference import ReferenceEvaluator

        source = str(model) if isinstance(model, (str, Path)) else model
        self._evaluator = ReferenceEvaluator(source)

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return list(self._evaluator.input_names)

    def run(self, feeds: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """One evaluation. Feeds that are not inputs of the model are ignored."""
        known = {name: feeds[name] for name in self._evaluator.input_names if name in feeds}
        names = list(self._evaluator.output_names)
        return list(zip(names, self._evaluator.run(names, known), strict=True))


def _bytes(model: Any) -> bytes:
    data: bytes = model.SerializeToString()
    return data


def _ort_value(value: Any) -> Any:
    if not isinstance(value, np.ndarray) and not isinstance(value, np.generic):
        return value
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


def _is_foreign(ort_type: str) -> bool:
    return any(mark in ort_type for mark in ("bfloat16", "float8", "float4", "int4", "int2"))


def _is_ml_dtype(dtype: np.dtype) -> bool:
    return dtype.name in ("bfloat16", "int2", "int4", "uint2", "uint4") or dtype.name.startswith(("float8", "float4"))


def _raw(array: np.ndarray) -> np.ndarray:
    # np.ascontiguousarray turns a scalar into an array of rank 1.
    whole = np.asarray(array, order="C")
    return whole.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8) if _is_ml_dtype(array.dtype) else whole
