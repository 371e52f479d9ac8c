"""FolderState: the outputs of earlier batches, in `.mo-loop.json` in their folder, a JSON text in each line.

    {"format": 2}
    ["a/b.xml", {"made": {...}, "facts": {...}, "warnings": []}]

The last line of an output counts. A running batch appends to the file, and writes it anew at its end, sorted and
without removed outputs. Lines that are not valid are ignored. A file that begins with another line is ignored too: the
only consequence is that models are converted again.

Workers write into a temporary folder next to it (`drafts_in`). A batch holds a lock on that folder: one without a lock
is of a batch that was killed, and the next batch removes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mo_loop.batching.entries import StateEntry, entry_of, plain
from mo_loop.batching.estimates import Earlier, earlier_from
from mo_loop.batching.plan import Planned
from mo_loop.batching.task import Remote, Work
from mo_loop.errors import FileError
from mo_loop.ir.pair import restore_pair
from mo_loop.support.disk_table import DiskTable, key, text_of
from mo_loop.support.files import (
    append_lines,
    locked,
    new_locked_folder,
    reason_of,
    remove_abandoned,
    remove_locked,
    write_whole,
)

if TYPE_CHECKING:
    from mo_loop.batching.storage.scratch import Scratch

NAME = ".mo-loop.json"
HEAD = b'{"format": 2}\n'
_LONGEST = 64 << 20
"""Bytes of a line: a file without ends of lines is not read whole."""

_DRAFTS = ".mo-loop-"
"""The prefix of the names of temporary folders."""

_KEPT = "INSERT OR REPLACE INTO entries VALUES (?, ?)"


class FolderState:
    """The entries of a folder, by the path of the .xml below it, on the local disk; an OutputState."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._table = _table()
        self.note = _read(self.path, self._table)
        """The reason if a file exists but is not used."""
        self._new: list[bytes] = []  # lines that are not in the file yet
        self._is_changed = False

    def get(self, name: str) -> StateEntry | None:
        """The entry of an output."""
        row = self._table.row("SELECT line FROM entries WHERE name = ?", key(name))
        return None if row is None else entry_of(_parsed(row[0]))

    def drafts(self) -> AbstractContextManager[str]:
        return drafts_in(self.path.parent)

    def prepare(self, model: Planned) -> bool:
        xml, data = model.outputs
        assert isinstance(xml, Path) and isinstance(data, Path)
        restore_pair(xml)
        return not data.exists()

    def find(self, name: str, model: Planned, work: Work) -> tuple[StateEntry | None, bool]:
        return self.get(name), False

    def earlier(self, name: str, model: Planned) -> Earlier | None:
        entry = self.get(name)
        if entry is None:
            return None
        external = sum(stamp.size for stamp in entry.external.values())
        return earlier_from(entry.source.size, external, entry.facts)

    def has_lone_data(self, name: str, model: Planned) -> bool:
        xml, data = map(str, model.outputs)
        return os.path.exists(data) and not os.path.exists(xml)

    def remote(self, name: str, model: Planned, scratch: Scratch) -> Remote:
        return Remote(scratch, model.listed)

    def put(self, name: str, entry: StateEntry | None) -> None:
        """Set the entry of an output; None removes it, because its files are not certain to be complete."""
        line = json.dumps([name, None if entry is None else plain(entry)]).encode() + b"\n"
        self._table.run(_KEPT, key(name), line)
        self._new.append(line)

    def save(self) -> None:
        """Append the new entries to the file. FileError if that fails."""
        if self._new:
            append_lines(self.path, HEAD, b"".join(self._new))
            self._new = []
            self._is_changed = True

    def close(self) -> None:
        """Append the new entries, and write the file anew, with those that other processes appended meanwhile.
        FileError if that fails."""
        self.save()
        if self._is_changed:
            write_whole(self.path, self._lines())

    def _lines(self) -> Iterator[bytes]:
        """The lines of the new file; the old one is read when the first is taken."""
        folder = str(self.path.parent)
        table = _table()
        _read(self.path, table)
        yield HEAD
        for name, line in table.rows("SELECT * FROM entries ORDER BY name"):
            if _parsed(line) is not None and os.path.exists(os.path.join(folder, text_of(name))):
                yield line


@contextmanager
def drafts_in(folder: Path) -> Iterator[str]:
    """The path of a new folder in `folder`, which is created if need be; the new folder is removed at the end.

    Raises:
        FileError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / NAME):  # no other batch removes the new folder before it is locked
            remove_abandoned(folder, _DRAFTS)
            drafts, lock = new_locked_folder(folder.absolute(), _DRAFTS)
    except OSError as error:
        raise FileError(
            f"{folder} cannot be written: {reason_of(error)}", code="ML219", hint="give another folder"
        ) from None
    try:
        yield drafts
    finally:
        remove_locked(drafts, lock)


def _table() -> DiskTable:
    return DiskTable("CREATE TABLE entries (name BLOB PRIMARY KEY, line BLOB)")


def _read(path: Path, table: DiskTable) -> str:
    """Fill the table from the file; return the reason if a file exists but is not used."""
    try:
        with open(path, "rb") as file:
            if file.readline(_LONGEST) != HEAD:
                return f"{path} was written by another version: no model is up to date"
            table.run_all(_KEPT, _entries(file))
    except FileNotFoundError:
        return ""
    except OSError:
        return f"{path} cannot be read: no model is up to date"
    return ""


def _entries(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """The names and lines of a file whose first line was read."""
    while line := file.readline(_LONGEST):
        match _json(line):
            case [str(name), _]:
                yield key(name), line


def _parsed(line: bytes) -> Any:
    """The entry of a line; None if the line is not valid JSON."""
    return _json(line)[1]


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
