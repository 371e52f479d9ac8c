"""Every JSON document that a command writes is one of docs/schemas/mo-loop.json."""

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import click
import jsonschema
import onnx
import pytest

from mo_loop.cli import COMMANDS, main
from tests import MODELS, ROOT

from .batches import good, refused
from .installed import mo_loop

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
