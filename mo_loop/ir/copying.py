"""Bytes of one file appended to another, by the cheapest way the system offers.

copy_file_range leaves the copy to the kernel (and shares blocks where the file system can), but not between all file
systems; sendfile at least spares the way through Python; reading and writing in pieces works everywhere.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import BinaryIO

from mo_loop.errors import FileError

_PIECE = 1 << 26
_SMALL = 1 << 16


def append_span(path: str, offset: int, size: int, target: BinaryIO) -> None:
    """Append `size` bytes of the file at `path`, from `offset` on, to `target`. FileError when it is too short."""
    with open(path, "rb") as source:
        done = 0
        descriptor = _descriptor(target) if size >= _SMALL else None
        if descriptor is not None:
            target.flush()
            for way in (_by_range, _by_sendfile):
                done += way(source.fileno(), offset + done, size - done, descriptor)
            target.seek(0, os.SEEK_END)
        source.seek(offset + done)
        while done < size:
            block = source.read(min(1 << 20, size - done))
            if not block:
                raise FileError(
                    f"{os.path.basename(path)} ended before the data of a weight", code="ML213",
                    hint="the file is shorter than the model says: copy it again",
                )  # fmt: skip
            target.write(block)
            done += len(block)


def _descriptor(target: BinaryIO) -> int | None:
    try:
        return target.fileno()
    except OSError:  # a file in memory
        return None


def _by_range(source: int, offset: int, size: int, target: int) -> int:
    copy: Callable[..., int] | None = getattr(os, "copy_file_range", None)
    if copy is None:
        return 0
    return _repeat(lambda at, count: copy(source, target, count, offset_src=at), offset, size)


def _by_sendfile(source: int, offset: int, size: int, target: int) -> int:
    send: Callable[..., int] | None = getattr(os, "sendfile", None)
    if send is None:
        return 0
    return _repeat(lambda at, count: send(target, source, at, count), offset, size)


def _repeat(step: Callable[[int, int], int], offset: int, size: int) -> int:
    """Call `step` until all is copied or it gives up; returns how much was."""
    done = 0
    while done < size:
        try:
            count = step(offset + done, min(_PIECE, size - done))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise  # no other way would do better
            break
        if count <= 0:
            break
        done += count
    return done
