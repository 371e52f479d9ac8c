"""Matrices of a file or in memory whose rows and columns are exchanged while the .bin is written.

    w = FileTensor("model.onnx", 4096, f32, (1024, 4096))
    TransposedTensor(w).shape                                         # (4096, 1024)

A matrix is read into a buffer, a large one some columns at a time, and tiles of the buffer are transposed. Its rows are
longer than their content: if their distance is a multiple of a page, they share few lines of the processor's cache, and
it takes five times as long (measured).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import FileIO
from typing import Any

import numpy as np

from mo_loop.graph.tensor import SAMPLE, DataFile, FileTensor, Tensor, ended_before

GROUP = 1 << 26
"""Bytes of columns in memory at once."""
TILE = 128
"""Rows and columns of a tile, which fits into the processor's cache."""
LINE = 64
"""Bytes added to each row of the buffer: one line of the processor's cache."""
BUFFERS = 512
"""Rows that one call reads; systems limit them to 1,024."""

Array = np.ndarray[Any, Any]


class TransposedTensor(Tensor):
    """The matrix `source` of [.., K, N] as [.., N, K]; all other dimensions are 1, and elements have 8 bits or more.

    The data is read from a file in blocks, if `source` is a span of one.
    """

    __slots__ = ("source",)

    def __init__(self, source: Tensor, shape: tuple[int, ...] | None = None) -> None:
        *batch, rows, columns = source.shape
        super().__init__(source.dtype, (*batch, columns, rows) if shape is None else shape)
        self.source = source

    def array(self) -> Array:
        return np.swapaxes(self.source.array(), -1, -2).reshape(self.shape)

    def blocks(self) -> Iterator[bytes | memoryview]:
        with _Matrix(self.source) as matrix:
            for first, last in _ranges(matrix.columns, matrix.group):
                yield from matrix.transposed(first, last)

    def sample(self) -> bytes:
        with _Matrix(self.source) as matrix:
            if self.nbytes <= SAMPLE:
                return matrix.elements(0, self.size)
            half = SAMPLE // 2 // matrix.item.itemsize
            return matrix.elements(0, half) + matrix.elements(self.size - half, self.size)

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        return TransposedTensor(self.source, shape)

    @property
    def files(self) -> tuple[DataFile, ...]:
        return self.source.files


class _Matrix:
    """The elements of a tensor as bits, read by columns."""

    def __init__(self, source: Tensor) -> None:
        self.rows, self.columns = source.shape[-2:]
        self.item = np.dtype(f"u{source.dtype.size_of(1)}")
        self.group = max(TILE, GROUP // max(1, self.rows * self.item.itemsize) // TILE * TILE)
        self._source = source
        self._array: Array | None = None
        self._file: FileIO | None = None

    def __enter__(self) -> _Matrix:
        source = self._source
        if isinstance(source, FileTensor):
            self._file = source.file.open()
        else:
            array = np.ascontiguousarray(source.array())
            self._array = array.view(self.item).reshape(self.rows, self.columns)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def transposed(self, first: int, last: int) -> Iterator[memoryview]:
        """The columns from `first` to `last` as rows, TILE of them at once."""
        given = np.empty((self.rows, last - first + LINE // self.item.itemsize), self.item)
        self._read(given, 0, self.rows, first, last)
        for column, end in _ranges(last - first, TILE):
            made = np.empty((end - column, self.rows), self.item)
            for row, below in _ranges(self.rows, TILE):
                made[:, row:below] = given[row:below, column:end].T
            yield made.reshape(-1).view(np.uint8).data

    def elements(self, first: int, last: int) -> bytes:
        """The elements from `first` to `last` of the transposed matrix."""
        parts = []
        while first < last:
            column, row = divmod(first, self.rows)
            below = min(self.rows, row + last - first)
            part = np.empty((below - row, 1), self.item)
            self._read(part, row, below, column, column + 1)
            parts.append(part.tobytes())
            first += below - row
        return b"".join(parts)

    def _read(self, into: Array, row: int, below: int, first: int, last: int) -> None:
        """Rows and columns of the matrix, into the beginnings of the rows of `into`."""
        if self._array is not None:
            into[:, : last - first] = self._array[row:below, first:last]
            return
        source, size = self._source, self.item.itemsize
        assert self._file is not None and isinstance(source, FileTensor)
        wanted, length = (last - first) * size, into.shape[1] * size
        data = into.reshape(-1).view(np.uint8).data
        at_once = BUFFERS if last - first == self.columns else 1
        for start, end in _ranges(below - row, at_once):
            parts = [data[number * length : number * length + wanted] for number in range(start, end)]
            place = source.offset + ((row + start) * self.columns + first) * size
            if _read_into(parts, self._file, place) != wanted * len(parts):
                raise ended_before(source.file)


def _read_into(parts: list[memoryview], file: FileIO, offset: int) -> int:
    """Fill one buffer after the other with the bytes of a file from `offset` on; the number of bytes."""
    if hasattr(os, "preadv"):
        return os.preadv(file.fileno(), parts, offset)
    file.seek(offset)
    return sum(file.readinto(part) or 0 for part in parts)


def _ranges(size: int, step: int) -> Iterator[tuple[int, int]]:
    """(first, last) of the parts of `step`; the last part may be shorter."""
    for first in range(0, size, step):
        yield first, min(first + step, size)
