"""`mo-loop inspect`: terminals, streams, other files; tests/cli/recorded/inspect.txt has what it prints."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

from mo_loop.frontend.cut import Cut
from mo_loop.frontend.model import opened
from tests.harness import parsed

from .commands import PROGRAM, PYTORCH, ended, mo_loop, saved
from .test_check_command import on_a_terminal

NESTED = """
main (float[3] x, int64 n, bool f) => (float[3] y) <float[3] w = {1.0, 2.0, 3.0}> {
  [first] a = Add (x, w)
  [loop] y = Loop (n, "", a) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c)
    [choice] t = If (f) <then_branch = yes () => (float[3] p) { p = Add (s, w) },
                         else_branch = no () => (float[3] q) { q = Sin (s) }> }>
}"""


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    return saved(parsed(NESTED), tmp_path)


def invoke(*arguments: object) -> str:
    """The output of the command, run in this process."""
    done = ended(mo_loop("inspect", *arguments))
    return done.stdout


def test_an_offset_of_thousands_of_digits(tmp_path: Path) -> None:
    model = parsed("main (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}> { y = Add (x, w) }")
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.ClearField("raw_data")
    weight.data_location = weight.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    weight.external_data.add(key="offset", value="9" * 5000)
    assert "w.bin" in ended(mo_loop("inspect", saved(model, tmp_path))).stdout


def test_debug(tmp_path: Path) -> None:
    done = mo_loop("inspect", tmp_path / "gone.onnx", "--debug")
    assert done.returncode == 2 and "Traceback" in done.stderr and "error: ML210" in done.stderr


def test_usage() -> None:
    shown = mo_loop("inspect", "--help-all").stdout
    for option in ("--format", "--depth", "--scope", "--operator", "--debug"):
        assert option in shown
    assert "mo-loop inspect model.onnx --scope loop/body" in shown


def test_long_lists_are_shortened_in_the_text_only() -> None:
    path = PYTORCH / "decoder.onnx"
    assert " and 1 more" in invoke(path)
    assert len(json.loads(invoke(path, "--format", "json"))["control"][0]["captures"]) == 9


def test_colours_on_a_terminal_only(nested: Path) -> None:
    assert "\x1b[" not in mo_loop("inspect", nested).stdout and "\x1b[" in on_a_terminal("inspect", nested)
    assert "\x1b[" not in on_a_terminal("inspect", nested, NO_COLOR="1")


def test_stdout_closed_by_its_reader(nested: Path) -> None:
    """As in `| head`: no traceback."""
    process = subprocess.Popen([str(PROGRAM), "inspect", str(nested)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0 and said == b""


# -- --graph and --nodes


def test_tree_in_ascii(nested: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [str(PROGRAM), "inspect", nested.name, "--graph"]
    shown = subprocess.run(command, cwd=nested.parent, env=environment, capture_output=True, check=True, text=True)
    marks = {"├─": "|-", "└─": "`-", "│": "|"}
    expected = mo_loop("inspect", nested.name, "--graph", cwd=nested.parent).stdout
    for box, plain in marks.items():
        expected = expected.replace(box, plain)
    assert shown.stdout == expected


@pytest.mark.keeps_loops
def test_ir_and_dump(nested: Path, tmp_path: Path) -> None:
    assert mo_loop("convert", nested, "-o", tmp_path / "model.xml", "--dump", tmp_path / "steps").returncode == 0
    shown = [invoke(each, "--graph") for each in (tmp_path / "model.xml", tmp_path / "steps" / "000_loaded.json")]
    shown.append(invoke(tmp_path / "steps" / "000_loaded.txt", "--graph"))
    for text, kind in zip(shown, ("OpenVINO IR", "dump", "dump"), strict=True):
        head, *lines = text.splitlines()
        assert kind in head and len([each for each in lines if "If choice" in each]) == 1
        merged = "merged        a f32[3] -> s, back edge t"
        for line in (merged, "invariant     f boolean[] -> f", "condition     input f"):
            assert line in text, line
    assert shown[1].splitlines()[1:] == shown[2].splitlines()[1:]
    table = invoke(tmp_path / "model.xml", "--nodes", "--scope", "y_1/body")
    assert "y_1/body/choice/then_body" in table and "(main)" not in table and " Result " in table


@pytest.mark.parametrize("name", ["loop_if_loop", "decoder", "lstm_packed", "beam_search"])
def test_names_fit_the_options_of_convert(name: str) -> None:
    """Every tensor of the main graph, and every node, can be named."""
    path = PYTORCH / f"{name}.onnx"
    model = opened(path)
    rows = [row for row in json.loads(invoke(path, "--nodes", "--format", "json"))["nodes"] if not row["scope"]]
    assert len(rows) > 3
    for row in rows:
        inner = [*row["inputs"], *(each["name"] for each in row["outputs"])]
        for tensor in filter(None, inner):
            assert Cut.of(model, None, [tensor]).outputs == [tensor]
            assert list(Cut.of(model, {tensor: [1]}, None).inputs or ()) == [tensor]
        if row["name"] and row["outputs"]:
            assert Cut.of(model, None, [row["name"]]).outputs == [row["outputs"][0]["name"]]


def test_width_and_colours_of_a_terminal(nested: Path) -> None:
    path = PYTORCH / "decoder.onnx"
    shown = on_a_terminal("inspect", path, "--graph", COLUMNS="60", NO_COLOR="1", PYTHONIOENCODING="utf-8")
    lines = shown.splitlines()
    assert len(lines) > len(invoke(path, "--graph").splitlines()) and max(map(len, lines[1:])) <= 60
    assert "\x1b[" in on_a_terminal("inspect", nested, "--graph")
    assert "\x1b[" not in on_a_terminal("inspect", nested, "--graph", NO_COLOR="1")
    assert "\x1b[" not in invoke(nested, "--graph") + invoke(nested, "--nodes")


def test_reader_that_ends_early(tmp_path: Path) -> None:
    nodes = "\n".join(f"t{place + 1} = Relu (t{place})" for place in range(5000))
    path = saved(parsed(f"main (float[3] t0) => (float[3] t5000) {{ {nodes} }}"), tmp_path)
    process = subprocess.Popen(
        [str(PROGRAM), "inspect", str(path), "--nodes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith(b"scope")
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0 and said == b"" and len(invoke(path, "--nodes").splitlines()) == 5003


def test_types_that_the_model_does_not_declare() -> None:
    """In the main graph and in bodies; a dump and an IR contain them."""
    rows = json.loads(invoke(PYTORCH / "loop_if_loop.onnx", "--nodes", "--format", "json"))["nodes"]
    inner = {port["name"]: port for row in rows if row["scope"] for port in row["outputs"]}
    assert inner["/Add_output_0"]["type"] == "f32" and len(inner["/Add_output_0"]["shape"]) == 2
    assert all(port["type"] != "?" for row in rows for port in row["outputs"])


def test_a_model_that_inference_refuses(tmp_path: Path) -> None:
    model = parsed("main (float[2] x) => (float[3] y) { a = Neg (x)  y = Add (a, x) }")
    model.graph.node[1].input[1] = "nothing"
    path = saved(model, tmp_path)
    assert "nothing" in invoke(path, "--nodes") and "y f32[3]" in invoke(path, "--graph")


def test_weights_are_not_needed(tmp_path: Path) -> None:
    model = parsed("main (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { y = Add (x, w) }")
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w"))
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    assert "x, w" in invoke(tmp_path / "model.onnx", "--nodes")
    assert "1 node: Add" in invoke(tmp_path / "model.onnx", "--graph")
    assert "w f32[2]" in invoke(tmp_path / "model.onnx", "--nodes", "--operator", "Constant")


def test_standard_input(nested: Path) -> None:
    done = subprocess.run([str(PROGRAM), "inspect", "-", "--graph"], input=nested.read_bytes(), capture_output=True)
    assert done.returncode == 0 and done.stdout.decode().splitlines()[0] == "-: ONNX, 6 nodes in 4 scopes"
