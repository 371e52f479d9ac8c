"""The list of models of a batch: cases that need a library call. tests/cli/test_batch_command.py has more."""

import os
import sys
from pathlib import Path

import pytest

from mo_loop.batching.plan import planned
from mo_loop.errors import FileError, UsageError
from tests.harness import raised


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a/one.onnx", "a/b/two.ONNX", "c/three.onnx"):
        made(name)
    return tmp_path


def made(name: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(b"")


def names(*given: str) -> list[str]:
    return [each.name for each in planned(given, Path("out")).models]


@pytest.mark.parametrize(("given", "expected"), [
    ("a", ["b/two.ONNX", "one.onnx"]), ("a/", ["b/two.ONNX", "one.onnx"]), ("a/b", ["two.ONNX"]),
    ("a/one.onnx", ["one.onnx"]), ("a/*", ["one.onnx"]), ("a/*.onnx", ["one.onnx"]),
    ("a/**", ["b/two.ONNX", "one.onnx"]), ("**/*.onnx", ["a/one.onnx", "c/three.onnx"]),
    ("*/*.onnx", ["a/one.onnx", "c/three.onnx"]), ("[ac]/t*", ["c/three.onnx"]), ("*/b/t*", ["a/b/two.ONNX"]),
    ("?/**/t*", ["a/b/two.ONNX", "c/three.onnx"]), ("./c/../a/on?.onnx", ["one.onnx"]),
    (".", ["a/b/two.ONNX", "a/one.onnx", "c/three.onnx"]),
])
def test_one_path(given: str, expected: list[str]) -> None:
    for other in ("a/.hidden/x.onnx", "a/._one.onnx", "a/README.txt", "c/three.data"):
        made(other)
    assert names(given) == expected


def test_the_root_is_above_all_that_was_given(folder: Path) -> None:
    plan = planned(["a/b/*.ONNX", "c/three.onnx"], Path("out"))
    assert plan.root == folder
    assert [(each.name, each.target.as_posix()) for each in plan.models] == [
        ("a/b/two.ONNX", "out/a/b/two.xml"),
        ("c/three.onnx", "out/c/three.xml"),
    ]
    assert [path.name for path in plan.models[0].outputs] == ["two.xml", "two.bin"]


def test_the_root_does_not_depend_on_which_models_there_are() -> None:
    """A model that is added later changes no other output path."""
    assert names("a") == ["b/two.ONNX", "one.onnx"]
    os.remove("a/one.onnx")
    assert names("a") == ["b/two.ONNX"] and names("a/*/*") == ["b/two.ONNX"]


def test_absolute_and_relative_paths_name_the_same(folder: Path) -> None:
    assert names("a/one.onnx", str(folder / "a" / "one.onnx"), str(folder / "a" / "*.onnx")) == ["one.onnx"]


def test_links_keep_their_names_and_linked_folders_are_not_entered(folder: Path) -> None:
    os.symlink(folder / "a" / "one.onnx", "c/link.onnx")
    for link in ("c/again", "c/again.onnx"):
        os.symlink(folder / "c", link)
    assert names("c") == ["link.onnx", "three.onnx"]


def test_a_dangling_link_is_told() -> None:
    os.symlink("nowhere", "c/dangling.onnx")
    raised(UsageError, names, "c/dangling.onnx", match="neither a file nor a folder")


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_names_that_differ_in_capitals(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made("a/ONE.onnx")
    monkeypatch.setattr(sys, "platform", platform)
    if platform == "linux":
        assert names("a") == ["ONE.onnx", "b/two.ONNX", "one.onnx"]
        return
    raised(UsageError, names, "a", match=r"ONE\.onnx and one\.onnx would both be written")


def test_two_endings_of_one_name() -> None:
    made("a/one.pb")
    with pytest.raises(UsageError, match=r"one\.onnx and one\.pb would both be written to out/one\.xml"):
        names("a/one.onnx", "a/one.pb")
    made("a/one.v2.onnx")
    assert names("a/one*.onnx") == ["one.onnx", "one.v2.onnx"]


def test_a_folder_named_as_an_output() -> None:
    for other in ("a/one.xml/two.onnx", "a/one.bin/two.onnx"):
        made(other)
        raised(UsageError, names, "a/one.onnx", other, match=r"a folder in the place of an output of one\.onnx")


def test_every_path_has_to_give_something() -> None:
    wrong = {"d": FileError, "a/one.onn": FileError, "a/*.pb": UsageError, "a\0b": UsageError}
    for nothing, kind in wrong.items():
        raised(kind, names, "a", nothing)
