"""`mo-loop convert` called in two ways, small models on disk, and what must hold when it fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx

from tests import MODELS

from .installed import in_process

PYTORCH = MODELS / "pytorch"

PLAIN = """
main (float[3] x) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> { [one] a = Add (x, w) [two] y = Neg (a) }"""

LOOP = """
main (float[3] x, int64 n) => (float[3] y) {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c) BODY }> }"""


PROGRAM = Path(sys.executable).with_name("mo-loop")
"""The installed command."""


def run(*arguments: object, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[Any]:
    """The installed command in a process of its own; `options` are those of subprocess.run."""
    options = {"text": True, **options}
    command = [str(PROGRAM), "convert", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, cwd=cwd, timeout=120, **options)


def convert(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What `mo-loop convert ARGUMENTS` prints and returns, without the start of a process for it."""
    return in_process("convert", *arguments, cwd=cwd)


def names_in_ir(xml: Path) -> tuple[list[str], list[str]]:
    """The names of the inputs and outputs of an IR."""
    from mo_loop.api import read_model

    model = read_model(xml)
    return model.inputs, model.outputs


def saved(model: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    """The model as a file."""
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def assert_untouched(xml: Path) -> None:
    """The old pair is as it was, and nothing stands beside it."""
    assert xml.read_bytes() == b"<old/>"
    assert xml.with_suffix(".bin").read_bytes() == b"old weights"
    assert sorted(path.name for path in xml.parent.iterdir()) == ["model.bin", "model.xml"]


def assert_clear(stderr: str) -> None:
    """One message, its code first, without a traceback."""
    assert stderr.startswith("error: ML"), stderr
    assert stderr.count("error: ") == 1
    assert "Traceback" not in stderr and 'File "' not in stderr
    assert "bug of mo-loop" not in stderr


def body(text: str) -> str:
    """The loop above with the last statements of its body."""
    return LOOP.replace("BODY", text)
