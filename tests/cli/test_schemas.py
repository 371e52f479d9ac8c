"""Every JSON document that a command writes is one of docs/schemas/mo-loop.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests import MODELS, ROOT

from .batches import good, refused
from .installed import mo_loop

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "mo-loop.json").read_text("utf-8"))
LOOP = MODELS / "pytorch" / "while_collatz.onnx"


def valid(document: Any) -> str:
    """The name of a document that fits its schema."""
    validator = jsonschema.Draft202012Validator({**SCHEMA["$defs"][key_of(document)], "$defs": SCHEMA["$defs"]})
    assert [error.message for error in validator.iter_errors(document)] == []
    name: str = document["schema"]
    return name


def key_of(document: Any) -> str:
    name: str = document["schema"]
    return name.removeprefix("mo-loop ").replace(" ", "-")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("check", LOOP), "check"),
        (("check", "--codes"), "codes"),
        (("inspect", LOOP), "inspect"),
        (("inspect", LOOP, "--graph"), "graph"),
        (("inspect", LOOP, "--nodes"), "nodes"),
        (("diff", LOOP, MODELS / "pytorch" / "decoder.onnx"), "diff"),
        (("diff", LOOP, "ir.xml"), "layers"),
        (("convert", LOOP, "-o", "m.xml", "--mapping", "map.json", "--profile-json", "profile.json"), "convert"),
        (("verify", LOOP, "--sets", "1"), "verify"),
        (("ops", "Loop"), "ops"),
        (("inspect", "none.onnx"), "error"),
        (("convert", "none.onnx"), "error"),
        (("diff", "none.onnx", "none.onnx"), "error"),
        (("ops", "NoSuchOperator"), "error"),
        (("verify", "none.onnx"), "error"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_documents_on_stdout(arguments: tuple[Any, ...], name: str, tmp_path: Path) -> None:
    if "ir.xml" in arguments:
        mo_loop("convert", LOOP, "-o", "ir.xml", "--quiet", cwd=tmp_path)
    done = mo_loop(*arguments, "--format", "json", cwd=tmp_path)
    assert valid(json.loads(done.stdout)) == f"mo-loop {name}"
    for file in ("map.json", "profile.json"):
        if (tmp_path / file).exists():
            valid(json.loads((tmp_path / file).read_text("utf-8")))


def test_the_report_of_a_batch(tmp_path: Path) -> None:
    good(tmp_path / "good.onnx")
    refused(tmp_path / "bad.onnx")
    mo_loop("batch", tmp_path, "-o", tmp_path / "out", "--report", tmp_path / "report.json", "-j", "1")
    assert valid(json.loads((tmp_path / "report.json").read_text("utf-8"))) == "mo-loop batch report"


def test_every_definition_is_one_of_the_documents() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert [each["$ref"].rpartition("/")[2] for each in SCHEMA["oneOf"]] == [*SCHEMA["$defs"]]
