"""Models of other tools: NNCF, translators of the user, precisions of the device."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import mo_loop
from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError
from mo_loop.extensions import Extensions
from mo_loop.graph import Node
from mo_loop.ops.convolution import Convolution
from tests.cases import read_cases
from tests.fuzz.default_precision import KINDS, draw
from tests.harness import check, floats, raised, with_weights
from tests.unit.api.test_extensions import EXAMPLE, kinds, scale
from tests.unit.api.test_extensions import NESTED as NESTED
from tools.default_precision import DEFAULT, default_precision, result

# -- NNCF quantises and compresses converted models, in memory and as IR, with a loop in them


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
    weights = {name: (RNG.standard_normal((128, 128)) / 11).astype(np.float32) for name in ("w", "v")}
    return mo_loop.convert_model(with_weights(onnx.parser.parse_model(MODEL), weights))


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


# -- Models converted with translators and passes of the user: OpenVINO gives the right numbers


def nested(x: Any, w: Any, n: int) -> Any:
    for _ in range(n):
        b = x * np.float32(0.5)
        for _ in range(3):
            b = (b - w) * (b - w)
        x = b / (1 + np.exp(-b))
    return x


def test_versions() -> None:
    """The newest `since` not above the version that the model imports."""
    second = "main (float[N] x, float f) => (float[N] y) { y = com.example.Scale (x, f) }"
    check(scale(), {"x": floats(3)}, expected=[[("y", 3 * floats(3))]], extensions=EXAMPLE)
    for version in (2, 9):
        feed = {"x": floats(3), "f": np.float32(5)}
        check(scale(second, version), feed, expected=[[("y", 5 * floats(3))]], extensions=EXAMPLE)
    raised(MoLoopError, convert_model, scale(version=2), extensions=EXAMPLE, match=r"ML227.*factor")


FUNCTION = """main (float[N] x) => (float[N] y) { y = com.example.Outer (x) }
<domain: "com.example", opset_import: ["": 18, "com.example": 1]>
Outer (a) => (b) { [inner] b = com.example.Scale <factor = 2.0> (a) }"""


def test_inside_functions_and_instead_of_them() -> None:
    check(scale(FUNCTION), {"x": floats(3)}, expected=[[("y", 2 * floats(3))]], extensions=EXAMPLE)

    def register(extensions: Extensions) -> None:
        extensions.translates("Outer", domain="com.example")(lambda a: ops.Exp(a))

    assert kinds(scale(FUNCTION), extensions=register) == ["Exp"]


def test_tensors_as_attributes() -> None:
    """They are Tensors, which an operation accepts as an input."""

    def register(extensions: Extensions) -> None:
        extensions.translates("Biased", domain="com.example")(lambda x, *, bias: ops.Add(x, bias))

    text = "main (float[2] x) => (float[2] y) { y = com.example.Biased <bias = float[2] {1.0, 2.0}> (x) }"
    expected = [[("y", floats(2) + np.float32([1, 2]))]]
    check(scale(text), {"x": floats(2)}, expected=expected, extensions=register)


# -- Integers do not depend on the precision of the runtime: their forms, and their numbers where it has bf16


CASES = [draw(3, index) for index in range(40)]


def test_every_kind_is_drawn() -> None:
    assert {case.name.removesuffix(" in a Loop") for case in CASES} == set(KINDS)
    assert any("Loop" in case.name for case in CASES)


@pytest.mark.parametrize("quantization", ["fast", "exact"])
def test_layers_between_integers_are_marked(quantization: str) -> None:
    """Each product and each Convert to integers of these models has ports of integers, or the mark of precision."""
    for case in CASES:
        graph = convert_model(case.model, quantization=quantization).graph
        nodes = [node for scope in graph.scopes() for node in scope.ordered()]
        for node in (each for each in nodes if isinstance(each, ops.MatMul | Convolution | ops.Convert)):
            assert _reads_integers(node) or "precise" in node.rt_info, (case.name, node)


def _reads_integers(node: Node) -> bool:
    first: Any = node.inputs[0]
    made_of_integers = isinstance(node, ops.Convert) and not node.destination_type.is_integer
    return made_of_integers or not first.dtype.is_float


@pytest.mark.parametrize("quantization", ["fast", "exact"])
def test_numbers_in_f32(quantization: str) -> None:
    for case in CASES[:12]:
        assert np.array_equal(result(case, quantization), case.expected), case.name


@pytest.mark.skipif(default_precision() == "f32", reason="the default precision of the processor is f32: no bf16")
@pytest.mark.parametrize("quantization", ["fast", "exact"])
def test_numbers_in_the_default_precision(quantization: str) -> None:
    for case in CASES:
        assert np.array_equal(result(case, quantization, DEFAULT), case.expected), case.name


read_cases(globals())
