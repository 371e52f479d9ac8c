"""--format and --report in all commands: the report on stdout in one form, and in a file in the form of its ending."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mo_loop.cli import COMMANDS
from tests import MODELS

from .batches import good, refused
from .installed import mo_loop
from .test_command_line import options_of
from .test_schemas import SCHEMA, valid

MODEL = MODELS / "pytorch" / "while_collatz.onnx"
OTHER = MODELS / "pytorch" / "decoder.onnx"

REPORTING = {
    "check": ("check", MODEL), "inspect": ("inspect", MODEL), "graph": ("inspect", MODEL, "--graph"),
    "nodes": ("inspect", MODEL, "--nodes"), "diff": ("diff", MODEL, OTHER),
    "convert": ("convert", MODEL, "-o", "m.xml"), "verify": ("verify", MODEL, "--sets", "1"),
    "ops": ("ops", "Loop"), "batch": ("batch", "models", "-o", "out", "-j", "1"),
    "reduce": ("reduce", MODEL, "-o", "small.onnx", "--if", "test -f {}", "--timeout", "2", "-j", "1"),
}


@pytest.mark.parametrize("name", REPORTING)
def test_the_text_on_stdout_and_json_in_the_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    good(tmp_path / "models" / "good.onnx")
    done = mo_loop(*REPORTING[name], "--report", "report.json", cwd=tmp_path)
    assert done.stdout and not done.stdout.startswith("{"), done.stderr
    found = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert valid(found) in (f"mo-loop {name}", f"mo-loop {name} report")
    quiet = mo_loop(*REPORTING[name], "--report", "quiet.json", "--quiet", cwd=tmp_path)
    assert quiet.returncode == done.returncode and quiet.stdout == ""
    assert json.loads((tmp_path / "quiet.json").read_text("utf-8")).keys() == found.keys()


WITHOUT_REPORT = ["view", "completion", "help"]
"""They write a page, a script and a text."""


def test_every_command_that_reports_has_both_options() -> None:
    without = [name for name in COMMANDS if not {"--format", "--report"} <= options_of(name).keys()]
    assert without == WITHOUT_REPORT, "`@format_option` (mo_loop/cli/flag_options.py) gives a command both"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_REPORT])
def test_every_report_is_described(name: str) -> None:
    assert name in REPORTING, "add a call of the command to REPORTING"
    is_defined = SCHEMA["$defs"].keys() & {name, f"{name}-report"}
    assert is_defined, "add the document to $defs and oneOf of docs/schemas/mo-loop.json"


@pytest.mark.parametrize("name", ["check", "verify", "ops", "batch"])
def test_markdown_by_the_ending(name: str, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    good(tmp_path / "models" / "good.onnx")
    mo_loop(*REPORTING[name], "--report", "report.md", cwd=tmp_path)
    assert "|" in (tmp_path / "report.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["verify", "batch"])
def test_junit_by_the_ending(name: str, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    good(tmp_path / "models" / "good.onnx")
    mo_loop(*REPORTING[name], "--report", "report.xml", cwd=tmp_path)
    assert ElementTree.parse(tmp_path / "report.xml").getroot().tag in ("testsuites", "testsuite")


def test_sarif_by_the_ending(tmp_path: Path) -> None:
    mo_loop("check", MODEL, "--report", "report.sarif", cwd=tmp_path)
    assert json.loads((tmp_path / "report.sarif").read_text("utf-8"))["version"] == "2.1.0"


def test_a_form_that_the_command_does_not_have_is_refused(tmp_path: Path) -> None:
    done = mo_loop("inspect", MODEL, "--report", "report.md", cwd=tmp_path)
    assert done.returncode == 2 and "a report of this command is JSON, not markdown" in done.stderr


@pytest.mark.parametrize("name", [name for name in REPORTING if name != "ops"])
def test_a_file_that_the_command_has_for_something_else_is_no_report(name: str, tmp_path: Path) -> None:
    """Neither the report nor the error replaces it."""
    command, *rest = map(str, REPORTING[name])
    (tmp_path / "models").mkdir()
    paths = [good(tmp_path / "models" / "a.onnx") if each in (str(MODEL), "models") else each for each in rest]
    kept = Path(paths[0])
    before = kept.read_bytes()
    for report in (kept, tmp_path / "models" / ".." / "models" / "a.onnx"):
        done = mo_loop(command, *paths, "--report", report, cwd=tmp_path)
        assert done.returncode == 2 and "which would be lost" in done.stderr, done.stderr
        assert kept.read_bytes() == before


@pytest.mark.parametrize("flags", [
    ("--mapping", "a.json", "--profile-json", "a.json"), ("--mapping", "a.json", "--report", "a.json"),
    ("--profile-json", "a.json", "--report", "./a.json"), ("--report", "m.bin"), ("--mapping", "m.bin"),
    ("--extension", "a.json", "--report", "a.json"),
])
def test_two_files_of_a_conversion_in_one(flags: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("m.bin", "a.json"):
        (tmp_path / name).write_text("kept")
    done = mo_loop("convert", MODEL, "-o", "m.xml", *flags, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("error: ML201"), done.stderr
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"m.bin": "kept", "a.json": "kept"}


def test_a_batch_may_replace_its_baseline(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    refused(tmp_path / "models" / "bad.onnx")
    assert mo_loop(*REPORTING["batch"], "--report", "r.json", cwd=tmp_path).returncode == 1
    assert mo_loop(*REPORTING["batch"], "--report", "r.json", "--baseline", "r.json", cwd=tmp_path).returncode == 0
    done = mo_loop(*REPORTING["batch"], "--report", "r.json", "--summary", "r.json", cwd=tmp_path)
    assert done.returncode == 2 and "the file of --summary" in done.stderr


@pytest.mark.parametrize("command", ["inspect", "convert", "verify"])
def test_an_error_replaces_an_earlier_report(command: str, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{}")
    done = mo_loop(command, "none.onnx", "--report", "report.json", cwd=tmp_path)
    found = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert valid(found) == "mo-loop error" and done.returncode == found["exit_code"] == 2


def test_the_report_of_a_batch_on_stdout(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    refused(tmp_path / "models" / "bad.onnx")
    done = mo_loop(*REPORTING["batch"], "--format", "json", cwd=tmp_path)
    assert valid(json.loads(done.stdout)) == "mo-loop batch report" and done.returncode == 1
    done = mo_loop(*REPORTING["batch"], "--format", "json", "--plan", cwd=tmp_path)
    assert done.returncode == 2 and "--plan has no format" in done.stderr
