"""The parts of a model that verify compares: pieces of the IR, recorded options, iterations of a loop."""

from pathlib import Path
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
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.text import parse
from mo_loop.transforms.config import PassConfig
from tests.cli.commands import saved
from tests.fuzz.planted.verdicts import AGREES, PASSES, ROUNDS, model_verdict, right_verdict
from tests.harness import floats, parsed
from tests.models.sources.registry_kinds import KINDS
from tests.running.processor import fail_or_skip

# -- The first piece that differs in the IR of a changed model


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


def test_parameters_that_cannot_be_applied_are_refused_with_their_name(tmp_path: Path) -> None:
    path = saved(parsed(ALONE), tmp_path)
    model = convert_model(path)
    model.graph.rt_info["converter"] = {"name": "another"}
    model.graph.rt_info["conversion_parameters"] = {"mean_values": "image[1,2,3]"}
    target = tmp_path / "other.xml"
    save_model(model, target)
    with pytest.raises(UsageError, match=r"cannot apply mean_values = image\[1,2,3\]"):
        verify(path, target)
    long = saved(parsed("main (float[20] x, float[20] w) => (float[20] y) { y = Mul (x, w) }"), tmp_path, "long.onnx")
    with pytest.raises(UsageError, match="cannot apply freeze = w="):
        verify(long, converted(long, freeze={"w": floats(20)}))
    read = read_model(converted(path))
    read.graph.rt_info["preprocessing"] = {"crop": {"image": "1"}}
    save_model(read, target)
    with pytest.raises(UsageError, match="cannot apply crop"):
        verify(path, target)


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


def written(model: onnx.ModelProto, path: Path, *without: str) -> Path:
    """The IR of a model, converted without these passes."""
    config = PassConfig()
    config.disable(*without)
    save_model(Model(Conversion(ConvertOptions(config=config)).run(model.SerializeToString())), path)
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
