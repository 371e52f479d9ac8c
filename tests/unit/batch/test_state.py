"""Hashes and the state file that keeps them."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from mo_loop.batch.fingerprint import Made, is_current, of_options, stamp
from mo_loop.batch.plan import Planned
from mo_loop.batch.result import Facts
from mo_loop.batch.state import NAME, Entry, State
from mo_loop.extensions import GROUP


@pytest.fixture
def model(tmp_path: Path) -> Planned:
    """A model with external data, and its pair."""
    for name in ("m.onnx", "m.data", "out/m.xml", "out/m.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return Planned(tmp_path / "m.onnx", tmp_path / "out" / "m.xml", "m.onnx")


@pytest.fixture
def made(model: Planned) -> Made:
    xml, data = map(stamp, model.outputs)
    return Made("options", stamp(model.source), {"m.data": stamp(model.source.with_suffix(".data"))}, xml, data)


def test_a_stamp_is_read_in_blocks(tmp_path: Path) -> None:
    content = os.urandom(1 << 20) * 32
    (tmp_path / "file").write_bytes(content)
    tracemalloc.start()
    found = stamp(tmp_path / "file")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.size, found.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert peak < 2 << 20


def test_current(model: Planned, made: Made) -> None:
    assert is_current(made, model, "options")
    assert not is_current(made, model, "others")


@pytest.mark.parametrize("name", ["m.onnx", "m.data", "out/m.xml", "out/m.bin"])
def test_not_current(name: str, model: Planned, made: Made) -> None:
    path = model.source.parent / name
    content = path.read_bytes()
    for other in (content.swapcase(), content + b"\0", content[:-1], b""):
        path.write_bytes(other)
        assert not is_current(made, model, "options")
    path.unlink()
    assert not is_current(made, model, "options")
    path.mkdir()
    assert not is_current(made, model, "options")


def test_names_in_a_state_that_are_no_paths(model: Planned, made: Made) -> None:
    for name in ("\0", "x" * 5000, "."):
        assert not is_current(replace(made, external={name: made.source}), model, "options")


def test_sizes_are_looked_at_before_anything_is_read(
    model: Planned, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mo_loop.batch.fingerprint.stamp", lambda path: pytest.fail(f"{path} is read"))
    model.outputs[1].write_bytes(b"of another size")
    assert not is_current(made, model, "options")
    assert not is_current(made, model, "others")


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

    class Entry:
        dist, name, value = Package, "more", "more:register"

    asked = []
    with monkeypatch.context() as patch:
        patch.setattr("mo_loop.batch.fingerprint.metadata.entry_points", lambda group: asked.append(group) or [Entry])
        first = of_options({}, [], True)
        patch.setattr(Package, "version", "1.1")
        assert len({before, first, of_options({}, [], True)}) == 3
        assert of_options({}, [], False) == of_options({}, [], False)
    assert set(asked) == {GROUP}
    with monkeypatch.context() as patch:
        patch.setattr("mo_loop.batch.fingerprint.__version__", "9.9")
        assert of_options({}, [], True) != before
    with monkeypatch.context() as patch:
        patch.setattr("mo_loop.batch.fingerprint.metadata.version", lambda name: "9.9")
        assert of_options({}, [], True) != before


def test_what_is_put_is_there_later(model: Planned, made: Made) -> None:
    folder = model.target.parent
    entry = Entry(made, Facts(3, {"Loop": 1}), ("odd",))
    state = State(folder)
    state.put("m.xml", entry)
    state.put("gone.xml", entry)
    state.save()
    again = State(folder)
    assert (again.get("m.xml"), again.get("gone.xml"), again.note) == (entry, None, "")
    again.put("m.xml", None)
    again.save()
    assert State(folder).get("m.xml") is None


@pytest.mark.parametrize(
    "text",
    ["", '{"format": 1, "models": {"m.xml"', "what?", "[]", "3", "[" * 100000, '{"format": 2, "models": {}}',
     '{"models": {}}', '{"format": 1, "models": 3}', "\0"],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_a_broken_file_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text)
    state = State(tmp_path)
    assert state.get("m.xml") is None
    assert state.note.endswith("no model is up to date")


def test_a_file_that_is_no_text_or_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"\xff\xfe{}")
    assert "cannot be read" in State(tmp_path).note
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).mkdir()
    assert "cannot be read" in State(tmp_path).note


BROKEN: dict[str, object] = {
    "number": 3, "null": None, "empty": {}, "list": [], "made": {"made": {}}, "text": {"made": "x"},
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_entry_is_absent(name: str, model: Planned, made: Made) -> None:
    folder = model.target.parent
    state = State(folder)
    state.put("m.xml", Entry(made, Facts(3, {})))
    state.save()
    content = json.loads((folder / NAME).read_text())
    content["models"]["broken.xml"] = BROKEN[name]
    (folder / NAME).write_text(json.dumps(content))
    again = State(folder)
    assert (again.get("broken.xml"), again.note) == (None, "")
    assert again.get("m.xml") is not None


@pytest.mark.parametrize(
    "path", ["made", "facts", "warnings", "made.source", "made.source.size", "made.bin", "facts.layers"]
)
def test_an_entry_without_a_part_is_absent(path: str, model: Planned, made: Made) -> None:
    folder = model.target.parent
    state = State(folder)
    state.put("m.xml", Entry(made, Facts(3, {})))
    state.save()
    content = json.loads((folder / NAME).read_text())
    *above, last = path.split(".")
    place = content["models"]["m.xml"]
    for key in above:
        place = place[key]
    del place[last]
    (folder / NAME).write_text(json.dumps(content))
    assert State(folder).get("m.xml") is None


def test_nothing_is_written_without_need(tmp_path: Path) -> None:
    State(tmp_path).save()
    assert not list(tmp_path.iterdir())
