"""The flags of the Model Optimizer and of ovc: scripts work after only the command is changed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mo_loop.cli.convert import command
from mo_loop.cli.legacy_flags import TABLE, with_shapes
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from tests.harness import floats, parsed

from . import commands
from .commands import assert_fails, convert, ended, names_in_ir, saved

TWO = """
main (float[N,3] x, bool flag, float k) => (float[N,3] y) {
  s = Mul (x, k)
  y = If (flag) <then_branch = a () => (float[N,3] p) { p = Neg (s) }, else_branch = b () => (float[N,3] q) {
    q = Abs (s) }> }"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return saved(parsed(TWO), tmp_path, "two.onnx")


@pytest.fixture
def weighty(tmp_path: Path) -> Path:
    return commands.weighty(tmp_path, 64)


def written(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.xml"))


class TestScripts:
    """The installed command with the flags of the older commands."""

    def test_mo(self, two: Path) -> None:
        done = ended(convert(
            "--input_model", "two.onnx", "--output_dir", "new/deep", "--model_name", "named", "--input", "x,flag,k",
            "--input_shape", "[2,3],[],[]", "--freeze_placeholder_with_value", "flag->False,k->-2", "--output", "y",
            "--data_type", "FP32", "--framework", "onnx", "--log_level", "ERROR", "--static_shape", cwd=two.parent,
        ))
        assert done.stderr == "note: --framework has no effect: mo-loop reads only ONNX\n"
        assert "sizes         none may change" in done.stdout
        xml = two.parent / "new" / "deep" / "named.xml"
        assert names_in_ir(xml) == (["x"], ["y"]) and 'shape="2,3"' in xml.read_text()
        assert "1 If decided" in done.stdout
        found = dict(isolated(run_ir, str(xml), [{"x": floats(2, 3)}])[0])
        assert np.array_equal(found["y"], np.abs(floats(2, 3) * np.float32(-2)))

    def test_mo_with_short_flags(self, weighty: Path) -> None:
        done = convert(
            "-m", "weighty.onnx", "-n", "named", "-o", "new", "--data_type=half", "--silent", "--progress",
            cwd=weighty.parent,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert written(weighty.parent) == ["new/named.xml"]
        assert (weighty.parent / "new" / "named.bin").stat().st_size < 64 * 64 * 3


class TestMessages:

    def test_names_and_shapes_are_joined(self) -> None:
        assert with_shapes("a,b{f32},c->1", "[1],(2,3),[]") == "a[1],b(2,3){f32},c[]->1"
        assert with_shapes(None, " [1,3] , [2] ") == "[1,3],[2]" and with_shapes("a", None) == "a"

    @pytest.mark.parametrize(("flags", "is_half"), [
        ([], False), (["--compress_to_fp16"], True), (["--compress_to_fp16=True"], True),
        (["--compress_to_fp16", "True"], True), (["--compress_to_fp16=False"], False),
        (["--compress_to_fp16", "False"], False), (["--compress-to-fp16"], True),
        (["--data_type", "FP16"], True), (["--data_type=half"], True), (["--data_type", "FP32"], False),
        (["--data_type", "float"], False), (["--data_type=FP16", "--compress_to_fp16"], True),
    ])
    def test_half_precision(self, flags: list[str], is_half: bool, weighty: Path, tmp_path: Path) -> None:
        done = ended(convert(weighty, *flags, "-o", tmp_path / "o.xml"))
        assert ((tmp_path / "o.bin").stat().st_size < 64 * 64 * 3) is is_half
        assert ("f32 stored as f16" if is_half else "unchanged (f32 stays f32)") in done.stdout

    @pytest.mark.parametrize("flag", [flag for flag in TABLE if flag.is_refused], ids=lambda flag: flag.name)
    def test_flags_that_are_refused(self, flag: object, two: Path, tmp_path: Path) -> None:
        done = convert(two, "-o", tmp_path / "o.xml", flag.name, "value")  # type: ignore[attr-defined]
        assert_fails(done, f"{flag.name} is not supported", "why:")  # type: ignore[attr-defined]


def test_the_table_is_complete() -> None:
    """Every flag is listed once; the options it names exist, and a refused flag has a reason."""
    names = [flag.name for flag in TABLE]
    assert len(names) == len(set(names))
    own = {name for each in command.params for name in each.opts}
    for flag in TABLE:
        assert flag.ours or flag.why, flag.name
        missing = {word.strip(",") for word in flag.ours.split() if word.startswith("--")} - own
        assert not missing, flag.name


def test_every_flag_of_ovc_is_known() -> None:
    """Compared with the installed ovc, so that the test fails for a new flag."""
    ovc = Path(sys.executable).with_name("ovc")
    shown = subprocess.run([str(ovc), "--help"], capture_output=True, text=True, timeout=120).stdout
    flags = set(re.findall(r"^  (?:-\w, )?(--\w+)", shown, re.MULTILINE)) - {"--help"}
    known = {flag.name for flag in TABLE} | {name for each in command.params for name in each.opts}
    assert len(flags) > 5 and flags <= known
