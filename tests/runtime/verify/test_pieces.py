"""The first piece that differs in the IR of a changed model."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.api import Model, read_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.layers import LayerDifference, PieceFindings, assign_origins, compared
from mo_loop.conversion import Conversion
from mo_loop.options import ConvertOptions
from mo_loop.text import parse
from mo_loop.transforms.config import PassConfig
from tests.harness import parsed

LARGE = np.linspace(2000, 4000, 64, dtype=np.float32)


def pieces(
    right: onnx.ModelProto, wrong: onnx.ModelProto, feeds: dict[str, Any], path: Path, *without: str
) -> PieceFindings:
    """The pieces of a model and the IR of another one, which is converted without these passes."""
    config = PassConfig()
    config.disable(*without)
    save_model(Model(Conversion(ConvertOptions(config=config)).run(wrong.SerializeToString())), path / "wrong.xml")
    return isolated(_compared, right.SerializeToString(), str(path / "wrong.xml"), feeds)


def found_in(*arguments: Any) -> LayerDifference:
    """The first piece that differs; fails if one is not decided."""
    found = pieces(*arguments)
    assert not found.undecided
    assert found.difference is not None
    return found.difference


def _compared(model: bytes, ir: str, feeds: dict[str, Any]) -> Any:
    graph = read_model(ir).graph
    assign_origins(graph, model)
    return compared(model, graph, feeds)


@pytest.mark.parametrize("change", ["Mul (e, k)", "Add (e, k)"])
def test_a_difference_of_large_numbers_is_rounded_once(tmp_path: Path, change: str) -> None:
    text = "main (float[64] a, float[64] b) => (float[64] y) <float k = {1.01}> { %s y = Tanh (s) }"
    feeds = {"a": LARGE, "b": LARGE + np.linspace(-0.3, 0.3, 64, dtype=np.float32)}
    wrong = parsed(text % f"e = Sub (a, b) s = {change}")
    assert found_in(parsed(text % "s = Sub (a, b)"), wrong, feeds, tmp_path).tensor == "s"


def test_a_tensor_that_the_file_names_elsewhere_does_not_agree(tmp_path: Path) -> None:
    text = """main (float[8] x, float[4] s, int64 n) => (float[4] y) <float k = {1.01}> {
      [loop] y = Loop (n, "", s) <body = step (int64 i, bool c, float[4] t) => (bool d, float[4] u) {
        d = Identity (c) h = Sin (t) [mean] %s = ReduceMean <keepdims = 0> (x) %s u = Add (h, m) }> }"""
    wrong = parsed(text % ("e", "[more] m = Mul (e, k)"))
    feeds = {"x": np.arange(8, dtype=np.float32), "s": np.ones(4, np.float32), "n": np.int64(5)}
    found = found_in(parsed(text % ("m", "")), wrong, feeds, tmp_path, "StepsPerIteration")
    assert "m" not in found.agreeing
    assert found.path == "loop/step/mean" or "mean (ReduceMean)" in found.between


def test_a_scan_without_declared_shapes_is_computed_once_more(tmp_path: Path) -> None:
    text = """main (float[5,3] x, float[3] b) => (float[5,3] y) <float k = {1.01}> {
      [scan] y = Scan <num_scan_inputs = 1, body = step (e) => (z) { s = Sin (e) p = Mul (s, b) %s }> (x) }"""
    wrong = parsed(text % "q = Mul (p, k) z = Relu (q)")
    feeds = {"x": np.ones((5, 3), np.float32), "b": np.ones(3, np.float32)}
    assert found_in(parsed(text % "z = Relu (p)"), wrong, feeds, tmp_path).path.startswith("scan")


def test_a_scan_that_onnx_runtime_does_not_run_alone_is_computed_step_by_step(tmp_path: Path) -> None:
    text = """main (float[3,5] x, float[3] b) => (float[5,3] y) <float k = {1.01}, int64 zero = {0}> {
      both = SequenceConstruct (b, b)
      [scan] y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = step (float[3] e) => (float[3] z) {
        s = Sin (e) a = SequenceAt (both, zero) p = Mul (s, a) %s }> (x) }"""
    wrong = parsed(text % "q = Mul (p, k) z = Relu (q)")
    feeds = {"x": np.ones((3, 5), np.float32), "b": np.ones(3, np.float32)}
    assert found_in(parsed(text % "z = Relu (p)"), wrong, feeds, tmp_path).path.startswith("scan")


def test_an_input_in_place_of_a_chaotic_loop_differs(tmp_path: Path) -> None:
    right = """main (float[6] x) => (float[6] y) <int64 n = {100}, float one = {1}, float r = {3.9}> {
      [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[6] v) => (bool d, float[6] w) {
        d = Identity (c) o = Sub (one, v) p = Mul (v, o) w = Mul (r, p) }> }"""
    ir = """graph m {
      %x = Parameter : f32[6] "x" names "x" "y"
      Result(%x)
    }"""
    save_model(Model(parse(ir)), tmp_path / "wrong.xml")
    feeds = {"x": np.linspace(0.1, 0.9, 6, dtype=np.float32)}
    found = isolated(_compared, parsed(right).SerializeToString(), str(tmp_path / "wrong.xml"), feeds)
    assert found.difference is not None and found.difference.path == "loop"


@pytest.mark.parametrize("change", ["1.0000001", "0.9999999"])
def test_numbers_between_two_steps_may_be_rounded_to_either(tmp_path: Path, change: str) -> None:
    text = f"""main (float[400] x) => (float[400] y) <float s = {{0.5}}, uint8 z = {{128}}, float k = {{{change}}}> {{
      %s q = QuantizeLinear (%s, s, z) y = DequantizeLinear (q, s, z) }}"""
    feeds = {"x": np.arange(-50, 50, 0.25, dtype=np.float32)}
    found = pieces(parsed(text % ("", "x")), parsed(text % ("e = Mul (x, k)", "e")), feeds, tmp_path)
    assert found.difference is None and not found.undecided


def test_steps_are_as_exact_as_the_largest(tmp_path: Path) -> None:
    text = """main (float[256] x) => (float[256] y)
      <float s = {12.05}, uint8 z = {128}, float k = {0.0001}> {
      q = QuantizeLinear (x, s, z) %s = DequantizeLinear (q, s, z) %s }"""
    feeds = {"x": np.arange(-1000, 1048, 8, dtype=np.float32)}
    found = pieces(parsed(text % ("y", "")), parsed(text % ("e", "y = Add (e, k)")), feeds, tmp_path)
    assert found.difference is None and not found.undecided
