"""Seeded random inputs for the declared inputs of an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def random_inputs(
    model: Any,
    seed: int = 0,
    *,
    symbols: Mapping[str, int] | None = None,
    default_dim: int = 2,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> dict[str, np.ndarray]:
    """Arrays for every input of a ModelProto that has no initializer.

    `symbols` gives values to symbolic dimensions, `default_dim` to all others that are unknown, `shapes` replaces the
    shape of an input. The same seed gives the same arrays, whatever other inputs the model has. Raises ValueError for
    inputs that are not tensors, and for a tensor without rank whose shape is not given.
    """
    initialised = {tensor.name for tensor in model.graph.initializer}
    arrays = {}
    for port in model.graph.input:
        if port.name in initialised:
            continue
        if not port.type.HasField("tensor_type"):
            raise ValueError(f"input {port.name} is not a tensor; give its value yourself")
        shape = (shapes or {}).get(port.name)
        if shape is None:
            shape = declared_shape(port, symbols or {}, default_dim)
        rng = np.random.default_rng([seed, *port.name.encode()])
        arrays[port.name] = random_array(rng, port.type.tensor_type.elem_type, shape)
    return arrays


def declared_shape(port: Any, symbols: Mapping[str, int], default_dim: int) -> tuple[int, ...]:
    """The shape in a ValueInfoProto with every symbolic or unknown dimension given a value."""
    tensor = port.type.tensor_type
    if not tensor.HasField("shape"):
        raise ValueError(f"input {port.name} has no rank; give its shape")
    dims = []
    for dim in tensor.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        else:
            dims.append(symbols.get(dim.dim_param, default_dim))
    return tuple(dims)


def random_array(rng: np.random.Generator, elem_type: int, shape: tuple[int, ...]) -> np.ndarray:
    """Random values of an ONNX element type: floats in [-1, 1), small integers, booleans, short strings."""
    from onnx import TensorProto, helper

    if elem_type == TensorProto.STRING:
        words = np.array(["", "a", "loop", "Scan", "if-else", "\N{GREEK SMALL LETTER PI}"], dtype=object)
        return np.asarray(words[rng.integers(0, len(words), shape)], dtype=object).reshape(shape)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.kind == "c":
        return np.asarray(rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    if dtype.kind in "iu" or "int" in dtype.name:
        low, high = (0, 2) if dtype.name == "uint1" else (0, 4) if "u" in dtype.name else (-2, 2)
        return np.asarray(rng.integers(low, high, shape)).astype(dtype)
    return np.asarray(rng.uniform(-1, 1, shape)).astype(dtype)
