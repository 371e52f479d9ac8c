"""Constant data, of three kinds: a span of a file, an array in memory, and deferred data made while it is written.

All share `dtype`, `shape`, `nbytes`, `array()` (the values, for folding and printing) and `blocks()` (the bytes as the
.bin holds them, in pieces, so that a large constant never lives in memory whole).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mo_loop.errors import FileError
from mo_loop.types import ElementType, from_numpy

BLOCK = 1 << 20
"""Bytes read or written at once."""


class Tensor:
    """Constant data of `shape` and `dtype`."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: ElementType, shape: tuple[int, ...]) -> None:
        self.dtype = dtype
        self.shape = shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes in the .bin."""
        return self.dtype.size_of(self.size)

    def array(self) -> np.ndarray[Any, Any]:
        """The values; do not write into the array."""
        raise NotImplementedError

    def blocks(self) -> Iterator[bytes | memoryview]:
        """The bytes of the .bin, in order, in pieces of about BLOCK."""
        raise NotImplementedError

    def sample(self) -> bytes:
        """A few pages of the content, cheap to get: equal tensors have equal samples."""
        return b""


class ArrayTensor(Tensor):
    """Values in memory, one array cell an element whatever the width in the file."""

    __slots__ = ("_array", "_packed")

    def __init__(self, array: np.ndarray[Any, Any], dtype: ElementType | None = None) -> None:
        array = np.asarray(array)
        super().__init__(dtype or from_numpy(array.dtype), array.shape)
        self._array = array
        self._packed: bytes | None = None

    @property
    def nbytes(self) -> int:
        return super().nbytes if self.dtype.bits else len(self._bytes())

    def array(self) -> np.ndarray[Any, Any]:
        return self._array

    def _bytes(self) -> memoryview | bytes:
        if self.dtype.bits >= 8:
            contiguous = np.ascontiguousarray(self._array)
            return contiguous.reshape(-1).view(np.uint8).data
        if self._packed is None:
            self._packed = pack_strings(self._array) if not self.dtype.bits else pack(self._array, self.dtype.bits)
        return self._packed

    def blocks(self) -> Iterator[bytes | memoryview]:
        if self.size:
            yield self._bytes()

    def sample(self) -> bytes:
        data = self._bytes() if self.size else b""
        return bytes(data) if len(data) <= 4096 else bytes(data[:2048]) + bytes(data[-2048:])


class FileTensor(Tensor):
    """A span of a file, read when asked for. Never mapped: a file cut short under a map kills the process."""

    __slots__ = ("offset", "path")

    def __init__(self, path: str, offset: int, dtype: ElementType, shape: tuple[int, ...]) -> None:
        super().__init__(dtype, shape)
        self.path = path
        self.offset = offset

    def array(self) -> np.ndarray[Any, Any]:
        data = b"".join(self.blocks())
        if self.dtype.bits < 8:
            return unpack(data, self.size, self.dtype).reshape(self.shape)
        return np.frombuffer(data, self.dtype.numpy).reshape(self.shape)

    def _read(self, file: Any, start: int, count: int) -> bytes:
        file.seek(self.offset + start)
        data: bytes = file.read(count)
        if len(data) != count:
            raise FileError(
                f"{os.path.basename(self.path)} ended before the data of a weight", code="ML213",
                hint="the file is shorter than the model says: copy it again",
            )  # fmt: skip
        return data

    def blocks(self) -> Iterator[bytes | memoryview]:
        with open(self.path, "rb") as file:
            for start in range(0, self.nbytes, BLOCK):
                yield self._read(file, start, min(BLOCK, self.nbytes - start))

    def sample(self) -> bytes:
        with open(self.path, "rb") as file:
            if self.nbytes <= 4096:
                return self._read(file, 0, self.nbytes)
            return self._read(file, 0, 2048) + self._read(file, self.nbytes - 2048, 2048)


class DeferredTensor(Tensor):
    """Data that a function makes block by block while the .bin is written."""

    __slots__ = ("_make",)

    def __init__(self, dtype: ElementType, shape: tuple[int, ...], make: Callable[[], Iterator[bytes]]) -> None:
        super().__init__(dtype, shape)
        self._make = make

    def array(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(b"".join(self._make()), self.dtype.numpy).reshape(self.shape)

    def blocks(self) -> Iterator[bytes | memoryview]:
        return self._make()

    def sample(self) -> bytes:
        return bytes(next(iter(self._make()), b""))[:2048]


def pack(array: np.ndarray[Any, Any], bits: int) -> bytes:
    """Elements of 2 or 4 bits packed into bytes, the first element in the lowest bits."""
    per_byte = 8 // bits
    cells = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    cells = np.concatenate([cells, np.zeros(-len(cells) % per_byte, np.uint8)]).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * bits
    return np.bitwise_or.reduce(cells << shifts, axis=1).astype(np.uint8).tobytes()


def unpack(data: bytes, count: int, dtype: ElementType) -> np.ndarray[Any, Any]:
    """The inverse of `pack`: `count` elements of a type below 8 bits, one a cell."""
    bits = dtype.bits
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    cells = (np.frombuffer(data, np.uint8)[:, None] >> shifts) & ((1 << bits) - 1)
    flat = cells.reshape(-1)[:count].astype(np.uint8)
    if dtype.kind == "int":  # sign-extend within the byte
        flat = ((flat.astype(np.int8) << (8 - bits)) >> (8 - bits)).view(np.uint8)
    if dtype.is_float:
        return flat.view(dtype.numpy)
    return flat.view(np.int8 if dtype.kind == "int" else np.uint8).astype(dtype.numpy)


def pack_strings(array: np.ndarray[Any, Any]) -> bytes:
    """Strings as OpenVINO's IR stores them: count, start of each, end of the last, characters (32-bit numbers)."""
    items = [item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1)]
    ends = np.cumsum([0] + [len(item) for item in items])
    return np.array([len(items), *ends], "<i4").tobytes() + b"".join(items)
