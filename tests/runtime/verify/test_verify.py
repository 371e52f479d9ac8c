"""mo_loop.compare on models with a known answer, and on IR with a planted fault."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.runtime import ONE_THREAD as ONE_THREAD
from mo_loop.compare.results.array_comparison import compare
from mo_loop.compare.results.report import InputSet, Report, Row, Side
from mo_loop.compare.results.report_formats import as_junit, as_markdown, as_text
from mo_loop.compare.verifying import verify
from mo_loop.errors import ConversionErrors, FileError, InputError, UsageError
from mo_loop.ops.base import Constant
from tests import MODELS
from tests.cases import read_cases
from tests.cli.commands import saved
from tests.harness import floats, parsed, raised, with_weights
from tests.pages import document
from tests.running.processor import fail_or_skip

LOOP = """main (float[N,2] x, int64 n) => (float[N,2] y, int64[K] z) <float[2] w = {0.5, 2.0}, int64[2] k = {5, 6}> {
  y = Loop (n, "", x) <body = step (int64 i, bool c, float[N,2] s) => (bool d, float[N,2] t) {
    d = Identity (c) t = Mul (s, w) }>
  z = Add (k, n) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(parsed(LOOP), tmp_path)


def faulty(model: Path, old: float, new: float) -> Path:
    """The IR of a model in which a constant has one other element."""
    converted = convert_model(model)
    for scope in converted.graph.scopes():
        for node in list(scope.of(Constant)):
            array = np.array(node.output.constant)
            if array.dtype == np.float32 and (array == old).any():
                node.output.replace_with(Constant(np.where(array == old, np.float32(new), array), graph=scope).output)
    target = model.with_name("faulty.xml")
    save_model(converted, target)
    return target


def test_a_model_that_converts_rightly_passes_in_several_inferences(model: Path) -> None:
    report = verify(model)
    assert report, as_text(report)
    assert report.exit_code == 0
    assert report.order == (*range(len(report.sets)), *reversed(range(len(report.sets))))
    assert {each.types["x"] for each in report.sets} >= {"f32[2,2]", "f32[1,2]", "f32[0,2]"}
    assert {row.output for row in report.sides[0].rows} == {"y", "z"}
    row = next(each for each in report.sides[0].worst if each.output == "z")
    assert (row.result.count, row.result.size, row.result.cosine) == (0, 2, 1.0)


def test_a_wrong_weight_in_a_body_is_found_with_its_worst_element(model: Path) -> None:
    x = np.array([[1, 1], [1, 3]], np.float32)
    report = verify(model, faulty(model, 2.0, 2.5), inputs=[{"x": x, "n": np.array(2)}])
    assert (report.status, report.exit_code) == ("differs", 1)
    y, z = report.sides[0].worst
    assert (y.result.count, y.result.size, y.result.worst, y.result.pair) == (2, 4, (1, 1), ("12.0", "18.75"))
    assert y.result.largest_abs == pytest.approx(6.75)
    assert y.result.largest_rel == pytest.approx(0.5625)
    assert y.result.mean_abs == pytest.approx((6.75 + 2.25) / 4)
    left, right = np.array([0.25, 4, 0.25, 12]), np.array([0.25, 6.25, 0.25, 18.75])
    assert y.result.cosine == pytest.approx(left @ right / math.hypot(*left) / math.hypot(*right))
    assert z.result
    assert "outputs differ" in as_text(report)


def test_the_tolerances_are_those_that_are_given(model: Path) -> None:
    ir = faulty(model, 2.0, 2.0004)
    x = [{"x": floats(2, 2), "n": np.array(1)}]
    assert verify(model, ir, inputs=x).passed
    assert not verify(model, ir, inputs=x, rtol=1e-5).passed


def test_inputs_come_from_files(model: Path, tmp_path: Path) -> None:
    x, n = floats(3, 2), np.array(2)
    np.savez(tmp_path / "a.npz", x=x, n=n)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "n.npy", n)
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    (folder / "input_0.pb").write_bytes(onnx.numpy_helper.from_array(x).SerializeToString())
    (folder / "input_1.pb").write_bytes(onnx.numpy_helper.from_array(n, "n").SerializeToString())
    report = verify(model, inputs=[tmp_path / "a.npz", tmp_path / "x.npy", f"n={tmp_path / 'n.npy'}", folder])
    assert report.passed
    assert [dict(each.types) for each in report.sets] == [{"x": "f32[3,2]", "n": "i64[]"}] * 3


@pytest.mark.parametrize(("content", "error", "said"), [
    (None, FileError, "does not exist"), (b"no arrays", FileError, "not a file of arrays"),
    ({"x": np.zeros((1, 2), np.float32)}, UsageError, "no value for the input 'n'"),
    ({"x": np.zeros((1, 3), np.float32), "n": np.array(1)}, InputError, "does not accept the inputs"),
])
def test_wrong_inputs_are_refused(model: Path, tmp_path: Path, content: Any, error: Any, said: str) -> None:
    path = tmp_path / "inputs.npz"
    if isinstance(content, dict):
        np.savez(path, **content)
    elif content is not None:
        path.write_bytes(content)
    raised(error, verify, model, inputs=[path], match=said)


def npy(header: str) -> bytes:
    """An .npy file with this header, and few data."""
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.encode().ljust(117) + b"\n" + b"0" * 8


@pytest.mark.parametrize(
    "content",
    [b"", b"\x93NUMPY\x01\x00", npy("[" * 117), npy("{[]: 1}"),
     npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }"),
     npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999999,), }")],
)
def test_damaged_arrays_are_refused(model: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    raised(FileError, verify, model, inputs=[tmp_path / "x.npy"], match="not a file of arrays")


def test_damaged_archives_are_refused(model: Path, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "whole.npz", x=floats(3, 2), n=np.array(2))
    whole = (tmp_path / "whole.npz").read_bytes()
    place = whole.index(b"x.npy") + len(b"x.npy") + 40
    damaged = {
        "data": whole[:place] + b"\xff" * 20 + whole[place + 20 :],
        "method": whole.replace(b"\x08\x00", b"\x63\x00"),  # of compression; there is no method 99
    }
    for name, content in damaged.items():
        (tmp_path / f"{name}.npz").write_bytes(content)
        assert raised(FileError, verify, model, inputs=[tmp_path / f"{name}.npz"]).code == "ML212"


@pytest.mark.parametrize("proto", [onnx.TensorProto(data_type=99, dims=[1], raw_data=b"1234"),
                                   onnx.TensorProto(data_type=1, dims=[1], data_location=onnx.TensorProto.EXTERNAL)])
def test_damaged_tensors_are_refused(model: Path, tmp_path: Path, proto: onnx.TensorProto) -> None:
    (tmp_path / "input_0.pb").write_bytes(proto.SerializeToString())
    raised(FileError, verify, model, inputs=[tmp_path], match="is not a tensor of ONNX")


def test_a_tensor_in_another_file_is_not_read(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(b"12345678")
    proto = onnx.TensorProto(data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    proto.external_data.add(key="location", value="secret")
    (tmp_path / "input_0.pb").write_bytes(proto.SerializeToString())
    raised(FileError, verify, model, inputs=[tmp_path], match="is not a tensor of ONNX")


def test_inputs_that_are_no_arrays(model: Path) -> None:
    raised(UsageError, verify, model, inputs=[1], match="of type int")
    raised(UsageError, verify, model, inputs=[{"x": floats(3, 2)}], match="no value for the input 'n'")
    raised(InputError, verify, model, inputs=[{"x": None, "n": 2}], match="does not accept the inputs")


def test_what_was_compared_can_be_saved_and_repeated(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    first = verify(model, sets=2, save=folder)
    names = {each.name for each in folder.iterdir()}
    assert {"set0-inputs.npz", "set0-onnxruntime.npz", "set0-f32.npz"} <= names
    assert len(names) == 3 * len(first.sets)
    again = verify(model, inputs=sorted(folder.glob("*-inputs.npz")))
    assert again.passed
    assert [each.types for each in again.sets] == [each.types for each in first.sets]
    kept, computed = np.load(folder / "set0-onnxruntime.npz"), np.load(folder / "set0-f32.npz")
    assert np.allclose(kept["y"], computed["y"])


def test_the_cost_of_a_precision_is_told_apart(tmp_path: Path) -> None:
    model = with_weights("main (float[4,64] x) => (float[4,64] y) { y = MatMul (x, w) }", w=floats(64, 64))
    report = verify(saved(model, tmp_path), precision="bf16", atol=1e-4, rtol=1e-4)
    f32, bf16 = report.sides
    assert (f32.name, f32.passed, bf16.name) == ("f32", True, "bf16")
    if not bf16.passed:  # a processor without bf16 computes in f32
        assert report.exit_code == 1
        assert "the precision of the device makes the difference" in as_text(report)


def test_another_converter_does_not_decide(model: Path) -> None:
    report = verify(model, against=["ovc"], sets=1)
    assert [side.name for side in report.sides] == ["f32", "against ovc"]
    assert report.passed


def test_a_runtime_that_refuses_empty_tensors_is_a_note(tmp_path: Path) -> None:
    text = "main (float[N,1,4,4] x) => (float[N,1,2,2] y) { y = MaxPool <kernel_shape = [3,3]> (x) }"
    report = verify(saved(parsed(text), tmp_path))
    assert report.passed
    if "N = 0" in {each.name for each in report.sets}:
        assert any("does not run the inputs N = 0" in each for each in report.notes)


def test_an_ir_that_does_not_run_is_a_difference(model: Path) -> None:
    other = saved(parsed("main (float[2,2] x, int64 n) => (float[2,2] y) { y = Neg (x) }"), model.parent, "other.onnx")
    target = model.with_name("other.xml")
    save_model(convert_model(other), target)
    report = verify(model, target, inputs=[{"x": floats(3, 2), "n": np.array(1)}])
    assert (report.exit_code, report.passed) == (1, False)


def test_models_that_cannot_be_converted_or_read_raise(tmp_path: Path) -> None:
    with pytest.raises(ConversionErrors, match="RegexFullMatch"):
        refused = 'main (string[2] x) => (bool[2] y) { y = RegexFullMatch <pattern = "(a*)*"> (x) }'
        verify(saved(parsed(refused, opset=20), tmp_path))
    raised(FileError, verify, tmp_path / "missing.onnx")


def test_limits_of_the_comparison_are_notes(tmp_path: Path) -> None:
    text = " ".join(verify(saved(parsed("""
        main (float[3,2] x, uint8[2,2] a, uint8[2,2] b) => (float[3,2] y, int32[2,2] m, float[2] last) {
          zero = Constant <value = float[2] {0.0, 0.0}> ()
          last, y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] e) => (float[2] t, float[2] e) {
            t = Add (s, e) }> (zero, x)
          m = MatMulInteger (a, b) }"""), tmp_path), sets=1).notes)
    assert "MatMulInteger m: in ONNX Runtime sums of two products of u8 and s8 saturate" in text


def test_the_report_in_all_formats(model: Path) -> None:
    report = verify(model, faulty(model, 2.0, 9.0), sets=1)
    found = json.loads(json.dumps(report.to_dict()))
    assert (found["passed"], found["status"], found["exit_code"]) == (False, "differs", 1)
    bad = next(row for row in found["sides"][0]["rows"] if row["output"] == "y" and row["kind"] == "values")
    assert bad["beyond"] > 0
    assert len(bad["values"]) == 2
    assert "**f32&#58; differs**" in as_markdown(report)
    assert 'failures="1"' in as_junit(report)
    assert '<testcase classname=' in as_junit(report)


def test_long_names_leave_place_for_the_numbers() -> None:
    name = "encoder_layer_0_attention_output_projection_hidden_states"
    y = np.float32([1, 2])
    side = Side("f32", "differs", rows=(Row(0, 0, "f32[2]", "f32[2]", compare(y, y + 1, name)),))
    report = Report("m.onnx", "", "ONNX Runtime", "CPU", (InputSet("generated 0", {}),), (0,), (side,))
    assert _titles(report, 60) == _titles(report, 80) == ["output", "largest abs", "largest rel", "beyond"]
    assert len(_titles(report, None)) > 8


def _titles(report: Report, width: int | None) -> list[str]:
    (line,) = (line for line in as_text(report, width=width).splitlines() if line.startswith("    output"))
    return re.split(r" {2,}", line.strip())


def test_layers_are_compared_in_the_precision_that_differs(tmp_path: Path) -> None:
    text = "main (float[N,64] x) => (float[N,64] y) <float one = {1.0}> { h = MatMul (x, w) y = Add (h, one) }"
    model = with_weights(text, w=floats(64, 64))
    path = saved(model, tmp_path)
    report = verify(path, sets=1, precision="bf16", layers=True, dump=tmp_path / "steps")
    if report.passed:
        pytest.skip("OpenVINO computes in f32 on this processor")
    fail_or_skip([str(report.layers)] if report.layers.kind == "failed" else [])
    assert report.sides[0].passed and report.passes is None
    assert (report.layers.precision, report.layers.tensor) == ("bf16", "h")
    assert str(report.layers).startswith("In bf16, the first tensor that differs is 'h'")
    heat = document(Path(report.page).read_text("utf-8"))["heat"]
    assert heat["precision"] == "bf16" and max(each["worst"] for _, _, each in heat["tensors"]) > 1
    assert verify(path, sets=1, layers=True).layers is None


def test_maps_are_compared_as_tensors() -> None:
    report = verify(MODELS / "classical" / "logistic_regression.onnx")
    fail_or_skip([] if report else [as_text(report)])
    assert {row.output for row in report.sides[0].rows} == {"output_label", "output_probability"}


def test_labels_that_onnx_runtime_does_not_return_are_explained() -> None:
    made = onnx.load(MODELS / "classical" / "catboost_binary.onnx")
    for node in made.graph.node:
        for each in node.attribute:
            if each.name == "classlabels_int64s":
                each.ints[:] = [-1, 1]
    report = verify(made)
    assert {row.output for row in report.sides[0].rows if row.result.count} == {"label"}
    assert any("in place of the labels" in note for note in report.notes)


read_cases(globals())
