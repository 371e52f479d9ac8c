"""Inspections of models and IR: counts, sizes, files. Control flow: tests/cli/recorded/control_flow_of_models.txt."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mo_loop.api import convert_model, save_model
from mo_loop.errors import FileError, IrError, MoLoopError, UnsupportedError
from mo_loop.look.inspection.description import ControlFacts, Inspection, below
from mo_loop.look.inspection.read import inspect
from mo_loop.look.records.opening import opened as opened
from tests import MODELS
from tests.cases import read_cases
from tests.harness import folded, parsed, raised, with_weights

FILES = sorted(MODELS.glob("*/*.onnx"))


def saved_ir(model: Any, folder: Path, **arguments: Any) -> Path:
    path = folder / "model.xml"
    save_model(convert_model(model, **folded(**arguments)), path)
    return path


def control(inspection: Inspection, operator: str) -> ControlFacts:
    """The only one of that operator."""
    (found,) = [each for each in below(inspection.control) if each.operator == operator]
    return found


# -- counts and sizes

MIXED = """
main (float[N,3] x, int64 n, seq(float[2]) s, optional(float[2]) o) => (float[M,3] y)
  <float[3] w = {1.0, 2.0, 3.0}, float[3] spare = {0.0, 0.0, 0.0}> {
  [a] u = Add (x, w) [b] v = my.Gate (u) [k] c = Constant <value_ints = [1, 2]> ()
  [l] y = Loop (n, "", v) <body = step (int64 i, bool d, float[P,3] p) => (bool e, float[Q,3] q)
    <float[3] inner = {4.0, 5.0, 6.0}> { e = Identity (d) [m] r = Mul (p, w) q = Add (r, inner) }>
}"""


def test_counts_sizes_and_types() -> None:
    found = inspect(parsed(MIXED, my=3))
    assert (found.format, found.ir_version, found.opsets) == ("onnx", 10, {"ai.onnx": 18, "my": 3})
    assert [(port.name, str(port)) for port in found.inputs] == [
        ("x", "f32[N,3]"), ("n", "i64[]"), ("s", "seq(f32[2])"), ("o", "optional(f32[2])"),
    ]
    assert [str(port) for port in found.outputs] == ["f32[M,3]"]
    operators = {each.name: (each.count, each.elements, each.bytes) for each in found.operators}
    assert operators == {
        "Add": (2, 6, 24), "Mul": (1, 3, 12), "my::Gate": (1, 0, 0), "Constant": (1, 0, 0), "Loop": (1, 0, 0),
        "Identity": (1, 0, 0),
    }
    assert found.operators[0].name == "Add"
    sizes = [(each.path, each.kind, each.nodes, each.constants, each.elements, each.bytes) for each in found.scopes]
    assert sizes == [("", "model", 3, 3, 8, 40), ("l/step", "body", 3, 1, 3, 12)]
    assert (found.elements, found.bytes) == (11, 52)
    assert found.scopes[1].operators == {"Identity": 1, "Mul": 1, "Add": 1}


def test_maps_name_the_types_of_their_keys_and_values() -> None:
    found = inspect(MODELS / "classical" / "logistic_regression.onnx")
    assert [str(port) for port in found.outputs] == ["i64[?]", "seq(map(i64, f32[...]))"]


@pytest.mark.parametrize(
    ("dtype", "size"), [(TensorProto.INT4, 5), (TensorProto.FLOAT16, 18), (TensorProto.DOUBLE, 72)]
)
def test_bytes_of_element_types(dtype: int, size: int) -> None:
    tensor = helper.make_tensor("w", dtype, [9], np.ones(9))
    assert inspect(helper.make_model(helper.make_graph([], "g", [], [], [tensor]))).bytes == size


def test_initializers_that_are_listed_as_inputs_are_none() -> None:
    """As IR version 3 requires."""
    model = parsed(MIXED, my=3)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))
    assert [port.name for port in inspect(model).inputs] == ["x", "n", "s", "o"]


def test_weights_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those in a large file nor those in a .bin."""
    text = "main (float[1024,512] x) => (float[1024,512] y) { y = Add (x, w) }"
    model = with_weights(text, w=np.ones((1024, 512), np.float32))
    path = tmp_path / "large.onnx"
    onnx.save(model, path)
    xml = saved_ir(path, tmp_path)
    (xml.with_suffix(".bin")).unlink()
    monkeypatch.setattr("mo_loop.frontend.model.LARGE", 1 << 20)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("the whole file is read"))
    for file in (path, xml):
        found = inspect(file)
        assert (found.elements, found.bytes) == (1024 * 512, 4 * 1024 * 512)
    assert inspect(xml).external[0].size is None


# -- models that do not convert


def test_models_that_do_not_convert() -> None:
    """Unknown operators, undefined names, cycles, unknown types and operator sets."""
    model = parsed("main (float[3] x) => (float[3] y) { a = Nope (b) b = Odd (a) y = Neg (ghost) }")
    model.opset_import[0].version = 999
    model.graph.input[0].type.tensor_type.elem_type = 77
    model.graph.initializer.append(TensorProto(name="w", data_type=77, dims=[2, 3]))
    found = inspect(model)
    assert {each.name for each in found.operators} == {"Nope", "Odd", "Neg"}
    assert str(found.inputs[0]) == "type 77[3]" and (found.elements, found.bytes) == (6, 0)
    del model.opset_import[:]
    assert inspect(model).opsets == {}


def test_broken_control_flow() -> None:
    """Too few inputs and outputs, no body, an empty body."""
    body = helper.make_graph([], "b", [], [])
    nodes = [
        helper.make_node("Loop", ["n"], ["y"], "short", body=body),
        helper.make_node("Loop", [], ["z"], "none"),
        helper.make_node("Scan", [], ["v"], "scan", body=body),
        helper.make_node("If", [], ["w"], "if", then_branch=body),
        helper.make_node("Custom", ["q"], ["u"], "custom", domain="my", some=body, more=[body, body]),
    ]
    found = inspect(helper.make_model(helper.make_graph(nodes, "g", [], [])))
    assert [(each.path, len(each.branches)) for each in found.control] == [
        ("short", 1), ("scan", 1), ("if", 1), ("custom", 3),
    ]
    assert found.control[0].goes_on == "none" and found.control[2].condition == "none"


@pytest.mark.parametrize("seed", range(30))
def test_damaged_models(seed: int) -> None:
    """An inspection, or an error about the input, never an exception of another kind."""
    rng = np.random.default_rng(seed)
    data = bytearray(FILES[int(rng.integers(len(FILES)))].read_bytes())
    for _ in range(int(rng.integers(1, 6))):
        data[rng.integers(len(data))] = rng.integers(256)
    try:
        json.dumps(inspect(bytes(data)).to_dict())
    except MoLoopError as error:
        assert error.exit_code in (2, 3), error


# -- IR


def test_sizes_of_the_inputs_of_an_ir(tmp_path: Path) -> None:
    model = parsed("""main (float[6,2] x, float k) => (y) {
      p = SplitToSequence <axis = 0> (x) q = ConcatFromSequence <axis = 0> (p) y = Mul (q, k) }""")
    path = tmp_path / "model.xml"
    save_model(convert_model(model, rename={"x": "a.b"}), path)
    found = inspect(path)
    assert found.sizes == found.to_dict()["sizes"] == {"a.b": "6,?", "k": ""}
    assert "  a.b  f32[6,2]  may be [6,?]\n  k    f32[]" in found.text()
    assert not any("sizes" in key for key in found.metadata)
    text = path.read_text()
    for given in ('<sizes value="6" />', '<sizes><x a="1" b="2" /></sizes>', ""):
        path.write_text(text[: text.index("<sizes>")] + given + text[text.index("</sizes>") + len("</sizes>") :])
        assert "may be" not in inspect(path).text()


IR = """<?xml version="1.0"?>
<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>"""


def test_an_ir_that_cannot_be_read_as_a_graph(tmp_path: Path) -> None:
    """Unknown operations, edges to missing layers, no .bin."""
    layers = """<layer id="0" name="x" type="Nobody" version="other">
      <output><port id="0" precision="Q7"/></output></layer>
      <layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
      <layer id="2" name="k" type="Const" version="opset1"><data element_type="f32" shape="3, 4" offset="0" size="48"/>
      <output><port id="0" precision="FP32"><dim>3</dim><dim>4</dim></port></output></layer>"""
    edges = '<edge from-layer="9" from-port="0" to-layer="1" to-port="0"/>'
    path = tmp_path / "odd.xml"
    path.write_text(IR.format(layers=layers, edges=edges))
    found = inspect(path)
    assert {each.name: each.count for each in found.operators} == {"Nobody": 1, "Result": 1, "Const": 1}
    assert found.outputs[0].name == "r" and (found.elements, found.bytes) == (12, 48)
    assert found.external[0].size is None


def test_circles_in_the_ir(tmp_path: Path) -> None:
    layers = """<layer id="0" name="a" type="Reshape" version="opset1"><input><port id="0"/></input>
        <output><port id="1" precision="I64"/></output></layer>
      <layer id="1" name="l" type="Loop" version="opset5"><input><port id="0"/><port id="1"/></input>
        <body><layers/></body></layer>"""
    edges = """<edge from-layer="0" from-port="1" to-layer="0" to-port="0"/>
      <edge from-layer="0" from-port="1" to-layer="1" to-port="0"/>"""
    path = tmp_path / "circle.xml"
    path.write_text(IR.format(layers=layers, edges=edges))
    found = control(inspect(path), "Loop")
    assert (found.trip_count, found.condition, found.goes_on) == ("computed (Reshape)", "none", "none")


def test_files_that_are_none(tmp_path: Path) -> None:
    for content, error in (
        (b"<net", FileError), (b"<other/>", FileError), (b"text", FileError), (b"", FileError),
        (b'<net version="7"><layers/></net>', UnsupportedError),
        (b'<net version="11"><layers><odd/></layers></net>', IrError),
    ):
        path = tmp_path / "file"
        path.write_bytes(content)
        raised(error, inspect, path)
    for path in (tmp_path, tmp_path / "gone.onnx", tmp_path / "gone.xml"):
        raised(FileError, inspect, path)


read_cases(globals())
