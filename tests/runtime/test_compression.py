"""NNCF quantises and compresses converted models, in memory and as IR, with a loop in them."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import mo_loop

openvino = pytest.importorskip("openvino")

MODEL = """
<ir_version: 9, opset_import: ["": 18]>
net (float[N, 128] x, int64 n) => (float[N, 128] y) {
  a = MatMul (x, w)  b = Relu (a)  c = MatMul (b, v)
  [loop] y = Loop (n, "", c) <body = step (int64 i, bool on, float[N, 128] s) => (bool again, float[N, 128] t) {
    again = Identity (on) m = MatMul (s, w) t = Tanh (m) }> }"""
RNG = np.random.default_rng(0)
SAMPLES = [{"x": RNG.standard_normal((4, 128)).astype(np.float32), "n": np.int64(3)} for _ in range(8)]


@pytest.fixture(scope="module")
def nncf() -> Any:
    """Imported by the process that runs these tests alone: it takes longer than a tenth of the collection."""
    return pytest.importorskip("nncf", reason="it is in the group `dev`")


@pytest.fixture(scope="module")
def model() -> mo_loop.Model:
    proto = onnx.parser.parse_model(MODEL)
    for name in ("w", "v"):
        weights = (RNG.standard_normal((128, 128)) / 11).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(weights, name))
    return mo_loop.convert_model(proto)


def run(model: Any) -> Any:
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    return openvino.Core().compile_model(model, "CPU", settings)(SAMPLES[0])[0]


def types_of(model: Any) -> set[str]:
    constants = (each for each in model.get_ops() if each.get_type_name() == "Constant")
    return {each.get_element_type().get_type_name() for each in constants}


def test_int8(nncf: Any, model: mo_loop.Model, tmp_path: Path) -> None:
    wanted = run(model.to_openvino())
    quantised = nncf.quantize(model.to_openvino(), nncf.Dataset(SAMPLES))
    assert "FakeQuantize" in {each.get_type_name() for each in quantised.get_ops()}
    assert 0 < np.abs(run(quantised) - wanted).max() < 0.3
    mo_loop.save_model(model, tmp_path / "model.xml")
    of_file = nncf.quantize(openvino.Core().read_model(tmp_path / "model.xml"), nncf.Dataset(SAMPLES))
    openvino.save_model(of_file, tmp_path / "int8.xml", compress_to_fp16=False)
    assert np.allclose(run(tmp_path / "int8.xml"), run(quantised), atol=1e-5)
    assert mo_loop.read_model(tmp_path / "int8.xml").inputs == ["x", "n"]


@pytest.mark.parametrize(("mode", "type_", "most"), [("INT8_SYM", "i8", 0.2), ("INT4_SYM", "i4", 1.0)])
def test_weights_alone(nncf: Any, model: mo_loop.Model, mode: str, type_: str, most: float) -> None:
    wanted = run(model.to_openvino())
    smaller = nncf.compress_weights(model.to_openvino(), mode=getattr(nncf.CompressWeightsMode, mode))
    assert type_ in types_of(smaller)
    assert 0 < np.abs(run(smaller) - wanted).max() < most
