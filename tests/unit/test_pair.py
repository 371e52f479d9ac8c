"""The .xml and the .bin are written together or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mo_loop.errors import FileError, UsageError
from mo_loop.ir.pair import move_pair, new_pair

Replace = Callable[[Any, Any], None]


def write(path: Path) -> None:
    with new_pair(path) as (data, xml):
        data.write(b"new weights")
        xml.write("<new/>")


def contents(folder: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in folder.iterdir()}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The .xml of an older pair."""
    (tmp_path / "model.bin").write_text("old weights")
    (tmp_path / "model.xml").write_text("<old/>")
    return tmp_path / "model.xml"


def refusing(monkeypatch: pytest.MonkeyPatch, target: Path, error: type[BaseException] = PermissionError) -> None:
    """A file system that once fails to move a file to `target`."""
    replace, refused = os.replace, False

    def refuse_once(source: Any, to: Any) -> None:
        nonlocal refused
        if Path(to) == target and not refused:
            refused = True
            raise error
        replace(source, to)

    monkeypatch.setattr(os, "replace", refuse_once)


def test_a_new_pair_and_one_over_it(tmp_path: Path) -> None:
    for _ in range(2):
        write(tmp_path / "below" / "model.xml")
        assert contents(tmp_path / "below") == {"model.bin": "new weights", "model.xml": "<new/>"}


@pytest.mark.parametrize("refused", ["model.xml", "model.bin"])
def test_when_a_file_cannot_be_moved_the_older_pair_stays(
    refused: str, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(old.parent)
    refusing(monkeypatch, old.with_name(refused))
    with pytest.raises(FileError) as caught:
        write(old)
    assert caught.value.code == "ML218" and contents(old.parent) == before


def test_when_the_xml_cannot_be_moved_no_bin_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing(monkeypatch, tmp_path / "model.xml")
    with pytest.raises(FileError):
        write(tmp_path / "model.xml")
    assert contents(tmp_path) == {}


def test_an_older_bin_without_its_xml_comes_back(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old.unlink()
    refusing(monkeypatch, old)
    with pytest.raises(FileError):
        write(old)
    assert contents(old.parent) == {"model.bin": "old weights"}


def test_interrupted_between_the_two_the_older_pair_stays(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(old.parent)
    refusing(monkeypatch, old, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        write(old)
    assert contents(old.parent) == before


def test_interrupted_after_both_the_new_pair_stays(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def interrupted(source: Any, to: Any) -> None:
        replace(source, to)
        if Path(to) == old:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(old)
    assert contents(old.parent) == {"model.bin": "new weights", "model.xml": "<new/>"}


def test_an_error_while_writing_leaves_the_older_pair(old: Path) -> None:
    before = contents(old.parent)
    with pytest.raises(RuntimeError), new_pair(old) as (data, _):
        data.write(b"half")
        raise RuntimeError
    assert contents(old.parent) == before


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    for name in ("model.bin", "model.xml"):
        folder = tmp_path / name.replace(".", "_")
        (folder / name).mkdir(parents=True)
        with pytest.raises(FileError, match="cannot be written"):
            write(folder / "model.xml")
        assert [each.name for each in folder.iterdir()] == [name]


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"does not end in \.xml"):
        write(tmp_path / "model.txt")
    assert contents(tmp_path) == {}


def test_a_draft_is_moved_beside_its_bin(tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(tmp_path)
    draft = tmp_path / "draft" / "a.xml"
    write(draft)
    with monkeypatch.context() as patch:
        refusing(patch, old)
        with pytest.raises(FileError):
            move_pair(draft, old)
    assert {name: text for name, text in before.items() if (tmp_path / name).read_text() != text} == {}
    write(draft)
    move_pair(draft, old)
    assert old.read_text() == "<new/>" and old.with_suffix(".bin").read_text() == "new weights"
    assert contents(draft.parent) == {}
