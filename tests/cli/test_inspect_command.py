"""`mo-loop inspect` as a user runs it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mo_loop.api import convert_model, save_model
from mo_loop.cli import main
from tests.harness import parsed

from .commands import PROGRAM, PYTORCH, mo_loop, saved
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


@pytest.fixture
def ir(nested: Path) -> Path:
    path = nested.with_suffix(".xml")
    save_model(convert_model(nested), path)
    return path


def invoke(*arguments: object) -> Any:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["inspect", *map(str, arguments)])


def as_json(*arguments: object) -> dict[str, Any]:
    done = mo_loop("inspect", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def scopes(found: dict[str, Any]) -> list[str]:
    return [each["path"] for each in found["scopes"]]


TEXT = """\
model.onnx: ONNX version 10, SIZE
name       main
opsets     ai.onnx 18
contents   6 nodes in 4 scopes, 3 elements in constants (12 B)
inputs
  x  f32[3]
  n  i64[]
  f  boolean[]
outputs
  y  f32[3]
operators
  operator  nodes  constants
  Add           2       12 B
  Identity      1
  If            1
  Loop          1
  Sin           1
scopes
  path                  kind         nodes  elements  constants
  (main)                model            2         3       12 B
  loop/step             body             2         0        0 B
  loop/step/choice/yes  then_branch      1         0        0 B
  loop/step/choice/no   else_branch      1         0        0 B
control flow
  Loop loop
    trip count input n
    condition  none
    continues  always
    states     s f32[3]
    captures   f, w
    body: 2 nodes
      If loop/step/choice
        condition  input f
        captures   s, w
        then_branch: 1 node
        else_branch: 1 node
"""


def test_text(nested: Path) -> None:
    done = mo_loop("inspect", nested.name, cwd=nested.parent)
    assert done.returncode == 0 and not done.stderr
    assert done.stdout == TEXT.replace("SIZE", f"{nested.stat().st_size} B")
    assert sorted(path.name for path in nested.parent.iterdir()) == ["model.onnx"]


@pytest.mark.keeps_loops
def test_ir(ir: Path) -> None:
    done = mo_loop("inspect", ir)
    assert done.returncode == 0 and not done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.startswith(f"{ir}: OpenVINO IR version 11, ")
    for line in ("  Loop y_1", "    captures   f", "      If y_1/body/choice", "        condition  input f"):
        assert any(each.startswith(line) for each in lines), line
    assert any("model.bin" in line for line in lines)


def test_json(nested: Path, ir: Path) -> None:
    for path, form in ((nested, "onnx"), (ir, "ir")):
        found = as_json(path)
        assert list(found)[:2] == ["schema", "version"] and found["version"] == 2
        assert (found["file"], found["format"]) == (str(path), form)
        assert found["inputs"][0] == {"name": "x", "type": "f32", "shape": [3]}
        (loop,) = found["control"]
        assert loop["operator"] == "Loop" and loop["branches"][0]["children"][0]["operator"] == "If"
    assert as_json(nested)["bytes"] == 12


@pytest.mark.parametrize(("depth", "paths", "control_flow"), [
    (0, [""], []),
    (1, ["", "loop/step"], ["loop"]),
    (2, ["", "loop/step", "loop/step/choice/yes", "loop/step/choice/no"], ["loop", "loop/step/choice"]),
    (9, ["", "loop/step", "loop/step/choice/yes", "loop/step/choice/no"], ["loop", "loop/step/choice"]),
])
def test_depth(nested: Path, depth: int, paths: list[str], control_flow: list[str]) -> None:
    found = as_json(nested, "--depth", depth)
    assert scopes(found) == paths
    shown = []
    stack = list(found["control"])
    while stack:
        each = stack.pop()
        shown.append(each["path"])
        stack += [child for branch in each["branches"] for child in branch["children"]]
    assert shown == control_flow and sum(each["count"] for each in found["operators"]) == 6


def test_scope(nested: Path) -> None:
    found = as_json(nested, "--scope", "loop/step")
    assert scopes(found) == ["loop/step", "loop/step/choice/yes", "loop/step/choice/no"]
    assert {each["name"]: each["count"] for each in found["operators"]} == {"Identity": 1, "If": 1, "Add": 1, "Sin": 1}
    assert [each["path"] for each in found["control"]] == ["loop/step/choice"]
    found = as_json(nested, "--scope", "loop/step", "--depth", "0")
    assert scopes(found) == ["loop/step"] and found["control"] == []
    wrong = mo_loop("inspect", nested, "--scope", "loop/stop")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: ML201") and "'loop/step'" in wrong.stderr


def test_operator(nested: Path) -> None:
    found = as_json(nested, "--operator", "Add")
    assert [(each["name"], each["count"]) for each in found["operators"]] == [("Add", 2)]
    assert [(each["path"], each["operators"]) for each in found["scopes"]] == [
        ("", {"Add": 1}), ("loop/step/choice/yes", {"Add": 1}),
    ]
    assert [each["path"] for each in as_json(nested, "--operator", "If")["control"]] == ["loop/step/choice"]
    wrong = mo_loop("inspect", nested, "--operator", "Ad")
    assert wrong.returncode == 2 and "did you mean 'Add'?" in wrong.stderr and not wrong.stdout


def test_standard_input(nested: Path, ir: Path) -> None:
    for path, form in ((nested, "onnx"), (ir, "ir")):
        done = mo_loop("inspect", "-", "--format", "json", stdin=path.read_bytes())
        assert (json.loads(done.stdout)["file"], json.loads(done.stdout)["format"]) == ("-", form)


def test_bad_input(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    (tmp_path / "cut.xml").write_text("<net><layers>")
    for name, code in (("gone.onnx", "ML210"), ("text.onnx", "ML214"), ("cut.xml", "ML214"), ("", "ML211")):
        done = mo_loop("inspect", tmp_path / name)
        assert done.returncode == 2 and not done.stdout
        assert done.stderr.startswith(f"error: {code}") and "help:" in done.stderr and "Traceback" not in done.stderr


def test_an_offset_of_thousands_of_digits(tmp_path: Path) -> None:
    model = parsed("main (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}> { y = Add (x, w) }")
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.ClearField("raw_data")
    weight.data_location = weight.EXTERNAL
    weight.external_data.add(key="location", value="w.bin")
    weight.external_data.add(key="offset", value="9" * 5000)
    done = mo_loop("inspect", saved(model, tmp_path))
    assert done.returncode == 0 and "w.bin" in done.stdout, done.stderr


def test_debug(tmp_path: Path) -> None:
    done = mo_loop("inspect", tmp_path / "gone.onnx", "--debug")
    assert done.returncode == 2 and "Traceback" in done.stderr and "error: ML210" in done.stderr


def test_usage(nested: Path) -> None:
    for arguments in (
        (), ("--no-such-option",), (nested, "--format", "xml"), (nested, "--depth", "-1"), (nested, nested),
    ):
        done = invoke(*arguments)
        assert done.exit_code == 2 and done.stderr.startswith("error: ML201"), arguments
    shown = mo_loop("inspect", "--help-all").stdout
    for option in ("--format", "--depth", "--scope", "--operator", "--debug"):
        assert option in shown
    assert "mo-loop inspect model.onnx --scope loop/body" in shown


def test_long_lists_are_shortened_in_the_text_only() -> None:
    path = PYTORCH / "decoder.onnx"
    assert " and 1 more" in invoke(path).stdout
    assert len(json.loads(invoke(path, "--format", "json").stdout)["control"][0]["captures"]) == 9


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
