"""A folder with the files of one run: only files of an earlier run are removed.

    folder = RunFolder("steps")
    folder.begin()
    folder.write({"000_loaded.txt": text})

The file .mo-loop-dump.json in it is the index: the names of the files, and the SHA-256 of their content. A file is
of an earlier run if the index names it, it is a file and not a link, and its content is unchanged. Changed files are
never removed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mo_loop.errors import FileError
from mo_loop.support.files import write_whole

INDEX = ".mo-loop-dump.json"

_SCHEMA, _VERSION = "mo-loop dump", 1
_NAME = re.compile(r"\d{3,}_[\w.-]+|index\.html")  # no name in an index leads out of its folder

PAGE = "index.html"
"""The file that shows the whole run; it is written again when more is known."""


class RunFolder:
    """A folder by its path, which need not exist yet.

    Raises:
        FileError: the folder cannot be made, read or written to, or a file is in the way that no earlier run wrote.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._files: dict[str, str] = {}

    def begin(self) -> None:
        """Begin a run: the folder is made if need be, and the files of an earlier run in it are removed."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for name, digest in self._earlier().items():
                file = self.path / name
                if _NAME.fullmatch(name) and _is_file(file) and _digest(file.read_bytes()) == digest:
                    file.unlink()
        except OSError as error:
            reason = error.strerror or str(error)
            raise FileError(
                f"{self.path} cannot hold a dump", why=reason, hint="give another folder", code="ML219"
            ) from None
        self._files = {}
        self._require_free([PAGE])  # it is written last, and it would be too late
        self._save_index()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files of this run by name, text as UTF-8."""
        written = {name: _encoded(content) for name, content in files.items()}
        self._require_free([name for name in written if name != PAGE or PAGE not in self._files])
        # The index goes first: if the process is killed in between, it names a file that does not exist.
        self._files |= {name: _digest(content) for name, content in written.items()}
        self._save_index()
        for name, content in written.items():
            write_whole(self.path / name, content)

    def _require_free(self, names: Iterable[str]) -> None:
        for name in names:
            if os.path.lexists(self.path / name):
                raise FileError(
                    f"{self.path / name} would be overwritten by a dump", why="no earlier dump wrote this content",
                    hint="move it away, or give another folder", code="ML219",
                )  # fmt: skip

    def _earlier(self) -> dict[str, str]:
        """Name -> SHA-256 of the files of an earlier run."""
        index = self.path / INDEX
        if not os.path.lexists(index):
            return {}
        try:
            found: Any = json.loads(index.read_bytes()) if _is_file(index) else None
            if (found["schema"], found["version"]) != (_SCHEMA, _VERSION):
                raise ValueError
            return {str(name): str(digest) for name, digest in found["files"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise FileError(
                f"{index} is not the index of a dump", why="only an index says which files an earlier dump wrote",
                hint="move it away, or give another folder", code="ML219",
            ) from None  # fmt: skip

    def _save_index(self) -> None:
        content = {"schema": _SCHEMA, "version": _VERSION, "files": self._files}
        write_whole(self.path / INDEX, json.dumps(content, indent=1) + "\n")


def _is_file(path: Path) -> bool:
    """Whether there is a file, not a link or a folder."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _encoded(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", errors="backslashreplace")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
