"""Hashes and the state file that keeps them."""

import errno
import hashlib
import os
import tracemalloc
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from mo_loop.api import _work
from mo_loop.batching.estimates import Earlier
from mo_loop.batching.fingerprint import is_current, of_options, stamp
from mo_loop.batching.outputs import HEAD, NAME, FolderState
from mo_loop.batching.plan import Planned
from mo_loop.batching.result import Facts, StateEntry
from mo_loop.compare.batch_comparison import Comparing
from mo_loop.errors import FileError
from mo_loop.extensions import GROUP
from mo_loop.options import ConvertOptions
from tests.batch_state import entries_in, write_entries


@pytest.fixture
def model(tmp_path: Path) -> Planned:
    """A model with external data, and its pair."""
    for name in ("m.onnx", "m.data", "out/m.xml", "out/m.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return Planned(tmp_path / "m.onnx", tmp_path / "out" / "m.xml", "m.onnx")


@pytest.fixture
def made(model: Planned) -> StateEntry:
    xml, data = map(stamp, model.outputs)
    external = {"m.data": stamp(model.source.with_suffix(".data"))}
    return StateEntry("options", stamp(model.source), external, xml, data, Facts(3, {}))


def test_a_stamp_is_read_in_blocks(tmp_path: Path) -> None:
    content = os.urandom(1 << 20) * 32
    (tmp_path / "file").write_bytes(content)
    tracemalloc.start()
    found = stamp(tmp_path / "file")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.size, found.sha256) == (len(content), hashlib.sha256(content).hexdigest()) and peak < 2 << 20


def test_current(model: Planned, made: StateEntry) -> None:
    assert is_current(made, model, "options") and not is_current(made, model, "others")


@pytest.mark.parametrize("name", ["m.onnx", "m.data", "out/m.xml", "out/m.bin"])
def test_not_current(name: str, model: Planned, made: StateEntry) -> None:
    path = model.source.parent / name
    content = path.read_bytes()
    for other in (content.swapcase(), content + b"\0", content[:-1], b""):
        path.write_bytes(other)
        assert not is_current(made, model, "options")
    path.unlink()
    assert not is_current(made, model, "options")
    path.mkdir()
    assert not is_current(made, model, "options")


def test_names_in_a_state_that_are_no_paths(model: Planned, made: StateEntry) -> None:
    for name in ("\0", "x" * 5000, "."):
        assert not is_current(replace(made, external={name: made.source}), model, "options")


def test_sizes_are_looked_at_before_anything_is_read(
    model: Planned, made: StateEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mo_loop.batching.fingerprint.stamp", lambda path: pytest.fail(f"{path} is read"))
    model.outputs[1].write_bytes(b"of another size")
    assert not is_current(made, model, "options") and not is_current(made, model, "others")


def test_each_option_of_a_batch_changes_the_hash() -> None:
    """Also the last element of a long array, and the last digit of a number."""
    plain: tuple[Any, ...] = (True, False, 0, 1, 0.1, 0.1 + 1e-16, "x", ("x",))
    long = np.zeros(3000)
    other = long + (np.arange(3000) == 1500)
    arrays: tuple[Any, ...] = (long, other, np.float32([1]), np.float64([1]), np.ones((1, 1)))
    nested = tuple({"x": each} for each in (*arrays, np.float32([1 + 1e-7])))
    hashes = [_work(ConvertOptions(), each).digest for each in (None, Comparing())]
    for cls in (ConvertOptions, Comparing):
        for each in fields(cls):
            if each.name in ("config", "extensions"):  # a batch takes no configuration; the contents of files count
                continue
            for value in plain if each.default is not None else (*plain, *arrays, *nested):
                if each.default is None or value != each.default:
                    made: Any = cls()
                    object.__setattr__(made, each.name, value)
                    given = (made, None) if cls is ConvertOptions else (ConvertOptions(), made)
                    hashes.append(_work(*given).digest)
    assert len(set(hashes)) == len(hashes)


def test_options_have_one_hash(tmp_path: Path) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text("one")
    second.write_text("two")
    same = of_options({"a": 1, "b": (2,)}, [str(first)], True)
    assert same == of_options({"b": [2], "a": 1}, [str(first)], True)
    others = [
        of_options({"a": 2, "b": (2,)}, [str(first)], True),
        of_options({"a": 1, "b": (2,)}, [], True),
        of_options({"a": 1, "b": (2,)}, [str(second)], True),
        of_options({"a": 1, "b": (2,)}, [str(first), str(second)], True),
        of_options({"a": 1, "b": (2,)}, [str(second), str(first)], True),
    ]
    assert len({same, *others}) == 6


def test_versions_and_plugins_are_part_of_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = of_options({}, [], True)
    assert of_options({}, [], True) == before

    class Package:
        name, version = "more-passes", "1.0"

    class Point:
        dist, name, value = Package, "more", "more:register"

    asked = []
    with monkeypatch.context() as patch:
        entries = "mo_loop.batching.fingerprint.metadata.entry_points"
        patch.setattr(entries, lambda group: asked.append(group) or [Point])
        first = of_options({}, [], True)
        patch.setattr(Package, "version", "1.1")
        assert len({before, first, of_options({}, [], True)}) == 3
        assert of_options({}, [], False) == of_options({}, [], False)
    assert set(asked) == {GROUP}
    with monkeypatch.context() as patch:
        patch.setattr("mo_loop.batching.fingerprint.package_digest", lambda: "9")
        assert of_options({}, [], True) != before
    with monkeypatch.context() as patch:
        patch.setattr("mo_loop.batching.fingerprint.metadata.version", lambda name: "9.9")
        assert of_options({}, [], True) != before


def test_what_is_put_is_there_later(model: Planned, made: StateEntry) -> None:
    folder = model.target.parent
    entry = replace(made, facts=Facts(3, {"Loop": 1}), warnings=("odd",))
    state = FolderState(folder)
    state.put("m.xml", entry)
    state.put("gone.xml", entry)
    state.close()
    again = FolderState(folder)
    assert (again.get("m.xml"), again.get("gone.xml"), again.note) == (entry, None, "")
    sizes = made.source.size, sum(each.size for each in made.external.values())
    assert sizes[1] and again.earlier("m.xml", model) == Earlier(*sizes, 3, 1, None)
    again.put("m.xml", None)
    assert again.get("m.xml") is None
    again.close()
    assert FolderState(folder).get("m.xml") is None and entries_in(folder / NAME) == {}


def test_a_running_batch_appends(model: Planned, made: StateEntry) -> None:
    """Saving costs in proportion to the new entries, however long the file is; the last line of an output counts."""
    folder = model.target.parent
    state = FolderState(folder)
    for layers in (3, 4):
        state.put("m.xml", replace(made, facts=Facts(layers, {})))
        state.save()
    assert len((folder / NAME).read_bytes().splitlines()) == 3
    assert FolderState(folder).get("m.xml") == replace(made, facts=Facts(4, {}))
    state.close()
    assert list(entries_in(folder / NAME)) == ["m.xml"]


def test_after_a_process_that_was_killed_while_it_appended(model: Planned, made: StateEntry) -> None:
    folder = model.target.parent
    entry = made
    (folder / "n.xml").write_text("")
    first = FolderState(folder)
    first.put("m.xml", entry)
    first.save()
    with open(folder / NAME, "ab") as file:
        file.write(b'["n.xml", {"made": {"opt')
    second = FolderState(folder)
    assert (second.get("m.xml"), second.get("n.xml"), second.note) == (entry, None, "")
    second.put("n.xml", entry)
    second.save()
    assert (FolderState(folder).get("m.xml"), FolderState(folder).get("n.xml")) == (entry, entry)


def test_an_append_without_room_leaves_the_file_as_it_was(
    model: Planned, made: StateEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: BinaryIO, data: bytes) -> None:
        file.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = model.target.parent
    state = FolderState(folder)
    state.put("m.xml", made)
    state.save()
    before = (folder / NAME).read_bytes()
    state.put("m.xml", replace(made, facts=Facts(4, {})))
    monkeypatch.setattr("mo_loop.support.files._write_all", full)
    with pytest.raises(FileError, match="cannot be written"):
        state.save()
    assert (folder / NAME).read_bytes() == before
    monkeypatch.undo()
    state.save()
    assert FolderState(folder).get("m.xml") == replace(made, facts=Facts(4, {}))


def test_batches_that_append_at_once_keep_each_others_entries(model: Planned, made: StateEntry) -> None:
    folder = model.target.parent
    (folder / "n.xml").write_text("")
    first, second = FolderState(folder), FolderState(folder)
    first.put("m.xml", made)
    second.put("n.xml", replace(made, facts=Facts(4, {})))
    first.save()
    second.close()
    first.close()
    assert list(entries_in(folder / NAME)) == ["m.xml", "n.xml"]


def test_a_state_that_is_a_link_is_replaced(model: Planned, made: StateEntry, tmp_path: Path) -> None:
    folder = model.target.parent
    (tmp_path / "elsewhere").write_bytes(HEAD)
    (folder / NAME).symlink_to(tmp_path / "elsewhere")
    state = FolderState(folder)
    state.put("m.xml", made)
    state.close()
    assert (tmp_path / "elsewhere").read_bytes() == HEAD and not (folder / NAME).is_symlink()


@pytest.mark.parametrize(
    "text",
    ["", '{"format": 1, "models": {"m.xml"', "what?", "[]", "3", "[" * 100000, '{"format": 2, "models": {}}',
     '{"format": 1}\n', '{"format": 3}\n', "\0"],
    ids=lambda text: text[:30],
)
def test_a_broken_file_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text)
    state = FolderState(tmp_path)
    assert state.get("m.xml") is None and state.note.endswith("no model is up to date")


def test_a_file_that_is_no_text_or_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"\xff\xfe{}")
    assert "another version" in FolderState(tmp_path).note
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).mkdir()
    assert "cannot be read" in FolderState(tmp_path).note


BROKEN: dict[str, object] = {
    "number": 3, "null": None, "empty": {}, "list": [], "made": {"made": {}}, "text": {"made": "x"},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_entry_is_absent(name: str, model: Planned, made: StateEntry) -> None:
    folder = model.target.parent
    state = FolderState(folder)
    state.put("m.xml", made)
    state.save()
    write_entries(folder / NAME, {**entries_in(folder / NAME), "broken.xml": BROKEN[name]})
    again = FolderState(folder)
    assert (again.get("broken.xml"), again.note) == (None, "") and again.get("m.xml") is not None


@pytest.mark.parametrize(
    "path", ["made", "facts", "warnings", "made.source", "made.source.size", "made.bin", "facts.layers"]
)
def test_an_entry_without_a_part_is_absent(path: str, model: Planned, made: StateEntry) -> None:
    folder = model.target.parent
    state = FolderState(folder)
    state.put("m.xml", made)
    state.save()
    content = entries_in(folder / NAME)
    *above, last = path.split(".")
    place = content["m.xml"]
    for key in above:
        place = place[key]
    del place[last]
    write_entries(folder / NAME, content)
    assert FolderState(folder).get("m.xml") is None


@pytest.mark.parametrize("line", [b"", b"what?", b"3", b"[]", b'["m.xml"]', b'[1, {}]', b"[" * 100000, b"\xff"])
def test_a_broken_line_is_ignored(line: bytes, model: Planned, made: StateEntry) -> None:
    folder = model.target.parent
    state = FolderState(folder)
    state.put("m.xml", made)
    state.save()
    content = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(HEAD + line + b"\n" + content.removeprefix(HEAD))
    again = FolderState(folder)
    assert (again.get("m.xml"), again.note) == (made, "")
    again.close()


def test_nothing_is_written_without_need(tmp_path: Path) -> None:
    FolderState(tmp_path).close()
    assert not list(tmp_path.iterdir())
