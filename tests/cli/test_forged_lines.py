"""A line break in a name of a model makes no line of a log: neither a message nor a command of a CI system."""

import json
import re
import subprocess
import warnings
from pathlib import Path

import onnx
import pytest

from mo_loop.cli.output import safe
from mo_loop.errors import ConversionErrors, ConversionWarning, InternalError, ModelError, traceback_text
from mo_loop.origin import Origin

from .commands import saved
from .installed import mo_loop

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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forged")
    saved(model(), folder, "good.onnx")
    saved(model("Abs"), folder, "other.onnx")
    saved(model(f"Op{LINES}", f"u{LINES}"), folder, "operator.onnx")
    saved(model(read=f"nothing{LINES}"), folder, "undefined.onnx")
    wrong = model()
    wrong.graph.node.add(op_type="Softmax", input=[f"z{LINES}"], output=[f"q{LINES}"], name=f"softmax{LINES}")
    wrong.graph.node[-1].attribute.append(onnx.helper.make_attribute("axis", 77))
    wrong.graph.output.add(name=f"q{LINES}")
    saved(wrong, folder, "axis.onnx")
    short = model()
    short.graph.initializer.add(name=f"w{LINES}", data_type=1, dims=[3], raw_data=b"123")
    short.graph.node.add(op_type="Add", input=[f"z{LINES}", f"w{LINES}"], output=[f"q{LINES}"])
    short.graph.output.add(name=f"q{LINES}")
    saved(short, folder, "tensor.onnx")
    return folder


def ran(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = mo_loop(*arguments, cwd=folder)
    assert_not_forged(done.stdout, done.stderr)
    return done


@pytest.mark.parametrize("name", ["good", "operator", "undefined", "axis", "tensor"])
def test_convert_and_check(folder: Path, name: str) -> None:
    done = ran(folder, "convert", f"{name}.onnx", "-o", "out.xml", "--debug")
    assert "\\n::error::forged\\n" in done.stderr
    ran(folder, "convert", f"{name}.onnx", "-o", "out.xml", "--format", "json")
    for form in ("text", "markdown", "json", "sarif"):
        assert "::error::forged" in ran(folder, "check", f"{name}.onnx", "--format", form).stdout


def test_inspect_diff_and_what_passes_tell(folder: Path) -> None:
    for options in ((), ("--graph",), ("--nodes",)):
        ran(folder, "inspect", "good.onnx", *options)
    ran(folder, "diff", "good.onnx", "other.onnx", "--all")
    ran(folder, "diff", "good.onnx", "axis.onnx")
    ran(folder, "convert", "good.onnx", "-o", "out.xml", "--mapping", "map.json", "--verbose",
        "--explain-pass", "ConstantsReduce,LoopToTI")
    text = (folder / "map.json").read_text()
    assert LINE.search(text) is None and f"n{LINES}" in str(json.loads(text)).encode().decode("unicode_escape")
    ran(folder, "inspect", "out.xml", "--nodes")
    ran(folder, "reduce", "axis.onnx", "-o", "small.onnx", "--if", "fails ML235", "-j", "1")


def test_batch_and_its_reports(folder: Path) -> None:
    reports = ("--report", "report.json", "--junit", "report.xml", "--summary", "report.md")
    assert "\\n::error::forged" in ran(folder, "batch", ".", "-o", "out", "-j", "1", *reports).stderr
    for name in ("report.json", "report.xml", "report.md"):
        text = (folder / name).read_text()
        assert "forged" in text and LINE.search(text) is None, name


def test_verify(folder: Path) -> None:
    for form in ("text", "markdown", "junit"):
        ran(folder, "verify", "good.onnx", "--input", f"x{LINES}[2,3]", "--format", form)


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


def test_other_warnings_are_one_line_each(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mo_loop.cli.output import printed_warnings

    texts: list[str] = []
    with printed_warnings(texts):
        warnings.warn(f"a library says{LINES}", UserWarning, stacklevel=1)
    assert_not_forged(*texts)


def test_lines_that_begin_with_a_command() -> None:
    assert safe("a::b\n::error::c\n  ::d::\n## Title [1]\na ##vso[x]") == (
        "a::b\n\\u003a:error::c\n  \\u003a:d::\n## Title [1]\na #\\u0023vso[x]"
    )
