"""verify with `sizes`: the IR of a model that declares sizes, with others."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.oracle.graph_edits import of_unknown_sizes
from mo_loop.compare.results.report import NOT_RESHAPABLE
from mo_loop.compare.results.report_formats import as_text
from mo_loop.compare.verifying import verify
from mo_loop.errors import NotComparableError, UsageError
from mo_loop.ops.base import Constant
from tests.cli.commands import saved
from tests.harness import floats, parsed, raised, with_weights
from tests.running.samples import expected_values
from tests.runtime.verify.stateful_models import HISTORIES, HISTORY, with_states

CLASSIFIER = """main (float[1,3,32,32] x) => (float[1,10] y) {
  a = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w) b = Relu (a) c = GlobalAveragePool (b) d = Flatten (c)
  y = Gemm (d, f) }"""

LSTM = """main (float[6,2,3] x) => (float[6,1,2,4] y, float[1,2,4] h) { y, h = LSTM <hidden_size = 4> (x, w, r) }"""

SQUEEZE = "main (float[6,1,3] x) => (float[6,3] y) { a = Squeeze (x) y = Relu (a) }"

BODIES = """main (float[1,4] s, float[6,1,4] x, bool c) => (float[1,4] e, float[6,1,4] y, float[1,4] z) {
  e, y = Scan <num_scan_inputs = 1, body = b (float[1,4] t, float[1,4] v) => (float[1,4] u, float[1,4] o) {
    u = Add (t, v) o = Relu (u) }> (s, x)
  z = If (c) <then_branch = t () => (float[1,4] p) { p = Relu (s) }, else_branch = f () => (float[1,4] q) {
    q = Neg (s) }> }"""


def model(text: str, folder: Path, **weights: tuple[int, ...]) -> Path:
    return saved(with_weights(text, {name: floats(*shape) for name, shape in weights.items()}), folder)


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    return model(CLASSIFIER, tmp_path, w=(8, 3, 3, 3), f=(8, 10))


def converted(path: Path, **options: Any) -> Path:
    target = path.with_suffix(".xml")
    save_model(convert_model(path, **options), target, compress_to_fp16=False)
    return target


def test_a_classifier_has_another_image_size_and_batch(classifier: Path) -> None:
    report = verify(classifier, converted(classifier), sizes="x[8,3,64,48]")
    assert report, as_text(report)
    assert {each.types["x"] for each in report.sets} == {"f32[8,3,64,48]"}
    assert report.sides[0].rows[0].expected == "f32[8,10]"
    assert json.loads(json.dumps(report.to_dict()))["sizes"] == {"x": "[8,3,64,48]"}
    assert "sizes x[8,3,64,48]" in as_text(report)


def test_sizes_that_are_not_numbers_get_numbers_within_their_bounds(classifier: Path) -> None:
    report = verify(classifier, sizes={"x": [None, 3, (40, 44), 32]})
    assert report, as_text(report)
    shapes = [each.types["x"].removeprefix("f32[").removesuffix("]").split(",") for each in report.sets]
    assert all(40 <= int(height) <= 44 and width == "32" for _, _, height, width in shapes)
    assert len({batch for batch, *_ in shapes}) > 1
    assert report.to_dict()["sizes"] == {"x": "[?,3,40..44,32]"}


def test_an_lstm_has_another_number_of_steps(tmp_path: Path) -> None:
    path = model(LSTM, tmp_path, w=(1, 16, 3), r=(1, 16, 4))
    report = verify(path, sizes="x[9,5,3]", against=["ovc"])
    assert report, as_text(report)
    assert {row.expected for row in report.sides[0].rows} == {"f32[9,1,5,4]", "f32[1,5,4]"}
    assert report.sides[1].passed


def test_an_input_that_is_not_named_keeps_its_sizes(tmp_path: Path) -> None:
    path = model("main (float[2,3] x, float[1,3] b) => (float[2,3] y) { y = Add (x, b) }", tmp_path)
    report = verify(path, sizes="x[5,3]")
    assert report, as_text(report)
    assert report.sets[0].types == {"x": "f32[5,3]", "b": "f32[1,3]"}


def test_sizes_that_the_ir_refuses_are_a_difference(tmp_path: Path) -> None:
    path = model(SQUEEZE, tmp_path)
    report = verify(path, converted(path, static=True), sizes="x[8,1,3]", layers=True)
    side = report.sides[0]
    assert (side.status, report.exit_code, report.layers) == (NOT_RESHAPABLE, 1, None)
    assert side.message.startswith("OpenVINO refuses these sizes, also where x[0] alone changes | ")


def test_sizes_that_the_model_cannot_have_are_an_error(classifier: Path) -> None:
    with pytest.raises(NotComparableError, match=r"the sizes x\[1,4,32,32\]: the model itself cannot have them"):
        verify(classifier, sizes="x[1,4,32,32]")


def test_another_ir_differs_with_its_first_tensor_and_pass(classifier: Path) -> None:
    wrong = convert_model(classifier)
    for node in list(wrong.graph.of(Constant)):
        if node.output.shape == (8, 3, 3, 3):
            node.output.replace_with(Constant(2 * np.array(node.output.constant), graph=wrong.graph).output)
    target = classifier.with_name("wrong.xml")
    save_model(wrong, target, compress_to_fp16=False)
    report = verify(classifier, target, sizes="x[4,3,40,40]", layers=True, passes=True)
    assert (report.exit_code, report.status) == (1, "differs")
    assert "'a', an output of the node" in str(report.layers)
    assert report.passes == "The conversion of the model gives the right numbers: the IR that was given is another one."


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("x[1,3,32]", "--sizes has 3 sizes for 'x'"),
        ("z[1,3,32,32]", "the model has no tensor 'z'"),
        ("a[1,8,16,16]", "'a' is not an input of the model"),
        ("x{f16}[1,3,32,32]", "needs the sizes of 'x', and nothing else"),
        ("x", "needs the sizes of 'x', and nothing else"),
    ],
)
def test_what_is_not_the_sizes_of_inputs_is_refused(classifier: Path, sizes: str, message: str) -> None:
    raised(UsageError, verify, classifier, sizes=sizes, match=message)


def test_an_ir_with_states_is_refused(tmp_path: Path) -> None:
    path = saved(parsed(HISTORY), tmp_path)
    target = with_states(path, HISTORIES)
    raised(UsageError, verify, path, target, sizes="x[2,1,3]", match="does not compare an IR with states with --sizes")


def test_bodies_of_a_model_with_unknown_sizes_declare_none(tmp_path: Path) -> None:
    feeds = {"s": floats(3, 4), "x": floats(7, 3, 4), "c": np.array(True)}
    found = isolated(expected_values, of_unknown_sizes(parsed(BODIES)).SerializeToString(), [feeds])
    assert {name: array.shape for name, array in found.values[0]} == {"e": (3, 4), "y": (7, 3, 4), "z": (3, 4)}
