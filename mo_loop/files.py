"""write_whole: writes a file completely or not at all.

    write_whole(Path("graph.dot"), to_dot(graph))

The content is written under another name in the same folder, and renamed at the end. A device or a pipe, such as
/dev/stdout, is written directly.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from mo_loop.errors import FileError
from mo_loop.locking import locked


def write_whole(path: Path, content: str | bytes) -> None:
    """Write `content`, text as UTF-8; missing folders above `path` are created.

    Raises:
        FileError: the file cannot be written; an existing file is unchanged.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", errors="backslashreplace")
    try:
        if is_special(path):
            path.write_bytes(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path) as mark:
            _replace(path, path.with_name(f".{path.name}{mark}.tmp"), data)
    except (OSError, ValueError) as error:
        raise FileError(
            f"{path} cannot be written", why=reason_of(error), hint="no file was changed; give another path",
            code="ML219",
        ) from None  # fmt: skip


def _replace(path: Path, draft: Path, data: bytes) -> None:
    try:
        with new_file(draft) as file:
            file.write(data)
        os.replace(draft, path)
    finally:
        remove(draft)


def new_file(path: Path) -> BinaryIO:
    """A file that did not exist, open for writing: what a killed process left there is removed, no link is followed."""
    path.unlink(missing_ok=True)
    return open(path, "xb")


def remove(path: Path) -> None:
    """Remove a file if that is possible."""
    with contextlib.suppress(OSError):
        path.unlink()


def is_special(path: Path) -> bool:
    """Whether there is a device, a pipe or a socket: a file must not take its place."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def reason_of(error: Exception) -> str:
    """What the system says about an operation on files that failed."""
    return getattr(error, "strerror", None) or str(error)
