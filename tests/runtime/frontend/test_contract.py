"""Inputs and outputs of a model, their order and their names do not change; the same model gives the same bytes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from mo_loop.api import Model, convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from tests import MODELS
from tests.harness import check, floats, parsed

PYTORCH = MODELS / "pytorch"

X, Y = floats(2, 3, seed=1), floats(2, 3, seed=2)

LOOP = """main (float[2,3] x, int64 n, float[2,3] unused) => (float[2,3] y, float[K,2,3] all) {
  [repeat] y, all = Loop (n, "", x) <
    body = step (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t, float[2,3] u) {
    d = Identity (c)  t = Add (s, s)  u = Identity (t) }> }"""

BRANCHES = """main (bool c, float[2,3] x) => (float[2,3] first, float[2,3] second) {
  [choice] first, second = If (c) <
    then_branch = yes () => (float[2,3] a, float[2,3] b) { a = Abs (x) b = Neg (x) },
    else_branch = no () => (float[2,3] d, float[2,3] e) { d = Exp (x) e = Identity (x) }
  >
}"""

SCAN = """main (float[3] h, float[T,3] x) => (float[3] last, float[T,3] all) {
  [walk] last, all = Scan <num_scan_inputs = 1, body = step (float[3] s, float[3] v) => (float[3] t, float[3] u) {
    t = Add (s, v)  u = Mul (t, v) }> (h, x)
}"""

MODELS = {
    "plain": "main (float[2,3] x, float[2,3] y) => (float[2,3] z) { [sum] t = Add (x, y) [out] z = Relu (t) }",
    "no node names": "main (float[2,3] x, float[2,3] y) => (float[2,3] z) { t = Add (x, y) z = Relu (t) }",
    "order": "main (float[2,3] y, float[2,3] x) => (float[2,3] b, float[2,3] a) { a = Neg (x) b = Abs (y) }",
    "unused input": "main (float[2,3] a, float[2,3] x, float[2,3] z) => (float[2,3] y) { y = Relu (x) }",
    "tensor and what it feeds": "main (float[2,3] x) => (float[2,3] z, float[2,3] t) { t = Neg (x) z = Abs (t) }",
    "identity to outputs": """main (float[2,3] x) => (float[2,3] a, float[2,3] b, float[2,3] t) {
        [n] t = Neg (x) [i] a = Identity (t) [j] b = Identity (t) }""",
    "chain of identities": """main (float[2,3] x) => (float[2,3] a) {
        [n] t = Neg (x) [i] u = Identity (t) [j] a = Identity (u) }""",
    "identity of an input": "main (float[2,3] x) => (float[2,3] a) { [i] a = Identity (x) }",
    "input as output": "main (float[2,3] x) => (float[2,3] x, float[2,3] y) { [n] y = Neg (x) }",
    "initializer as output": """main (float[2,3] x) => (float[2] w, float[2,3] y) <float[2] w = {1.0, 2.0}> {
        [n] y = Neg (x) }""",
    "constant as output": """main (float[2,3] x) => (float w, float[2,3] y) {
        [k] w = Constant <value_float: float = 2.0> () [n] y = Mul (x, w) }""",
    "initializer as input": """
        main (float[2,3] x, float[2] w, float[2,3] y) => (float[2,3] z) <float[2] v = {1.0, 2.0}> {
        [n] z = Add (x, y) }""",
    "several outputs": """main (float[2,4] x) => (float[2,2] a, float[2,2] b) {
        [s] a, b = Split <axis=1,num_outputs=2> (x) }""",
    "one of several": "main (float[2,4] x) => (float[2,2] b) { [s] a, b = Split <axis=1,num_outputs=2> (x) }",
    "unnamed split": "main (float[2,4] x) => (float[2,2] a, float[2,2] b) { a, b = Split <axis=1,num_outputs=2> (x) }",
    "expanded operator": "main (float[2,3] x) => (float[2,3] y) { [d] y = Sub (x, x) }",
    "two operators deep": "main (float[2,3] x) => (float[2,1] y) { [l] y = ReduceLogSumExp <keepdims=1> (x) }",
    "odd names": """main (float[2,3] x) => (float[2,3] y) { y = Relu (x) }""",
    "loop": LOOP,
    "if": BRANCHES,
    "scan": SCAN,
}


def model(name: str) -> onnx.ModelProto:
    """One of MODELS, with changes that the text form cannot express."""
    made = parsed(MODELS[name])
    if name == "initializer as input":
        made.graph.initializer[0].name = "w"  # listed among the inputs, as IR version 3 demanded
    if name == "odd names":
        made.graph.input[0].name = made.graph.node[0].input[0] = "in,put <&> \"x\"/:0"
        made.graph.output[0].name = made.graph.node[0].output[0] = "Ausgänge,∑ 'y'"
    return made


def ports(source: bytes, weights: bytes | None = None) -> dict[str, Any]:
    """The inputs and outputs that OpenVINO reports. `source` is IR with `weights`, ONNX without."""
    import openvino

    core = openvino.Core()
    read = core.read_model(source, weights) if weights is not None else core.read_model(source)
    before = [result.input_value(0) for result in read.get_results()]
    return {
        "parameters": [each.get_friendly_name() for each in read.get_parameters()],
        "input names": [sorted(port.get_names()) for port in read.inputs],
        "input types": [f"{port.get_element_type().get_type_name()}{port.get_partial_shape()}" for port in read.inputs],
        "results": [each.get_friendly_name() for each in read.get_results()],
        "output names": [sorted(port.get_names()) for port in read.outputs],
        "nodes before results": [port.get_node().get_friendly_name() for port in before],
        "output types": [port.get_element_type().get_type_name() for port in read.outputs],
        "framework": {key: str(value) for key, value in _framework(read).items()},
    }


def is_readable(source: bytes) -> bool:
    """Whether OpenVINO's front end converts an ONNX model."""
    import openvino

    try:
        openvino.Core().read_model(source)
    except RuntimeError:
        return False
    return True


UNREADABLE = {"greedy_attention"}
"""Models that OpenVINO's front end refuses."""


def _framework(read: Any) -> dict[str, Any]:
    return dict(read.get_rt_info("framework").get().items()) if read.has_rt_info("framework") else {}


def files(converted: Model, folder: Path, name: str = "model") -> tuple[bytes, bytes]:
    """The .xml and the .bin of a model."""
    path = folder / f"{name}.xml"
    save_model(converted, path)
    return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def compare_boundaries(source: bytes, converted: Model, folder: Path) -> None:
    """Assert that a converted model has the inputs and outputs that OpenVINO's front end gives it.

    Two differences are intended: an input that nothing reads stays (OpenVINO drops it), and an input that a node passes
    on unchanged has that node's output name, too.
    """
    wanted = isolated(ports, source)
    found = isolated(ports, *files(converted, folder))
    kept = [number for number, name in enumerate(found["parameters"]) if name in wanted["parameters"]]
    for key in ("parameters", "input types"):
        assert [found[key][number] for number in kept] == wanted[key], key
    for number, names in zip(kept, wanted["input names"], strict=True):
        assert set(names) <= set(found["input names"][number])
    for key in ("results", "output names", "output types", "framework"):
        assert found[key] == wanted[key], key
    nodes = wanted["nodes before results"]
    for before, there, names in zip(found["nodes before results"], nodes, wanted["output names"], strict=True):
        # Outputs of a loop that may not run pass through a node of their own, which has the name of the output; if the
        # loop has this name as well, it gets a number.
        assert before == there or (nodes.count(there) > 1 and before in (*names, f"{there}_1"))


@pytest.mark.parametrize("name", MODELS)
def test_boundary_is_that_of_openvinos_front_end(name: str, tmp_path: Path) -> None:
    made = model(name)
    compare_boundaries(made.SerializeToString(), convert_model(made), tmp_path)


def test_unused_inputs_stay(tmp_path: Path) -> None:
    """In their position, with their types."""
    found = isolated(ports, *files(convert_model(model("unused input")), tmp_path))
    assert found["parameters"] == ["a", "x", "z"]
    assert found["input names"] == [["a"], ["x"], ["z"]]
    assert found["input types"] == ["f32[2,3]"] * 3


@pytest.mark.parametrize("path", sorted(PYTORCH.glob("*.onnx")), ids=lambda path: path.stem)
def test_boundary_of_exported_models(path: Path, tmp_path: Path) -> None:
    if path.stem in UNREADABLE:
        assert not isolated(is_readable, path.read_bytes()), "OpenVINO's front end reads it now"
        return
    compare_boundaries(path.read_bytes(), convert_model(path), tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_numbers(name: str) -> None:
    made = model(name)
    rng = np.random.default_rng(3)
    feeds: list[dict[str, Any]] = [{}, {}]
    for number, each in enumerate(feeds):
        for port in made.graph.input:
            shape = [dim.dim_value or 4 for dim in port.type.tensor_type.shape.dim]
            kind = helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
            each[port.name] = rng.standard_normal(shape).astype(kind) if kind.kind == "f" else kind.type(number)
    if name == "initializer as input":
        made.graph.input.pop(1)  # ONNX Runtime would let a feed override it
    check(made, *feeds)


def test_duplicated_output(tmp_path: Path) -> None:
    """ONNX Runtime and OpenVINO accept one tensor listed twice; each entry of the list gets a Result."""
    made = parsed("main (float[2,3] x) => (float[2,3] y, float[2,3] y, float[2,3] z) { [n] y = Neg (x) z = Abs (y) }")
    wanted = isolated(ports, made.SerializeToString())
    found = isolated(ports, *files(convert_model(made), tmp_path))
    assert len(found["results"]) == 3
    assert found["output names"] == wanted["output names"]
    converted = convert_model(made)
    assert converted.outputs == ["y", "y", "z"]
    xml, weights = files(converted, tmp_path)
    assert [array.tolist() for array in isolated(infer, xml, weights, {"x": X})] == [
        (-X).tolist(), (-X).tolist(), np.abs(X).tolist(),
    ]


def infer(xml: bytes, weights: bytes, feeds: dict[str, Any]) -> list[Any]:
    """All outputs by position: duplicates have the same name."""
    import openvino

    from mo_loop.compare.execution.runtime import compile_model

    return [array for _, array in compile_model(openvino.Core().read_model(xml, weights)).run(feeds)]


def test_names_of_the_model_object() -> None:
    converted = convert_model(model("order"))
    assert (converted.inputs, converted.outputs) == (["y", "x"], ["b", "a"])
    assert "order" not in repr(converted) and "main" in repr(converted)


@pytest.mark.parametrize("properties", [
    {"author": "somebody", "version": "1.0"},
    {"names": "{0: 'cat', 1: \"dog\"}", "empty": "", "stride": "32"},
    {"with space": "a < b & c", "0digit": "1", "dot.ted": "line\nbreak", "ünï": "∑"},
], ids=["plain", "quoted", "odd"])
def test_metadata_is_kept(properties: dict[str, str], tmp_path: Path) -> None:
    """As OpenVINO's front end does it: below rt_info "framework"."""
    made = model("plain")
    helper.set_model_props(made, properties)
    assert isolated(ports, made.SerializeToString())["framework"] == properties
    assert isolated(ports, *files(convert_model(made), tmp_path))["framework"] == properties


@pytest.mark.parametrize("name", ["decoder", "loop_if_loop", "cnn"])
def test_no_path_of_the_machine_is_written(name: str, tmp_path: Path) -> None:
    content = b"".join(files(convert_model(PYTORCH / f"{name}.onnx"), tmp_path))
    for path in (tmp_path, Path.cwd(), PYTORCH, Path.home(), Path(sys.prefix), Path(onnx.__file__).parent):
        if len(path.parts) > 1:
            assert os.fsencode(path) not in content


SCRIPT = """
import hashlib, sys
from mo_loop.api import convert_model, save_model
for source in sys.argv[2:]:
    save_model(convert_model(source), sys.argv[1] + "/model.xml")
    for ending in ("xml", "bin"):
        with open(f"{sys.argv[1]}/model.{ending}", "rb") as file:
            print(hashlib.sha256(file.read()).hexdigest())
"""


def test_output_is_the_same_every_time(tmp_path: Path) -> None:
    """Twice in one process, and in processes that order their sets differently."""
    for name in MODELS:
        onnx.save(model(name), tmp_path / f"{name.replace(' ', '_')}.onnx")
    sources = [*sorted(tmp_path.glob("*.onnx")), *(PYTORCH / f"{name}.onnx" for name in ("decoder", "loop_if_loop"))]
    for source in sources[-3:]:
        assert files(convert_model(source), tmp_path) == files(convert_model(source), tmp_path)
    found = set()
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        command = [sys.executable, "-c", SCRIPT, str(folder), *map(str, sources)]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.split()) == 2 * len(sources)
        found.add(done.stdout)
    assert len(found) == 1
