"""Appends bytes of one file to another through one buffer.

Weights start at any offset of their file. For such spans pread into a buffer of 1 MiB is as fast as `cp`, and twice as
fast as copy_file_range and sendfile, which are slow if source and target are aligned differently (measured).
"""

from __future__ import annotations

from typing import BinaryIO

from mo_loop.graph.data_file import DataFile
from mo_loop.graph.tensor import ended_before

PIECE = 1 << 20
"""Bytes copied at once. Smaller pieces need more calls, larger ones do not fit into the processor's cache."""


def append_span(file: DataFile, offset: int, size: int, target: BinaryIO) -> None:
    """Append `size` bytes of `file`, from `offset` on, to `target`. FileError if it is too short, or has changed."""
    buffer = memoryview(bytearray(min(PIECE, size)))
    with file.open() as source:
        source.seek(offset)
        done = 0
        while done < size:
            count = source.readinto(buffer[: size - done])
            if not count:
                raise ended_before(file)
            target.write(buffer[:count])
            done += count
