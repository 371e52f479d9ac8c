"""write_whole: writes a file completely or not at all. append_lines: adds to a file. refuse_device: refuses files
without end. locked: one process at a time replaces a file.

    write_whole(Path("graph.dot"), to_dot(graph))
    append_lines(Path("results.jsonl"), b'{"format": 1}\n', b'["a", 1]\n')
    refuse_device(Path("model.onnx"))                   # FileError if it is a link to /dev/zero
    with locked(path) as mark:
        draft = path.with_name(f".{path.name}{mark}.tmp")

The content of `write_whole` is written under another name in the same folder, and renamed at the end. A device or a
pipe, such as /dev/stdout, is written directly.

The lock is a file `.NAME.lock` in the same folder. The system ends the lock when the process that holds it ends,
for any reason; the next process takes the file over, and removes it at the end. (The package filelock leaves its files,
has no locks of folders, and its import takes an eighth of the conversion of a small model.)
"""

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from mo_loop.errors import FileError, UsageError

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


_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link",
}

Content = str | bytes | Iterable[str] | Iterable[bytes]


def write_whole(path: Path, content: Content) -> None:
    """Write `content`, text as UTF-8; missing folders above `path` are created.

    Pieces of content are taken while other processes that write the file wait.

    Raises:
        FileError: the file cannot be written; an existing file is unchanged.
    """
    with _coded_errors(path):
        if is_special(path):
            with open(path, "wb") as file:
                file.writelines(pieces_of(content))
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path) as mark:
            _replace(path, path.with_name(f".{path.name}{mark}.tmp"), content)


def append_lines(path: Path, head: bytes, lines: bytes) -> None:
    """Append lines to a file whose first line is `head`; a file that begins otherwise is replaced.

    Raises:
        FileError: the file cannot be written; an existing file is unchanged.
    """
    with _coded_errors(path), locked(path) as mark:
        if path.is_symlink() or not _begins(path, head):
            _replace(path, path.with_name(f".{path.name}{mark}.tmp"), [head, lines])
            return
        with open(path, "r+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(end - 1)
            broken = b"" if file.read(1) == b"\n" else b"\n"  # the last line of a process that was killed
            try:
                _write_all(file, broken + lines)
            except OSError:
                file.truncate(end)
                raise


def pieces_of(content: Content) -> Iterator[bytes]:
    """The content as bytes."""
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, str):
        yield content.encode("utf-8", errors="backslashreplace")
    else:
        for each in content:
            yield from pieces_of(each)


@contextlib.contextmanager
def _coded_errors(path: Path) -> Iterator[None]:
    """Errors of the system in the block are FileErrors of a file that cannot be written."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise FileError(
            f"{path} cannot be written", why=reason_of(error), hint="no file was changed; give another path",
            code="ML219",
        ) from None


def _begins(path: Path, head: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(head)) == head
    except FileNotFoundError:
        return False


def _write_all(file: FileIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _replace(path: Path, draft: Path, content: Content) -> None:
    try:
        with new_file(draft) as file:
            file.writelines(pieces_of(content))
        os.replace(draft, path)
    finally:
        remove(draft)


def new_file(path: Path) -> BinaryIO:
    """A file that did not exist, open for writing: a file that a killed process left there is removed, no link is
    followed."""
    path.unlink(missing_ok=True)
    return open(path, "xb")


def remove(path: Path) -> None:
    """Remove a file if that is possible."""
    with contextlib.suppress(OSError):
        path.unlink()


def file_kind(found: os.stat_result) -> str:
    """The kind of file at a path, for messages: "a pipe"; empty for a regular file."""
    return "" if stat.S_ISREG(found.st_mode) else _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")


def refuse_device(path: str | os.PathLike[str], *, or_pipe: bool = False) -> None:
    """Raise FileError for a device or a socket in place of a model, and `or_pipe` for a pipe; either may have no end.

    A folder, and a path where nothing is, are errors of those that read it.
    """
    with contextlib.suppress(OSError, ValueError):
        kind = file_kind(os.stat(path))
        if kind not in ("", "a folder", *(() if or_pipe else ("a pipe",))):
            raise FileError(f"{path} is {kind}, not a model", hint="give the file itself", code="ML211")


def is_special(path: Path) -> bool:
    """Whether there is a device, a pipe or a socket: a file must not take its place."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def keep_sources(targets: Iterable[object], sources: Iterable[object], hint: str) -> None:
    """UsageError if one of the outputs is a file that the model was read from, even if nothing of it is needed now.

    All are paths, which may be links to the same file, or URLs, as text or as a Location.
    """
    read = set(map(_identity, sources))
    for target in targets:
        if _identity(target) in read:
            raise UsageError(f"{target} holds weights of the model itself", why="they would be lost", hint=hint)


def is_among(file: object, others: Iterable[object]) -> bool:
    """Whether a path or a URL is that of one of the others."""
    return _identity(file) in set(map(_identity, others))


def _identity(file: object) -> str:
    text = str(getattr(file, "url", file))
    return text if "://" in text else os.path.realpath(text)


def pair_of(xml: str) -> tuple[str, str]:
    """The .xml of an IR, and its .bin."""
    return xml, os.path.splitext(xml)[0] + ".bin"


def reason_of(error: Exception) -> str:
    """The reason that the system gives for a failed operation on files."""
    return getattr(error, "strerror", None) or str(error)
