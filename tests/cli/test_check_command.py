"""`mo-loop check` as a user runs it: its findings, its formats, and its exit codes."""

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
from tests.harness import parsed

from .commands import PLAIN, PROGRAM, body, installed, mo_loop, saved
from .sarif_core import LOG

BROKEN = """
main (float[3] x, int64 n, seq(float[2]) s) => (float[3] y, seq(float[2]) t) <float[3] spare = {1.0, 2.0, 3.0}> {
  [unread] dead = Neg (x) t = Identity (s) [first] u = my.Gate (x)
  [loop] z = Loop (n, "", u) <body = step (int64 i, bool c, float[3] q) => (bool d, float[3] w) {
    d = Identity (c) [inner] k = my.Gate (q) [here] w = Strange (k) }>
  y = Add (z, z)
}"""

GROWING = """
main (float[1] x) => (float[N] y) <int64 three = {3}> {
  [loop] y = Loop (three, "", x) <body = step (int64 i, bool c, float[M] s) => (bool d, float[K] t) {
    d = Identity (c) t = Concat <axis = 0> (s, x) }> }"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return saved(parsed(BROKEN, my=1), tmp_path, "broken.onnx")


@pytest.fixture
def fine(tmp_path: Path) -> Path:
    return saved(parsed(PLAIN), tmp_path, "fine.onnx")


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    return saved(parsed(GROWING), tmp_path, "growing.onnx")


def invoke(*arguments: object) -> Any:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def as_json(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(invoke(*arguments, "--format", "json").stdout)
    return found


def found_in(report: dict[str, Any], model: int = 0) -> set[tuple[str, str]]:
    """(code, path) of all findings of one model."""
    return {(each["code"], each["place"]["path"]) for each in report["models"][model]["findings"]}


# -- what is found


def test_all_findings_are_reported(broken: Path) -> None:
    done = mo_loop("check", broken)
    assert done.returncode == 1 and not done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"{broken}: 5 errors, 2 notes"
    assert "  error ML302: operator my::Gate (opset 1) is not supported (2 times)" in lines
    assert "    where: first (my::Gate), loop/step/inner (my::Gate)" in lines
    assert "    where: loop/step/here (Strange)" in lines
    for code, place in (("ML310", "s"), ("ML310", "t (Identity)"), ("ML541", "spare"), ("ML542", "unread (Neg)")):
        assert re.search(rf" {code}: .*\n    where: {re.escape(place)}\n", done.stdout), (code, place)
    assert sorted(path.name for path in broken.parent.iterdir()) == ["broken.onnx"]


def test_no_findings_and_only_notes(fine: Path, growing: Path) -> None:
    done = mo_loop("check", fine)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{fine}: nothing found\n  sizes: all may change\n", "")
    done = mo_loop("check", growing)
    assert done.returncode == 0 and done.stdout.startswith(f"{growing}: 1 note\n")
    assert "note ML521: the state 's' grows in each iteration" in done.stdout
    assert "    where: loop (Loop)\n" in done.stdout


def test_a_loop_over_declared_sizes(tmp_path: Path) -> None:
    """Its number of steps is known, and each node of its body is counted once."""
    text = """main (float[6,2] x, float[2] z) => (float[2] y) {
      s = Shape <start = 0, end = 1> (x)
      n = Squeeze (s)
      y = Loop (n, "", z) <body = step (int64 i, bool c, float[2] a) => (bool d, float[2] b) {
        d = Identity (c)
        r = Gather (x, i)
        q = Softmax (a)
        b = Add (q, r)
      }>
    }"""
    done = mo_loop("check", saved(parsed(text), tmp_path))
    assert done.returncode == 0 and "note ML505: 1 operation loses NaN" in done.stdout
    assert "ML520" not in done.stdout


def test_several_models(broken: Path, fine: Path, tmp_path: Path) -> None:
    """A file that cannot be read is reported and does not stop the others; a file given twice is checked once."""
    (tmp_path / "text.onnx").write_text("no model")
    done = mo_loop("check", tmp_path / "gone.onnx", broken, tmp_path / "text.onnx", fine, fine)
    assert done.returncode == 2
    assert "error: ML210: the file" in done.stderr and "error: ML214: text.onnx" in done.stderr
    assert "help:" in done.stderr and "Traceback" not in done.stderr
    heads = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert [head.rpartition("/")[2] for head in heads] == [
        "gone.onnx: not checked", "broken.onnx: 5 errors, 2 notes", "text.onnx: not checked",
        "fine.onnx: nothing found", "4 models, 3 with errors or warnings",
    ]


def test_a_folder(broken: Path, tmp_path: Path) -> None:
    """Every model below it, sorted by name, without hidden files and files that are not models."""
    for name in ("b/deep/z.onnx", "a/y.onnx", ".hidden/x.onnx", "a/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(broken.read_bytes())
    report = json.loads(mo_loop("check", ".", "--format", "json", cwd=tmp_path).stdout)
    assert [each["file"] for each in report["models"]] == ["./a/y.onnx", "./b/deep/z.onnx", "./broken.onnx"]
    (tmp_path / "empty").mkdir()
    done = mo_loop("check", tmp_path / "empty")
    assert done.returncode == 2 and done.stderr.startswith("error: ML211")


def test_globs_and_lists(broken: Path, fine: Path, tmp_path: Path) -> None:
    """A glob is sorted by name; a file whose name has such characters is that file."""
    (tmp_path / "[x].onnx").write_bytes(fine.read_bytes())
    (tmp_path / "list.txt").write_text(f"# two\n{broken}\n\n*x].onnx\n")
    report = as_json(str(tmp_path / "*.onnx"))
    assert [each["file"] for each in report["models"]] == sorted(map(str, tmp_path.glob("*.onnx")))
    report = json.loads(mo_loop("check", "@list.txt", "--format", "json", cwd=tmp_path).stdout)
    assert [each["file"] for each in report["models"]] == [str(broken), "[x].onnx"]
    report = json.loads(mo_loop("check", "*", "--format", "json", cwd=tmp_path).stdout)
    assert [each["file"] for each in report["models"]] == ["[x].onnx", "broken.onnx", "fine.onnx"]
    assert [each["file"] for each in as_json(tmp_path / "[x].onnx")["models"]] == [str(tmp_path / "[x].onnx")]
    done = mo_loop("check", str(tmp_path / "no*.onnx"))
    assert done.returncode == 2 and done.stderr.startswith("error: ML210")


# -- which diagnostics count


def test_the_level_that_fails(broken: Path, growing: Path) -> None:
    assert mo_loop("check", growing, "--fail-on", "note").returncode == 1
    assert mo_loop("check", growing, "--fail-on", "error").returncode == 0
    assert mo_loop("check", broken, "--fail-on", "error").returncode == 1


def test_ignored_codes(broken: Path, growing: Path) -> None:
    done = mo_loop("check", broken, "--ignore", "ml302, ML310", "--ignore", "ML541")
    assert done.stdout.splitlines()[0] == f"{broken}: 1 note (6 accepted)" and done.returncode == 0
    (model,) = as_json(growing, "--ignore", "ML521", "--fail-on", "note")["models"]
    assert (model["accepted"], model["findings"]) == (1, [])
    done = mo_loop("check", broken, "--ignore", "ML999")
    assert done.returncode == 2 and "--ignore ML999: there is no such code" in done.stderr


def test_a_baseline(broken: Path, growing: Path, tmp_path: Path) -> None:
    """Findings of an earlier report do not count, new ones do."""
    known = tmp_path / "known.json"
    assert mo_loop("check", broken, "--report", known).returncode == 1
    done = mo_loop("check", broken, growing, "--baseline", known, "--fail-on", "note")
    assert done.stdout.splitlines()[0] == f"{broken}: nothing found (7 accepted)" and done.returncode == 1
    assert mo_loop("check", broken, "--baseline", known, "--fail-on", "note").returncode == 0
    for text in ("no JSON", "[]", '{"schema": "mo-loop check"}'):
        known.write_text(text)
        done = mo_loop("check", broken, "--baseline", known)
        assert done.returncode == 2 and "is not a report of mo-loop check" in done.stderr
    done = mo_loop("check", broken, "--baseline", tmp_path / "gone.json")
    assert done.returncode == 2 and "gone.json" in done.stderr and "help:" in done.stderr


def test_standard_input(broken: Path) -> None:
    done = mo_loop("check", "-", "--format", "json", stdin=broken.read_bytes())
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["models"][0]["file"] == "-" and ("ML302", "first") in found_in(report)


# -- forms


def test_json(broken: Path) -> None:
    done = mo_loop("check", broken, "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == report["exit_code"] == 1
    assert report["version"] == 1 and report["counts"] == {"error": 5, "warning": 0, "note": 2}
    (model,) = report["models"]
    assert model["file"] == str(broken) and model["checked"] and model["error"] is None
    inner = next(each for each in model["findings"] if each["place"]["path"] == "loop/step/inner")
    assert inner["code"] == "ML302" and inner["level"] == "error"
    assert inner["place"] == {
        "path": "loop/step/inner", "scope": "loop/step", "node": "inner", "operator": "my::Gate",
    }
    assert {each["code"] for each in model["findings"]} <= CODES.keys()


def test_json_of_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    report = as_json(tmp_path / "gone.onnx")
    assert report["exit_code"] == 2
    (model,) = report["models"]
    assert not model["checked"] and model["error"]["code"] == "ML210" and model["error"]["help"]


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
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, LOG)


def test_markdown(broken: Path) -> None:
    done = mo_loop("check", broken, "--format", "markdown")
    assert done.returncode == 1
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", row) for row in rows]
    assert {len(each) for each in cells} == {7} and rows[0].startswith("| level | code |") and len(rows) == 2 + 6
    assert (
        "| error | ML302 | operator my::Gate (opset 1) is not supported (2 times) | first (my::Gate), " in done.stdout
    )


def test_markup_in_names(tmp_path: Path) -> None:
    model = parsed(PLAIN)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32), "a|b`<i>\n*c*"))
    assert "a\\|b\\`&lt;i> \\*c\\*" in invoke(saved(model, tmp_path), "--format", "markdown").stdout


# -- flags


def test_level(broken: Path) -> None:
    done = mo_loop("check", broken, "--level", "error")
    assert done.returncode == 1
    assert "note" in done.stdout.splitlines()[0] and "ML541" not in done.stdout and "ML302" in done.stdout
    assert "ML541" in invoke(broken, "--level", "note").stdout
    assert found_in(as_json(broken, "--level", "warning")) == found_in(as_json(broken, "--level", "error"))


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


def test_codes_as_sarif() -> None:
    done = mo_loop("check", "--codes", "--format", "sarif")
    assert done.returncode == 2 and done.stderr.startswith("error: ML201")


def test_input(tmp_path: Path) -> None:
    """The given shapes and values apply: a known trip count, a type that does not fit."""
    path = saved(parsed(body("t = Add (s, s)")), tmp_path)
    assert found_in(as_json(path)) == {("ML520", "loop")}
    done = mo_loop("check", path, "--input", "x,n->3")
    assert (done.returncode, done.stdout) == (0, f"{path}: nothing found\n  sizes: all may change\n")
    wrong = mo_loop("check", path, "--input", "ghost[3]")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: ML202") and "ghost" in wrong.stderr


def test_sizes(broken: Path, tmp_path: Path) -> None:
    """A line for each input with a restricted size, and one for all others; nothing where errors were found."""
    path = saved(parsed("""main (float[6,2] x, float[3] z, float k) => (y, u) {
      p = SplitToSequence <axis = 0> (x) y = ConcatFromSequence <axis = 0> (p) u = Mul (z, k) }"""), tmp_path)
    lines = invoke(path).output.splitlines()[1:3]
    assert lines == ["  sizes: x[6,?]: ? may change, 6 is checked", "  sizes: all others may change"]
    assert as_json(path)["models"][0]["sizes"] == {"x": "6,?", "z": "?", "k": ""}
    assert invoke(path, "--static").output.splitlines()[1] == "  sizes: none may change"
    wanted = "Sizes: x\\[6,?]: ? may change, 6 is checked; all others may change."
    assert wanted in invoke(path, "--format", "markdown").output
    assert as_json(broken)["models"][0]["sizes"] == {} and "sizes:" not in invoke(broken).output


def test_output(broken: Path) -> None:
    """Nodes beyond the cut are not checked."""
    done = mo_loop("check", broken, "--output", "u", "--format", "json")
    assert found_in(json.loads(done.stdout)) == {("ML302", "first"), ("ML310", "s")}


def test_unroll(growing: Path) -> None:
    done = mo_loop("check", growing, "--unroll", "3")
    assert (done.returncode, done.stdout) == (0, f"{growing}: nothing found\n  sizes: all may change\n")


def test_an_option_without_effect(tmp_path: Path) -> None:
    path = saved(parsed("main (float[2] x) => (float[2] y) { y = Neg (x) }"), tmp_path)
    for options, flag in ((["--unroll", "3"], "--unroll 3"), (["--stateful"], "--stateful")):
        done = mo_loop("check", path, *options)
        assert done.returncode == 2 and f"ML201: {flag} has no effect" in done.stderr


def test_strict(tmp_path: Path) -> None:
    path = saved(parsed(body("[inner] n = Neg (s) t = Add (n, s)")), tmp_path)
    report = as_json(path)
    assert report["exit_code"] == 1 and ("ML511", "loop/step") in found_in(report)
    done = mo_loop("check", path, "--strict")
    assert done.returncode == 1
    assert re.search(r"error ML\d{3}: .*strict.*'n' hides", done.stdout) and "ML511" not in done.stdout


def test_sequence_io(broken: Path) -> None:
    assert {code for code, _ in found_in(as_json(broken))} == {"ML302", "ML310", "ML541", "ML542"}
    done = mo_loop("check", broken, "--sequence-io", "packed", "--format", "json")
    assert {code for code, _ in found_in(json.loads(done.stdout))} == {"ML302", "ML541", "ML542"}


def test_passes(tmp_path: Path) -> None:
    """The options that choose passes apply."""
    listed = """main (float[2] x) => (float[2] y) <int64 p = {0}> {
      s = SequenceConstruct (x) y = SequenceAt (s, p) }"""
    path = saved(parsed(listed), tmp_path)
    assert mo_loop("check", path).returncode == 0
    names = "ReplaceSequencesByElements,StackSequences,PackSequences"
    done = mo_loop("check", path, "--disable-pass", names)
    assert done.returncode == 1 and "error ML320" in done.stdout
    assert mo_loop("check", path, "--enable-pass", "NoSuchPass").returncode == 2


GATE = """
from mo_loop import ops
def register(extensions):
    extensions.translates("Gate", domain="my")(lambda x: ops.Sigmoid(x))
"""


def test_extension(broken: Path, tmp_path: Path) -> None:
    (tmp_path / "gate.py").write_text(GATE)
    done = mo_loop("check", broken, "--extension", tmp_path / "gate.py", "--sequence-io", "packed")
    assert done.returncode == 1 and "Gate" not in done.stdout and "operator Strange" in done.stdout
    (tmp_path / "bad.py").write_text("def register(extensions): raise ValueError('no')")
    done = mo_loop("check", broken, "--extension", tmp_path / "bad.py")
    assert done.returncode == 2 and done.stderr.startswith("error: ML262") and not done.stdout


def test_a_warning_of_an_extension(fine: Path, tmp_path: Path) -> None:
    """It is printed, and it is not a finding, because it is not about the model."""
    (tmp_path / "loud.py").write_text(
        "import warnings\nfrom mo_loop import ops\n"
        "def neg(x):\n    warnings.warn('mind the sign')\n    return ops.Negative(x)\n"
        "def register(extensions): extensions.translates('Neg')(neg)\n"
    )
    done = mo_loop("check", fine, "--extension", tmp_path / "loud.py")
    assert (done.returncode, done.stderr) == (0, "warning: mind the sign\n")


def test_no_plugins(fine: Path, tmp_path: Path) -> None:
    info = tmp_path / "path" / "failing-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: failing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mo_loop.passes]\nmain = failing:register\n")
    done = installed("check", fine, PYTHONPATH=str(info.parent))
    assert done.returncode == 2 and done.stderr.startswith("error: ML267")
    assert installed("check", fine, "--no-plugins", PYTHONPATH=str(info.parent)).returncode == 0


def test_compress_to_fp16(tmp_path: Path) -> None:
    path = saved(parsed(PLAIN.replace("3.0}", "1e6}")), tmp_path)
    assert found_in(as_json(path)) == set()
    done = mo_loop("check", path, "--compress-to-fp16")
    assert done.returncode == 1 and "warning ML504: 1 weight is beyond the range of f16" in done.stdout


def test_mean_values(tmp_path: Path) -> None:
    """The options of preprocessing apply."""
    path = saved(parsed("main (float[1,3,4,4] x) => (float[1,3,4,4] y) { y = Neg (x) }"), tmp_path)
    assert invoke(path, "--layout", "nchw", "--mean-values", "[1,2,3]").exit_code == 0
    done = mo_loop("check", path, "--layout", "nchw", "--mean-values", "[1,2]")
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr + done.stdout


def test_debug(fine: Path, tmp_path: Path) -> None:
    """--debug prints the traceback of an error in an extension."""
    (tmp_path / "bad.py").write_text("def register(extensions): raise ValueError('no')")
    done = mo_loop("check", fine, "--extension", tmp_path / "bad.py", "--debug")
    assert done.returncode == 2 and "Traceback" in done.stderr and "error: ML262" in done.stderr


def test_usage() -> None:
    for arguments in ((), ("--no-such-option",), ("a.onnx", "--format", "xml"), ("a.onnx", "--level", "x")):
        done = invoke(*arguments)
        assert done.exit_code == 2 and done.stderr.startswith("error: ML201"), arguments
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
