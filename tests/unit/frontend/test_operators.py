"""The table of operators agrees with conversions."""

import json

import onnx
import pytest
from click.testing import CliRunner

from mo_loop.cli import main
from mo_loop.cli.ops import text
from mo_loop.frontend import registry, schemas
from mo_loop.frontend.operators import COMPOSED, DIRECT, FUNCTION, LIMITS, LOWERED, REFUSED, Handling, handled, merged

from .pending import PENDING

ROWS = {(row.operator, row.version): row for row in handled(domain="")}


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["ops", *arguments])
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def test_every_schema_that_is_not_deprecated_has_a_row() -> None:
    described = {
        (schema.domain, schema.name, schema.since_version)
        for schema in (*onnx.defs.get_all_schemas_with_history(), *schemas.contrib_schemas())
        if not schema.deprecated
    }
    assert {(row.domain, row.operator, row.version) for row in handled()} == described


@pytest.mark.parametrize(("operator", "version", "how", "becomes"), [
    ("Softmax", 13, DIRECT, ("SoftMax-8",)),
    ("Softmax", 1, COMPOSED, ("Reshape-1", "ShapeOf-3", "SoftMax-8")),
    ("Acos", 7, DIRECT, ("Acos-1",)), ("Sum", 8, COMPOSED, ("Add-1", "Convert-1")),
    ("Less", 7, DIRECT, ("Less-1",)), ("Less", 1, COMPOSED, ("Less-1", "Unsqueeze-1")),
    ("Greater", 13, COMPOSED, ("Greater-1", "Less-1")), ("Loop", 11, LOWERED, ("Loop-5", "TensorIterator-1")),
    ("SequenceAt", 11, LOWERED, ()),
    ("SequenceMap", 17, LOWERED, ("Loop-5", "TensorIterator-1")),
    ("RotaryEmbedding", 23, FUNCTION, ()), ("ImageDecoder", 20, REFUSED, ()),
])
def test_rows(operator: str, version: int, how: str, becomes: tuple[str, ...]) -> None:
    row = ROWS[operator, version]
    assert (row.how, row.becomes) == (how, becomes)


def test_what_is_checked_but_not_made_is_left_out() -> None:
    """Div looks for products of matrices before it, and makes none."""
    assert "MatMul-1" not in ROWS["Div", 14].becomes


def test_every_translator_of_a_known_operator_is_listed() -> None:
    """tests/conformance/test_operations_made.py compares the listed operations with the actual ones."""
    unlisted = [row.name for row in handled() if row.how in (DIRECT, COMPOSED) and not row.becomes]
    assert unlisted == []


def test_a_row_is_translated_exactly_if_the_registry_has_a_translator() -> None:
    for (operator, version), row in ROWS.items():
        is_translated = registry.find(operator, version) is not None
        assert (row.how in (DIRECT, COMPOSED, LOWERED)) == is_translated, row


def test_what_is_refused_says_why() -> None:
    assert {row.name for row in handled() if row.how == REFUSED and not row.note} == PENDING


def test_versions_that_are_handled_alike_are_joined() -> None:
    rows = [
        Handling("", "A", 1, DIRECT, ("X-1",), until=5), Handling("", "A", 6, DIRECT, ("X-1",), until=8),
        Handling("", "A", 9, COMPOSED, ("X-1",)), Handling("", "B", 1, COMPOSED, ("X-1",)),
    ]
    assert [(row.operator, row.opsets) for row in merged(rows)] == [("A", "1-8"), ("A", "9+"), ("B", "1+")]


def test_deprecated_versions_end_a_row() -> None:
    assert [row.until for row in handled("Upsample", "")][-1] == 9


def test_the_command_prints_the_operators_named() -> None:
    assert run("Softmax", "Elu").splitlines() == [
        "operator  opsets  how       becomes", "Elu       1+      direct    Elu-1",
        "Softmax   1-12    composed  Reshape-1, ShapeOf-3, SoftMax-8", "Softmax   13+     direct    SoftMax-8", "",
        "2 direct, 1 composed",
    ]


def test_json_holds_every_operation() -> None:
    rows = json.loads(run("Less", "--opset", "13", "--format", "json"))["operators"]
    assert rows == [
        {"domain": "ai.onnx", "operator": "Less", "since": 7, "until": None, "how": "direct", "becomes": ["Less-1"],
         "note": ""}
    ]


def test_operators_are_found_by_the_names_in_messages() -> None:
    """With their domain, unless that is the default one."""
    chosen = json.loads(run("com.microsoft::Gelu", "Less", "--format", "json"))["operators"]
    assert {(row["domain"], row["operator"]) for row in chosen} == {("com.microsoft", "Gelu"), ("ai.onnx", "Less")}
    (refused,) = json.loads(run("com.microsoft.nchwc::Conv", "--format", "json"))["operators"]
    assert "export it again with the level basic" in refused["note"]


def test_filters() -> None:
    shown = json.loads(run("--how", "refused", "--how", "function", "--format", "json"))["operators"]
    assert {row["how"] for row in shown} == {"refused", "function"}
    of_domain = json.loads(run("--domain", "ai.onnx.ml", "--format", "json"))["operators"]
    assert {row["domain"] for row in of_domain} == {"ai.onnx.ml"}


@pytest.mark.parametrize(("arguments", "message"), [
    (["gelu"], "did you mean 'Gelu'"),
    (["HardSwish", "--opset", "7"], "no operator matches"),
    (["--domain", "x"], "no domain"),
])
def test_what_is_not_there_is_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["ops", *arguments])
    assert result.exit_code == 2 and message in result.stderr


def test_a_note_stands_whole_in_the_line_of_its_operator() -> None:
    note = f"{'words ' * 40}end"
    shown = text([Handling("", "A", 1, DIRECT, ("X-1", "Y-1"), note)]).splitlines()
    assert shown[:2] == ["operator  opsets  how     becomes", f"A         1+      direct  X-1, Y-1; {note}"]
    assert shown[2:] == ["", "1 direct"]


def test_limits_name_operators_that_are_translated() -> None:
    known = {row.name for row in handled() if row.how != REFUSED}
    for name, limit in LIMITS.items():
        assert limit.operators == "*" or known.issuperset(limit.operators.split()), name
        assert limit.condition and limit.reason


def test_the_note_of_a_row_holds_its_limits() -> None:
    assert "32-bit integers above 2^24: the runtime divides in f32" in ROWS["Div", 14].note
