"""`mo-loop inspect --graph` and `--nodes` as a user runs them."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from mo_loop.cli import main
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.model import opened
from tests.harness import parsed

from .commands import PROGRAM, PYTORCH, mo_loop, saved
from .test_check_command import on_a_terminal
from .test_inspect_command import NESTED

TREE = """\
model.onnx: ONNX, 6 nodes in 4 scopes
├─ inputs x f32[3], n i64[], f boolean[]
├─ 1 node: Add
├─ Loop loop
│  │  trip count    input n
│  │  condition     none
│  │  continues     always
│  │  iteration     -> i
│  │  merged        a f32[3] -> s, back edge t
│  │  captured      f boolean[], w f32[3]
│  │  final         t -> y f32[3]
│  └─ body loop/step: 2 nodes
│     ├─ 1 node: Identity
│     └─ If choice
│        │  condition     input f
│        │  captured      s f32[3], w f32[3]
│        │  selected      p or q -> t f32[3]
│        ├─ then_branch loop/step/choice/yes: 1 node
│        │  └─ 1 node: Add
│        └─ else_branch loop/step/choice/no: 1 node
│           └─ 1 node: Sin
└─ outputs y f32[3]
"""

TABLE = """\
scope                 name    operator  inputs    outputs
(main)                x       input               x f32[3]
(main)                n       input               n i64[]
(main)                f       input               f boolean[]
(main)                first   Add       x, w      a f32[3]
(main)                loop    Loop      n, "", a  y f32[3]
(main)                y       output    y
loop/step             i       input               i i64[]
loop/step             c       input               c boolean[]
loop/step             s       input               s f32[3]
loop/step                     Identity  c         d boolean[]
loop/step             choice  If        f         t f32[3]
loop/step             d       output    d
loop/step             t       output    t
loop/step/choice/yes          Add       s, w      p f32[3]
loop/step/choice/yes  p       output    p
loop/step/choice/no           Sin       s         q f32[3]
loop/step/choice/no   q       output    q
"""

@pytest.fixture
def nested(tmp_path: Path) -> Path:
    return saved(parsed(NESTED), tmp_path)


def invoke(*arguments: object) -> str:
    """The output of the command, run in this process."""
    done = CliRunner().invoke(main, ["inspect", *map(str, arguments)])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def refused(*arguments: object) -> str:
    done = CliRunner().invoke(main, ["inspect", *map(str, arguments)])
    assert done.exit_code == 2, done.stdout
    return done.stderr


def test_tree(nested: Path) -> None:
    done = mo_loop("inspect", nested.name, "--graph", cwd=nested.parent)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", TREE)


def test_table(nested: Path) -> None:
    done = mo_loop("inspect", nested.name, "--nodes", cwd=nested.parent)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", TABLE)


def test_tree_in_ascii(nested: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [str(PROGRAM), "inspect", nested.name, "--graph"]
    shown = subprocess.run(command, cwd=nested.parent, env=environment, capture_output=True, check=True, text=True)
    marks = {"├─": "|-", "└─": "`-", "│": "|"}
    expected = TREE
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


def test_json(nested: Path) -> None:
    found = json.loads(invoke(nested, "--graph", "--format", "json"))
    assert list(found) == ["schema", "version", "file", "format", "graph", "functions"]
    assert (found["version"], found["file"], found["format"]) == (1, str(nested), "onnx")
    plain, loop = found["graph"]["steps"]
    assert plain == {"kind": "nodes", "nodes": 1, "operators": {"Add": 1}}
    assert (loop["kind"], loop["operator"], loop["path"]) == ("control", "Loop", "loop")
    assert loop["inputs"][0] == {
        "kind": "merged", "value": {"name": "a", "type": "f32", "shape": [3]}, "inner": {"body": "s"},
        "back_edge": "t", "slicing": {},
    }
    (body,) = loop["bodies"]
    assert [each["tag"] for each in body["steps"][1]["bodies"]] == ["then_branch", "else_branch"]
    found = json.loads(invoke(nested, "--nodes", "--format", "json"))
    assert (found["version"], found["file"], found["format"]) == (1, str(nested), "onnx")
    assert found["nodes"][4] == {
        "scope": "", "name": "loop", "operator": "Loop", "inputs": ["n", "", "a"],
        "outputs": [{"name": "y", "type": "f32", "shape": [3]}],
    }
    assert len(found["nodes"]) == len(TABLE.splitlines()) - 1


def test_options_of_the_tree(nested: Path) -> None:
    shown = invoke(nested, "--graph", "--depth", 1)
    assert "then_branch" in shown and "Identity" in shown and "Sin" not in shown
    assert "If" not in invoke(nested, "--graph", "--depth", 0)
    assert "body loop/step: 2 nodes" in invoke(nested, "--graph", "--depth", 0)
    lines = invoke(nested, "--graph", "--scope", "loop/step").splitlines()
    assert lines[1:3] == ["body loop/step: 2 nodes", "├─ inputs i i64[], c boolean[], s f32[3]"]
    shown = invoke(nested, "--graph", "--operator", "Sin")
    assert "Add" not in shown and "Identity" not in shown and "Loop loop" in shown and "1 node: Sin" in shown


STEP = "<body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) { d = Identity (c)  t = Sin (s) }>"


def test_operator_of_a_function_with_control_flow(tmp_path: Path) -> None:
    text = f"""<ir_version: 10, opset_import: ["": 18, "local": 1]>
    main (float[3] x, int64 n) => (float[3] y) {{ a = Abs (x)  [call] y = local.repeated (a, n) }}
    <domain: "local", opset_import: ["": 18]> repeated (x, n) => (y) {{ [loop] y = Loop (n, "", x) {STEP} }}
    <domain: "local", opset_import: ["": 18]> other (x) => (y) {{ y = Neg (x) }}"""
    path = saved(onnx.parser.parse_model(text), tmp_path)
    shown = invoke(path, "--graph", "--operator", "local::repeated")
    assert "call of local::repeated: call" in shown and "Abs" not in shown and "\nfunction" not in shown
    shown = invoke(path, "--graph", "--operator", "Sin")
    assert "function local::repeated" in shown and "1 node: Sin" in shown
    assert "call of" not in shown and "local::other" not in shown


def test_bodies_of_one_path(tmp_path: Path) -> None:
    text = f"""main (float[3] x, int64 n) => (float[3] y) {{
      [a] p = Loop (n, "", x) {STEP}
      [a] y = Loop (n, "", p) {STEP.replace("Sin", "Cos")}
    }}"""
    path = saved(parsed(text), tmp_path)
    shown = invoke(path, "--graph", "--scope", "a/step")
    assert shown.count("body a/step: 2 nodes") == 2
    assert "1 Sin" in shown and "1 Cos" in shown and "function a" not in shown
    found = json.loads(invoke(path, "--graph", "--scope", "a/step", "--format", "json"))
    assert [each["path"] for each in (found["graph"], *found["functions"])] == ["a/step", "a/step"]


def test_summary_of_a_run(tmp_path: Path) -> None:
    def run(operators: list[str]) -> str:
        nodes = "\n".join(f"t{place + 1} = {name} (t{place})" for place, name in enumerate(operators))
        model = parsed(f"main (float[3] t0) => (float[3] t{len(operators)}) {{ {nodes} }}")
        return invoke(saved(model, tmp_path), "--graph").splitlines()[2].removeprefix("├─ ")

    assert run(["Sin"]) == "1 node: Sin"
    six = ["Abs", "Cos", "Exp", "Neg", "Sin", "Tanh"]
    assert run(six) == "6 nodes: 1 Abs, 1 Cos, 1 Exp, 1 Neg, 1 Sin, 1 Tanh"
    assert run([*six, "Tan"]) == "7 nodes: 1 Abs, 1 Cos, 1 Exp, 1 Neg, 1 Sin, 2 others"


def test_options_of_the_table(nested: Path) -> None:
    def places(*arguments: object) -> list[str]:
        return [line.split()[0] for line in invoke(nested, "--nodes", *arguments).splitlines()[1:]]

    assert set(places("--depth", 0)) == {"(main)"} and set(places("--depth", 1)) == {"(main)", "loop/step"}
    assert set(places("--scope", "loop/step", "--depth", 0)) == {"loop/step"}
    assert places("--operator", "Add") == ["(main)", "loop/step/choice/yes"]
    assert invoke(nested, "--nodes", "--operator", "Constant").splitlines()[1].split() == [
        "(main)", "w", "Constant", "w", "f32[3]",
    ]
    shown = invoke(nested, "--nodes", "--scope", "loop/step/choice/no", "--operator", "Add", "--format", "json")
    assert json.loads(shown)["nodes"] == []


def test_usage_errors(nested: Path) -> None:
    assert "cannot be combined" in refused(nested, "--graph", "--nodes")
    for option in ("--graph", "--nodes"):
        assert "did you mean 'loop/step'?" in refused(nested, option, "--scope", "loop/stop")
        assert "no operator 'Cos'" in refused(nested, option, "--operator", "Cos")
        assert "ML210" in refused(nested.with_name("missing.onnx"), option)


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


def test_a_dump_without_an_option(nested: Path, tmp_path: Path) -> None:
    (tmp_path / "000_loaded.json").write_text("{}")
    assert "add --graph or --nodes" in refused(tmp_path / "000_loaded.json")
    assert "check the path" in refused(tmp_path / "missing.json")


def test_standard_input(nested: Path) -> None:
    done = subprocess.run([str(PROGRAM), "inspect", "-", "--graph"], input=nested.read_bytes(), capture_output=True)
    assert done.returncode == 0 and done.stdout.decode().splitlines()[0] == "-: ONNX, 6 nodes in 4 scopes"
