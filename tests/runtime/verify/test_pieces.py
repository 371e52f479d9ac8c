"""The parts of a model that verify compares: pieces of the IR, recorded options, iterations of a loop."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop.api import Model, convert_model, read_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.layers import LayerDifference, PieceFindings, assign_origins, compared, lockstep
from mo_loop.compare.results.report_formats import as_text
from mo_loop.compare.verifying import verify
from mo_loop.conversion import Conversion
from mo_loop.options import ConvertOptions
from tests.cases import read_cases
from tests.cli.commands import saved
from tests.fuzz.planted.verdicts import AGREES, PASSES, ROUNDS, model_verdict, right_verdict
from tests.harness import floats, parsed, without
from tests.models.sources.registry_kinds import KINDS
from tests.running.processor import fail_or_skip

# -- The first piece that differs in the IR of a changed model


LARGE = np.linspace(2000, 4000, 64, dtype=np.float32)


def pieces(text: str, right: Any, wrong: Any, feeds: dict[str, Any], *passes: str) -> PieceFindings:
    """The pieces of the model `text % right` and the IR of `text % wrong`, which is converted without these passes."""
    with TemporaryDirectory() as folder:
        ir = written(parsed(text % wrong), Path(folder, "wrong.xml"), *passes)
        found: PieceFindings = isolated(_compared, parsed(text % right).SerializeToString(), str(ir), feeds)
    return found


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


# -- verify of an IR that records how it was converted: ONNX Runtime's side gets the same parameters


IMAGE = "main (float[1,3,6,6] image, float k) => (float[1,3,6,6] y) { s = Softmax <axis = 1> (image) y = Mul (s, k) }"
ALONE = "main (float[1,3,6,6] image) => (float[1,3,6,6] y) { s = Softmax <axis = 1> (image) y = Mul (s, s) }"

WAYS: list[dict[str, Any]] = [
    {"mean_values": {"image": [1.0, 0.5, -1.0]}, "reverse_input_channels": True},
    {"scale_values": {"image": [0.5, 2.0, 3.0]}, "mean_values": {"image": [1.0, 2.0, 3.0]}},
    {"layout": "image(nchw->nhwc)", "mean_values": {"image": [1.0, 0.5, -1.0]}, "reverse_input_channels": True},
    {"layout": "y(nchw->nhwc)"},
    {"freeze": {"k": 2.0}},
    {"output": "s"},
    {"input": "s,k"},
    {"input": "image[2,3,4,4],k"},
    {"rename": {"image": "picture", "y": "made"}},
    {"compress_to_fp16": True},
]


def converted(path: Path, **options: Any) -> Path:
    target = path.with_suffix(".xml")
    half = options.pop("compress_to_fp16", False)
    save_model(convert_model(path, **options), target, compress_to_fp16=half)
    return target


@pytest.mark.parametrize("options", WAYS, ids=lambda each: ",".join(each))
def test_the_parameters_of_an_ir_are_those_of_the_model(options: dict[str, Any], tmp_path: Path) -> None:
    path = saved(parsed(IMAGE), tmp_path)
    report = verify(path, converted(path, **options), layers=True)
    assert report, as_text(report)
    assert report.pieces.status == "agrees" and report.pieces.count > 0
    again = verify(path, options=ConvertOptions(**options))
    assert again, as_text(again)


def test_the_batch_is_that_of_the_ir(tmp_path: Path) -> None:
    path = saved(parsed(ALONE), tmp_path)
    report = verify(path, converted(path, batch=4))
    assert report and report.sets[0].types == {"image": "f32[4,3,6,6]"}


@pytest.mark.parametrize("old, new", [("1,0.5,-1", "1,0.5,-2"), ("[N,C,H,W]", "[N,C,W,H]")])
def test_what_the_ir_records_is_what_it_must_compute(old: str, new: str, tmp_path: Path) -> None:
    """The record is changed: the IR does not compute what it says."""
    path = saved(parsed(ALONE), tmp_path)
    target = converted(path, layout="image(nchw->nhwc)", mean_values={"image": [1.0, 0.5, -1.0]})
    text = target.read_text("utf-8")
    place = text.index("<preprocessing>")
    assert old in text[place:]
    target.write_text(text[:place] + text[place:].replace(old, new), "utf-8")
    assert not verify(path, target)


def test_given_inputs_have_the_form_of_the_ir(tmp_path: Path) -> None:
    path = saved(parsed(ALONE), tmp_path)
    target = converted(path, layout="image(nchw->nhwc)")
    x = floats(1, 6, 6, 3)
    report = verify(path, target, inputs=[{"image": x}], save=tmp_path / "kept")
    assert report, as_text(report)
    e = np.exp(x - x.max(axis=3, keepdims=True))
    expected = np.moveaxis((e / e.sum(axis=3, keepdims=True)) ** 2, 3, 1)
    np.testing.assert_allclose(np.load(tmp_path / "kept" / "set0-f32.npz")["y"], expected, rtol=1e-4)


# -- Which iterations of a loop are compared: all, or some of a loop whose outputs agree


FAULT = 57
"""The only iteration with a fault, whose factor is another one in the IR."""

ONE_STEP = """main (float[4] x) => (float[4] y)
  <int64 n = {100}, int64 one = {57}, float gain = {%s}, float b = {0.5}> {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    d = Identity (c) t = %s (v) s = Add (t, b) is = Equal (i, one)
    [if] w = If (is) <then_branch = yes () => (float[4] p) { [gain] p = Mul (s, gain) },
                      else_branch = no () => (float[4] q) { q = Identity (s) }> }> }"""

PLAIN = """main (float[4] x) => (float[4] y) <int64 n = {100}, float b = {0.5}> {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    d = Identity (c) t = Sin (v) w = Add (t, b) }> }"""

WHILE = """main (float[4] x) => (float[4] y) <float b = {1}, float most = {98.5}> {
  [loop] y = Loop ("", "", x) <body = step (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
    w = Add (v, b) m = ReduceMax <keepdims = 0> (w) d = Less (m, most) }> }"""

X = np.linspace(0.0, 0.1, 4, dtype=np.float32)


def written(model: onnx.ModelProto, path: Path, *passes: str) -> Path:
    """The IR of a model, converted without these passes."""
    save_model(Model(Conversion(ConvertOptions(config=without(*passes))).run(model.SerializeToString())), path)
    return path


@pytest.mark.parametrize("layers", [False, True])
def test_a_fault_of_one_of_a_hundred_iterations_is_named(tmp_path: Path, layers: bool) -> None:
    right, wrong = (parsed(ONE_STEP % (gain, "Identity")) for gain in ("1.5", "1.6"))
    onnx.save(right, tmp_path / "m.onnx")
    ir = written(wrong, tmp_path / "wrong.xml", "StepsPerIteration")
    report = verify(tmp_path / "m.onnx", ir, inputs=[{"x": X}], layers=layers)
    assert report.verdict == "differs"
    assert (report.layers.iterations, report.layers.node) == ((("loop", FAULT),), "gain")


def test_a_fault_that_fades_before_the_end_is_found_with_all_iterations(tmp_path: Path) -> None:
    right, wrong = (parsed(ONE_STEP % (gain, "Sin")) for gain in ("1.5", "1.6"))
    onnx.save(right, tmp_path / "m.onnx")
    ir = written(wrong, tmp_path / "wrong.xml", "StepsPerIteration")
    assert verify(tmp_path / "m.onnx", ir, inputs=[{"x": X}]).verdict == "agrees"
    report = verify(tmp_path / "m.onnx", ir, inputs=[{"x": X}], layers=True)
    assert (report.verdict, report.layers.iterations) == ("differs", (("loop", FAULT),))


def counted(model: bytes, ir: str, samples: bool) -> tuple[list[int], Any]:
    """The iterations that the IR runs, and the findings."""
    counts: list[int] = []

    class Counted(lockstep.IrLoop):
        def begin(self) -> Any:
            counts.append(self.count)
            return super().begin()

    graph = read_model(ir).graph
    assign_origins(graph, model)
    before, lockstep.IrLoop = lockstep.IrLoop, Counted  # type: ignore[misc]  # in a process of its own
    try:
        return counts, compared(model, graph, {"x": X}, samples=samples)
    finally:
        lockstep.IrLoop = before  # type: ignore[misc]


@pytest.mark.parametrize(("text", "count"), [(PLAIN, 100), (WHILE, 99)])
def test_of_a_loop_whose_outputs_agree_nine_of_a_hundred_iterations_are_compared(
    tmp_path: Path, text: str, count: int
) -> None:
    model, ir = parsed(text), tmp_path / "m.xml"
    written(model, ir, "StepsPerIteration")
    counts, found = isolated(counted, model.SerializeToString(), str(ir), True)
    assert counts == [0, 1, 2, 4, 8, 16, 32, 64, count - 1]
    assert found.difference is None and not found.undecided
    counts, every = isolated(counted, model.SerializeToString(), str(ir), False)
    assert counts == list(range(count))
    assert every.count == found.count


def test_of_several_steps_in_each_iteration_some_are_compared(tmp_path: Path) -> None:
    model, ir = parsed(PLAIN.replace("{100}", "{200}")), tmp_path / "m.xml"
    written(model, ir)
    counts, found = isolated(counted, model.SerializeToString(), str(ir), True)
    every, _ = isolated(counted, model.SerializeToString(), str(ir), False)
    assert every == list(range(len(every))) and len(every) < 200
    assert counts == [0, 1, 2, 4, 8, every[-1]] and found.difference is None


# -- Right models without given inputs: `verify` finds inputs for each kind, and passes it


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_the_registries(kind: str) -> None:
    verdict, text = model_verdict((kind, 0, None))
    fail_or_skip([] if verdict in (AGREES, ROUNDS) else [f"{verdict}: {text}"])


@pytest.mark.parametrize("number", [8, 9, 14])
def test_random_models(number: int) -> None:
    """Sizes that a Split and a Reshape need, and a body that returns its iteration number."""
    _, verdict, text = right_verdict((3501, number))
    assert verdict == PASSES, text


read_cases(globals())
