"""`mo-loop convert` with outputs that it cannot write, or inputs that it cannot read to the end."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mo_loop.api import convert_model, save_model
from mo_loop.errors import FileError
from mo_loop.ir import xml as writer
from tests import ROOT
from tests.harness import parsed, raised

from .commands import PLAIN, assert_clear, assert_fails, assert_untouched, convert, run


def test_folder_that_is_a_file(plain: Path, old_pair: Path) -> None:
    done = run(plain, "-o", old_pair / "model.xml")
    assert_fails(done, "ML218", kept=old_pair)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is unwritable for this user")
def test_unwritable_folder(plain: Path, old_pair: Path) -> None:
    old_pair.parent.chmod(0o500)
    try:
        done = run(plain, "-o", old_pair)
        assert_fails(done, kept=old_pair)
    finally:
        old_pair.parent.chmod(0o700)


def test_file_that_cannot_be_made(plain: Path, old_pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that root passes as well: opening the file fails as in an unwritable folder."""

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    done = convert(plain, "-o", old_pair)
    assert_fails(done, "Permission denied", kept=old_pair)


@pytest.mark.parametrize("taken", ["model.xml", "model.bin"])
def test_folder_in_the_place_of_a_file(taken: str, plain: Path, tmp_path: Path) -> None:
    """The other file of the pair is not changed either."""
    folder = tmp_path / "out"
    (folder / taken).mkdir(parents=True)
    (folder / taken / "inside").write_text("kept")
    other = folder / ("model.bin" if taken == "model.xml" else "model.xml")
    other.write_bytes(b"old")
    done = convert(plain, "-o", folder / "model.xml")
    assert_fails(done)
    assert other.read_bytes() == b"old" and (folder / taken / "inside").read_text() == "kept"
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("odd"), KeyboardInterrupt()])
def test_error_while_writing(
    error: BaseException, plain: Path, old_pair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the files is written before the error."""
    original = writer.XmlWriter._layer
    written: list[object] = []

    def failing(self: Any, *arguments: Any) -> None:
        written.append(arguments)
        if len(written) == 3:
            raise error
        original(self, *arguments)

    monkeypatch.setattr(writer.XmlWriter, "_layer", failing)
    raised(FileError if isinstance(error, OSError) else type(error), save_model, convert_model(plain), old_pair)
    assert len(written) == 3
    assert_untouched(old_pair)


def test_error_while_moving(plain: Path, old_pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The .bin is already in its place when moving the .xml fails: the old .bin is restored."""
    replace = os.replace

    def failing(source: Any, target: Any) -> None:
        if Path(target) == old_pair and ".tmp" in str(source):
            raise OSError(5, "Input/output error", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    raised(FileError, save_model, convert_model(plain), old_pair, match=r"^ML218: ")
    assert_untouched(old_pair)


def save_apart(folder: Path, location: str) -> None:
    """m.onnx and its weights in a file of their own."""
    made = parsed(PLAIN)
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.arange(3, dtype=np.float32), "w"))
    onnx.save(made, folder / "m.onnx", save_as_external_data=True, location=location, size_threshold=0)


def test_weights_of_the_model_are_not_overwritten(tmp_path: Path) -> None:
    """External data may have the path of the .bin."""
    save_apart(tmp_path, "m.bin")
    data = (tmp_path / "m.bin").read_bytes()
    done = convert(tmp_path / "m.onnx", "-o", tmp_path / "m.xml")
    assert_fails(done)
    assert (tmp_path / "m.bin").read_bytes() == data and not (tmp_path / "m.xml").exists()


def test_source_gone_before_the_end(tmp_path: Path) -> None:
    """Weights are read when they are written; the message names the missing file."""
    save_apart(tmp_path, "w.data")
    converted = convert_model(tmp_path / "m.onnx")
    (tmp_path / "w.data").unlink()
    caught = raised(FileError, save_model, converted, tmp_path / "m.xml")
    assert "w.data" in str(caught) and sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_full_standard_output(plain: Path, old_pair: Path) -> None:
    """The pair is written before; stdout has the summary alone."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mo_loop", "convert", plain, "-o", old_pair],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        )
    assert done.returncode == 2 and "ML219: standard output cannot be written" in done.stderr
    assert_clear(done.stderr)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_device_is_not_replaced_by_a_report(plain: Path, tmp_path: Path) -> None:
    done = run(plain, "-o", tmp_path / "out.xml", "--mapping", "/dev/full")
    assert done.returncode == 2 and "ML219" in done.stderr and "No space left" in done.stderr
    assert_clear(done.stderr)
    assert Path("/dev/full").is_char_device()
