"""--input, --output, --freeze, --rename and --mapping: tensors by name."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from tests.harness import floats, parsed

from .commands import convert, ended, names_in_ir, saved

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

    def test_a_weight(self, chain: Path, target: Path) -> None:
        """An initializer becomes an input."""
        assert convert(chain, "-o", target, "--input", "x,rate,w", "--output", "y").returncode == 0
        assert names_in_ir(target) == (["x", "rate", "w"], ["y"])
        feeds = {"x": floats(2, 3), "rate": np.float32(1), "w": np.float32([0, 0, 1])}
        assert np.array_equal(outputs(target, feeds)["y"], -(floats(2, 3) + feeds["w"]))


class TestFreeze:
    def test_a_scalar(self, chain: Path, target: Path) -> None:
        assert convert(chain, "-o", target, "--freeze", "rate=2.5").returncode == 0
        assert names_in_ir(target)[0] == ["x"]
        x = floats(2, 3)
        assert np.array_equal(outputs(target, {"x": x})["z"], np.abs(x * np.float32(2.5) + np.float32([1, 2, 3])))

    def test_a_list_and_a_condition(self, tmp_path: Path, target: Path) -> None:
        model = saved(parsed(CHOICE), tmp_path)
        done = ended(convert(model, "-o", target, "--freeze", "flag=false", "--freeze", "x=[1,-2,3]"))
        assert "1 If decided" in done.stdout and names_in_ir(target)[0] == []
        assert outputs(target, {})["y"].tolist() == [1, 2, 3]

    def test_an_inner_tensor(self, chain: Path, target: Path) -> None:
        ended(convert(chain, "-o", target, "--freeze", "a=[[1,2,3]]"))
        assert outputs(target, {})["y"].tolist() == [[-2, -4, -6]]

    def test_a_name_that_holds_an_equals_sign(self, tmp_path: Path, target: Path) -> None:
        model = saved(with_equals_sign(parsed(CHOICE)), tmp_path)
        ended(convert(model, "-o", target, "--freeze", "a=b=false"))
        assert names_in_ir(target)[0] == ["x"]


class TestRename:
    def test_inputs_outputs_and_inner_tensors(self, chain: Path, target: Path) -> None:
        ended(convert(
            chain, "-o", target, "--rename", "x=image", "--rename", "y=logits", "--rename", "b=features",
            "--rename", "rate=x",
        ))
        assert names_in_ir(target) == (["image", "x"], ["logits", "z"])
        text = target.read_text()
        assert 'names="features"' in text and 'names="b"' not in text
        found = outputs(target, {"image": floats(2, 3), "x": np.float32(1)})
        assert np.array_equal(found["logits"], -(floats(2, 3) + np.float32([1, 2, 3])))

    def test_a_name_that_holds_an_equals_sign(self, tmp_path: Path, target: Path) -> None:
        model = saved(with_equals_sign(parsed(CHOICE)), tmp_path)
        ended(convert(model, "-o", target, "--rename", "a=b=c"))
        assert sorted(names_in_ir(target)[0]) == ["c", "x"]

    def test_two_that_swap(self, chain: Path, target: Path) -> None:
        assert convert(chain, "-o", target, "--rename", "y=z", "--rename", "z=y").returncode == 0
        assert names_in_ir(target)[1] == ["z", "y"]
        found = outputs(target, {"x": floats(2, 3), "rate": np.float32(1)})
        assert np.array_equal(found["y"], np.abs(found["z"])) and (found["z"] <= 0).any()
