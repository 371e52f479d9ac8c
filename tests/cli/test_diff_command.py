"""`mo-loop diff` as a user runs it."""

import json
from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper

from mo_loop.api import Model, convert_model, save_model
from mo_loop.look.differences.changes import ASPECTS
from tests.harness import floats, parsed

from .commands import NESTED, installed, mo_loop, saved
from .test_check_command import on_a_terminal

TEXT = """\
old.onnx -> new.onnx: ONNX models with 13 nodes and 13 nodes
3 changed in 2 scopes; 13 nodes correspond
(main)
  ~ w (Constant), read by first: weights: [1.0, 2.0, 3.0] -> [1.0, 2.5, 3.0]
  ~ first (Sub): operator Add -> Sub
loop/step/choice/yes
  ~ soft (Softmax): attribute axis 0 -> -1
"""


def test_text(folder: Path) -> None:
    done = installed("diff", "old.onnx", "new.onnx", cwd=folder)
    assert done.returncode == 1 and not done.stderr and done.stdout == TEXT


def test_equal(folder: Path) -> None:
    done = installed("diff", "old.xml", "old.xml", cwd=folder)
    assert done.returncode == 0 and not done.stderr and done.stdout.splitlines()[1:] == ["no difference"]


def test_ir(folder: Path) -> None:
    done = mo_loop("diff", "old.xml", "new.xml", cwd=folder)
    assert done.returncode == 1 and not done.stderr
    assert "  ~ first (Subtract): operator Add -> Subtract" in done.stdout
    assert "  ~ soft (SoftMax): attribute axis 0 -> -1" in done.stdout


@pytest.mark.parametrize("order", [1, -1])
def test_the_layers_of_an_onnx_model(folder: Path, order: int) -> None:
    done = mo_loop("diff", *["old.onnx", "old.xml"][::order], cwd=folder)
    assert done.returncode == 0 and not done.stderr and done.stdout.startswith("old.onnx -> old.xml: 6 nodes, ")
    assert "(main)\n  first (Add) -> first (Add)\n  loop (Loop) -> " in done.stdout
    assert "/then_body/soft (SoftMax) and 4 more\n" in done.stdout
    whole = mo_loop("diff", "old.onnx", "old.xml", "--all", "--scope", "loop/step/choice/yes", cwd=folder)
    assert whole.stdout.count("(SoftMax)") == 8 and "first" not in whole.stdout


@pytest.mark.keeps_loops
def test_dump(folder: Path) -> None:
    for name in ("old", "new"):
        done = mo_loop("convert", f"{name}.onnx", "-o", f"{name}.xml", "--dump", name, cwd=folder)
        assert done.returncode == 0, done.stderr
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


def test_json(folder: Path) -> None:
    done = mo_loop("diff", "old.onnx", "new.onnx", "--format", "json", cwd=folder)
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["equal"] is False
    assert found["old"] == {"source": "old.onnx", "kind": "ONNX", "nodes": 13}
    assert [(each["scope"], each["node"]) for each in found["changes"]] == [
        ("", "w"), ("", "first"), ("loop/step/choice/yes", "soft"),
    ]
    (weights,) = found["changes"][0]["details"]
    assert weights["data"]["count"] == 1 and weights["data"]["largest"] == 0.5


@pytest.mark.parametrize(("arguments", "nodes"), [
    (["--ignore", "weights"], ["first", "soft"]), (["--scope", "loop/step"], ["soft"]),
    (["--scope", "loop/step/choice/no"], []), (["--tolerance", "0.2"], ["first", "soft"]),
    (["--tolerance", "0.1"], ["w", "first", "soft"]),
    (["--ignore", "names", "--ignore", "metadata", "--ignore", "shapes"], ["w", "first", "soft"]),
])
def test_options(folder: Path, arguments: list[str], nodes: list[str]) -> None:
    done = mo_loop("diff", "old.onnx", "new.onnx", "--format", "json", *arguments, cwd=folder)
    assert [each["node"] for each in json.loads(done.stdout)["changes"]] == nodes
    assert done.returncode == (1 if nodes else 0)


def test_quiet(folder: Path) -> None:
    for new, code in (("new.onnx", 1), ("old.onnx", 0)):
        done = mo_loop("diff", "old.onnx", new, "-q", cwd=folder)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_quiet_comparison_of_a_model_and_its_ir_writes_its_report(folder: Path) -> None:
    done = mo_loop("diff", "old.onnx", "old.xml", "-q", "--report", "layers.json", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((folder / "layers.json").read_text("utf-8"))["schema"] == "mo-loop layers"


def test_all_lists_what_follows(tmp_path: Path) -> None:
    text = "main (float[N,2] x) => (float[N,2] y) { [one] a = Neg (x) [two] y = Abs (a) }"
    for name, size in (("old", "2"), ("new", "3")):
        graph = convert_model(parsed(text), input=f"x[{size},2]").graph
        save_model(Model(graph), tmp_path / f"{name}.xml")
    arguments = ("diff", "old.xml", "new.xml", "--ignore", "metadata")
    brief, whole = (mo_loop(*arguments, *more, cwd=tmp_path).stdout for more in ((), ("--all",)))
    assert brief.splitlines()[-2:] == [
        "  ~ x (Parameter): shape [2,2] -> [3,2]", "  (2 nodes with shapes that follow from these: see --all)",
    ]
    assert "  ~ one (Negative): shape [2,2] -> [3,2]\n" in whole and "see --all" not in whole


def test_colours_on_a_terminal(folder: Path) -> None:
    command = ["diff", str(folder / "old.onnx"), str(folder / "new.onnx")]
    assert "\x1b[33m~ soft (Softmax)\x1b[0m: attribute axis 0 -> -1" in on_a_terminal(*command)
    assert "\x1b[" not in mo_loop(*command).stdout


@pytest.mark.parametrize(("arguments", "words"), [
    (["old.onnx", "old.xml", "--ignore", "names"], "--ignore is for the comparison of two models of one kind"),
    (["old.onnx", "old.xml", "-q"], "--quiet is for the comparison of two models of one kind"),
    (["old.onnx", "old.xml", "--scope", "none"], "no model has a scope 'none'"),
    (["old.onnx", "lost.onnx"], "lost.onnx does not exist"), (["old.xml", "lost.xml"], "lost.xml"),
    (["old.onnx", "."], "is a folder"), (["old.onnx"], "Missing argument 'B'"),
    (["old.onnx", "new.onnx", "--scope", "loop/stop"], "did you mean 'loop/step'?"),
    (["old.onnx", "new.onnx", "--ignore", "colours"], "'colours'"),
    (["old.onnx", "new.onnx", "--tolerance", "-1"], "-1"), (["old.onnx", "broken.json"], "broken.json"),
])
def test_bad_input(folder: Path, arguments: list[str], words: str) -> None:
    (folder / "broken.json").write_text("{")
    done = mo_loop("diff", *arguments, cwd=folder)
    assert done.returncode == 2 and not done.stdout
    assert words in done.stderr and "Traceback" not in done.stderr


def test_weights_in_f16_are_within_the_tolerance_of_the_help(tmp_path: Path) -> None:
    model = parsed("main (float[N,64] x) => (float[N,8] y) { a = MatMul (x, w) b = Add (a, c) y = Relu (b) }")
    for name, shape in (("w", (64, 8)), ("c", (8,))):
        model.graph.initializer.append(numpy_helper.from_array(floats(*shape), name))
    saved(model, tmp_path)
    for name, flags in (("fp32.xml", ()), ("fp16.xml", ("--compress-to-fp16",))):
        assert mo_loop("convert", "model.onnx", "-o", name, "-q", *flags, cwd=tmp_path).returncode == 0
    assert "no difference" in mo_loop("diff", "fp32.xml", "fp16.xml", "--tolerance", "0.001", cwd=tmp_path).stdout
    done = mo_loop("diff", "fp32.xml", "fp16.xml", "--tolerance", "0.00001", cwd=tmp_path)
    assert done.returncode == 1 and "2 changed in 1 scope" in done.stdout, "only weights"
    assert "operator Const -> Convert" in mo_loop("diff", "fp32.xml", "fp16.xml", cwd=tmp_path).stdout


def test_an_ir_without_its_weights(folder: Path) -> None:
    (folder / "new.bin").unlink()
    done = mo_loop("diff", "old.xml", "new.xml", cwd=folder)
    assert done.returncode == 2 and "new.bin are missing" in done.stderr


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
