"""Memory of this process, rows on disk, and ordered unions."""

import sqlite3
import subprocess
import sys
import threading
from functools import reduce

import pytest

from mo_loop.errors import FileError
from mo_loop.origin import FEW, Many, union
from mo_loop.support.disk_table import PAGE, DiskTable, key, text_of
from mo_loop.support.process_memory import peak_memory

# -- The peak of memory is that of this process alone


LARGE = 256 << 20

CHILD = "from mo_loop.support.process_memory import peak_memory; print(peak_memory())"

PARENT = f"""
import subprocess, sys
from mo_loop.support.process_memory import peak_memory
held = b"x" * {LARGE}
own = peak_memory()
child = subprocess.run([sys.executable, "-c", {CHILD!r}], capture_output=True, text=True, check=True)
print(own, child.stdout)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the peak of memory this way")
def test_a_program_does_not_show_the_memory_of_the_one_that_started_it() -> None:
    """On Linux ru_maxrss does: small conversions started by a large process seemed to need 600 MB."""
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, check=True)
    own, child = map(int, done.stdout.split())
    assert own > LARGE and 0 < child < LARGE / 2


def test_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory() == 0


# -- Rows on disk


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


# -- Ordered unions: as tuples, without the time of copies


def test_few_elements_are_a_tuple() -> None:
    assert union((), ("a",)) == ("a",) and union(("a",), ()) == ("a",)
    found = union(("a", "b"), ("c", "b"))
    assert found == ("a", "b", "c") and isinstance(found, tuple)


def test_many_elements_are_like_a_tuple() -> None:
    numbers = tuple(range(FEW + 10))
    found = union(numbers, (5, -1))
    expected = (*numbers, -1)
    assert isinstance(found, Many) and found and found[0] == 0
    assert found == expected and expected == found and hash(found) == hash(expected)
    assert tuple(found) == expected and found[-1] == -1 and found[1:3] == (1, 2) and len(found) == len(expected)
    assert -1 in found and -2 not in found and repr(found) == repr(expected) and found != numbers
    assert union((-5,), found) == (-5, *expected)


def test_each_element_once_in_the_order_of_both_sides() -> None:
    first, second = tuple(range(50)), tuple(range(80, 30, -1))
    assert union(union(first, second), union(second, first)) == tuple(dict.fromkeys((*first, *second)))


def test_unions_of_unions_are_listed_once() -> None:
    """Each step doubles the parts of the union, and a chain is too long for recursion."""
    found = reduce(lambda each, _: union(each, union((*range(40),), each)), range(100), tuple(range(40)))
    assert found == tuple(range(40))
    assert list(reduce(lambda each, number: union(each, (number,)), range(20000), ())) == list(range(20000))
    assert list(reduce(lambda each, number: union((number,), each), range(20000), ())) == list(range(19999, -1, -1))
