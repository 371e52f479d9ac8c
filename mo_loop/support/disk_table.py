"""DiskTable and DiskSequence: rows on disk, so that a batch of 100,000 models needs about the memory of one of 1,000.

    table = DiskTable("CREATE TABLE sizes (name BLOB PRIMARY KEY, size INTEGER)")
    table.run_all("INSERT INTO sizes VALUES (?, ?)", ((key(name), size) for name, size in found))
    table.row("SELECT size FROM sizes WHERE name = ?", key("a.onnx"))
    for (size,) in table.rows("SELECT size FROM sizes ORDER BY size"): ...

It is a private database of SQLite in a temporary file that has no name: the system removes it with the process. CACHE
of it is in memory. Several threads may use one table.
"""

import sqlite3
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from mo_loop.errors import FileError

T = TypeVar("T")

CACHE = 256 << 10
"""Bytes of a table in memory."""

PAGE = 100
"""Rows that are read at once. Between two pages other threads use the table."""

Row = tuple[Any, ...]


class DiskTable:
    """Rows of a schema.

    Raises:
        FileError: the temporary file cannot be made or written. So do all methods.
    """

    def __init__(self, schema: str) -> None:
        self._lock = threading.Lock()
        with self._used():
            # Without a journal an error leaves the table undefined. All of them end the batch.
            self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
            self._database.executescript(
                f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -{CACHE >> 10}; {schema}"
            )

    def run(self, sql: str, *values: Any) -> None:
        """Execute a statement that changes rows."""
        with self._used():
            self._database.execute(sql, values)

    def run_all(self, sql: str, many: Iterable[Row]) -> None:
        """Execute it for each tuple of values. `many` must not use this table."""
        with self._used():
            self._database.execute("BEGIN")
            self._database.executemany(sql, many)
            self._database.execute("COMMIT")

    def row(self, sql: str, *values: Any) -> Row | None:
        """The first row of a query."""
        with self._used():
            row: Row | None = self._database.execute(sql, values).fetchone()
        return row

    def rows(self, sql: str, *values: Any) -> Iterator[Row]:
        """All rows of a query, which must not be changed meanwhile."""
        with self._used():
            cursor = self._database.execute(sql, values)
        while True:
            with self._used():
                page = cursor.fetchmany(PAGE)
            yield from page
            if len(page) < PAGE:
                return

    @contextmanager
    def _used(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise FileError(
                    "a temporary file of the batch cannot be used", why=str(error), code="ML219",
                    hint="make room on the disk of temporary files, or name another folder in TMPDIR",
                ) from None


class DiskSequence(Sequence[T]):
    """A sequence whose elements are made from rows of a table on access."""

    @abstractmethod
    def _at(self, place: int) -> T:
        """The element at a place from 0 to the length."""

    @overload
    def __getitem__(self, number: int) -> T: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[T]: ...

    def __getitem__(self, number: int | slice) -> T | Sequence[T]:
        if isinstance(number, slice):
            return [self._at(place) for place in range(*number.indices(len(self)))]
        place = number + len(self) if number < 0 else number
        if not 0 <= place < len(self):
            raise IndexError(f"there is no element {number} of {len(self)}")
        return self._at(place)


def key(text: str) -> bytes:
    """Any text as a key: names of files need not be valid Unicode, which TEXT of SQLite has to be. The order stays."""
    return text.encode("utf-8", "surrogatepass")


def text_of(stored: bytes) -> str:
    """The text of a key."""
    return stored.decode("utf-8", "surrogatepass")
