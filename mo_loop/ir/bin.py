"""Writes the .bin file: constants one after another, equal content once.

Two constants share their bytes if type and size, a fingerprint of a few sampled pages, and finally all bytes are equal.
The fingerprint avoids comparing most constants; hashing all bytes would take longer than writing them. Where many
constants that differ have one fingerprint, each is hashed once instead of compared with all others.

Appends bytes of one file to another through one buffer.

Weights start at any offset of their file. For such spans pread into a buffer is as fast as `cp`, and twice as fast as
copy_file_range and sendfile, which are slow if source and target are aligned differently (measured).
"""

from collections.abc import Callable
from typing import BinaryIO

from mo_loop.conversion_limits import check_time, current
from mo_loop.graph.tensor import SAMPLE, DataFile, FileTensor, Tensor, digest, ended_before, same_bytes

PIECE = 1 << 18
"""Bytes written at once. Smaller pieces need more calls. For a larger one Linux looks for that much memory in one
place, which takes five times as long as the copy where memory is in pieces (measured on 6.18, ext4)."""


def append(block: bytes | memoryview, target: BinaryIO) -> None:
    """Append a block of any size to `target`. LimitError if the conversion has no time left."""
    view = memoryview(block).cast("B")
    for start in range(0, len(view), PIECE):
        check_time()
        target.write(view[start : start + PIECE])


def append_span(file: DataFile, offset: int, size: int, target: BinaryIO) -> None:
    """Append `size` bytes of `file`, from `offset` on, to `target`.

    Raises:
        FileError: the file is too short, or has changed.
        LimitError: the conversion has no time left.
    """
    buffer = memoryview(bytearray(min(PIECE, size)))
    with file.open() as source:
        source.seek(offset)
        done = 0
        while done < size:
            check_time()
            count = source.readinto(buffer[: size - done])
            if not count:
                raise ended_before(file)
            target.write(buffer[:count])
            done += count


ALIGNMENT = 64
"""Constants of at least this many bytes start at a multiple of it, so that a runtime can map them."""

_FEW = 4
"""Constants of one fingerprint that are compared with each other; more of them are hashed."""


class _Alike:
    """Constants of one type, size and fingerprint, with their offsets: no two of them have the same bytes."""

    __slots__ = ("_hashed", "_written")

    def __init__(self) -> None:
        self._written: list[tuple[Tensor, int]] = []
        self._hashed: dict[bytes, int] = {}

    def place(self, tensor: Tensor, write: Callable[[], int]) -> int:
        """The offset of the constant with the bytes of `tensor`; `write` writes a new one, and returns its offset."""
        if not self._hashed and len(self._written) < _FEW:
            for other, offset in self._written:
                if same_bytes(tensor, other):
                    return offset
            offset = write()
            self._written.append((tensor, offset))
            return offset
        if not self._hashed:
            self._hashed = {digest(other): offset for other, offset in self._written}
        key = digest(tensor)
        if key not in self._hashed:
            self._hashed[key] = write()
        return self._hashed[key]


class Weights:
    """Appends tensors to a binary file opened for writing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = 0
        self.places: dict[Tensor, int] = {}
        """The offset of each tensor that was added."""
        self._small: dict[tuple[str, int, bytes], int] = {}
        self._large: dict[tuple[str, int, bytes], _Alike] = {}
        self._within = current.get()

    @property
    def size(self) -> int:
        """The bytes of the file so far."""
        return self._end

    def add(self, tensor: Tensor) -> tuple[int, int]:
        """Write `tensor` unless the file contains its bytes already; returns offset and size in bytes.

        LimitError if the file becomes larger, or the conversion takes longer, than its limits allow.
        """
        check_time()
        size = tensor.nbytes
        offset = self.places.get(tensor)
        if offset is None:
            offset = self.places[tensor] = self._place(tensor, size)
        return offset, size

    def _place(self, tensor: Tensor, size: int) -> int:
        sample = tensor.sample()
        key = tensor.dtype.name, size, sample
        if size > SAMPLE:
            return self._large.setdefault(key, _Alike()).place(tensor, lambda: self._written(tensor, size))
        offset = self._small.get(key)
        if offset is None:
            offset = self._small[key] = self._begun(size)
            self._file.write(sample)
        return offset

    def _written(self, tensor: Tensor, size: int) -> int:
        offset = self._begun(size)
        if isinstance(tensor, FileTensor):
            append_span(tensor.file, tensor.offset, size, self._file)
        else:
            for block in tensor.blocks():
                append(block, self._file)
        return offset

    def _begun(self, size: int) -> int:
        """The offset of a constant of this size, which is written next. LimitError if the file becomes too large."""
        gap = -self._end % ALIGNMENT if size >= ALIGNMENT else 0
        if self._within is not None:
            self._within.write(self._end + gap + size)
        if gap:
            self._file.write(b"\0" * gap)
        offset = self._end + gap
        self._end = offset + size
        return offset
