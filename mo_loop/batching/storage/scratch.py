"""Scratch: space on the local disk for files that are copied from URLs or made for them, shared by all processes.

    scratch = Scratch(limit=20 << 30)                     # may be pickled: the folder is chosen where it is used
    with scratch.room("s3://zoo/model.onnx", 300 << 20) as room:
        ...                                               # files in room.folder, 300 MB at most
        room.grow(900 << 20)                              # True, or False: end this room and ask for all at once

Each room is a folder with a lock and a number: the bytes that it may hold. A room is given when the numbers of all
rooms are below the limit; otherwise its process waits. Nobody waits while it has a room, so nobody waits for ever. A
folder whose lock nobody holds is of a process that was killed: the next one removes it. On a system without locks each
process counts its own rooms alone, by the number of the process in their names.
"""

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mo_loop.errors import FileError, StorageError
from mo_loop.support.files import locked, new_locked_folder, reason_of, remove_abandoned, remove_locked

_NAME = "mo-loop-scratch"
_PREFIX = "room-"
_SIZE = "bytes"
_POLL = 0.05
LONGEST_POLL = 1.0

LONGEST_WAIT = 86400.0
"""Seconds after which waiting for room is an error. The time limit of a model ends most waiting before."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folder of the rooms, and the limit of their bytes together; None for no limit.

    Without `folder` it is a folder of this user in the system's folder of temporary files.
    """

    folder: str | None = None
    limit: int | None = None

    def resolved(self) -> "Scratch":
        """The same with its folder, which exists. FileError if it cannot be made, or belongs to another user."""
        if self.folder is not None:
            try:
                os.makedirs(self.folder, exist_ok=True)
            except OSError as error:
                raise _unusable(self.folder, error) from None
            return self
        user = os.getuid() if hasattr(os, "getuid") else 0
        path = os.path.join(tempfile.gettempdir(), f"{_NAME}-{user}")
        try:
            os.makedirs(path, mode=0o700, exist_ok=True)
            status = os.lstat(path)
        except OSError as error:
            raise _unusable(path, error) from None
        if not stat.S_ISDIR(status.st_mode) or (hasattr(os, "getuid") and status.st_uid != user):
            raise FileError(
                f"{path} belongs to another user", why="models would be read from there",
                hint="remove it, or set TMPDIR to another folder", code="ML219",
            )
        return Scratch(path, self.limit)

    @contextmanager
    def room(self, what: object, size: int) -> "Iterator[Room]":
        """A new folder for `size` bytes, which is removed at the end. Waits while others have the room.

        Raises:
            StorageError: `what` alone needs more than the limit, or others have the room for longer than LONGEST_WAIT.
            FileError: the folder cannot be written.
        """
        self.require(what, size)
        base = Path(self.resolved().folder or "")
        try:
            folder, lock = self._made(base, what, size)
        except OSError as error:
            raise _unusable(base, error) from None
        try:
            yield Room(Path(folder), base, self.limit)
        finally:
            remove_locked(folder, lock)

    def require(self, what: object, size: int) -> None:
        """StorageError if `what` alone needs more than the limit."""
        if self.limit is not None and size > self.limit:
            raise StorageError(
                f"{what} needs {size} bytes of local disk", code="ML285",
                why=f"its conversion may use {self.limit} bytes", hint="give a larger --scratch",
            )

    def clean(self) -> None:
        """Remove the files that killed processes left."""
        with contextlib.suppress(OSError, FileError):
            base = Path(self.resolved().folder or "")
            with locked(base / _NAME) as mark:
                _taken(base, mark)

    def _made(self, base: Path, what: object, size: int) -> tuple[str, int | None]:
        wait, end = _POLL, time.monotonic() + LONGEST_WAIT
        while True:
            with locked(base / _NAME) as mark:
                taken = _taken(base, mark)  # this removes what killed processes left
                if not size or self.limit is None or taken + size <= self.limit:
                    return _new_room(base, size)
            if time.monotonic() > end:
                raise StorageError(
                    f"there is no space for {what} in {base}", code="ML285",
                    why=f"other processes have used {taken} of {self.limit} bytes for {LONGEST_WAIT:.0f} seconds",
                    hint="end them, or give a larger --scratch",
                )
            time.sleep(wait)
            wait = min(wait * 2, LONGEST_POLL)


@dataclass(frozen=True, slots=True)
class Room:
    """A folder of one process, for a number of bytes that is already counted."""

    folder: Path
    base: Path
    limit: int | None

    def grow(self, size: int) -> bool:
        """Whether the room now may hold `size` bytes, more than before. False if others have the rest.

        Raises:
            FileError: the folder cannot be written.
        """
        try:
            with locked(self.base / _NAME) as mark:
                own = _size_of(self.folder)
                if self.limit is not None and _taken(self.base, mark) - own + size > self.limit:
                    return False
                Path(self.folder, _SIZE).write_text(str(size))
                return True
        except OSError as error:
            raise _unusable(self.base, error) from None


def _new_room(base: Path, size: int) -> tuple[str, int | None]:
    folder, lock = new_locked_folder(base, _own_prefix())
    try:
        Path(folder, _SIZE).write_text(str(size))
    except OSError:
        remove_locked(folder, lock)
        raise
    return folder, lock


def _taken(base: Path, mark: str) -> int:
    """The bytes of all rooms that are in use; the others are removed. The lock of `base` is held, unless `mark` is not
    empty: without locks nobody can see whether the process of a room was killed."""
    rooms = base.glob(f"{_own_prefix()}*") if mark else remove_abandoned(base, _PREFIX)
    return sum(map(_size_of, rooms))


def _own_prefix() -> str:
    return f"{_PREFIX}{os.getpid()}-"


def _unusable(folder: object, error: OSError) -> FileError:
    return FileError(
        f"{folder} cannot be written", why=reason_of(error), hint="set TMPDIR to another folder", code="ML219"
    )


def _size_of(room: Path) -> int:
    try:
        return int(Path(room, _SIZE).read_text())
    except (OSError, ValueError):
        return 0
