"""Names in models are untrusted: no control characters, no lines of a log, short texts."""

import json
import re
import subprocess
import warnings
from itertools import pairwise
from pathlib import Path

import onnx
import pytest

from mo_loop.cli.output import ESCAPE, painted, safe
from mo_loop.errors import ConversionErrors, ConversionWarning, InternalError, ModelError, traceback_text
from mo_loop.origin import Origin
from mo_loop.printable import printable, printable_record, shortened
from tests.cli.commands import mo_loop, saved
from tests.cli.test_check_command import on_a_terminal

# -- Names in models are untrusted: their control characters are not printed, and long ones are shortened


HOSTILE = [
    "a\x1b[2J\x1b]0;title\x07", "line\nbreak\r", "\u202eright to left", "two words, a comma", 'a "quote"', "\x9b31m",
    "\n::error::x", "\n##vso[task.complete]", "x" * 10_000,
]


def hostile_model() -> onnx.ModelProto:
    helper, kind = onnx.helper, onnx.TensorProto
    names = ["input\x1b[31m", *HOSTILE]
    nodes = [
        helper.make_node("Relu", [before], [after], name=f"node {after}")
        for before, after in pairwise(names)
    ]
    body = helper.make_graph(
        [helper.make_node("Identity", [names[1]], [f"then {names[1]}"])], "body\x1b[2J\n\u202e", [],
        [helper.make_tensor_value_info(f"then {names[1]}", kind.FLOAT, ["N\x1b[2J", 2])],
    )
    nodes.append(helper.make_node("If", ["flag\x07"], ["out\x1b"], "if\x1b[2J\n", then_branch=body, else_branch=body))
    graph = helper.make_graph(
        nodes, "main\x1b[2J",
        [helper.make_tensor_value_info(names[0], kind.FLOAT, ["a\x1b[2J,\u202e", 2]),
         helper.make_tensor_value_info("flag\x07", kind.BOOL, [])],
        [helper.make_tensor_value_info(each, kind.FLOAT, None) for each in (names[-1], "out\x1b")],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("dom\x1b[2J\n", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.producer_name = "made\x1b[8m by\n"
    helper.set_model_props(model, {"key\x1b[2J\n": "value\x1b[2J\u202e"})
    return model


COMMANDS = [
    ("inspect", "model.onnx"), ("inspect", "model.onnx", "--format", "json"), ("inspect", "model.onnx", "--graph"),
    ("inspect", "model.onnx", "--nodes"), ("inspect", "model.onnx", "--nodes", "--format", "json"),
    ("inspect", "model.onnx", "--nodes", "--operator", "Rel"), ("inspect", "model.onnx", "--graph", "--scope", "if"),
    ("check", "model.onnx"), ("diff", "model.onnx", "other.onnx"), ("ops", "Rel\x1b[2Ju"),
    ("convert", "model.onnx", "-o", "m.xml"), ("convert", "model.onnx", "-o", "m.xml", "--output", "nothing"),
    ("convert", "model.onnx", "-o", "m.xml", "--explain-pass", "all", "--debug"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    other = hostile_model()
    other.graph.node[0].op_type = "Abs"
    saved(other, folder).rename(folder / "other.onnx")
    saved(hostile_model(), folder)
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_terminal_gets_no_control_characters(folder: Path, command: tuple[str, ...]) -> None:
    arguments = [str(folder / each) if "." in each else each for each in command]
    shown = on_a_terminal(*arguments, PYTHONIOENCODING="utf-8").replace("\r\n", "\n")
    assert "input\x1b[31m" not in shown and "by\x1b[8m" not in shown
    # The colours of the command, and its line of progress if the machine is busy.
    rest = re.sub(r"\x1b\[([0-9;]*m|\?25[lh]|2K|1A)|\r(?=\x1b\[)", "", shown)
    assert all(each.isprintable() or each == "\n" for each in rest)
    assert not re.search(r"^\s*::|##\w*\[", rest, re.MULTILINE)  # no command of a CI system


def test_a_pipe_gets_none_either(folder: Path) -> None:
    for option in ("--graph", "--nodes", "--depth=9"):
        shown = mo_loop("inspect", folder / "model.onnx", option).stdout
        assert all(each.isprintable() or each == "\n" for each in shown), option
        assert "\\u001b[2J" in shown and "\\u202e" in shown, option


def test_json_has_the_names_as_they_are(folder: Path) -> None:
    path = folder / "model.onnx"
    rows = json.loads(mo_loop("inspect", path, "--nodes", "--format", "json").stdout)["nodes"]
    assert set(HOSTILE) <= {port["name"] for row in rows for port in row["outputs"]}
    assert rows[0]["outputs"][0]["shape"] == ["a\x1b[2J,\u202e", 2]
    found = json.loads(mo_loop("inspect", path, "--format", "json").stdout)
    assert found["inputs"][0] == {"name": "input\x1b[31m", "type": "f32", "shape": ["a\x1b[2J,\u202e", 2]}
    assert found["metadata"] == {"key\x1b[2J\n": "value\x1b[2J\u202e"}


def test_long_names_are_shortened_in_the_text(folder: Path) -> None:
    path = folder / "model.onnx"
    for option in ("--graph", "--depth=9"):
        assert max(map(len, mo_loop("inspect", path, option).stdout.splitlines())) < 1000
    table = mo_loop("inspect", path, "--nodes").stdout
    assert "x" * 10_000 in table and '"two words, a comma"' in table  # complete, to be copied


def test_only_colours_of_the_command_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mo_loop.cli.output.is_coloured", lambda stream: True)
    name = painted("a\x1b[31m", bold=True)
    shown = safe(f"{name} b\x1b[8m\n\udc1bc")
    assert shown == f"{ESCAPE}[1ma\\u001b[31m{ESCAPE}[0m b\\u001b[8m\n\\udc1bc"


def test_printable() -> None:
    assert printable("plain \u4e16\u754c") == "plain \u4e16\u754c"
    assert printable("a\n::error::b") == "a\\n::error::b" and printable("::error::a") == "\\u003a:error::a"
    assert printable("a##vso[b] ##[c] ## [d]") == "a#\\u0023vso[b] #\\u0023[c] ## [d]"
    assert printable("a\tb\u2028\x7f\U000e0001") == "a\\tb\\u2028\\u007f\\udb40\\udc01"
    assert printable_record({"a\n": ["b\r", 1]}) == {"a\\n": ["b\\r", 1]}
    assert shortened("x" * 100 + "end", 20) == "xxxxxxxx...xxxxxxend"


# -- A line break in a name of a model makes no line of a log: neither a message nor a command of a CI system


LINES = "\n::error::forged\n##vso[task.complete]forged\n##[forged]\nerror: forged\r\u2028forged\n"

LINE = re.compile(r"^\s*(::|##\w*\[|error: forged|forged)", re.MULTILINE)
FORGED = re.compile(rf"{LINE.pattern}|##\w*\[", re.MULTILINE)


def assert_not_forged(*texts: str) -> None:
    for text in texts:
        assert FORGED.search(text) is None, text
        assert all(each.isprintable() or each == "\n" for each in text)


def model(operator: str = "Relu", domain: str = "", read: str = f"x{LINES}") -> onnx.ModelProto:
    """A node, a call of a function and a Loop, with line breaks in all names."""
    helper, float_, int_ = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    e = LINES
    function = helper.make_function(
        f"dom{e}", f"fn{e}", [f"a{e}"], [f"b{e}"], [helper.make_node("Exp", [f"a{e}"], [f"b{e}"], name=f"exp{e}")],
        [helper.make_opsetid("", 18)],
    )
    body = helper.make_graph(
        [helper.make_node("Identity", [f"c{e}"], [f"d{e}"]), helper.make_node("Neg", [f"s{e}"], [f"t{e}"], f"neg{e}")],
        f"body{e}",
        [helper.make_tensor_value_info(f"i{e}", int_, []),
         helper.make_tensor_value_info(f"c{e}", onnx.TensorProto.BOOL, []),
         helper.make_tensor_value_info(f"s{e}", float_, None)],
        [onnx.ValueInfoProto(name=f"d{e}"), onnx.ValueInfoProto(name=f"t{e}")],
    )
    nodes = [
        helper.make_node(operator, [read], [f"y{e}"], name=f"n{e}", domain=domain, **{f"odd{e}": f"value{e}"}),
        helper.make_node(f"fn{e}", [f"y{e}"], [f"z{e}"], name=f"call{e}", domain=f"dom{e}"),
        helper.make_node("Loop", [f"N{e}", "", f"z{e}"], [f"o{e}"], name=f"loop{e}", body=body),
    ]
    graph = helper.make_graph(
        nodes, f"main{e}",
        [helper.make_tensor_value_info(f"x{e}", float_, [f"dim{e}", 3]),
         helper.make_tensor_value_info(f"N{e}", int_, [])],
        [onnx.ValueInfoProto(name=f"o{e}")],
    )
    opsets = [helper.make_opsetid(name, number) for name, number in (("", 18), (f"dom{e}", 1), (f"u{e}", 1))]
    made = helper.make_model(graph, opset_imports=opsets, functions=[function], producer_name=f"by{e}", ir_version=9)
    helper.set_model_props(made, {f"key{e}": f"value{e}"})
    return made


@pytest.fixture(scope="module")
def forged_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    forged_folder = tmp_path_factory.mktemp("forged")
    saved(model(), forged_folder, "good.onnx")
    saved(model("Abs"), forged_folder, "other.onnx")
    saved(model(f"Op{LINES}", f"u{LINES}"), forged_folder, "operator.onnx")
    saved(model(read=f"nothing{LINES}"), forged_folder, "undefined.onnx")
    wrong = model()
    wrong.graph.node.add(op_type="Softmax", input=[f"z{LINES}"], output=[f"q{LINES}"], name=f"softmax{LINES}")
    wrong.graph.node[-1].attribute.append(onnx.helper.make_attribute("axis", 77))
    wrong.graph.output.add(name=f"q{LINES}")
    saved(wrong, forged_folder, "axis.onnx")
    short = model()
    short.graph.initializer.add(name=f"w{LINES}", data_type=1, dims=[3], raw_data=b"123")
    short.graph.node.add(op_type="Add", input=[f"z{LINES}", f"w{LINES}"], output=[f"q{LINES}"])
    short.graph.output.add(name=f"q{LINES}")
    saved(short, forged_folder, "tensor.onnx")
    return forged_folder


def ran(forged_folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = mo_loop(*arguments, cwd=forged_folder)
    assert_not_forged(done.stdout, done.stderr)
    return done


@pytest.mark.parametrize("name", ["good", "operator", "undefined", "axis", "tensor"])
def test_convert_and_check(forged_folder: Path, name: str) -> None:
    done = ran(forged_folder, "convert", f"{name}.onnx", "-o", "out.xml", "--debug")
    assert "\\n::error::forged\\n" in done.stderr
    ran(forged_folder, "convert", f"{name}.onnx", "-o", "out.xml", "--format", "json")
    for form in ("text", "markdown", "json", "sarif"):
        assert "::error::forged" in ran(forged_folder, "check", f"{name}.onnx", "--format", form).stdout


def test_inspect_diff_and_what_passes_tell(forged_folder: Path) -> None:
    for options in ((), ("--graph",), ("--nodes",)):
        ran(forged_folder, "inspect", "good.onnx", *options)
    ran(forged_folder, "diff", "good.onnx", "other.onnx", "--all")
    ran(forged_folder, "diff", "good.onnx", "axis.onnx")
    ran(forged_folder, "convert", "good.onnx", "-o", "out.xml", "--mapping", "map.json", "--verbose",
        "--explain-pass", "ConstantsReduce,LoopToTI")
    text = (forged_folder / "map.json").read_text()
    assert LINE.search(text) is None and f"n{LINES}" in str(json.loads(text)).encode().decode("unicode_escape")
    ran(forged_folder, "inspect", "out.xml", "--nodes")
    ran(forged_folder, "reduce", "axis.onnx", "-o", "small.onnx", "--if", "fails ML235", "-j", "1")


def test_batch_and_its_reports(forged_folder: Path) -> None:
    reports = ("--report", "report.json", "--junit", "report.xml", "--summary", "report.md")
    assert "\\n::error::forged" in ran(forged_folder, "batch", ".", "-o", "out", "-j", "1", *reports).stderr
    for name in ("report.json", "report.xml", "report.md"):
        text = (forged_folder / name).read_text()
        assert "forged" in text and LINE.search(text) is None, name


def test_verify(forged_folder: Path) -> None:
    for form in ("text", "markdown", "junit"):
        ran(forged_folder, "verify", "good.onnx", "--input", f"x{LINES}[2,3]", "--format", form)


def test_an_error_keeps_names_and_prints_them_in_one_line() -> None:
    where = Origin((), f"node{LINES}")
    error = ModelError(f"nothing defines {LINES}", where=where, why=LINES, hint=LINES, during=LINES)
    assert LINES in error.message and LINES in error.where and LINES in error.hint
    assert str(error).count("\n") == 4
    assert_not_forged(str(error), str(ConversionErrors([error, error.at(Origin((), f"two{LINES}"))])))
    warning = ConversionWarning(f"a warning{LINES}", where=Origin(), code="ML520")
    assert LINES in warning.message
    assert_not_forged(str(warning))


def test_a_traceback_has_each_message_in_one_line() -> None:
    try:
        try:
            raise ValueError(f"a value{LINES}")
        except ValueError as cause:
            raise InternalError(f"a bug{LINES}", why=LINES) from cause
    except InternalError as error:
        text = traceback_text(error)
    assert_not_forged(text)
    assert '\n    raise ValueError(f"a value{LINES}")\n' in text and "\n  why:   \\n" in text


def test_other_warnings_are_one_line_each(forged_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mo_loop.cli.output import printed_warnings

    texts: list[str] = []
    with printed_warnings(texts):
        warnings.warn(f"a library says{LINES}", UserWarning, stacklevel=1)
    assert_not_forged(*texts)


def test_lines_that_begin_with_a_command() -> None:
    assert safe("a::b\n::error::c\n  ::d::\n## Title [1]\na ##vso[x]") == (
        "a::b\n\\u003a:error::c\n  \\u003a:d::\n## Title [1]\na #\\u0023vso[x]"
    )
