"""Runs `mo-loop convert` in two ways; small models on disk; shared assertions about failures."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from click.testing import CliRunner

from mo_loop.cli import main
from tests import MODELS
from tests.harness import floats, with_weights

PYTORCH = MODELS / "pytorch"

PLAIN = """
main (float[3] x) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> { [one] a = Add (x, w) [two] y = Neg (a) }"""

LOOP = """
main (float[3] x, int64 n) => (float[3] y) {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c) BODY }> }"""


NESTED = """
main (float[3] x, int64 n, bool f) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> {
  [first] a = Add (x, w)
  [loop] y = Loop (n, "", a) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c)
    [choice] t = If (f) <then_branch = yes () => (float[3] p) { [soft] p = Softmax <axis = 0> (s) },
                         else_branch = no () => (float[3] q) { [sine] q = Sin (s) }> }>
}"""

OTHER = NESTED.replace("axis = 0", "axis = -1").replace("2.0", "2.5").replace("[first] a = Add", "[first] a = Sub")

PROGRAM = Path(sys.executable).with_name("mo-loop")
"""The installed command."""


def run(*arguments: object, cwd: Path | None = None, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run the installed command in a process of its own; `options` go to subprocess.run."""
    options = {"text": True, **options}
    command = [str(PROGRAM), "convert", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, cwd=cwd, timeout=120, **options)


def convert(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `mo-loop convert ARGUMENTS` in this process; returns exit code, stdout and stderr."""
    return in_process("convert", *arguments, cwd=cwd)


def names_in_ir(xml: Path) -> tuple[list[str], list[str]]:
    """The names of the inputs and outputs of an IR."""
    from mo_loop.api import read_model

    model = read_model(xml)
    return model.inputs, model.outputs


def saved(model: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    """Save the model; returns the path."""
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def assert_untouched(xml: Path) -> None:
    """The old pair is unchanged, and there is no other file in the folder."""
    assert xml.read_bytes() == b"<old/>" and xml.with_suffix(".bin").read_bytes() == b"old weights"
    assert sorted(path.name for path in xml.parent.iterdir()) == ["model.bin", "model.xml"]


def assert_clear(stderr: str) -> None:
    """There is one message, which begins with its code, and no traceback."""
    assert stderr.startswith("error: ML"), stderr
    assert stderr.count("error: ") == 1 and "Traceback" not in stderr and 'File "' not in stderr
    assert "bug of mo-loop" not in stderr


def assert_fails(
    done: subprocess.CompletedProcess[Any], *words: str, code: int = 2, kept: Path | None = None
) -> None:
    """The command ends with this code and a clear message that has the words; the pair `kept` is the old one."""
    assert done.returncode == code, done.stderr
    assert_clear(done.stderr)
    for word in words:
        assert word in done.stderr
    if kept is not None:
        assert_untouched(kept)


def ended(done: Any, code: int = 0) -> Any:
    """A command that has to end with this exit code."""
    assert done.returncode == code, done.stderr
    return done


def body(text: str) -> str:
    """The loop above with these statements at the end of its body."""
    return LOOP.replace("BODY", text)


def assert_refused(words: Sequence[str], model: Path, target: Path, *flags: str) -> None:
    """Converting a model with these flags fails with a clear message that has the words, and writes nothing."""
    done = convert(model, "-o", target, *flags)
    assert_fails(done, *words)
    assert not target.exists()


def weighty(folder: Path, size: int) -> Path:
    """A model with embedded weights of size * size numbers."""
    text = f"main (float[N,{size}] x) => (float[N,{size}] y) {{ y = MatMul (x, w) }}"
    return saved(with_weights(text, w=floats(size, size)), folder, "weighty.onnx")


# -- Runs `mo-loop` with any arguments, in this process or as the installed command


def mo_loop(
    *arguments: object, cwd: Path | None = None, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `mo-loop ARGUMENTS` in this process; returns exit code, stdout and stderr."""
    return in_process(*arguments, cwd=cwd, stdin=stdin, env=environment)


def in_process(
    *arguments: object, cwd: Path | None = None, stdin: bytes = b"", env: Mapping[str, str | None] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command in this process; an exception that it does not catch fails the test. None removes a variable."""
    command = [*map(str, arguments)]
    with contextlib.chdir(cwd or Path.cwd()):
        done = CliRunner().invoke(main, command, input=stdin, env=env)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(command, done.exit_code, done.stdout, done.stderr)


def installed(
    *arguments: object, cwd: Path | None = None, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a process of its own; `environment` is added to that of the tests."""
    done: Any = subprocess.run(
        [str(PROGRAM), *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd, timeout=120,
        env={**os.environ, **environment},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
