"""DataFile: a file with constant data, opened again each time that some of it is read.

    file = DataFile("weights.data", FileIdentity.of(descriptor))
    with file.open() as data: ...            # FileError if another file has taken its place, or it was written to

The identity is taken when the file is checked. Whatever is read later has the same one, so a link or a new file that
replaces it in between is not read.
"""

from __future__ import annotations

import os
import stat
from io import FileIO
from typing import NamedTuple

from mo_loop.errors import FileError

FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_BINARY", "O_NOINHERIT"))
"""The flags with which files that a model names are opened: no child inherits them, and a pipe or a device does not
block."""

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
"""Opening a link fails, where the system supports it."""


class FileIdentity(NamedTuple):
    """The facts that distinguish states of a file: device, number on it, bytes, times of the last changes in ns.

    `modified` is the time of the content, which a program can set to any time; `changed` is that of the content, names
    and permissions, which only the clock of the system sets. A second name (a hard link) or new permissions during a
    conversion count as a change, therefore.
    """

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, descriptor: int) -> FileIdentity | None:
        """The identity of an open file; None if it is not a regular file."""
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class DataFile(NamedTuple):
    """A path without links, and the identity that the file must have; None if any file may be there.

    `shown` is the name for messages, if it is not that of `path`: a cache stores files under hashes.
    """

    path: str
    identity: FileIdentity | None = None
    shown: str = ""

    @classmethod
    def at(cls, path: str) -> DataFile | None:
        """The regular file at a path, as it is now; links are followed. None if there is none; OSError as of `open`."""
        descriptor = os.open(path, FLAGS)
        try:
            identity = FileIdentity.of(descriptor)
        finally:
            os.close(descriptor)
        return None if identity is None else cls(os.path.realpath(path), identity, os.path.basename(path))

    @property
    def name(self) -> str:
        return self.shown or os.path.basename(self.path)

    def open(self) -> FileIO:
        """The file, open for reading. FileError if it has changed; OSError if it cannot be read and has no identity."""
        if self.identity is None:
            return FileIO(self.path)
        try:
            descriptor = os.open(self.path, FLAGS | NO_LINK)
        except OSError as error:
            raise self._changed(error.strerror or str(error)) from None
        if FileIdentity.of(descriptor) != self.identity:
            os.close(descriptor)
            raise self._changed("it was written to, or another file has taken its place")
        return FileIO(descriptor, "rb")

    def require_unchanged(self) -> None:
        """FileError if the file has changed, or is gone."""
        if self.identity is not None:
            self.open().close()

    def _changed(self, why: str) -> FileError:
        return FileError(
            f"{self.name} changed while the model was converted", why=why, code="ML270",
            hint="nothing was written: convert again when the files of the model are complete",
        )  # fmt: skip
