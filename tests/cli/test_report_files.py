"""The reports of all commands: --format, --report, and the JSON schema."""

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import jsonschema
import onnx
import pytest

from mo_loop.cli import COMMANDS, main
from tests import MODELS, ROOT
from tests.cli.batches import good, refused
from tests.cli.commands import ended, mo_loop
from tests.cli.test_command_line import options_of

# -- --format and --report in all commands: the report on stdout in one form, and in a file in the form of its ending


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
        assert "which would be lost" in ended(mo_loop(command, *paths, "--report", report, cwd=tmp_path), 2).stderr
        assert kept.read_bytes() == before


@pytest.mark.parametrize("flags", [
    ("--mapping", "a.json", "--profile-json", "a.json"), ("--mapping", "a.json", "--report", "a.json"),
    ("--profile-json", "a.json", "--report", "./a.json"), ("--report", "m.bin"), ("--mapping", "m.bin"),
    ("--extension", "a.json", "--report", "a.json"),
])
def test_two_files_of_a_conversion_in_one(flags: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("m.bin", "a.json"):
        (tmp_path / name).write_text("kept")
    assert ended(mo_loop("convert", MODEL, "-o", "m.xml", *flags, cwd=tmp_path), 2).stderr.startswith("error: ML201")
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


# -- Every JSON document that a command writes is one of docs/schemas/mo-loop.json


SCHEMA = json.loads((ROOT / "docs" / "schemas" / "mo-loop.json").read_text("utf-8"))
LOOP = MODELS / "pytorch" / "while_collatz.onnx"


def valid(document: Any) -> str:
    """The name of a document that fits its schema."""
    validator = jsonschema.Draft202012Validator({**SCHEMA["$defs"][key_of(document)], "$defs": SCHEMA["$defs"]})
    assert [error.message for error in validator.iter_errors(document)] == []
    assert set(document) - set(SCHEMA["$defs"][key_of(document)]["properties"]) == set(), "keys without a description"
    name: str = document["schema"]
    return name


def key_of(document: Any) -> str:
    name: str = document["schema"]
    return name.removeprefix("mo-loop ").replace(" ", "-")


ON_STDOUT: list[tuple[tuple[Any, ...], str]] = [
    (("check", LOOP), "check"), (("check", "--codes"), "codes"), (("inspect", LOOP), "inspect"),
    (("inspect", LOOP, "--graph"), "graph"), (("inspect", LOOP, "--nodes"), "nodes"),
    (("diff", LOOP, MODELS / "pytorch" / "decoder.onnx"), "diff"),
    (("diff", LOOP, "ir.xml"), "layers"),
    (("convert", LOOP, "-o", "m.xml", "--mapping", "map.json", "--profile-json", "profile.json"), "convert"),
    (("verify", LOOP, "--sets", "1"), "verify"), (("ops", "Loop"), "ops"),
    (("batch", "good.onnx", "bad.onnx", "-o", "out", "-j", "1"), "batch report"),
    (("reduce", "bad.onnx", "-o", "small.onnx", "--if", "fails", "-j", "1"), "reduce"),
    (("inspect", "none.onnx"), "error"), (("convert", "none.onnx"), "error"),
    (("diff", "none.onnx", "none.onnx"), "error"), (("ops", "NoSuchOperator"), "error"),
    (("verify", "none.onnx"), "error"),
]
"""A command without `--format json`, and the document that it prints."""


@pytest.mark.parametrize(
    ("arguments", "name"), ON_STDOUT, ids=lambda value: value if isinstance(value, str) else value[0]
)
def test_documents_on_stdout(arguments: tuple[Any, ...], name: str, tmp_path: Path) -> None:
    if "ir.xml" in arguments:
        mo_loop("convert", LOOP, "-o", "ir.xml", "--quiet", cwd=tmp_path)
    good(tmp_path / "good.onnx")
    refused(tmp_path / "bad.onnx")
    done = mo_loop(*arguments, "--format", "json", cwd=tmp_path)
    assert valid(json.loads(done.stdout)) == f"mo-loop {name}"
    for file in ("map.json", "profile.json"):
        if (tmp_path / file).exists():
            valid(json.loads((tmp_path / file).read_text("utf-8")))


def test_the_document_of_an_ir_that_differs(tmp_path: Path) -> None:
    """With all answers that it can have: a piece, a pass, a page, and the run with the defaults of the device."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
        main (float[3] x) => (float[3] y) <float w = {2.0}> { y = Mul (x, w) }"""
    for name, number in (("model", "2.0"), ("other", "3.0")):
        onnx.save(onnx.parser.parse_model(text.replace("2.0", number)), tmp_path / f"{name}.onnx")
    mo_loop("convert", "other.onnx", "-o", "other.xml", "--quiet", cwd=tmp_path)
    asked = ("--layers", "--passes", "--dump", "steps", "--sets", "1", "--format", "json")
    document = json.loads(mo_loop("verify", "model.onnx", "other.xml", *asked, cwd=tmp_path).stdout)
    assert valid(document) == "mo-loop verify"
    assert {"verdict", "pieces", "defaults", "layers", "passes", "page", "cause"} <= set(document)


def test_no_command_is_left_out() -> None:
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in COMMANDS}
    forms = {
        name for name, command in commands.items() if command is not None for option in command.params
        if "json" in getattr(option.type, "choices", ()) and "--format" in option.opts
    }
    assert forms == {arguments[0] for arguments, _ in ON_STDOUT}


def test_the_files_of_a_dump(tmp_path: Path) -> None:
    mo_loop("convert", LOOP, "-o", "m.xml", "--dump", "steps", "--dump-format", "json", cwd=tmp_path)
    names = [valid(json.loads(file.read_text("utf-8"))) for file in (tmp_path / "steps").glob("*.json")]
    assert {*names} == {"mo-loop dump", "mo-loop dumped graph"} and names.count("mo-loop dumped graph") > 5
    assert valid(shown_on(tmp_path / "steps" / "index.html")) == "mo-loop page"


@pytest.mark.parametrize("models", [(LOOP,), (LOOP, MODELS / "pytorch" / "decoder.onnx"), (LOOP, "m.xml")])
def test_the_data_of_a_page(models: tuple[Any, ...], tmp_path: Path) -> None:
    if "m.xml" in models:
        mo_loop("convert", LOOP, "-o", "m.xml", "--quiet", cwd=tmp_path)
    mo_loop("view", *models, "-o", "page.html", cwd=tmp_path)
    assert valid(shown_on(tmp_path / "page.html")) == "mo-loop page"


def shown_on(page: Path) -> Any:
    found = re.search(r'<script type="application/gzip" id="document">(.*?)</script>', page.read_text("utf-8"))
    assert found is not None
    return json.loads(gzip.decompress(b64decode(found[1])))


def test_every_definition_is_one_of_the_documents() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert [each["$ref"].rpartition("/")[2] for each in SCHEMA["oneOf"]] == [*SCHEMA["$defs"]]
