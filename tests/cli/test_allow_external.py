"""--allow-external in every command that reads external data, and the errors of the commands without it."""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.harness import with_weights

from .commands import ended, mo_loop

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")

@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose data is a link to a file in another folder."""
    made = with_weights("main (float[3] x) => (float[3] y) { y = Add (x, w) }", w=np.float32([1, 2, 3]))
    (tmp_path / "in").mkdir()
    (tmp_path / "data").mkdir()
    path = tmp_path / "in" / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.data", size_threshold=0)
    (path.parent / "w.data").rename(tmp_path / "data" / "w.data")
    (path.parent / "w.data").symlink_to("../data/w.data")
    return path


COMMANDS = {
    "convert": ("convert", "in/m.onnx", "-o", "m.xml"), "batch": ("batch", "in", "-o", "out", "-j", "1"),
    "check": ("check", "in/m.onnx"), "diff": ("diff", "in/m.onnx", "in/m.onnx"),
    "view": ("view", "in/m.onnx", "in/m.onnx", "-o", "page.html"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command(model: Path, tmp_path: Path, name: str) -> None:
    command = COMMANDS[name]
    refused = mo_loop(*command, cwd=tmp_path)
    assert refused.returncode in (1, 2)
    said = refused.stdout + refused.stderr
    assert "ML216" in said
    if name != "batch":  # its lines are short; the reports have the whole error
        found = re.search(r"--allow-external (\S+)", said)
        assert found is not None and found[1] == os.path.realpath(tmp_path / "data")
    done = mo_loop(*command, "--allow-external", "data", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ML2" not in done.stdout + done.stderr


def test_the_numbers_are_compared(model: Path, tmp_path: Path) -> None:
    """ONNX Runtime would not read the file, or would read one that a conversion refuses."""
    assert "ML216" in mo_loop("verify", "in/m.onnx", cwd=tmp_path).stderr
    done = mo_loop("verify", "in/m.onnx", "--sets", "1", "--format", "json", "--allow-external", "data", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["passed"]


def test_verify_asks_onnx_runtime_only_after_the_check(model: Path, tmp_path: Path) -> None:
    """A tensor that the conversion leaves out is read by ONNX Runtime, so it is checked too."""
    made = onnx.load(model, load_external_data=False)
    made.graph.initializer[0].name = "unused"
    with_weights(made, w=np.ones(3, np.float32))
    model.write_bytes(made.SerializeToString())
    assert mo_loop("convert", "in/m.onnx", "-o", "m.xml", cwd=tmp_path).returncode == 0
    assert "ML216" in mo_loop("verify", "in/m.onnx", cwd=tmp_path).stderr


def test_a_batch_converts_again_after_a_change(model: Path, tmp_path: Path) -> None:
    """The hash of an allowed file decides too, and the IR does not name its folder."""
    command = (*COMMANDS["batch"], "--allow-external", "data", "--report", "r.json")
    found = []
    for data in (None, None, np.float32([5, 6, 7]).tobytes()):
        if data is not None:
            (tmp_path / "data" / "w.data").write_bytes(data)
        assert mo_loop(*command, cwd=tmp_path).returncode == 0
        found.append(json.loads((tmp_path / "r.json").read_text())["models"][0]["status"])
    assert found == ["converted", "skipped", "converted"]
    assert np.float32([5, 6, 7]).tobytes() in (tmp_path / "out" / "m.bin").read_bytes()
    assert "data" not in re.sub(r"<data ", "", (tmp_path / "out" / "m.xml").read_text())


def test_inspect(model: Path, tmp_path: Path) -> None:
    assert "missing, or refused" in mo_loop("inspect", "in/m.onnx", cwd=tmp_path).stdout
    assert "missing" not in ended(mo_loop("inspect", "in/m.onnx", "--allow-external", "data", cwd=tmp_path)).stdout
    assert mo_loop("inspect", "in/m.onnx", "--graph", "--allow-external", "data", cwd=tmp_path).returncode == 0


def test_reduce(model: Path, tmp_path: Path) -> None:
    """The smaller model has its data in itself."""
    command = ("reduce", "in/m.onnx", "-o", "small.onnx", "--if", "test -f {}", "-j", "1", "--timeout", "2")
    assert "ML216" in mo_loop(*command, cwd=tmp_path).stderr
    ended(mo_loop(*command, "--allow-external", "data", cwd=tmp_path))
    onnx.checker.check_model(str(tmp_path / "small.onnx"))
