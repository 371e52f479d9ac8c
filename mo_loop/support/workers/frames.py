"""Messages between a worker and its parent: a length and a pickle, on unbuffered streams."""

from __future__ import annotations

import io
import pickle
import struct
from typing import BinaryIO

_HEADER = struct.Struct("<Q")


def write_raw(stream: BinaryIO, data: bytes) -> None:
    view = memoryview(_HEADER.pack(len(data)) + data)
    while view:
        view = view[stream.write(view) or 0 :]


def write_frame(stream: BinaryIO, content: object) -> None:
    write_raw(stream, pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL))


def _read_exactly(stream: BinaryIO, size: int) -> bytes | None:
    buffer = io.BytesIO()
    while buffer.tell() < size:
        chunk = stream.read(size - buffer.tell())
        if not chunk:
            return None
        buffer.write(chunk)
    return buffer.getvalue()


def read_frame(stream: BinaryIO) -> bytes | None:
    """The next frame, or None at the end of the stream."""
    header = _read_exactly(stream, _HEADER.size)
    return _read_exactly(stream, _HEADER.unpack(header)[0]) if header else None
