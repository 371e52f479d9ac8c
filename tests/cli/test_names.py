"""--input, --output, --freeze, --rename and --mapping: tensors by name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from tests.harness import floats, parsed

from .commands import assert_refused, body, convert, names_in_ir, saved

CHAIN = """
main (float[N,3] x, float rate) => (float[N,3] y, float[N,3] z) <float[3] w = {1.0, 2.0, 3.0}> {
  [scale] a = Mul (x, rate) [shift] b = Add (a, w) [first] y = Neg (b) [second] z = Abs (b) }"""

CHOICE = """
main (float[3] x, bool flag) => (float[3] y) {
  y = If (flag) <then_branch = a () => (float[3] p) { [n] p = Neg (x) }, else_branch = b () => (float[3] q) {
    [m] q = Abs (x) }> }"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return saved(parsed(CHAIN), tmp_path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out" / "m.xml"


def outputs(xml: Path, feeds: dict[str, Any]) -> dict[str, Any]:
    return dict(isolated(run_ir, str(xml), [feeds])[0])


def with_equals_sign(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the tensor `flag` renamed to `a=b`."""
    model.graph.input[1].name = model.graph.node[0].input[0] = "a=b"
    return model


class TestCuts:
    @pytest.mark.parametrize("name", ["b", "shift", "shift:0", "0:first", "0:second"])
    def test_output(self, name: str, chain: Path, target: Path) -> None:
        """By tensor, by node, and by an input or output port of a node."""
        assert convert(chain, "-o", target, "--output", name).returncode == 0 and names_in_ir(target)[1] == ["b"]
        x = floats(2, 3)
        found = outputs(target, {"x": x, "rate": np.float32(2)})["b"]
        assert np.array_equal(found, x * np.float32(2) + np.float32([1, 2, 3]))

    @pytest.mark.parametrize("name", ["a", "a{f32}[2 3]", "a[2,3]", "0:shift[2,3]{f32}", "scale:0"])
    def test_input(self, name: str, chain: Path, target: Path) -> None:
        """Parts of the type that are not given are inferred."""
        assert convert(chain, "-o", target, "--input", name, "--output", "y").returncode == 0
        assert names_in_ir(target) == (["a"], ["y"])
        assert np.array_equal(outputs(target, {"a": floats(2, 3)})["y"], -(floats(2, 3) + np.float32([1, 2, 3])))

    @pytest.mark.parametrize(("flags", "words"), [
        (["--output", "yy"], ["has no tensor 'yy'", "why:", "did you mean 'y'?"]),
        (["--output", "qqqqqq"], ["its inputs are x, rate"]),
        (["--output", "shift:1"], ["has no port 1", "0 (b)"]),
        (["--output", "2:shift"], ["has no port 2", "0 (a), 1 (w)"]),
        (["--output", ","], ["has no name"]),
        (["--input", "xx[1,3]"], ["has no tensor 'xx'", "did you mean 'x'?"]),
        (["--input", "x[1,3],x[2,3]"], ["named twice"]),
        (["--input", "x[1,-3]"], ["'-3' is not a dimension"]),
        (["--input", "x[5..2,3]"], ["is empty", "smaller bound first"]),
        (["--input", "x[2,5]"], ["f32[2,5]", "f32[3]", "shift", "the model declares x as f32[N,3]"]),
        (["--input", "x[99999999999999999999999,3]"], ["not a dimension"]),
        (["--input", "[1,3],[],[2]"], ["more shapes (3) than inputs (2)"]),
        (["--input", "x[1,3"], ["brackets do not match"]),
        (["--input", "x{f99}"], ["not an element type"]),
        (["--input", "x{f32}[1,3]{f32}"], ["cannot be understood"]),
    ])
    def test_invalid_arguments(self, flags: list[str], words: list[str], chain: Path, target: Path) -> None:
        assert_refused(words, chain, target, *flags)

    def test_a_weight(self, chain: Path, target: Path) -> None:
        """An initializer becomes an input."""
        assert convert(chain, "-o", target, "--input", "x,rate,w", "--output", "y").returncode == 0
        assert names_in_ir(target) == (["x", "rate", "w"], ["y"])
        feeds = {"x": floats(2, 3), "rate": np.float32(1), "w": np.float32([0, 0, 1])}
        assert np.array_equal(outputs(target, feeds)["y"], -(floats(2, 3) + feeds["w"]))

    def test_a_type_that_is_not_known(self, tmp_path: Path, target: Path) -> None:
        model = saved(parsed("main (float[3] x) => (float[3] y) { a = odd.Op (x) y = Neg (a) }", odd=1), tmp_path)
        done = convert(model, "-o", target, "--input", "a")
        assert done.returncode == 2
        assert "the element type of 'a' is not known" in done.stderr and "a{f32}" in done.stderr
        assert convert(model, "-o", target, "--input", "a[3]{f32}").returncode == 0

    def test_a_tensor_of_a_body(self, tmp_path: Path, target: Path) -> None:
        model = saved(parsed(body("inner = Neg (s) t = Abs (inner)")), tmp_path)
        for name in ("inner", "loop/step/inner"):
            done = convert(model, "-o", target, "--output", name)
            assert done.returncode == 2 and "it is in the body loop/step" in done.stderr


class TestFreeze:
    def test_a_scalar(self, chain: Path, target: Path) -> None:
        assert convert(chain, "-o", target, "--freeze", "rate=2.5").returncode == 0
        assert names_in_ir(target)[0] == ["x"]
        x = floats(2, 3)
        assert np.array_equal(outputs(target, {"x": x})["z"], np.abs(x * np.float32(2.5) + np.float32([1, 2, 3])))

    def test_a_list_and_a_condition(self, tmp_path: Path, target: Path) -> None:
        model = saved(parsed(CHOICE), tmp_path)
        done = convert(model, "-o", target, "--freeze", "flag=false", "--freeze", "x=[1,-2,3]")
        assert done.returncode == 0, done.stderr
        assert "1 If decided" in done.stdout and names_in_ir(target)[0] == []
        assert outputs(target, {})["y"].tolist() == [1, 2, 3]

    def test_an_inner_tensor(self, chain: Path, target: Path) -> None:
        done = convert(chain, "-o", target, "--freeze", "a=[[1,2,3]]")
        assert done.returncode == 0, done.stderr
        assert outputs(target, {})["y"].tolist() == [[-2, -4, -6]]

    def test_a_name_that_holds_an_equals_sign(self, tmp_path: Path, target: Path) -> None:
        model = saved(with_equals_sign(parsed(CHOICE)), tmp_path)
        done = convert(model, "-o", target, "--freeze", "a=b=false")
        assert done.returncode == 0, done.stderr
        assert names_in_ir(target)[0] == ["x"]

    def test_together_with_a_shape(self, chain: Path, target: Path) -> None:
        done = convert(chain, "-o", target, "--input", "x[2,3],rate", "--freeze", "rate=1")
        assert done.returncode == 0, done.stderr
        assert 'shape="2,3"' in target.read_text()

    @pytest.mark.parametrize(("flags", "words"), [
        (["--freeze", "rat=1"], ["did you mean 'rate'?"]),
        (["--freeze", "rate"], ["--freeze name=value"]),
        (["--freeze", "rate="], ["--freeze name=value"]),
        (["--freeze", "rate=abc"], ["'abc' is not a value"]),
        (["--freeze", "rate=[1,2]"], ["does not fit", "rate"]),
        (["--freeze", "rate=1", "--freeze", "rate=2"], ["twice"]),
        (["--freeze", "rate=1", "--input", "rate->2"], ["twice"]),
        (["--freeze", "x[1,3]=[[1,2,3]]", "--input", "x[2,3]"], ["two shapes"]),
    ])
    def test_invalid_arguments(self, flags: list[str], words: list[str], chain: Path, target: Path) -> None:
        assert_refused(words, chain, target, *flags)


class TestRename:
    def test_inputs_outputs_and_inner_tensors(self, chain: Path, target: Path) -> None:
        done = convert(
            chain, "-o", target, "--rename", "x=image", "--rename", "y=logits", "--rename", "b=features",
            "--rename", "rate=x",
        )
        assert done.returncode == 0, done.stderr
        assert names_in_ir(target) == (["image", "x"], ["logits", "z"])
        text = target.read_text()
        assert 'names="features"' in text and 'names="b"' not in text
        found = outputs(target, {"image": floats(2, 3), "x": np.float32(1)})
        assert np.array_equal(found["logits"], -(floats(2, 3) + np.float32([1, 2, 3])))

    def test_a_name_that_holds_an_equals_sign(self, tmp_path: Path, target: Path) -> None:
        model = saved(with_equals_sign(parsed(CHOICE)), tmp_path)
        done = convert(model, "-o", target, "--rename", "a=b=c")
        assert done.returncode == 0, done.stderr
        assert sorted(names_in_ir(target)[0]) == ["c", "x"]

    def test_layers_have_the_new_names(self, chain: Path, target: Path) -> None:
        assert convert(chain, "-o", target, "--rename", "y=logits").returncode == 0
        text = target.read_text()
        assert 'name="logits"' in text and 'name="logits/sink_port_0"' in text and '"y"' not in text

    def test_two_that_swap(self, chain: Path, target: Path) -> None:
        assert convert(chain, "-o", target, "--rename", "y=z", "--rename", "z=y").returncode == 0
        assert names_in_ir(target)[1] == ["z", "y"]
        found = outputs(target, {"x": floats(2, 3), "rate": np.float32(1)})
        assert np.array_equal(found["y"], np.abs(found["z"])) and (found["z"] <= 0).any()

    @pytest.mark.keeps_loops
    def test_in_a_body(self, tmp_path: Path, target: Path) -> None:
        model = saved(parsed(body("inner = Neg (s) t = Abs (inner)")), tmp_path)
        assert convert(model, "-o", target, "--rename", "loop/step/inner=state").returncode == 0
        assert 'names="state"' in target.read_text() and 'names="inner"' not in target.read_text()
        missed = convert(model, "-o", target, "--rename", "inner=state")
        assert missed.returncode == 2 and "did you mean 'loop/step/inner'?" in missed.stderr

    @pytest.mark.parametrize(("flags", "words"), [
        (["--rename", "xx=image"], ["no tensor 'xx'", "did you mean 'x'?"]),
        (["--rename", "x=y"], ["tensor or layer of that name", "another name"]),
        (["--rename", "x=shift"], ["tensor or layer of that name"]),
        (["--rename", "x=n", "--rename", "y=n"], ["'x' gets the same name"]),
        (["--rename", "x=x"], ["is already its name"]),
        (["--rename", "x"], ["--rename old=new"]),
        (["--rename", "x=a1", "--rename", "x=a2"], ["twice"]),
    ])
    def test_invalid_arguments(self, flags: list[str], words: list[str], chain: Path, target: Path) -> None:
        assert_refused(words, chain, target, *flags)

    def test_a_tensor_that_passes_removed(self, tmp_path: Path, target: Path) -> None:
        model = saved(parsed("main (float[3] x) => (float[3] y) { u = Shape (x) d = Neg (x) y = Abs (x) }"), tmp_path)
        done = convert(model, "-o", target, "--rename", "u=size")
        assert done.returncode == 2 and "the tensor was folded, fused or not needed" in done.stderr


class TestMapping:
    def rows(self, file: Path) -> dict[tuple[str, str], dict[str, Any]]:
        data = json.loads(file.read_text("utf-8"))
        assert data["version"] == 1
        return {(row["scope"], row["tensor"]): row for row in data["tensors"]}

    def layers(self, xml: Path) -> set[tuple[str, str]]:
        import re

        return set(re.findall(r'<layer id="(\d+)" name="([^"]*)"', xml.read_text("utf-8")))

    @pytest.mark.keeps_loops
    def test_every_tensor(self, tmp_path: Path, target: Path) -> None:
        text = body("size = Shape (s) inner = Neg (s) t = Abs (inner)").replace(
            "[loop]", "five = Constant <value_ints = [5]> () dead = Neg (x) n2 = Mul (five, five) [loop]"
        )
        model = saved(parsed(text), tmp_path)
        done = convert(model, "-o", target, "--mapping", tmp_path / "new" / "map.json", "--static")
        assert done.returncode == 0, done.stderr
        rows = self.rows(tmp_path / "new" / "map.json")
        assert set(rows) == {
            ("", "x"), ("", "n"), ("", "five"), ("", "dead"), ("", "n2"), ("", "y"),
            *(("loop/step", name) for name in ("i", "c", "s", "d", "size", "inner", "t")),
        }
        kept = {key: row for key, row in rows.items() if row["became"] == "kept"}
        assert {("", "x"), ("", "n"), ("", "y"), ("loop/step", "inner"), ("loop/step", "t")} <= set(kept)
        assert kept["loop/step", "inner"]["where"] == "y/step" and kept["loop/step", "inner"]["layer"] == "inner"
        assert {(str(row["id"]), row["layer"]) for row in kept.values()} <= self.layers(target)
        assert rows["", "dead"]["became"] == "removed" and rows["", "dead"]["layer"] is None
        assert rows["", "y"]["kind"] == "Loop" and rows["", "five"]["kind"] == "Constant"

    def test_folded(self, tmp_path: Path, target: Path) -> None:
        text = """main (float[3] x) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> {
          v = Neg (w) u = Abs (v) y = Add (x, u) }"""
        assert convert(saved(parsed(text), tmp_path), "-o", target, "--mapping", tmp_path / "m.json").returncode == 0
        rows = self.rows(tmp_path / "m.json")
        assert [rows["", name]["became"] for name in ("w", "v", "u", "x", "y")] == [
            "folded", "folded", "folded", "kept", "kept",
        ]
        assert rows["", "u"]["layer"] is not None and rows["", "w"]["layer"] is None

    def test_a_branch_that_is_inlined(self, tmp_path: Path, target: Path) -> None:
        model = saved(parsed(CHOICE), tmp_path)
        flags = ("--freeze", "flag=1", "--rename", "x=image", "--mapping", tmp_path / "m.json")
        assert convert(model, "-o", target, *flags).returncode == 0
        rows = self.rows(tmp_path / "m.json")
        assert rows["y/a", "p"]["became"] == "kept" and rows["y/a", "p"]["where"] == ""
        assert rows["y/b", "q"]["became"] == "removed" and rows["", "x"]["layer"] == "image"

    def test_weights_in_half_precision(self, tmp_path: Path, target: Path) -> None:
        """The mapping describes the written file, not the graph before compression."""
        text = "main (float[3] x) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> { y = Add (x, w) }"
        flags = ("--compress-to-fp16", "--mapping", tmp_path / "m.json")
        assert convert(saved(parsed(text), tmp_path), "-o", target, *flags).returncode == 0
        rows = self.rows(tmp_path / "m.json")
        assert {(str(row["id"]), row["layer"]) for row in rows.values()} <= self.layers(target)
        assert rows["", "w"]["became"] == "kept"

    def test_paths_that_are_refused(self, chain: Path, target: Path) -> None:
        before = chain.read_bytes()
        for place in (chain, target, target.with_suffix(".bin")):
            done = convert(chain, "-o", target, "--mapping", place)
            assert done.returncode == 2 and "file of the conversion" in done.stderr
        assert chain.read_bytes() == before and not target.exists()
