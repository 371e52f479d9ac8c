"""Constant data of three kinds: a span of a file, an array in memory, and deferred data that is computed when written.

All have `dtype`, `shape`, `nbytes`, `array()` (the values, for folding and printing) and `blocks()` (the bytes of the
.bin in pieces, so that a large constant is never completely in memory).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from hashlib import sha256
from io import FileIO
from itertools import zip_longest
from typing import Any

import numpy as np

from mo_loop.conversion_limits import check_time
from mo_loop.errors import FileError, TypeError_
from mo_loop.graph.data_file import DataFile
from mo_loop.graph.types import ElementType, from_numpy
from mo_loop.support.packed_arrays import pack, unpack

BLOCK = 1 << 20
"""Bytes read or written at once."""

SAMPLE = 4096
"""Bytes up to which a sample is the whole content."""


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

    def pieces(self, size: int = BLOCK) -> Iterator[bytes]:
        """The bytes of the .bin in pieces of `size`, the last one shorter, independent of the blocks of the tensor."""
        rest = b""
        for block in self.blocks():
            if not rest and len(block) == size and isinstance(block, bytes):
                yield block
                continue
            view = memoryview(rest + bytes(block) if rest else block)
            whole = len(view) - len(view) % size
            for start in range(0, whole, size):
                yield bytes(view[start : start + size])
            rest = bytes(view[whole:])
        if rest:
            yield rest

    def sample(self) -> bytes:
        """The whole content up to SAMPLE bytes, else a few pages of it, cheap to read.

        Tensors with different samples can still be equal if one of them is deferred.
        """
        return b""

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        """The same bytes in another shape with the same number of elements."""
        raise NotImplementedError

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files that must not change until the data is written."""
        return ()

    def __reduce__(self) -> Any:
        """For pickle: the content, since a pickle is read where the files are not, too."""
        return _in_memory, (self.dtype, self.shape, b"".join(self.blocks()) if self.dtype.bits else self.array())


class ArrayTensor(Tensor):
    """Values in memory, one array cell for each element of any width."""

    __slots__ = ("_array", "_packed")

    def __init__(self, array: np.ndarray[Any, Any], dtype: ElementType | None = None) -> None:
        array = np.asarray(array)
        super().__init__(dtype or from_numpy(array.dtype), array.shape)
        if not self.dtype.bits and not all(isinstance(item, str | bytes) for item in array.flat):
            raise TypeError_("a number in a tensor of strings", code="ML240")
        self._array = array
        self._packed: bytes | None = None

    @property
    def nbytes(self) -> int:
        if self.dtype.bits >= 8:
            return self._array.nbytes
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
        if self.nbytes:  # strings have some even where there are none
            yield self._bytes()

    def sample(self) -> bytes:
        array = self._array
        if array.nbytes <= SAMPLE and self.dtype.bits >= 8:
            return array.tobytes()
        data = self._bytes() if self.nbytes else b""
        return bytes(data) if len(data) <= SAMPLE else bytes(data[:2048]) + bytes(data[-2048:])

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        require_count(self, shape)
        return ArrayTensor(self._array.reshape(shape), self.dtype)


class FileTensor(Tensor):
    """A span of a file, read on use. It is never mapped: if a mapped file is truncated, the process is killed."""

    __slots__ = ("file", "offset")

    def __init__(self, file: DataFile | str, offset: int, dtype: ElementType, shape: tuple[int, ...]) -> None:
        """A path in place of a DataFile means any file that is there."""
        super().__init__(dtype, shape)
        self.file = DataFile(file) if isinstance(file, str) else file
        self.offset = offset

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.file.path

    def array(self) -> np.ndarray[Any, Any]:
        return _array_of(b"".join(self.blocks()), self)

    def _read(self, file: FileIO, start: int, count: int) -> bytes:
        file.seek(self.offset + start)
        data = file.read(count)
        while len(data) < count:  # a call may give less than the file has
            more = file.read(count - len(data))
            if not more:
                raise ended_before(self.file)
            data += more
        return data

    def blocks(self) -> Iterator[bytes | memoryview]:
        if not self.nbytes:  # the file may be missing
            return
        with self.file.open() as file:
            for start in range(0, self.nbytes, BLOCK):
                yield self._read(file, start, min(BLOCK, self.nbytes - start))

    def sample(self) -> bytes:
        if not self.nbytes:
            return b""
        with self.file.open() as file:
            if self.nbytes <= SAMPLE:
                return self._read(file, 0, self.nbytes)
            return self._read(file, 0, 2048) + self._read(file, self.nbytes - 2048, 2048)

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        require_count(self, shape)
        return FileTensor(self.file, self.offset, self.dtype, shape)

    @property
    def files(self) -> tuple[DataFile, ...]:
        return (self.file,)


class DeferredTensor(Tensor):
    """Data that a function computes block by block from `files` while the .bin is written."""

    __slots__ = ("_files", "_make")

    def __init__(
        self, dtype: ElementType, shape: tuple[int, ...], make: Callable[[], Iterator[bytes | memoryview]],
        files: tuple[DataFile, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(dtype, shape)
        self._make = make
        self._files = files

    def array(self) -> np.ndarray[Any, Any]:
        return _array_of(b"".join(self._make()), self)

    def blocks(self) -> Iterator[bytes | memoryview]:
        return self._make()

    def sample(self) -> bytes:
        size = SAMPLE if self.nbytes <= SAMPLE else SAMPLE // 2
        start = b""
        for block in self._make():
            start += block[: size - len(start)]
            if len(start) == size:
                break
        return start

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        require_count(self, shape)
        return DeferredTensor(self.dtype, shape, self._make, self._files)

    @property
    def files(self) -> tuple[DataFile, ...]:
        return self._files


def _in_memory(dtype: ElementType, shape: tuple[int, ...], content: Any) -> Tensor:
    """A tensor of these bytes of the .bin, or of an array of strings."""
    if not dtype.bits:
        return ArrayTensor(content, dtype)
    return viewed(ArrayTensor(np.frombuffer(content, np.uint8)), dtype, shape)


def require_count(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Raise TypeError_ unless a shape has as many elements as the tensor."""
    if math.prod(shape) != tensor.size:
        text = f"a constant {tensor.dtype}{list(tensor.shape)} has not as many elements as the shape {list(shape)}"
        raise TypeError_(text, code="ML235")


def ended_before(file: DataFile) -> FileError:
    """The error for a file that is shorter than the data in it."""
    return FileError(
        f"{file.name} ended before the data of a weight", code="ML213",
        hint="the file is shorter than the model declares: copy it again",
    )  # fmt: skip


def same_bytes(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of equal size have equal bytes, compared piece by piece.

    LimitError if the conversion that runs has no time left.
    """
    for x, y in zip_longest(a.pieces(1 << 16), b.pieces(1 << 16)):
        check_time()
        if x != y:
            return False
    return True


def digest(tensor: Tensor) -> bytes:
    """A hash of all bytes, which no two contents share. LimitError if the conversion that runs has no time left."""
    found = sha256()
    for block in tensor.blocks():
        view = memoryview(block).cast("B")
        for start in range(0, len(view), BLOCK):
            check_time()
            found.update(view[start : start + BLOCK])
    return found.digest()


def viewed(tensor: Tensor, dtype: ElementType, shape: tuple[int, ...]) -> Tensor:
    """The same bytes as elements of another type; elements below 8 bits begin with the lowest bits of a byte.

    TypeError_ if elements of this type and shape take another number of bytes.
    """
    if dtype.size_of(math.prod(shape)) != tensor.nbytes:
        raise TypeError_(f"{tensor.nbytes} bytes of a constant are not those of {dtype}{list(shape)}", code="ML235")
    if isinstance(tensor, FileTensor):
        return FileTensor(tensor.file, tensor.offset, dtype, shape)
    return DeferredTensor(dtype, shape, tensor.blocks, tensor.files)


def _array_of(data: bytes, tensor: Tensor) -> np.ndarray[Any, Any]:
    """The bytes of the .bin as the array of `tensor`."""
    return unpack(data, tensor.size, tensor.dtype.bits, tensor.dtype.numpy).reshape(tensor.shape)


def pack_strings(array: np.ndarray[Any, Any]) -> bytes:
    """Strings as OpenVINO's IR stores them: count, start of each, end of the last, characters (32-bit numbers)."""
    items = [item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1)]
    ends = np.cumsum([0] + [len(item) for item in items])
    return np.array([len(items), *ends], "<i4").tobytes() + b"".join(items)
