"""locked: one process at a time replaces a file.

    with locked(path) as mark:
        draft = path.with_name(f".{path.name}{mark}.tmp")

The lock is a file `.NAME.lock` in the same folder. The system ends the lock when the process that holds it ends,
for any reason; the next process takes the file over, and removes it at the end. (The package filelock leaves its files,
and its import takes an eighth of the conversion of a small model.)
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT = 300.0
"""Seconds to wait for another process before the lock is an error."""

_POLL = 0.02
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF)


@contextmanager
def locked(path: Path) -> Iterator[str]:
    """Lock `path`, whose folder exists; gives the text for the names of drafts.

    The text is empty while the lock is held: a draft of that name is of a process that was killed, and can be removed.
    On a system or a file system without locks it is different for each process.

    Raises:
        OSError: the lock file cannot be made, or another process holds the lock for longer than WAIT.
    """
    file = lock_of(path)
    descriptor = _acquired(file)
    if descriptor is None:
        yield f".{os.getpid()}"
        return
    try:
        yield ""
    finally:
        with contextlib.suppress(OSError):  # first the name, then the lock: nobody can get the lock of a removed file
            file.unlink()
        os.close(descriptor)


def lock_of(path: Path) -> Path:
    """The lock of a file; it exists while a process holds it, or after one was killed."""
    return path.with_name(f".{path.name}.lock")


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file or folder until it is closed; False if another process holds it, None without locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


def locked_folder(path: str | Path) -> int | None:
    """A descriptor that holds the lock of a folder; None if another process has it, or there is no lock."""
    if not hasattr(os, "O_DIRECTORY"):
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # not a folder, or gone meanwhile
        return None
    if try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def new_locked_folder(parent: Path, prefix: str) -> tuple[str, int | None]:
    """A new folder, and the descriptor that holds its lock until `remove_locked`."""
    path = tempfile.mkdtemp(prefix=prefix, dir=parent)
    return path, locked_folder(path)


def remove_locked(path: str | Path, descriptor: int | None) -> None:
    """Remove a folder whose lock this process holds."""
    shutil.rmtree(path, ignore_errors=True)
    if descriptor is not None:
        os.close(descriptor)


def remove_abandoned(parent: Path, prefix: str) -> list[Path]:
    """Remove the folders whose names begin with `prefix` and that no process has locked; return the others."""
    others = []
    for path in parent.glob(f"{prefix}*"):
        descriptor = locked_folder(path)
        if descriptor is None:
            others.append(path)
        else:
            remove_locked(path, descriptor)
    return others


def _acquired(file: Path) -> int | None:
    """A descriptor that holds the lock; None without locks."""
    end = time.monotonic() + WAIT
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        held = None
        try:
            held = try_lock(descriptor)
            if held and _is_at(file, descriptor):
                owned, descriptor = descriptor, -1
                return owned
            if held is None:
                with contextlib.suppress(OSError):
                    file.unlink()
                return None
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        if held is False:  # after a lock of a removed file the next attempt is at once
            if time.monotonic() > end:
                raise OSError(errno.EBUSY, "another process is writing it", os.fspath(file))
            time.sleep(_POLL)


def _is_at(file: Path, descriptor: int) -> bool:
    """Whether an open file still has its name: the one that held the lock before may have removed it."""
    try:
        return os.path.samestat(os.stat(file, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False
