"""Files that an extension names, and that are sent with it."""

from pathlib import Path

import pytest

from mo_loop.batching.cluster.requirements import read_files, written
from mo_loop.batching.fingerprint import declared_files, of_options
from mo_loop.errors import ExtensionError


def extension(folder: Path, line: str) -> str:
    """An extension with this line, with a file and a folder next to it."""
    (folder / "more" / "deep").mkdir(parents=True)
    (folder / "more" / "deep" / "b.txt").write_text("b")
    (folder / "table.json").write_text("{}")
    (folder / "other.bin").write_text("not named")
    (folder / "e.py").write_text(f"raise ValueError('never executed')\n{line}\n")
    return str(folder / "e.py")


def test_files_and_folders(tmp_path: Path) -> None:
    assert declared_files(extension(tmp_path, "MO_LOOP_FILES = ['table.json', 'more']")) == [
        "more/deep/b.txt", "table.json"
    ]


def test_an_extension_that_names_none(tmp_path: Path) -> None:
    assert declared_files(extension(tmp_path, "FILES = ['table.json']")) == []


@pytest.mark.parametrize("named", ["['../x']", "['/etc/passwd']", "['absent']", "'table.json'", "[1]", "open('x')"])
def test_what_cannot_be_sent(named: str, tmp_path: Path) -> None:
    with pytest.raises(ExtensionError, match="ML261"):
        declared_files(extension(tmp_path, f"MO_LOOP_FILES = {named}"))


def test_a_change_of_a_named_file_converts_again(tmp_path: Path) -> None:
    path = extension(tmp_path, "MO_LOOP_FILES = ['table.json']")
    before = of_options({}, [path], plugins=False)
    (tmp_path / "other.bin").write_text("changed")
    assert of_options({}, [path], plugins=False) == before
    (tmp_path / "table.json").write_text("[]")
    assert of_options({}, [path], plugins=False) != before


def test_folders_arrive_as_trees(tmp_path: Path) -> None:
    path = extension(tmp_path, "MO_LOOP_FILES = ['table.json']")
    there = tmp_path / "there"
    there.mkdir()
    places = written(read_files([path, str(tmp_path / "more"), path]), str(there))
    assert places == {path: f"{there}/0/e.py", str(tmp_path / "more"): f"{there}/1/more"}
    names = sorted(each.relative_to(there).as_posix() for each in there.rglob("*") if each.is_file())
    assert names == ["0/e.py", "0/table.json", "1/more/deep/b.txt"]
