"""The messages between a worker and its parent: frames, which are a length and a pickle on unbuffered streams.

TaskOutcome is the result of a task, or how it failed.
"""

from __future__ import annotations

import io
import pickle
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

OK, ERROR, CRASH, TIMEOUT, MEMORY = "ok", "error", "crash", "timeout", "memory"

_HEADER = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The result of one task, or how it failed.

    `status` is one of ok, error, crash, timeout, memory. `value` is the result of the function (ok only). `message`
    describes a failure: the exception, or the name of the signal. `stage` is the last name given to
    `report_stage`, `error` the exception's class name, `code` its `code` attribute if it has one, `detail` a traceback
    or the last lines that the process printed. `first` is true if it was the first task of its worker.
    """

    task: Any
    status: str
    value: Any = None
    message: str = ""
    stage: str = ""
    error: str = ""
    code: str = ""
    detail: str = ""
    seconds: float = 0.0
    first: bool = True

    @property
    def ok(self) -> bool:
        """Whether the function returned."""
        return self.status == OK


class WorkerStartError(RuntimeError):
    """A worker could not import its function."""


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
