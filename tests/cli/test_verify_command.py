"""`mo-loop verify` as a user runs it."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import onnx
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare import verify_options as packages
from tests.harness import parsed
from tests.pages import document
from tests.runtime.verify.test_reduce import WRONG

from .commands import ended, installed, mo_loop, saved

TEXT = """
main (float[N,2] x, int64 n) => (float[N,2] y) <float[2] w = {0.5, 2.0}> {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[N,2] s) => (bool d, float[N,2] t) {
    d = Identity (c) [times] t = Mul (s, w) }>
}"""


AS_IN_THE_IR = ("--disable-pass", "StepsPerIteration")
"""Conversions in other processes, which the mark keeps_loops does not reach, name the layers as those of the IR."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, its IR, and the IR of a model with another weight."""
    model = parsed(TEXT)
    save_model(convert_model(saved(model, tmp_path)), tmp_path / "model.xml")
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([0.5, 3.0], np.float32), "w"))
    save_model(convert_model(model), tmp_path / "other.xml")
    added = parsed("main (float[2] x) => (float[2] y) { h = Add (x, x) y = Neg (h) }")
    saved(added, tmp_path, "added.onnx")
    np.savez(tmp_path / "inputs.npz", x=np.ones((1, 2), np.float32), n=np.array(2))
    return tmp_path


def test_the_installed_command_agrees_and_disagrees(folder: Path) -> None:
    good = installed("verify", "model.onnx", cwd=folder)
    assert (good.returncode, good.stderr) == (0, "") and good.stdout.startswith("model.onnx: every output agrees\n")
    bad = installed("verify", "model.onnx", "other.xml", "--inputs", "inputs.npz", cwd=folder)
    assert (bad.returncode, bad.stderr) == (1, "")
    line = next(each for each in bad.stdout.splitlines() if each.lstrip().startswith("y "))
    assert line.split() == [
        "y", "f32[1,2]", "5", "1.25", "2.5", "0.999400", "-1.9", "100.0%", "1", "of", "2",
        "[0,", "1]", "4.0", "9.0", "inputs.npz",
    ]


def test_formats(folder: Path) -> None:
    arguments = ("verify", "model.onnx", "other.xml", "--inputs", "inputs.npz", "--format")
    found = json.loads(mo_loop(*arguments, "json", cwd=folder).stdout)
    assert (found["model"], found["ir"], found["status"]) == ("model.onnx", "other.xml", "differs")
    assert found["sides"][0]["rows"][0]["values"] == ["4.0", "9.0"]
    suites = ET.fromstring(mo_loop(*arguments, "junit", cwd=folder).stdout)
    assert [each.get("name") for each in suites.iter("testcase")] == ["y"] and len(list(suites.iter("failure"))) == 1
    assert mo_loop(*arguments, "markdown", cwd=folder).stdout.startswith("## model.onnx: outputs differ\n")


def test_the_flags_of_the_conversion_apply(folder: Path) -> None:
    shape = ("--unroll", "8", "--freeze", "n=2", "--input", "x[3,2]")
    done = mo_loop("verify", "model.onnx", *shape, "--format", "json", cwd=folder)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["sets"][0]["types"] == {"x": "f32[3,2]"}


def test_quiet_prints_nothing(folder: Path) -> None:
    done = mo_loop("verify", "model.onnx", "other.xml", "--quiet", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_missing_packages_are_named_with_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "openvino" else name)
    done = mo_loop("verify", "model.onnx", cwd=folder)
    assert done.returncode == 2 and "openvino cannot be imported" in done.stderr
    assert "pip install openvino onnxruntime" in done.stderr


@pytest.mark.keeps_loops
def test_layers_and_passes_say_where_a_difference_begins(folder: Path) -> None:
    arguments = ("verify", "model.onnx", "other.xml", "--layers", *AS_IN_THE_IR)
    done = ended(mo_loop(*arguments, "--passes", cwd=folder), 1)
    assert "an output of the node loop/step/times (Mul), in iteration 0 of loop (counted from 0)" in done.stdout
    assert "The IR has other values for the weight w." in done.stdout
    assert "the IR that was given is another one" in done.stdout
    found = json.loads(mo_loop(*arguments, "--format", "json", cwd=folder).stdout)
    assert found["layers"]["path"] == "loop/step/times"
    assert found["layers"]["iterations"] == [{"loop": "loop", "iteration": 0}]


@pytest.mark.keeps_loops
def test_a_dump_has_a_page_with_the_differences(folder: Path) -> None:
    inputs = ("--inputs", "inputs.npz")
    done = ended(mo_loop("verify", "model.onnx", "other.xml", "--dump", "steps", *inputs, *AS_IN_THE_IR, cwd=folder), 1)
    assert "The first tensor that differs is 't'" in done.stdout, "--dump implies --layers"
    assert f"\n  {Path('steps', 'index.html')} shows how far every tensor is from" in done.stdout
    data = document((folder / "steps" / "index.html").read_text("utf-8"))
    assert data["title"] == "other.xml" and max(each["worst"] for _, _, each in data["heat"]["tensors"]) > 1
    assert data["heat"]["sets"] == ["inputs.npz"]


def test_the_pass_of_an_extension_is_named(folder: Path) -> None:
    (folder / "wrong.py").write_text(WRONG.replace("Tanh", "Negative").replace("WHERE", "True"))
    done = mo_loop("verify", "added.onnx", "--extension", "wrong.py", "--passes", cwd=folder)
    assert "The pass Wrong changes the numbers" in done.stdout


def test_nothing_is_looked_for_where_outputs_agree(folder: Path) -> None:
    done = mo_loop("verify", "model.onnx", "--layers", "--passes", "--format", "json", cwd=folder)
    assert done.returncode == 0 and {"layers", "passes"}.isdisjoint(json.loads(done.stdout))


def test_the_help_has_each_option_once() -> None:
    text = mo_loop("verify", "--help-all").stdout
    assert all(text.count(flag) == 1 for flag in ("--mean-values", "--layers-memory", "--call-timeout"))


def test_tolerances_of_outputs_and_expected_outputs(tmp_path: Path) -> None:
    path = saved(parsed("main (float[2] x) => (float[2] y) { y = Mul (x, x) }"), tmp_path)
    np.savez(tmp_path / "in.npz", x=np.float32([1, 2]))
    np.savez(tmp_path / "out.npz", y=np.float32([1.01, 4]))
    common = ["verify", str(path), "--inputs", str(tmp_path / "in.npz"), "--expected", str(tmp_path / "out.npz")]
    assert mo_loop(*common).returncode == 1 and mo_loop(*common, "--tolerance", "y=0.1,0").returncode == 0
    refused = mo_loop(*common, "--tolerance", "y=0.1")
    assert refused.returncode == 2 and "--tolerance y=0.1 is not of the form NAME=RTOL,ATOL" in refused.stderr
