"""Which sets of inputs count: sizes that models accept, values that ONNX Runtime gives twice, outputs of files."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mo_loop.api import convert_model, save_model
from mo_loop.compare.deciding import NOT_REPRODUCED
from mo_loop.compare.execution.runtime import instruction_set as instruction_set
from mo_loop.compare.layers.rounding import amplification
from mo_loop.compare.oracle.checked_oracle import Oracle, UnstableError
from mo_loop.compare.results.array_comparison import compare
from mo_loop.compare.results.report import Row, Side
from mo_loop.compare.results.report import shape_in as shape_in
from mo_loop.compare.results.report_formats import as_text
from mo_loop.compare.verifying import cause_of, verify
from mo_loop.errors import FileError, NotComparableError, UsageError
from mo_loop.options import ConvertOptions
from tests.cases import read_cases
from tests.cli.commands import saved
from tests.harness import floats, parsed, raised, with_weights, without
from tools import probe_oracle

WITHOUT_NUMPY = "#!/bin/sh\necho no numpy >&2; exit 1\n"
SQUARE = "main (float[N,2] x) => (float[N,2] y) { y = Mul (x, x) }"


def test_memory_that_was_never_written_leaves_the_set_out_and_names_the_operator(tmp_path: Path) -> None:
    model, feeds, _ = probe_oracle.PROBES["cell-state-of-no-steps"]()
    raised(UnstableError, Oracle(model).run, feeds, match="LSTM 'y': the final cell state of a sequence without steps")
    report = verify(saved(model, tmp_path))
    assert report, as_text(report)
    assert any(each.startswith("T = 0 is left out: ") and "LSTM" in each for each in report.notes), report.notes
    assert "T = 0" not in {each.name for each in report.sets}


@pytest.mark.parametrize("id", ["scan-returns-input", "loop-returns-number"])
def test_a_body_that_returns_its_input_is_compared(tmp_path: Path, id: str) -> None:
    model, feeds, expected = probe_oracle.PROBES[id]()
    assert np.array_equal(dict(Oracle(model).run(feeds))["y"], expected["y"])
    report = verify(saved(model, tmp_path))
    assert report, as_text(report)


@pytest.mark.parametrize("place", ["folder", "npz", "expected", "arrays"])
def test_outputs_of_files_take_the_place_of_onnx_runtime(tmp_path: Path, place: str) -> None:
    path = saved(parsed(SQUARE), tmp_path)
    x = np.float32([[1, 2], [3, 4]])
    for y, passes in ((x * x, True), (x * x + 1, False)):
        inputs, expected = _files(tmp_path, place, x, y)
        report = verify(path, inputs=[inputs], expected=expected)
        assert report.passed == passes, as_text(report)
        assert report.oracle == "the given outputs"
        assert any("ONNX Runtime differs from the given outputs" in each for each in report.notes) != passes


def _files(folder: Path, place: str, x: np.ndarray, y: np.ndarray) -> tuple[object, list[object]]:
    if place == "arrays":
        return {"x": x}, [{"y": y}]
    if place == "folder":
        for name, array in (("input_0.pb", x), ("output_0.pb", y)):
            (folder / name).write_bytes(numpy_helper.from_array(array).SerializeToString())
        return folder, []
    arrays = {"x": x, "y": y} if place == "npz" else {"x": x}
    np.savez(folder / "in.npz", **arrays)
    np.savez(folder / "out.npz", y=y)
    return folder / "in.npz", [folder / "out.npz"] if place == "expected" else []


def test_a_model_that_onnx_runtime_does_not_run_is_compared_with_given_outputs(tmp_path: Path) -> None:
    model = parsed('main (float[2] x) => (float[2] y) { z = Neg (x) y = Neg (z) }')
    model.graph.node[0].domain = "own.domain"
    model.opset_import.add(domain="own.domain", version=1)
    path = saved(model, tmp_path)
    extension = tmp_path / "own.py"
    extension.write_text("""from mo_loop import ops


def register(extensions):
    @extensions.translates("Neg", domain="own.domain", since=1)
    def neg(x):
        return ops.Negative(x)
""")
    options = ConvertOptions(extensions=[str(extension)])
    x = np.float32([1, -2])
    with pytest.raises(NotComparableError, match=r"does not run .*\n.*onnx does not implement own.domain::Neg"):
        verify(path, inputs=[{"x": x}], options=options)
    report = verify(path, inputs=[{"x": x}], expected=[{"y": x}], options=options)
    assert report, as_text(report)
    assert any(each.startswith("ONNX Runtime does not run the model") for each in report.notes)
    assert not verify(path, inputs=[{"x": x}], expected=[{"y": -x}], options=options)


def test_expected_outputs_of_another_number_or_name_are_refused(tmp_path: Path) -> None:
    path, x = saved(parsed(SQUARE), tmp_path), floats(2, 2)
    with pytest.raises(UsageError, match="1 sets of expected outputs for 2 sets of inputs"):
        verify(path, inputs=[{"x": x}, {"x": x}], expected=[{"y": x}])
    raised(UsageError, verify, path, inputs=[{"x": x}], expected=[{"z": x}], match="no output of the model")


def test_the_table_of_the_errors_of_onnx_runtime_is_true_of_the_installed_release() -> None:
    assert probe_oracle.main([]) == 0


def test_one_tie_at_a_step_of_a_quantisation_is_amplification(tmp_path: Path) -> None:
    """An odd zero point rounds it to the other neighbour: one of two, in each of 12 models."""
    for number in range(12):
        step = 1 + number / 16
        text = f"""main (float[2] x) => (float[1] y) <float s = {{{step}}}, int8 z = {{-57}}, int64[1] one = {{1}}> {{
          mean = ReduceMean (x)  q = QuantizeLinear (mean, s, z)
          d = DequantizeLinear (q, s, z)  y = Reshape (d, one) }}"""
        tie = {"x": np.array([step * number, step * (number + 1)], np.float32)}
        assert amplification(str(saved(parsed(text), tmp_path)), tie, {})["y"] == pytest.approx(step, rel=1e-4)


def test_a_difference_that_the_model_amplifies_passes_with_its_numbers(tmp_path: Path) -> None:
    """The outputs are differences of large sums, which the IR adds in another order."""
    text = """main (float[4,256] x) => (float[4,8] y) { a = MatMul (x, w) b = MatMul (x, v) y = Sub (a, b) }"""
    w = 1000 * floats(256, 8)
    model = with_weights(text, w=w, v=(w + np.float32(1e-2) * floats(256, 8)).astype(np.float32))
    path, x = saved(model, tmp_path), 100 * floats(4, 256)
    ir = tmp_path / "reordered.xml"
    order = np.random.default_rng(1).permutation(256)
    swapped = with_weights(text.replace("MatMul (x,", "MatMul (p,").replace("{ a", "{ p = Gather <axis = 1> (x, o)  a"),
                           w=model_weight(model, "w")[order], v=model_weight(model, "v")[order], o=order)
    save_model(convert_model(swapped), ir)
    report = verify(path, ir, inputs=[{"x": x}])
    assert report, as_text(report)
    (row,) = report.sides[0].worst
    if row.result.kind == "amplified":  # otherwise this processor adds both in one order
        assert "agrees in every piece; the model itself amplifies rounding by 10^" in as_text(report).splitlines()[0]
        assert report.pieces.status == "agrees" and report.to_dict()["pieces"]["compared"] >= 3
    assert not verify(path, ir, inputs=[{"x": x}], rtol=1e-9, atol=0)


@pytest.mark.parametrize("gain", [1.0, 1.001])
def test_an_approximation_of_onnx_runtime_is_no_difference(tmp_path: Path, gain: float) -> None:
    """Its Sigmoid has an absolute error of 1e-7, and the result is smaller."""
    text = "main (float[N,64] x) => (float[N,64] y) <float far = {-16}> { a = Add (x, far) y = Sigmoid (a) }"
    path, x = saved(parsed(text), tmp_path), floats(8, 64)
    ir = tmp_path / "other.xml"
    save_model(convert_model(parsed(text.replace("{-16}", f"{{{-16 * gain}}}"))), ir)
    report = verify(path, ir, inputs=[{"x": x}])
    assert report.passed == (gain == 1), as_text(report)
    if gain == 1:
        assert "agrees in every piece; ONNX Runtime is inexact at y" in as_text(report).splitlines()[0]
        assert report.to_dict()["pieces"]["inexact"] == ["y"]
        assert any(each.startswith("y: OpenVINO has the exact numbers") for each in report.notes)


def test_the_error_of_onnx_runtime_is_the_largest_of_all_sets(tmp_path: Path) -> None:
    path = saved(parsed("main (float[N,64] x) => (float[N,64] y) { y = Sigmoid (x) }"), tmp_path)
    x = floats(8, 64) - 16
    ranked = [{"x": x}, {"x": x[:1]}]
    errors = []
    for inputs in (ranked[:1], ranked[1:], ranked):
        (note,) = (each for each in verify(path, inputs=inputs).notes if each.startswith("y: OpenVINO has"))
        errors.append(float(note.rpartition(" ")[2]))
    whole, part, both = errors
    assert part < whole == both


def test_a_number_between_two_steps_may_be_either(tmp_path: Path) -> None:
    """The numbers lie in the middle of two steps; the quantisation is a piece, and so is the product before it."""
    text = """main (int32[12] x) => (float[12] y) { f = Cast <to = 1> (x) h = Mul (f, halves)
      q, scale, zero = DynamicQuantizeLinear (h) y = DequantizeLinear (q, scale, zero) }"""
    halves = np.full(12, 0.5, np.float32)
    path, x = saved(with_weights(text, halves=halves), tmp_path), np.int32([0, 510, *range(1, 21, 2)])
    for factor, passes in ((1.0000002, True), (10.0, False)):
        ir = tmp_path / f"{factor}.xml"
        save_model(convert_model(with_weights(text, halves=halves * np.float32([1, 1, *[factor] * 10]))), ir)
        report = verify(path, ir, inputs=[{"x": x}])
        assert report.passed == passes, as_text(report)


def model_weight(model: onnx.ModelProto, name: str) -> np.ndarray:
    return next(numpy_helper.to_array(each) for each in model.graph.initializer if each.name == name)


def test_tolerances_of_single_outputs(tmp_path: Path) -> None:
    path, x = saved(parsed(SQUARE), tmp_path), np.float32([[1, 2], [3, 4]])
    y = [{"y": x * x * np.float32(1.01)}]
    assert not verify(path, inputs=[{"x": x}], expected=y)
    assert verify(path, inputs=[{"x": x}], expected=y, tolerances={"y": (0.02, 0)})
    assert not verify(path, inputs=[{"x": x}], expected=y, tolerances={"z": (0.02, 0)})


def test_the_signal_to_noise_ratio_and_the_agreement_of_classes() -> None:
    expected = np.float32([[1, 2, 4], [4, 2, 1]])
    found = compare(expected, expected + np.float32([[0, 0, 0], [-4, 0, 0]]))
    assert found.snr == pytest.approx(10 * np.log10(42 / 16))
    assert found.top1 == 0.5
    assert compare(expected, expected).snr is None


@pytest.mark.skipif(os.name == "nt", reason="programs are not files with a mode there")
def test_an_interpreter_that_does_not_run_an_ir_is_a_wrong_argument(tmp_path: Path) -> None:
    path, program = saved(parsed(SQUARE), tmp_path), tmp_path / "python"
    for make, code, why in (
        (tmp_path.exists, "ML201", "No such file"), (program.touch, "ML201", "Permission denied"),
        (lambda: (program.write_text(WITHOUT_NUMPY), program.chmod(0o755)), "ML203", "no numpy"),
    ):
        make()
        caught = raised(UsageError, verify, path, python=str(program), match=f"the interpreter {program} ")
        assert caught.code == code and caught.exit_code == 2 and why in caught.why


def test_the_cause_is_the_runtime_where_tensors_agree_one_by_one() -> None:
    row = Row(0, 0, "float32[2]", "float32[2]", compare(np.float32([1, 2]), np.float32([1, 3]), "y"))
    side = Side("f32", "differs", rows=(row,))
    graph = convert_model(parsed(SQUARE)).graph
    config = without("IsolateParameters")
    said = cause_of(side, NOT_REPRODUCED, graph, ConvertOptions(config=config), lambda options: side)
    assert said.startswith("an error of the runtime: the tensors agree when each is computed alone; one of swapped")
    assert cause_of(replace(side, status="crash"), NOT_REPRODUCED, graph, ConvertOptions(), lambda _: side) == ""


def test_a_library_that_does_not_exist_is_an_error_of_its_path(tmp_path: Path) -> None:
    """A name without a folder was searched in the library path of the system, not in the current folder."""
    model = saved(parsed(SQUARE), tmp_path)
    raised(FileError, verify, model, custom_ops=[tmp_path / "none.so"], match=r"the library .*none\.so does not exist")


def test_a_file_that_holds_no_arrays_is_refused_without_the_advice_to_load_it_unsafely(tmp_path: Path) -> None:
    model = saved(parsed(SQUARE), tmp_path)
    (tmp_path / "junk.npz").write_bytes(b"junk")
    assert raised(FileError, verify, model, inputs=[tmp_path / "junk.npz"]).why == "it is neither .npy nor .npz"


read_cases(globals())
