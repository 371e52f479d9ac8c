"""Converts TensorProto and SparseTensorProto to Tensor, with data in the message or in external files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mo_loop.conversion_limits import budget
from mo_loop.errors import FileError, ModelError, TypeError_
from mo_loop.frontend.external_files import ExternalFiles
from mo_loop.graph.shape import require_sizes
from mo_loop.graph.tensor import ArrayTensor, FileTensor, Tensor
from mo_loop.graph.types import ElementType, boolean, c64, c128, f32, f64, from_onnx, i64, string, u32, u64
from mo_loop.support.packed_elements import unpack

_EXTERNAL = 1  # TensorProto.EXTERNAL

_STRING_CELL = 64
"""Bytes in memory for each string of a tensor: its place in the array, and in the lists from which it is written."""


IN_MEMORY = ExternalFiles(None)
"""A model that has no folder."""


def tensor_from(proto: Any, files: ExternalFiles = IN_MEMORY) -> Tensor:
    """The data of a TensorProto, in the message or in one of `files`.

    Raises:
        ModelError: the data does not fit the declared type and shape.
        FileError: an external file is missing, is too short, or may not be read.
    """
    dtype = from_onnx(proto.data_type)
    shape = tuple(proto.dims)
    try:
        require_sizes(shape)
    except TypeError_ as error:
        raise ModelError(f"tensor {proto.name!r}: {error.message}", code="ML225") from None
    if proto.data_location == _EXTERNAL:
        return _external(proto, dtype, shape, files)
    return ArrayTensor(_values(proto, dtype, shape), dtype)


def _values(proto: Any, dtype: ElementType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    count = math.prod(shape)
    if dtype is string:
        flat = np.empty(len(proto.string_data), object)
        flat[:] = list(proto.string_data)
    elif proto.HasField("raw_data"):
        data = proto.raw_data
        if len(data) != dtype.size_of(count):
            raise _misfit(proto, f"{len(data)} bytes", dtype, shape)
        flat = unpack(data, count, dtype.bits, dtype.numpy)
    else:
        flat = _typed_field(proto, dtype, shape)
    if flat.size != count:
        raise _misfit(proto, f"{flat.size} values", dtype, shape)
    return flat.reshape(shape)


def _typed_field(proto: Any, dtype: ElementType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The values of float_data, int32_data and other typed fields. int32_data has 16-bit floats and 8-bit types too."""
    if dtype is f32:
        return np.array(proto.float_data, np.float32)
    if dtype is f64:
        return np.array(proto.double_data, np.float64)
    if dtype is i64:
        return np.array(proto.int64_data, np.int64)
    if dtype in (u32, u64):
        return np.array(proto.uint64_data, np.uint64).astype(dtype.numpy)
    if dtype in (c64, c128):
        parts = np.array(proto.float_data if dtype is c64 else proto.double_data, np.dtype(f"f{dtype.bits // 16}"))
        if parts.size % 2:
            raise _misfit(proto, f"{parts.size} halves", dtype, shape)
        return parts.view(dtype.numpy)
    raw = np.array(proto.int32_data, np.int32)
    if dtype is boolean:
        return raw.astype(np.bool_)
    if dtype.bits < 8:
        count = math.prod(shape)
        if raw.size != dtype.size_of(count):  # one item of the field is a whole byte: several values
            raise _misfit(proto, f"{raw.size} bytes", dtype, shape)
        return unpack(raw.astype(np.uint8).tobytes(), count, dtype.bits, dtype.numpy)
    if dtype.is_float:
        return raw.astype(np.uint16 if dtype.bits == 16 else np.uint8).view(dtype.numpy)
    return raw.astype(dtype.numpy)


def _misfit(proto: Any, got: str, dtype: ElementType, shape: tuple[int, ...]) -> ModelError:
    return ModelError(f"tensor {proto.name!r} holds {got}, not what {dtype}{list(shape)} needs", code="ML225")


def _external(proto: Any, dtype: ElementType, shape: tuple[int, ...], files: ExternalFiles) -> Tensor:
    if dtype is string:
        raise ModelError(f"tensor {proto.name!r} has strings outside the model", code="ML225")
    info = {entry.key: entry.value for entry in proto.external_data}
    location = info.get("location", "")
    file = files.at(location, proto.name)
    assert file.identity is not None
    available, need = file.identity.size, dtype.size_of(math.prod(shape))
    offset, length = byte_count(info.get("offset"), 0), byte_count(info.get("length"), need)
    if length != need or offset < 0 or offset + need > available:
        if file is files.own:
            raise _misfit(proto, f"{info.get('length')} bytes", dtype, shape)
        if length == need and offset >= 0:
            raise FileError(
                f"the external data {location!r} ends before the weights in it",
                why=f"the file has {available} bytes", hint="copy the data file again", code="ML213",
            )  # fmt: skip
        raise FileError(
            f"the external data {location!r} has no {need} bytes at {info.get('offset', 0)} for tensor {proto.name!r}",
            why=f"the file has {available} bytes", hint="copy the data file again", code="ML213",
        )  # fmt: skip
    return FileTensor(file, offset, dtype, shape)


def range_of(proto: Any) -> tuple[int, int]:
    """The start and the end of the data of a tensor in its external file. UnsupportedError for an unknown type."""
    info = {entry.key: entry.value for entry in proto.external_data}
    offset = byte_count(info.get("offset"), 0)
    return offset, offset + from_onnx(proto.data_type).size_of(math.prod(proto.dims))


def byte_count(text: str | None, default: int) -> int:
    """A number of bytes that the model gives for external data, of any size; -1 for other text."""
    if text is None:
        return default
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 100 else -1


def dense_from_sparse(proto: Any, files: ExternalFiles = IN_MEMORY) -> Tensor:
    """The dense tensor of a SparseTensorProto: indices are linear ([n]) or one row of coordinates each ([n, rank])."""
    shape = tuple(proto.dims)
    values = tensor_from(proto.values, files)
    indices = tensor_from(proto.indices, files).array()
    rows = np.array([shape] if indices.ndim == 2 else [math.prod(shape)], np.float64)
    # numpy would accept an index below 0, and broadcast a single value to all indices
    fits = indices.dtype == np.int64 and indices.ndim in (1, 2) and values.shape == indices.shape[:1]
    if indices.ndim == 2:
        fits = fits and indices.shape[1] == len(shape)
    if not fits or any(dim < 0 for dim in shape) or np.any(indices < 0) or np.any(indices >= rows):
        raise ModelError(f"sparse tensor {proto.values.name!r} has indices that do not fit {shape}", code="ML225")
    cell = values.dtype.numpy.itemsize if values.dtype.bits else _STRING_CELL
    budget().fold(cell * math.prod(shape), f"the sparse tensor {proto.values.name[:40]!r}")
    try:
        dense = np.zeros(shape, values.dtype.numpy) if values.dtype.bits else np.full(shape, b"", object)
    except (MemoryError, ValueError):
        raise ModelError(f"sparse tensor {proto.values.name!r} of shape {shape} is too large", code="ML225") from None
    if indices.ndim == 2:
        dense[tuple(indices.T)] = values.array()
    else:
        dense.reshape(-1)[indices] = values.array()
    return ArrayTensor(dense, values.dtype)
