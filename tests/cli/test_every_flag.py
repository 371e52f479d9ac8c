"""Every flag of `mo-loop convert` once, with its effect."""

import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import click
import numpy as np
import onnx
import pytest
from lxml import etree

from mo_loop.cli.convert import command
from tests.harness import parsed

from .commands import mo_loop, saved

MODEL = """
main (float[N,3,4,4] x, float[3] scale, int64 trips) => (float[M,K,I,J] y, float[A,B,C,D] z)
<float[2,3,1,1] w = {1.0, 2.0, 3.0, 4.0, 5.0, 0.1}, int64 three = {3}> {
  [conv] h = Conv (x, w) [named] r = Relu (h)
  [counted] z = Loop (three, "", r) <body = step (int64 i, bool c, float[N,2,4,4] s) => (bool d, float[N,2,4,4] t) {
    d = Identity (c) t = Add (s, s) }>
  [unknown] k = Loop (trips, "", r) <body = tell (int64 j, bool e, float[N,2,4,4] u) => (bool f, float[N,2,4,4] v) {
    f = Identity (e) v = Neg (u) }>
  total = ReduceSum <keepdims = 0> (scale) y = Mul (k, total)
}"""

EXTENSION = '''
from mo_loop.transforms.function_pass import FunctionPass

class Written(FunctionPass):
    """leaves the graph as it is"""
    def run_on_graph(self, graph):
        print("the extension ran")
        return False

def register(extensions):
    extensions.add_pass(Written, at="start")
'''

SEQUENCE = """
main (seq(float[?,2]) s) => (float[A,2] y) { y = ConcatFromSequence <axis = 0> (s) }"""

LOST = """
main (float[2] x) => (float[2] y) { [lost] y = StringConcat (x, x) }"""

CUT = ["--input", "x[1,3,4,4],scale,trips"]


class Done:
    """One conversion: its output and its files."""

    def __init__(self, folder: Path, *arguments: str, target: str = "m.xml", code: int = 0) -> None:
        self.folder = folder
        found = mo_loop("convert", *arguments, cwd=folder, OV_ENABLE_PROFILE_PASS="")
        assert found.returncode == code, found.stderr
        self.stdout, self.stderr = found.stdout, found.stderr
        self.target = folder / target

    @property
    def types(self) -> list[str]:
        return [str(layer.get("type")) for layer in etree.parse(str(self.target)).iter("layer")]

    def names(self, kind: str) -> list[str]:
        layers = etree.parse(str(self.target)).findall("./layers/layer")
        return [str(layer.get("name")) for layer in layers if layer.get("type") == kind]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("flags")
    saved(parsed(MODEL), made)
    saved(parsed(SEQUENCE), made, "sequence.onnx")
    saved(parsed(LOST, opset=20), made, "lost.onnx")
    (made / "extension.py").write_text(EXTENSION)
    return made


def plain(folder: Path) -> Done:
    return Done(folder, "model.onnx", "-o", "plain.xml", target="plain.xml")


def converted(folder: Path, *flags: str, name: str = "model.onnx") -> Done:
    return Done(folder, name, "-o", "m.xml", *flags)


def check_output_model(folder: Path) -> None:
    done = Done(folder, "model.onnx", "--output-model", "deep/er/", target="deep/er/model.xml")
    assert done.target.exists() and done.target.with_suffix(".bin").exists()


def check_input(folder: Path) -> None:
    xml = converted(folder, *CUT).target.read_text()
    assert "<dim>1</dim>" in xml and 'shape="1,3,4,4"' in xml


def check_output(folder: Path) -> None:
    assert converted(folder, "--output", "r").names("Result") == ["r/sink_port_0"]


def check_freeze(folder: Path) -> None:
    assert converted(folder, "--freeze", "trips=2", "--freeze", "scale=[1,2,3]").names("Parameter") == ["x"]


def check_rename(folder: Path) -> None:
    assert converted(folder, "--rename", "x=image").names("Parameter") == ["image", "scale", "trips"]


def check_compress(folder: Path) -> None:
    assert 'element_type="f16"' in converted(folder, "--compress-to-fp16").target.read_text()
    assert 'element_type="f16"' not in plain(folder).target.read_text()


def check_unroll(folder: Path) -> None:
    loop, copies = (converted(folder, "--static", *flags).types.count("Add") for flags in ((), ("--unroll", "3")))
    assert copies == loop + 2


def check_static(folder: Path) -> None:
    sizes = '<x value="?,3,4,4"'
    assert sizes in converted(folder, "--static").target.read_text() and sizes not in plain(folder).target.read_text()


def check_target(folder: Path) -> None:
    def written(*flags: str) -> list[str]:
        return re.findall('<target value="(.*?)"', converted(folder, *flags).target.read_text())

    assert (written(), written("--target", "2025.4")) == (["2024.6-2026.4"], ["2025.4"])
    assert written("--target", "2025.0-2026.4.1") == ["2025.0-2026.4"]


def check_device(folder: Path) -> None:
    place = "./rt_info/conversion_parameters/device"

    def written(*arguments: str) -> list[str | None]:
        return [each.get("value") for each in etree.parse(str(converted(folder, *arguments).target)).findall(place)]

    assert (written(), written("--device", "any"), written("--device", "GPU")) == ([], [], ["GPU"])


def check_quantization(folder: Path) -> None:
    text = """main (float[2,4] x) => (float[2,4] y) <float s = {0.5}> {
      q = QuantizeLinear (x, s) y = DequantizeLinear (q, s) }"""
    saved(parsed(text), folder, "quantised.onnx")
    assert "FakeQuantize" in converted(folder, name="quantised.onnx").types
    assert "FakeQuantize" in converted(folder, "--quantization", "portable", name="quantised.onnx").types
    exact = converted(folder, "--quantization", "exact", name="quantised.onnx")
    assert "FakeQuantize" not in exact.types
    assert '<DYNAMIC_QUANTIZATION_GROUP_SIZE value="0" />' in exact.target.read_text()


def check_exact_order(folder: Path) -> None:
    text = """main (float[5,2] x, float[2] h) => (float[2] z) { z = Scan <num_scan_inputs = 1,
      body = step (float[2] a, float[2] b) => (float[2] c) { c = Add (a, b) }> (h, x) }"""
    saved(parsed(text), folder, "sum.onnx")
    assert "ReduceSum" in converted(folder, name="sum.onnx").types
    in_order = converted(folder, "--exact-order", name="sum.onnx").types
    assert "CumSum" in in_order and "ReduceSum" not in in_order


RECURRENT = """
main (float[N,2] x, float[2] h) => (float[N,2] y, float[2] z) {
  z, y = Scan <num_scan_inputs = 1, body = step (float[2] a, float[2] b) => (float[2] c, float[2] d) {
    c = Add (a, b) d = Tanh (c) }> (h, x)
}"""

CACHED = """
main (float[B,1] x, float[B,P] past, float[2] kept) => (float[B,Q] present, float[B,2] y, float[2] next_kept) {
  present = Concat <axis = 1> (past, x) next_kept = Add (kept, kept)
  sum = ReduceSum <keepdims = 1> (present) y = Add (sum, kept) }"""


def check_transform(folder: Path) -> None:
    saved(parsed(RECURRENT), folder, "recurrent.onnx")
    assert "Assign" not in converted(folder, name="recurrent.onnx").types
    step = "LowLatency2[use_const_initializer=False;sequence_length=1]"
    done = converted(folder, "--transform", step, name="recurrent.onnx")
    assert done.types.count("ReadValue") == done.types.count("Assign") == 1 and "Loop" not in done.types
    assert "states" in done.stdout and "z/a/variable_0" in done.stdout


def check_stateful(folder: Path) -> None:
    saved(parsed(CACHED), folder, "cached.onnx")
    assert "Assign" not in converted(folder, name="cached.onnx").types
    done = converted(folder, "--stateful", name="cached.onnx")
    assert done.types.count("Assign") == 2 and "past -> present" in done.stdout and "kept -> next_kept" in done.stdout
    assert done.names("Parameter") == ["x"]


def check_stateful_pair(folder: Path) -> None:
    saved(parsed(CACHED), folder, "cached.onnx")
    done = converted(folder, "--stateful", "--stateful-pair", "kept=", name="cached.onnx")
    assert done.types.count("Assign") == 1 and "kept -> next_kept" not in done.stdout
    useless = Done(folder, "cached.onnx", "-o", "m.xml", "--stateful-pair", "kept=next_kept", code=2)
    assert "--stateful-pair has no effect" in useless.stderr


def check_beam_idx(folder: Path) -> None:
    saved(parsed(CACHED), folder, "cached.onnx")
    done = converted(folder, "--stateful", "--beam-idx", name="cached.onnx")
    assert "beam_idx" in done.names("Parameter") and done.types.count("Gather") >= 1


def check_strict(folder: Path) -> None:
    hides = MODEL.replace("float[N,2,4,4] s)", "float[N,2,4,4] x)").replace("Add (s, s)", "Add (x, x)")
    saved(parsed(hides), folder, "hides.onnx")
    assert "hides an outer value" in converted(folder, name="hides.onnx").stderr
    assert "hides an outer value" in Done(folder, "hides.onnx", "--strict", "-o", "no.xml", code=2).stderr


def check_sequence_io(folder: Path) -> None:
    done = converted(folder, "--sequence-io", "packed", name="sequence.onnx")
    assert done.names("Parameter") == ["s.data", "s.shapes"]


def check_limit(folder: Path) -> None:
    refused = Done(folder, "model.onnx", "--limit", "nodes=3", "--limit", "time=1h", "-o", "no.xml", code=3)
    assert "ML341: the model has more nodes than the limit 'nodes', which is 3" in refused.stderr
    advised = re.findall(r"--limit (nodes=\d+)", refused.stderr)
    assert len(advised) == 1 and not refused.target.exists()
    assert converted(folder, "--limit", *advised).target.read_bytes() == plain(folder).target.read_bytes()
    assert "the limits are nesting" in Done(folder, "model.onnx", "--limit", "nods=3", code=2).stderr


def check_allow_external(folder: Path) -> None:
    made = parsed("main (float[3] x) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> { y = Add (x, w) }")
    made.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.ones(3, np.float32), "w"))
    (folder / "in").mkdir()
    path = folder / "in" / "external.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.data", size_threshold=0)
    (folder / "in" / "w.data").rename(folder / "w.data")
    (folder / "in" / "w.data").symlink_to("../w.data")
    stderr = Done(folder, "in/external.onnx", "-o", "m.xml", code=2).stderr
    assert f"--allow-external {folder.resolve()}\n" in stderr
    assert "Const" in converted(folder, "--allow-external", ".", name="in/external.onnx").types


def check_extension(folder: Path) -> None:
    done = converted(folder, "--extension", "extension.py", "--no-plugins")
    assert "the extension ran" in done.stdout + done.stderr


def check_layout(folder: Path) -> None:
    xml = converted(folder, "--layout", "x(nchw->nhwc)", *CUT).target.read_text()
    assert "[N,H,W,C]" in xml and 'shape="1,4,4,3"' in xml


def check_source_and_target_layout(folder: Path) -> None:
    done = converted(folder, "--source-layout", "x(nchw)", "--target-layout", "x(nhwc)", *CUT)
    assert 'shape="1,4,4,3"' in done.target.read_text()


def check_mean_and_scale(folder: Path) -> None:
    before = plain(folder).types
    done = converted(folder, "--mean-values", "x[1,2,3]", "--scale-values", "x[2,2,4]", "--layout", "x(nchw)")
    assert len(done.types) > len(before)


def check_scale(folder: Path) -> None:
    done = converted(folder, "--scale", "2", *CUT, "--freeze", "scale=[1,2,3]", "--freeze", "trips=2")
    assert len(done.types) > len(converted(folder, *CUT, "--freeze", "scale=[1,2,3]", "--freeze", "trips=2").types)


def check_reverse(folder: Path) -> None:
    done = converted(folder, "--reverse-input-channels", "--layout", "x(nchw),scale(?),trips([])")
    assert done.target.with_suffix(".bin").read_bytes() != plain(folder).target.with_suffix(".bin").read_bytes()


def check_batch(folder: Path) -> None:
    done = converted(folder, "--batch", "7", "--layout", "x(nchw),scale(?),trips([])")
    assert 'shape="7,3,4,4"' in done.target.read_text()


def check_dump(folder: Path) -> None:
    converted(folder, "--dump", "steps", "--dump-format", "text")
    assert list((folder / "steps").glob("*.txt")) and not list((folder / "steps").glob("*.dot"))


def check_dump_after(folder: Path) -> None:
    converted(folder, "--dump", "steps", "--dump-after", "ConstantFolding,PortRenumbering")
    assert {path.name[4:] for path in (folder / "steps").glob("*.full.json")} == {
        "ConstantFolding.full.json", "PortRenumbering.full.json",
    }


def check_dump_around(folder: Path) -> None:
    counts = []
    for depth in ("0", "1"):
        converted(folder, "--dump", "steps", "--dump-around", "r", "--dump-depth", depth)
        counts.append(len(json.loads((folder / "steps" / "000_loaded.json").read_bytes())["nodes"]))
    converted(folder, "--dump", "steps")
    assert counts[0] < counts[1] < len(json.loads((folder / "steps" / "000_loaded.json").read_bytes())["nodes"])


def check_mapping(folder: Path) -> None:
    converted(folder, "--mapping", "map.json")
    assert "r" in (folder / "map.json").read_text()


def check_durable(folder: Path) -> None:
    """Both files are synced, then their folder after each step that counts."""
    kinds: list[str] = []

    def fsync(descriptor: int) -> None:
        kinds.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    with mock.patch.object(os, "fsync", fsync):
        converted(folder)
        assert kinds == []
        converted(folder, "--durable")
    assert kinds == ["file", "file", "folder", "folder", "folder"]


def check_passes(folder: Path) -> None:
    assert "LoopToTI" in Done(folder, "--passes").stdout


def check_disable_pass(folder: Path) -> None:
    assert "did not run" in converted(folder, "--disable-pass", "PortRenumbering").stderr


def check_enable_pass(folder: Path) -> None:
    found = Done(folder, "model.onnx", "-o", "no.xml", "--enable-pass", "LoopToTI", code=2)
    assert "it runs by default" in found.stderr


def check_stop_after(folder: Path) -> None:
    assert "did not run" in converted(folder, "--stop-after", "MakeTripCountsDynamic").stderr


def check_explain_pass(folder: Path) -> None:
    assert "LoopToTI:" in converted(folder, "--explain-pass", "LoopToTI").stderr


def check_profile(folder: Path) -> None:
    assert "translating" in converted(folder, "--profile").stderr


def check_profile_json(folder: Path) -> None:
    converted(folder, "--profile-json", "profile.json")
    assert json.loads((folder / "profile.json").read_text())


def check_visualize(folder: Path) -> None:
    flags = ("--visualize-after", "GuardTripCounts", "--visualize-shapes", "--visualize-types")
    converted(folder, "--visualize", "pictures", *flags)
    assert any((folder / "pictures").glob("*.dot"))


def check_check_passes(folder: Path) -> None:
    assert converted(folder, "--check-passes").target.read_bytes() == plain(folder).target.read_bytes()


def check_format(folder: Path) -> None:
    assert json.loads(converted(folder, "--format", "json").stdout)


def check_report(folder: Path) -> None:
    converted(folder, "--report", "report.json")
    assert json.loads((folder / "report.json").read_text("utf-8"))["schema"] == "mo-loop convert"


def check_quiet(folder: Path) -> None:
    done = converted(folder, "--quiet")
    assert (done.stdout, done.stderr) == ("", "")


def check_verbose(folder: Path) -> None:
    assert "translat" in converted(folder, "--verbose").stderr


def check_version(folder: Path) -> None:
    assert "version" in Done(folder, "--version").stdout


def check_debug(folder: Path) -> None:
    assert "Traceback" in Done(folder, "lost.onnx", "--debug", code=3).stderr
    assert "Traceback" not in Done(folder, "lost.onnx", code=3).stderr


CHECKS: dict[str, Callable[[Path], None]] = {
    "--output-model": check_output_model, "--input": check_input, "--output": check_output, "--freeze": check_freeze,
    "--rename": check_rename, "--compress-to-fp16": check_compress, "--unroll": check_unroll,
    "--target": check_target, "--device": check_device, "--quantization": check_quantization,
    "--exact-order": check_exact_order, "--strict": check_strict, "--transform": check_transform,
    "--stateful": check_stateful, "--stateful-pair": check_stateful_pair, "--beam-idx": check_beam_idx,
    "--sequence-io": check_sequence_io, "--allow-external": check_allow_external, "--limit": check_limit,
    "--extension": check_extension, "--no-plugins": check_extension, "--layout": check_layout,
    "--source-layout": check_source_and_target_layout, "--target-layout": check_source_and_target_layout,
    "--mean-values": check_mean_and_scale,
    "--scale-values": check_mean_and_scale, "--scale": check_scale, "--reverse-input-channels": check_reverse,
    "--batch": check_batch, "--dump": check_dump, "--dump-format": check_dump, "--dump-after": check_dump_after,
    "--dump-around": check_dump_around, "--dump-depth": check_dump_around, "--mapping": check_mapping,
    "--durable": check_durable, "--passes": check_passes,
    "--disable-pass": check_disable_pass, "--enable-pass": check_enable_pass, "--stop-after": check_stop_after,
    "--explain-pass": check_explain_pass, "--profile": check_profile, "--profile-json": check_profile_json,
    "--visualize": check_visualize, "--visualize-after": check_visualize, "--visualize-shapes": check_visualize,
    "--visualize-types": check_visualize, "--check-passes": check_check_passes, "--format": check_format,
    "--report": check_report, "--static": check_static,
    "--quiet": check_quiet, "--verbose": check_verbose, "--version": check_version, "--debug": check_debug,
}


def test_no_flag_is_left_out() -> None:
    flags = {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
    assert {name for name in flags if name.startswith("--")} - {"--help"} == set(CHECKS)


ABOUT_LOOPS = (check_unroll, check_visualize)
"""They look at loops that other passes would remove."""


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(each, marks=pytest.mark.keeps_loops if each in ABOUT_LOOPS else ())
        for each in dict.fromkeys(CHECKS.values())
    ],
    ids=lambda check: check.__name__.removeprefix("check_"),
)
def test_flag(check: Callable[[Path], None], folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    check(tmp_path)
