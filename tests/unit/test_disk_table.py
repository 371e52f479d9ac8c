"""Rows on disk."""

import sqlite3
import threading

import pytest

from mo_loop.errors import FileError
from mo_loop.support.disk_table import PAGE, DiskTable, key, text_of
from mo_loop.support.process_memory import peak_memory


@pytest.fixture
def table() -> DiskTable:
    return DiskTable("CREATE TABLE sizes (name BLOB PRIMARY KEY, size INTEGER)")


def test_rows(table: DiskTable) -> None:
    count = 2 * PAGE + 3
    table.run_all("INSERT INTO sizes VALUES (?, ?)", ((key(f"{number:05}"), number) for number in range(count)))
    table.run("UPDATE sizes SET size = 7 WHERE name = ?", key("00003"))
    assert table.row("SELECT size FROM sizes WHERE name = ?", key("00003")) == (7,)
    assert table.row("SELECT size FROM sizes WHERE name = ?", key("x")) is None
    found = [text_of(name) for (name,) in table.rows("SELECT name FROM sizes ORDER BY name")]
    assert found == [f"{number:05}" for number in range(count)]


def test_keys_are_in_the_order_of_their_texts(table: DiskTable) -> None:
    names = ["", "a", "a/b", "a\0", "\udcff", "é", "\uffff", "\U0001f600", "\ud83d"]
    table.run_all("INSERT INTO sizes VALUES (?, 0)", ((key(each),) for each in names))
    assert [text_of(name) for (name,) in table.rows("SELECT name FROM sizes ORDER BY name")] == sorted(names)


def test_several_threads_use_one_table(table: DiskTable) -> None:
    def fill(start: int) -> None:
        for number in range(start, 2000, 4):
            table.run("INSERT INTO sizes VALUES (?, ?)", key(str(number)), number)
            sum(1 for _ in table.rows("SELECT * FROM sizes LIMIT 3"))

    threads = [threading.Thread(target=fill, args=(start,)) for start in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert table.row("SELECT COUNT(*), SUM(size) FROM sizes") == (2000, sum(range(2000)))


def test_an_error_of_the_file_has_a_code(table: DiskTable, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="a temporary file of the batch cannot be used") as error:
        table.run("INSERT INTO missing VALUES (1)")
    assert error.value.code == "ML219" and "TMPDIR" in error.value.hint

    def refuse(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", refuse)
    with pytest.raises(FileError, match="unable to open"):
        DiskTable("CREATE TABLE t (a)")


def test_what_is_in_the_table_is_not_in_memory(table: DiskTable) -> None:
    before = peak_memory()
    for number in range(64):
        table.run("INSERT INTO sizes VALUES (?, ?)", key(f"{number}-" + "x" * (1 << 20)), number)
    assert table.row("SELECT COUNT(*) FROM sizes") == (64,) and peak_memory() - before < 32 << 20
