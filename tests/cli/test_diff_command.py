"""`mo-loop diff`: dumps, weights and terminals; tests/cli/recorded/diff.txt has what it prints."""

from pathlib import Path

import onnx
import pytest

from mo_loop.look.differences.changes import ASPECTS
from tests.harness import floats, parsed, with_weights

from .commands import NESTED, ended, mo_loop, saved
from .test_check_command import on_a_terminal


@pytest.mark.keeps_loops
def test_dump(folder: Path) -> None:
    for name in ("old", "new"):
        ended(mo_loop("convert", f"{name}.onnx", "-o", f"{name}.xml", "--dump", name, cwd=folder))
    done = mo_loop("diff", "old/000_loaded.json", "new/000_loaded.txt", cwd=folder)
    assert done.returncode == 1 and not done.stderr and "soft (Softmax): attribute axis 0 -> -1" in done.stdout
    (folded,) = (folder / "old").glob("*_GuardTripCounts.json")  # a file of the changes describes the graph
    done = mo_loop("diff", f"old/{folded.name}", "old/000_loaded.json", cwd=folder)
    assert done.returncode == 1 and not done.stderr and "Maximum" in done.stdout
    done = mo_loop("diff", f"old/{folded.stem}.txt", "old/000_loaded.txt", cwd=folder)
    assert done.returncode == 2 and "only the changes of a pass" in done.stderr and "give the .json" in done.stderr
    (folder / "old" / "000_loaded.json").unlink()
    done = mo_loop("diff", f"old/{folded.name}", "new/000_loaded.json", cwd=folder)
    assert done.returncode == 2 and "000_loaded.json cannot be read" in done.stderr and folded.name in done.stderr


def test_colours_on_a_terminal(folder: Path) -> None:
    command = ["diff", str(folder / "old.onnx"), str(folder / "new.onnx")]
    assert "\x1b[33m~ soft (Softmax)\x1b[0m: attribute axis 0 -> -1" in on_a_terminal(*command)
    assert "\x1b[" not in mo_loop(*command).stdout


def test_weights_in_f16_are_within_the_tolerance_of_the_help(tmp_path: Path) -> None:
    text = "main (float[N,64] x) => (float[N,8] y) { a = MatMul (x, w) b = Add (a, c) y = Relu (b) }"
    saved(with_weights(text, w=floats(64, 8), c=floats(8)), tmp_path)
    for name, flags in (("fp32.xml", ()), ("fp16.xml", ("--compress-to-fp16",))):
        assert mo_loop("convert", "model.onnx", "-o", name, "-q", *flags, cwd=tmp_path).returncode == 0
    assert "no difference" in mo_loop("diff", "fp32.xml", "fp16.xml", "--tolerance", "0.001", cwd=tmp_path).stdout
    done = mo_loop("diff", "fp32.xml", "fp16.xml", "--tolerance", "0.00001", cwd=tmp_path)
    assert done.returncode == 1 and "2 changed in 1 scope" in done.stdout, "only weights"
    assert "operator Const -> Convert" in mo_loop("diff", "fp32.xml", "fp16.xml", cwd=tmp_path).stdout


def test_external_weights(tmp_path: Path) -> None:
    model = parsed(NESTED.replace("float[3] w = {1.0, 2.0, 3.0}", "float[3] w = {1.0, 2.0, 4.0}"))
    saved(parsed(NESTED), tmp_path, "old.onnx")
    onnx.save(model, tmp_path / "new.onnx", save_as_external_data=True, location="new.data", size_threshold=0)
    done = mo_loop("diff", "old.onnx", "new.onnx", cwd=tmp_path)
    assert "w (Constant), read by first: weights: [1.0, 2.0, 3.0] -> [1.0, 2.0, 4.0]" in done.stdout


def test_the_command_offers_what_a_comparison_can_ignore() -> None:
    """The command names them without importing the comparison."""
    from mo_loop.cli import diff

    assert diff.ASPECTS == ASPECTS
