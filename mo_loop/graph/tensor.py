"""Constant data of three kinds: a span of a file, an array in memory, and deferred data that is computed when written.

All have `dtype`, `shape`, `nbytes`, `array()` (the values, for folding and printing) and `blocks()` (the bytes of the
.bin in pieces, so that a large constant is never completely in memory).

DataFile: a file with constant data, opened again each time that some of it is read.

    file = DataFile("weights.data", FileIdentity.of(descriptor))
    with file.open() as data: ...            # FileError if the file was replaced, or written to

The identity is taken when the file is checked. Whatever is read later has the same one, so a link or a new file that
replaces it in between is not read.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterator
from io import FileIO
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from mo_loop.conversion_limits import check_time
from mo_loop.errors import FileError, TypeError_
from mo_loop.graph.types import ElementType, from_numpy
from mo_loop.support.packed_arrays import pack, unpack

FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY", "O_NOINHERIT"))
"""The flags with which files that a model names are opened: no child inherits them, and a pipe or a device does not
block."""

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Opening a link fails, where the system supports it."""


class FileIdentity(NamedTuple):
    """The facts that distinguish states of a file: device, number on it, bytes, times of the last changes in ns.

    `modified` is the time of the content, which a program can set to any time; `changed` is that of the content, names
    and permissions, which only the clock of the system sets. A second name (a hard link) or new permissions during a
    conversion count as a change, therefore.
    """

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, descriptor: int) -> FileIdentity | None:
        """The identity of an open file; None if it is not a regular file."""
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class DataFile(NamedTuple):
    """A path without links, and the identity that the file must have; None if any file may be there.

    `shown` is the name for messages, if it is not that of `path`: a cache stores files under hashes.
    """

    path: str
    identity: FileIdentity | None = None
    shown: str = ""

    @classmethod
    def at(cls, path: str) -> DataFile | None:
        """The regular file at a path, as it is now; links are followed. None if there is none; OSError as of `open`."""
        descriptor = os.open(path, FLAGS)
        try:
            identity = FileIdentity.of(descriptor)
        finally:
            os.close(descriptor)
        return None if identity is None else cls(os.path.realpath(path), identity, os.path.basename(path))

    @property
    def name(self) -> str:
        return self.shown or os.path.basename(self.path)

    def open(self) -> FileIO:
        """The file, open for reading. FileError if it has changed; OSError if it cannot be read and has no identity."""
        if self.identity is None:
            return FileIO(self.path)
        try:
            descriptor = os.open(self.path, FLAGS | NO_LINK)
        except OSError as error:
            raise self._changed(error.strerror or str(error)) from None
        if FileIdentity.of(descriptor) != self.identity:
            os.close(descriptor)
            raise self._changed("it was written to, or another file has taken its place")
        return FileIO(descriptor, "rb")

    def require_unchanged(self) -> None:
        """FileError if the file has changed, or is gone."""
        if self.identity is not None:
            self.open().close()

    def _changed(self, why: str) -> FileError:
        return FileError(
            f"{self.name} changed while the model was converted", why=why, code="ML270",
            hint="nothing was written: convert again when the files of the model are complete",
        )


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
        """For pickle: the content, because a process without the files may read the pickle."""
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
    ) -> None:
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
    )


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
    from hashlib import sha256  # it loads OpenSSL, which many models do not need

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
