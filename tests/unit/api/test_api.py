"""convert_model as a program calls it: its models, its `input`, and the ports of a Model."""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import mo_loop
from mo_loop.errors import FileError, MoLoopError, UsageError
from mo_loop.graph.types import f32, i64
from tests.harness import parsed, raised, with_weights

MODEL = parsed("main (float[2,3] x, int64[N] n) => (float[2,3] y, int64[N] m) { [a] y = Relu (x) [b] m = Abs (n) }")


def inputs(given: Any) -> list[str]:
    """The inputs of the converted model, as text."""
    return [f"{port}: {port.type_text}" for port in mo_loop.convert_model(MODEL, input=given).inputs]


# -- the model


@pytest.mark.parametrize("wrap", [io.BytesIO, bytes, bytearray, memoryview])
def test_a_model_in_memory(wrap: Any) -> None:
    assert mo_loop.convert_model(wrap(MODEL.SerializeToString())).inputs == ["x", "n"]


def test_an_open_file_is_read_from_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(b"head" + MODEL.SerializeToString())
    with path.open("rb") as file:
        file.seek(4)
        assert mo_loop.convert_model(file).outputs == ["y", "m"] and not file.closed


def test_external_data_lie_beside_an_open_file(tmp_path: Path) -> None:
    model = with_weights("main (float[2] x) => (float[2] y) { y = Add (x, w) }", w=np.array([1, 2], np.float32))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    with (tmp_path / "m.onnx").open("rb") as file:
        converted = mo_loop.convert_model(file)
    mo_loop.save_model(converted, tmp_path / "out.xml")
    assert np.frombuffer((tmp_path / "out.bin").read_bytes()[:8], np.float32).tolist() == [1, 2]
    caught = raised(MoLoopError, mo_loop.convert_model, io.BytesIO((tmp_path / "m.onnx").read_bytes()))
    assert caught.code == "ML215" and "external_data_dir=" in str(caught)


@pytest.mark.parametrize("form", ["message", "bytes", "file"])
def test_external_data_of_a_model_in_memory(tmp_path: Path, form: str) -> None:
    """The folder is named, and its files are read by the rules for files next to a model."""
    model = with_weights("main (float[2] x) => (float[2] y) { y = Add (x, w) }", w=np.array([1, 2], np.float32))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    data = (tmp_path / "m.onnx").read_bytes()
    source: Any = {"message": onnx.load_from_string(data), "bytes": data, "file": io.BytesIO(data)}[form]
    converted = mo_loop.convert_model(source, external_data_dir=tmp_path)
    mo_loop.save_model(converted, tmp_path / "out.xml")
    assert np.frombuffer((tmp_path / "out.bin").read_bytes()[:8], np.float32).tolist() == [1, 2]
    with pytest.raises(UsageError, match="external_data_dir"):
        mo_loop.convert_model(tmp_path / "m.onnx", external_data_dir=tmp_path)


def test_external_data_of_a_model_in_memory_stay_below_its_folder(tmp_path: Path) -> None:
    model = with_weights("main (float[2] x) => (float[2] y) { y = Add (x, w) }", w=np.array([1, 2], np.float32))
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "../w.data")
    model.graph.initializer[0].ClearField("raw_data")
    (tmp_path / "w.data").write_bytes(bytes(8))
    (tmp_path / "inner").mkdir()
    raised(MoLoopError, mo_loop.convert_model, model, external_data_dir=tmp_path / "inner", match=r"^ML216: ")


def test_a_text_file_is_refused() -> None:
    caught = raised(FileError, mo_loop.convert_model, io.StringIO("a model"), match="not in binary mode")
    assert caught.hint == 'open it with mode "rb"'


# -- its inputs


@pytest.mark.parametrize("shape", [[4, 5], (4, 5), np.array([4, 5]), [[4, 5]], ((4, 5),), "[4,5]", ("x", [4, 5])])
def test_a_bare_shape_is_that_of_the_first_input(shape: Any) -> None:
    assert inputs(shape) == ["x: f32[4,5]", "n: i64[N]"]


@pytest.mark.parametrize(("given", "expected"), [
    ([None, -1], ["x: f32[?,?]", "n: i64[N]"]), ((None, None), ["x: f32[?,?]", "n: i64[N]"]),
    ([1, (2, 7)], ["x: f32[1,2..7]", "n: i64[N]"]), ((np.int64(4),), ["x: f32[4]", "n: i64[N]"]),
    ([[4, 5], [6]], ["x: f32[4,5]", "n: i64[6]"]), (((4, 5), (6,)), ["x: f32[4,5]", "n: i64[6]"]),
    (([4], np.float16), ["x: f16[4]", "n: i64[N]"]), (np.float16, ["x: f16[2,3]", "n: i64[N]"]),
    ([np.float16, [6]], ["x: f16[2,3]", "n: i64[6]"]),
    ([("n", [6], "i32"), ("x", None, "f16")], ["n: i32[6]", "x: f16[2,3]"]),
    ((("n", [6]), "x[1]"), ["n: i64[6]", "x: f32[1]"]), ({"n": ([6], "i32")}, ["x: f32[2,3]", "n: i32[6]"]),
    ({"n": (6,)}, ["x: f32[2,3]", "n: i64[6]"]),
], ids=str)
def test_forms_of_inputs(given: Any, expected: list[str]) -> None:
    assert inputs(given) == expected


def test_types_of_openvino() -> None:
    ov = pytest.importorskip("openvino")
    shape = ov.PartialShape([1, -1, ov.Dimension(2, 4)])
    expected = "x: f16[1,?,2..4]"
    assert inputs(("x", shape, ov.Type.f16))[0] == inputs([(shape, ov.Type.f16)])[0] == expected
    assert inputs(shape)[0] == "x: f32[1,?,2..4]"


@pytest.mark.parametrize(("given", "said"), [
    ([[1], [2], [3]], r"there are more shapes \(3\) than inputs \(2\)"),
    (object(), "is not an element type"),
    ([1, "2;"], "is not a dimension"),
])
def test_what_is_no_input_is_refused(given: Any, said: str) -> None:
    raised(UsageError, mo_loop.convert_model, MODEL, input=given, match=said)


# -- its ports


def test_ports_know_name_shape_and_type() -> None:
    model = mo_loop.convert_model(MODEL)
    x, n = model.inputs
    assert (x.name, x.names, x.type, x.shape) == ("x", ("x",), f32, (2, 3))
    assert (n.name, n.type, str(n.shape[0])) == ("n", i64, "N")
    y = model.outputs[0]
    assert (y.name, y.names, y.type, y.shape) == ("y", ("y",), f32, (2, 3))
    assert repr(model) == "Model('main', inputs=[<x: f32[2,3]>, <n: i64[N]>], outputs=[<y: f32[2,3]>, <m: i64[N]>])"


def test_a_port_is_its_name() -> None:
    x = mo_loop.convert_model(MODEL).inputs[0]
    assert x == "x" and {x: 1}["x"] == 1 and ",".join([x]) == "x"
    assert type(x.name) is str
    copied = pickle.loads(pickle.dumps(x))
    assert copied == "x" and (copied.type, copied.shape) == (f32, (2, 3))


def test_ports_of_a_model_that_was_read(tmp_path: Path) -> None:
    mo_loop.save_model(mo_loop.convert_model(MODEL), tmp_path / "m.xml")
    model = mo_loop.read_model(tmp_path / "m.xml")
    assert [port.type_text for port in (model.inputs[0], model.outputs[0])] == ["f32[2,3]", "f32[2,3]"]
    assert [(port.name, port.type) for port in (model.inputs[1], model.outputs[1])] == [("n", i64), ("m", i64)]


@pytest.mark.parametrize("name", ["unheard_of", "compress_to_fp16"])
def test_an_unknown_argument_is_an_error_of_the_function(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^convert_model\(\) got an unexpected keyword argument '{name}'$"):
        mo_loop.convert_model(b"", **{name: True})
