"""Names in models are untrusted: their control characters are not printed, and long ones are shortened."""

import json
import re
from itertools import pairwise
from pathlib import Path

import onnx
import pytest

from mo_loop.cli.output import ESCAPE, painted, safe
from mo_loop.printable import printable, printable_record, shortened

from .commands import saved
from .installed import mo_loop
from .test_check_command import on_a_terminal

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
