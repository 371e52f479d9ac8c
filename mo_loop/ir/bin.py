"""Writes the .bin file: constants one after another, equal content once.

Two constants share their bytes if type and size, a fingerprint of a few sampled pages, and finally all bytes are equal.
The fingerprint avoids comparing most constants; hashing all bytes would take longer than writing them.
"""

from __future__ import annotations

from typing import BinaryIO

from mo_loop.graph.tensor import SAMPLE, FileTensor, Tensor, same_bytes
from mo_loop.ir.copying import append, append_span

ALIGNMENT = 64
"""Constants of at least this many bytes start at a multiple of it, so that a runtime can map them."""


class Weights:
    """Appends tensors to a binary file opened for writing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = 0
        self.places: dict[Tensor, int] = {}
        """The offset of each tensor that was added."""
        self._known: dict[tuple[str, int, bytes], list[tuple[Tensor, int]]] = {}

    @property
    def size(self) -> int:
        """The bytes of the file so far."""
        return self._end

    def add(self, tensor: Tensor) -> tuple[int, int]:
        """Write `tensor` unless the file contains its bytes already; returns offset and size in bytes."""
        size = tensor.nbytes
        offset = self.places[tensor] = self._place(tensor, size)
        return offset, size

    def _place(self, tensor: Tensor, size: int) -> int:
        sample = tensor.sample()
        candidates = self._known.setdefault((tensor.dtype.name, size, sample), [])
        for other, offset in candidates:
            if size <= SAMPLE or other is tensor or same_bytes(tensor, other):
                return offset
        if size >= ALIGNMENT and self._end % ALIGNMENT:
            self._file.write(b"\0" * (-self._end % ALIGNMENT))
            self._end += -self._end % ALIGNMENT
        offset = self._end
        if size <= SAMPLE:
            self._file.write(sample)
        elif isinstance(tensor, FileTensor):
            append_span(tensor.file, tensor.offset, size, self._file)
        else:
            for block in tensor.blocks():
                append(block, self._file)
        self._end += size
        candidates.append((tensor, offset))
        return offset
