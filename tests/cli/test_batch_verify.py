"""`mo-loop batch --verify` and `--config`."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import openvino
import pytest

from tests.cli.commands import ended
from tests.harness import parsed

from .batches import batch, good, installed_batch, read, saved, statuses

WRONG = '''
import numpy as np

from mo_loop.ops.base import Constant
from mo_loop.transforms.function_pass import FunctionPass


class Wrong(FunctionPass):
    """Changes the weights of a graph called wrong."""
    def run_on_graph(self, graph):
        for node in list(graph.of(Constant)) if graph.name == "wrong" else ():
            if node.output.dtype.name == "f32":
                node.output.replace_with(Constant(node.output.constant + np.float32(1), graph=graph).output)
        return graph.name == "wrong"


def register(extensions):
    extensions.add_pass(Wrong, at="start")
'''

SHAPED = "{name} (float[N,4] x) => (float[N,4] y) {{ y = Neg (x) }}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two models; the conversion of one computes something else."""
    good(tmp_path / "in" / "right.onnx")
    good(tmp_path / "in" / "wrong.onnx", name="wrong")
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


def shape_of(path: Path) -> str:
    return str(openvino.Core().read_model(path).inputs[0].get_partial_shape())


def test_a_model_whose_numbers_differ_fails_and_is_not_written(folder: Path) -> None:
    reports = ("--report", "r.json", "--junit", "j.xml", "--summary", "s.md")
    done = ended(batch("in", "-o", "out", "--verify", "--extension", "wrong.py", *reports, cwd=folder), 1)
    assert statuses(folder / "r.json") == {"right.onnx": "converted", "wrong.onnx": "differs"}
    assert sorted(each.name for each in (folder / "out").glob("*.xml")) == ["right.xml"]
    right, wrong = read(folder / "r.json")["models"]
    assert right["comparison"]["passed"] is True and wrong["comparison"]["status"] == "differs"
    assert (wrong["exit_code"], wrong["message"].startswith("y: ")) == (1, True)
    cases = {case.get("name"): [child.tag for child in case] for case in ET.parse(folder / "j.xml").iter("testcase")}
    assert cases == {"right.onnx": [], "wrong.onnx": ["failure"]}
    assert "| <code>wrong.onnx</code> | differs | y&#58; " in (folder / "s.md").read_text()
    assert "error: differs wrong.onnx: y: " in done.stderr.splitlines()[-1]


def test_up_to_date_means_verified_with_the_same_settings(folder: Path) -> None:
    flags = ("in/right.onnx", "-o", "out", "--report", "r.json")
    assert batch(*flags, cwd=folder).returncode == 0
    for more, status in (((), "skipped"), (("--verify",), "converted"), (("--verify",), "skipped"),
                         (("--verify", "--rtol", "1e-6"), "converted")):
        assert batch(*flags, *more, cwd=folder).returncode == 0
        assert statuses(folder / "r.json") == {"right.onnx": status}, more
        (model,) = json.loads((folder / "r.json").read_text("utf-8"))["models"]
        assert (model["comparison"] or {}).get("passed") == (True if more else None), "one that is up to date keeps it"


def test_a_tolerance_lets_a_difference_pass(folder: Path) -> None:
    flags = ("in/wrong.onnx", "-o", "out", "--verify", "--extension", "wrong.py")
    assert batch(*flags, cwd=folder).returncode == 1 and batch(*flags, "--rtol", "1e9", cwd=folder).returncode == 0
    np.savez(folder / "tens.npz", x=np.full(3, 10, np.float32), n=np.int64(0))  # 12 in place of 11
    for option, status in (("--atol", 1), ("--rtol", 0)):
        assert batch(*flags, "--inputs", "tens.npz", option, "0.5", cwd=folder).returncode == status


def test_a_crash_of_the_runtime_fails_only_its_model(folder: Path) -> None:
    """The inputs are given: those of the second model do not fit the first."""
    saved(parsed("other (float[5] x) => (float[5] y) { y = Neg (x) }"), folder / "in" / "other.onnx")
    np.savez(folder / "inputs.npz", x=np.ones(5, np.float32))
    ended(batch("in", "-o", "out", "--verify", "--inputs", "inputs.npz", "--report", "r.json", cwd=folder), 1)
    assert statuses(folder / "r.json") == {
        "right.onnx": "failed", "wrong.onnx": "failed", "other.onnx": "converted",
    }


INVALID = """
from mo_loop import ops
from mo_loop.transforms.function_pass import FunctionPass


class Invalid(FunctionPass):
    def run_on_graph(self, graph):
        for node in graph.of(ops.Softmax):
            node.__dict__["axis"] = 7
        for node in graph.of(ops.Reshape):
            graph.set_input(node, 1, ops.Add(node.inputs[1], 1).output)


def register(extensions):
    extensions.add_pass(Invalid, at="end")
"""


def test_a_message_of_a_runtime_appears_once_without_files_of_c(tmp_path: Path) -> None:
    """IR that does not compile, IR whose inference fails, and a model that ONNX Runtime does not run."""
    (tmp_path / "invalid.py").write_text(INVALID)
    for name, text in {
        "compile": "(float[2,3] x) => (float[2,3] y) { y = Softmax <axis = 1> (x) }",
        "infer": "(float[N,3] x, float[N,3] z) => (float[A,B] y) { s = Shape (z) y = Reshape (x, s) }",
        "oracle": "(float[N,3] x) => (float[5,7] y) <int64[2] s = {5, 7}> { a = Exp (x) y = Reshape (a, s) }",
    }.items():
        saved(parsed(f"{name} {text}"), tmp_path / "in" / f"{name}.onnx")
    flags = ("--verify", "--extension", "invalid.py", "--report", "r.json")
    # WriteSizes infers the types again, and would refuse the invalid axis.
    done = batch("in", "-o", "out", *flags, "--disable-pass", "WriteSizes", cwd=tmp_path)
    report = read(tmp_path / "r.json")
    invalid, failing, refused = report["models"]
    assert invalid["message"] == "f32: not compilable: Axis 7 out of the tensor rank range [-2, 1]."
    assert failing["message"].count("conflicts with the reshape pattern") == 1
    assert refused["warnings"] == [f"not verified: {refused['comparison']['why']}"]
    assert f"warning: {refused['warnings'][0]} (oracle.onnx)" in done.stderr
    for each in (invalid["message"], failing["message"], *refused["warnings"]):
        assert not re.search(r"failed at|onnxruntime::|\.(cc|cpp|h|hpp):\d", each), each


def test_a_file_has_options_for_all_models_and_for_some(tmp_path: Path) -> None:
    for name in ("a/one", "a/two", "b/one"):
        saved(parsed(SHAPED.format(name=name[2:])), tmp_path / "in" / f"{name}.onnx")
    (tmp_path / "c.toml").write_text("""
        jobs = 1
        report = "r.json"
        compress_to_fp16 = true

        [[models]]
        match = "a/*"
        input = "x[3,4]"

        [[models]]
        match = ["*/two.onnx", "none"]
        input = "x[5,4]"
        target = 2026.4
    """)
    ended(installed_batch("in", "-o", "out", "--config", "c.toml", cwd=tmp_path))
    assert read(tmp_path / "r.json")["options"]["compress_to_fp16"] is True
    found = {name: shape_of(tmp_path / "out" / f"{name}.xml") for name in ("a/one", "a/two", "b/one")}
    assert found == {"a/one": "[3,4]", "a/two": "[5,4]", "b/one": "[?,4]"}
    assert 'value="2026.4"' in (tmp_path / "out" / "a" / "two.xml").read_text()
    assert "3 skipped" in installed_batch("in", "-o", "out", "--config", "c.toml", cwd=tmp_path).stdout


def test_a_flag_of_the_command_line_takes_precedence(tmp_path: Path) -> None:
    saved(parsed(SHAPED.format(name="m")), tmp_path / "in" / "m.onnx")
    (tmp_path / "c.toml").write_text('batch = 2\n[[models]]\nmatch = "*"\nbatch = 3\n')
    for flags, shape in (((), "[3,4]"), (("--batch", 7), "[7,4]")):
        ended(batch("in", "-o", "out", "--config", "c.toml", *flags, cwd=tmp_path))
        assert shape_of(tmp_path / "out" / "m.xml") == shape


def test_a_pattern_without_models_is_a_warning(tmp_path: Path) -> None:
    good(tmp_path / "in" / "m.onnx")
    (tmp_path / "c.toml").write_text('[[models]]\nmatch = "n*"\nstrict = true\n')
    done = batch("in", "-o", "out", "--config", "c.toml", cwd=tmp_path)
    assert (done.returncode, "warning: no model matches 'n*'" in done.stderr) == (0, True)


@pytest.mark.parametrize(("text", "said"), [
    (None, "ML210: the file c.toml does not exist"), ("jobs =", "the configuration is not valid"),
    ("jbos = 2", "did you mean 'jobs'?"), ("timeout = 'long'", "'long' is not a valid float"),
    ("[[models]]\nstrict = true", "it has no match"), ('[[models]]\nmatch = "*"\njobs = 2', "no option 'jobs'"),
    ('[[models]]\nmatch = "*"\ntarget = "1999.1"', "1999.1"), ("models = 3", "not a list of tables"),
])
def test_a_wrong_file_is_refused_before_anything_happens(tmp_path: Path, text: str | None, said: str) -> None:
    good(tmp_path / "in" / "m.onnx")
    if text is not None:
        (tmp_path / "c.toml").write_text(text)
    done = batch("in", "-o", "out", "--config", "c.toml", cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "out").exists()


def test_a_model_that_cannot_be_compared_is_kept_and_reported_as_not_verified(tmp_path: Path) -> None:
    """Its outputs are random numbers: ONNX Runtime gives others in each run."""
    text = "g (float[3] x) => (float[3] y) { r = RandomUniformLike (x) y = Add (x, r) }"
    saved(parsed(text), tmp_path / "in" / "random.onnx")
    ended(batch("in", "-o", "out", "--verify", "--report", "r.json", cwd=tmp_path))
    (found,) = read(tmp_path / "r.json")["models"]
    assert found["status"] == "converted" and found["comparison"]["status"] == "not verified"
    assert "it draws random numbers" in found["comparison"]["why"] and (tmp_path / "out" / "random.xml").exists()
    strict = batch("in", "-o", "strict", "--verify", "--verify-strict", "--report", "s.json", cwd=tmp_path)
    assert strict.returncode == 1 and statuses(tmp_path / "s.json") == {"random.onnx": "failed"}
    assert not (tmp_path / "strict" / "random.xml").exists()
