"""`mo-loop check`: SARIF, the terminal, plugins and external data; tests/cli/recorded/check.txt has what it prints."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import numpy_helper

from mo_loop.cli import main
from mo_loop.look.diagnostics.codes import CODES
from tests.harness import parsed, raised

from .commands import PLAIN, PROGRAM, ended, installed, mo_loop, saved
from .sarif_core import LOG

BROKEN = """
main (float[3] x, int64 n, seq(float[2]) s) => (float[3] y, seq(float[2]) t) <float[3] spare = {1.0, 2.0, 3.0}> {
  [unread] dead = Neg (x) t = Identity (s) [first] u = my.Gate (x)
  [loop] z = Loop (n, "", u) <body = step (int64 i, bool c, float[3] q) => (bool d, float[3] w) {
    d = Identity (c) [inner] k = my.Gate (q) [here] w = Strange (k) }>
  y = Add (z, z)
}"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return saved(parsed(BROKEN, my=1), tmp_path, "broken.onnx")


@pytest.fixture
def fine(tmp_path: Path) -> Path:
    return saved(parsed(PLAIN), tmp_path, "fine.onnx")


def invoke(*arguments: object) -> Any:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def as_json(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(invoke(*arguments, "--format", "json").stdout)
    return found


def found_in(report: dict[str, Any], model: int = 0) -> set[tuple[str, str]]:
    """(code, path) of all findings of one model."""
    return {(each["code"], each["place"]["path"]) for each in report["models"][model]["findings"]}


# -- forms


def test_sarif(broken: Path, fine: Path, tmp_path: Path) -> None:
    awkward = saved(parsed(BROKEN, my=1), tmp_path, "a model & 1.onnx")
    arguments = (broken.name, "gone.onnx", awkward.name, fine.name, "--format", "sarif")
    done = mo_loop("check", *arguments, cwd=tmp_path)
    log = json.loads(done.stdout)
    jsonschema.validate(log, LOG)
    run = log["runs"][0]
    uris = [each["location"]["uri"] for each in run["artifacts"]]
    assert uris == ["broken.onnx", "gone.onnx", "a%20model%20%26%201.onnx", "fine.onnx"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert uris[artifact["index"]] == artifact["uri"]
    prints = [each["partialFingerprints"]["placeAndMessage/v1"] for each in run["results"]]
    assert len(set(prints)) == len(prints)
    assert json.loads(mo_loop("check", *arguments, cwd=tmp_path).stdout) == log
    places = [each["locations"][0].get("logicalLocations", [{}])[0] for each in run["results"]]
    assert {"name": "here", "fullyQualifiedName": "loop/step/here", "kind": "element"} in places
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"] and invocation["exitCode"] == done.returncode == 2
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["descriptor"]["id"] == "ML210"


def test_sarif_without_findings(fine: Path) -> None:
    log = json.loads(invoke(fine, "--format", "sarif").stdout)
    jsonschema.validate(log, LOG)
    assert log["runs"][0]["results"] == [] and log["runs"][0]["invocations"][0]["executionSuccessful"]


def test_the_schema_refuses() -> None:
    """The schema itself is tested: one that accepts anything would find nothing."""
    log: dict[str, Any] = {"$schema": "s", "version": "2.1.0", "runs": []}
    for wrong in (log, {**log, "version": "2.0.0"}, {**log, "more": 1}):
        raised(jsonschema.ValidationError, jsonschema.validate, wrong, LOG)


def test_markup_in_names(tmp_path: Path) -> None:
    model = parsed(PLAIN)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), "a|b`<i>\n*c*"))
    assert "a\\|b\\`&lt;i> \\*c\\*" in invoke(saved(model, tmp_path), "--format", "markdown").stdout


# -- flags


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_codes(form: str) -> None:
    done = mo_loop("check", "--codes", "--format", form)
    assert done.returncode == 0 and not done.stderr
    if form == "json":
        listed = json.loads(done.stdout)
        assert listed["version"] == 1 and listed["codes"].keys() == CODES.keys()
        return
    for code, meaning in CODES.items():
        assert re.search(rf"^(\| )?{code}\b.*{re.escape(meaning.title)}", done.stdout, re.MULTILINE), code


def test_no_plugins(fine: Path, tmp_path: Path) -> None:
    info = tmp_path / "path" / "failing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: failing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mo_loop.passes]\nmain = failing:register\n")
    assert ended(installed("check", fine, PYTHONPATH=str(info.parent)), 2).stderr.startswith("error: ML267")
    assert installed("check", fine, "--no-plugins", PYTHONPATH=str(info.parent)).returncode == 0


def test_debug(fine: Path, tmp_path: Path) -> None:
    """--debug prints the traceback of an error in an extension."""
    (tmp_path / "bad.py").write_text("def register(extensions): raise ValueError('no')")
    done = mo_loop("check", fine, "--extension", tmp_path / "bad.py", "--debug")
    assert done.returncode == 2 and "Traceback" in done.stderr and "error: ML262" in done.stderr


def test_usage() -> None:
    shown = mo_loop("check", "--help-all").stdout
    for option in ("--format", "--level", "--codes", "--input", "--output", "--strict", "--extension", "--debug"):
        assert option in shown
    assert "mo-loop check models" in shown and "Exit code 1" in shown


# -- the terminal


def test_colours_on_a_terminal_only(broken: Path) -> None:
    assert "\x1b[" not in mo_loop("check", broken).stdout and "\x1b[" in on_a_terminal("check", broken)
    assert "\x1b[" not in on_a_terminal("check", broken, NO_COLOR="1")


def on_a_terminal(*arguments: object, **environment: str) -> str:
    """The output of the command on a pseudo-terminal."""
    pty = pytest.importorskip("pty")
    outer, inner = pty.openpty()
    env = {**{key: value for key, value in os.environ.items() if key != "NO_COLOR"}, "TERM": "xterm", **environment}
    process = subprocess.Popen([str(PROGRAM), *map(str, arguments)], stdout=inner, stderr=inner, env=env)
    os.close(inner)
    found = b""
    try:
        while piece := os.read(outer, 4096):
            found += piece
    except OSError:
        pass  # the command has ended
    process.wait(60)
    os.close(outer)
    return found.decode()


def test_stdout_closed_by_its_reader(broken: Path) -> None:
    """As in `| head`: no traceback, and the exit code of the findings."""
    process = subprocess.Popen(
        [str(PROGRAM), "check", str(broken), "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 1 and said == b""


# -- external data


def save_apart(folder: Path) -> Path:
    """Two weights, and a third one, in files of their own, 400 bytes each."""
    made = parsed("main (float[100] x) => (float[100] y) { a = Add (x, v) b = Mul (a, w) c = Nope (b) y = Sub (c, u) }")
    for name in ("v", "w", "u"):
        tensor = numpy_helper.from_array(np.ones(100, np.float32), name)
        made.graph.initializer.append(tensor)
        onnx.external_data_helper.set_external_data(tensor, "x")
    path = folder / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.data", size_threshold=0)
    return path


def test_missing_and_short_data(tmp_path: Path) -> None:
    """One finding for each file, and findings beyond these weights all the same."""
    path = save_apart(tmp_path)
    assert found_in(as_json(path)) == {("ML302", "c")}
    data = (tmp_path / "w.data").read_bytes()
    (tmp_path / "w.data").write_bytes(data[:500])
    short = as_json(path)
    assert {code for code, _ in found_in(short)} == {"ML213", "ML302"}
    (tmp_path / "w.data").unlink()
    gone = as_json(path)
    assert {code for code, _ in found_in(gone)} == {"ML217", "ML302"} and gone["exit_code"] == 1
    (finding,) = [each for each in gone["models"][0]["findings"] if each["code"] == "ML217"]
    assert "'w.data' is missing; 3 tensors in it have this fault" in finding["message"] and finding["help"]
