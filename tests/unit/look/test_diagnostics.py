"""The findings of `examine`: always the errors of a conversion. Each kind is in tests/cli/recorded/findings.txt."""

import ast
import inspect
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mo_loop import errors
from mo_loop.api import ConvertArguments, convert_model, save_model
from mo_loop.conversion import Conversion
from mo_loop.conversion_limits import Limits
from mo_loop.errors import ConversionErrors, ExtensionError, MoLoopError, UsageError
from mo_loop.graph import Graph
from mo_loop.look.diagnostics import examine as diagnostics
from mo_loop.look.diagnostics.codes import CODES
from mo_loop.look.diagnostics.diagnostic import CheckReport, Diagnostic, exit_code, grouped
from mo_loop.options import ConvertOptions
from mo_loop.transforms.low_precision.weights import rounded_products
from tests import ROOT
from tests.cli.test_bad_input import BROKEN
from tests.harness import parsed, raised, with_weights, without
from tests.texts import model_of, sections

MODELS = sorted((ROOT / "tests" / "models").glob("*/*.onnx"))

LOOP = """
main (float[3] x, int64 n) => (float[3] y) {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c) [inner] t = Neg (s) }> }"""


def examine(source: Any, **options: Any) -> CheckReport:
    return diagnostics.examine(source, ConvertOptions(**options))


def codes(report: CheckReport, level: str | None = None) -> set[str]:
    return {each.code for each in report.diagnostics if level in (None, each.level)}


def found(source: Any, **arguments: Any) -> set[tuple[str, str]]:
    """(code, path) of all diagnostics; none of them is a bug."""
    report = examine(source, **arguments)
    assert report.refused is None and not report.trouble, report.refused or report.trouble
    return {(each.code, str(each.place)) for each in report.diagnostics}


def only(source: Any, code: str, **arguments: Any) -> Diagnostic:
    """The only diagnostic of that code."""
    (diagnostic,) = [each for each in examine(source, **arguments).diagnostics if each.code == code]
    return diagnostic


# -- errors are those of the conversion


def refusal(source: Any, **arguments: Any) -> set[str]:
    """The codes with which a conversion fails; empty if it succeeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            convert_model(source, **arguments)
        except ConversionErrors as error:
            return {each.code for each in error.errors}
        except MoLoopError as error:
            return {error.code}
    return set()


def assert_same_errors(source: Any) -> None:
    refused, report = refusal(source), examine(source)
    assert not report.trouble, report.trouble
    assert refused <= codes(report, "error") | ({report.refused.code} if report.refused else set())
    assert bool(refused) == bool(report.exit_code and (report.refused or codes(report, "error")))


MADE = {name: make() for name, (make, _) in BROKEN.items()}
MADE |= {name: model for kind, name, text in sections(ROOT / "tests" / "cli" / "recorded" / "broken.txt")
         if kind == "file" and (model := model_of(name, text)[1])}


@pytest.mark.parametrize("name", MADE)
def test_broken_models(name: str) -> None:
    assert_same_errors(MADE[name])


@pytest.mark.parametrize("seed", range(40))
def test_damaged_models(seed: int) -> None:
    """Some bytes changed: diagnostics, or an error as in a conversion, never an exception of another kind."""
    rng = np.random.default_rng(seed)
    data = bytearray(MODELS[int(rng.integers(len(MODELS)))].read_bytes())
    for _ in range(int(rng.integers(1, 6))):
        data[rng.integers(len(data))] = rng.integers(256)
    assert_same_errors(bytes(data))


def test_same_options_as_a_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that change the conversion, with the same defaults; the others only change messages and files."""
    arguments = {**inspect.signature(convert_model).parameters, **inspect.signature(save_model).parameters}
    others = {"source", "dump", "observers", "stop_after", "check_passes", "model", "xml_path", "durable"}
    converting = {name: each.default for name, each in arguments.items() if name not in others}
    assert converting == {each.name: each.default for each in fields(ConvertOptions)}
    seen: list[ConvertOptions] = []

    class Noting(Conversion):
        def __init__(self, options: ConvertOptions, *_: Any, **__: Any) -> None:
            seen.append(options)

        def run(self, source: Any) -> Graph:
            return Graph()

    monkeypatch.setattr("mo_loop.api.Conversion", Noting)
    known: dict[str, Any] = {
        "sequence_io": "packed", "target": "2025.4", "quantization": "exact", "limits": Limits(nodes=3),
        "device": "GPU", "transform": "LowLatency2", "stateful_pairs": {"a": "b"}, "beam_idx": True,
    }
    for name in converting.keys() - {"compress_to_fp16"}:
        given = {name: known.get(name, object())}
        if name in ("stateful_pairs", "beam_idx"):
            given["stateful"] = True  # without it they have no effect, and are refused
        convert_model("x.onnx", **given)
        assert seen.pop() == ConvertArguments(**given)


# -- all errors, not only the first


def test_opsets() -> None:
    newer = parsed("main (float[3] x) => (float[3] y) { y = Neg (x) }")
    newer.opset_import[0].version = 999
    assert codes(examine(newer)) == {"ML222"}
    del newer.opset_import[:]
    assert codes(examine(newer)) == {"ML221"}


def test_names_that_are_no_text() -> None:
    data = parsed("main (float[3] x) => (float[3] y) { qqqq = Abs (x) y = Neg (qqqq) }").SerializeToString()
    report = examine(data.replace(b"qqqq", b"\xff\xfe\xff\xfe"))
    assert codes(report, "error") == {"ML220"} and not report.trouble


def test_a_cut_that_does_not_fit_is_refused() -> None:
    for arguments in ({"input": "ghost"}, {"output": ["ghost"]}, {"input": "x[2]->[1,2,3]"}):
        report = examine(parsed(LOOP), **arguments)
        assert isinstance(report.refused, UsageError) and report.exit_code == 2


def test_arguments_that_fit_no_model() -> None:
    raised(UsageError, examine, parsed(LOOP), sequence_io="loose")
    raised(ExtensionError, examine, parsed(LOOP), extensions=["there_is_no_such.py"])


def test_a_configuration_is_left_as_it_was() -> None:
    config = without("NopElimination")
    assert examine(parsed(LOOP), config=config).refused is None
    assert config.named == {"NopElimination"} and not config.explanations
    config.disable("NoSuchPass")
    assert isinstance(examine(parsed(LOOP), config=config).refused, UsageError)


def test_a_bug_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("mo_loop.conversion.translate", stumble)
    report = examine(parsed(LOOP))
    assert codes(report, "error") == {"ML499"} and report.exit_code == 4 and "stumble" in report.trouble


def test_exit_codes() -> None:
    note, error = Diagnostic("ML520", ""), Diagnostic("ML302", "")
    warning, bug = Diagnostic("ML501", ""), Diagnostic("ML400", "")
    refused = CheckReport("x", refused=UsageError("no"))
    assert [CheckReport("x", each).exit_code for each in ([], [note], [warning], [error], [bug])] == [0, 0, 1, 1, 4]
    assert exit_code([CheckReport("x", [error]), refused]) == 2 and exit_code([]) == 0


# -- places


def test_places_in_functions_and_bodies() -> None:
    """Paths go through calls and bodies; names may hold slashes."""
    text = """main (float[3] x, bool f) => (float[3] y) {
      [outer] y = If (f) <
        then_branch = a () => (float[3] p) { [call] p = my.twice (x) },
        else_branch = b () => (float[3] q) { q = Neg (x) }> }
    <domain: "my", opset_import: ["": 18]> twice (v) => (w) { [first] u = Neg (v) [second] w = Nope (u) }"""
    data = parsed(text, my=1).SerializeToString()
    for name, other in ((b"outer", b"out/r"), (b"call", b"ca/1"), (b"second", b"secon/")):  # of the same length
        data = data.replace(name, other)
    (diagnostic,) = examine(data).diagnostics
    place = diagnostic.place
    assert (place.path, place.scope) == ("out/r/a/ca/1/secon/", "out/r/a/ca/1")
    assert (place.node, place.operator) == ("secon/", "Nope")


def test_a_node_of_several_is_named_after_the_operator() -> None:
    """Bernoulli becomes several nodes; the random one has no name in ONNX."""
    place = only(parsed("main (float[3] x) => (float[3] y) { [draw] y = Bernoulli (x) }", 22), "ML503").place
    assert str(place) == "draw (Bernoulli)"


# -- numbers


COMPRESSED = """main (float[N,64] x) => (float[N,32] y) <float[32] s, TYPE[64,32] w, TYPE[32] z> {
  v = DequantizeLinear <axis = 1> (w, s ZERO) y = MatMul (x, v) }"""
"""Weights of the whole range do not fit i8 without their zero points."""


@pytest.mark.parametrize(
    ("kind", "zero", "rounded"),
    [("int8", "", True), ("int8", ", z", False), ("uint8", ", z", True), ("float", None, False)],
)
def test_activations_before_compressed_weights(kind: str, zero: str | None, rounded: bool) -> None:
    """The runtime does not round those of i8 weights with zero points, nor those of weights in f32."""
    text = COMPRESSED.replace("TYPE", kind).replace("ZERO", zero or "")
    text = text if zero is not None else text.replace("DequantizeLinear <axis = 1> (w, s )", "Mul (w, s)")
    model, random = parsed(text), np.random.default_rng(5)
    least = 0 if kind == "uint8" else -128
    arrays = {"s": np.ones(32, np.float32), "w": random.integers(least, least + 256, (64, 32)), "z": np.arange(32)}
    for name, array in arrays.items():
        array = array.astype({"float": np.float32}.get(kind, kind) if name != "s" else np.float32)
        with_weights(model, {name: array})
    assert ("ML500" in codes(examine(model))) is rounded
    assert "ML500" not in codes(examine(model, quantization="exact"))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        converted = convert_model(model)
    said = [each for each in heard if getattr(each.message, "code", "") == "ML500"]
    assert len(said) == rounded and all("DYNAMIC_QUANTIZATION_GROUP_SIZE" in str(each.message) for each in said)
    assert len(rounded_products(converted.graph)) == rounded


# -- assumptions


def test_what_the_checker_refuses() -> None:
    """A model that converts all the same; for one that does not, the conversion reports more."""
    model = parsed("main (float[3] x) => (float[3] y) { y = Neg (x) }")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert only(model, "ML513").level == "note"
    model.graph.node[0].op_type = "Nope"
    assert codes(examine(model)) == {"ML302"}


def test_the_checker_reads_no_weights(tmp_path: Path) -> None:
    """Large data stays in its file and is not reported."""
    weights = numpy_helper.from_array(np.ones((1024, 1024), np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1024, 1024]) for name in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [weights])
    path = tmp_path / "large.onnx"
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]), path)
    assert found(path) == set()


LIST = """main (float[A,B] x, float[C,D] y, int64 p) => (float[E,F] z) {
  [make] s = SequenceConstruct (x, y) [put] t = SequenceInsert (s, x, p) z = SequenceAt (t, p) }"""


def nested(depth: int) -> onnx.ModelProto:
    """Nested Ifs."""
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["v0"])], "b0", [], [_value("v0")])
    for level in range(1, depth + 1):
        other = helper.make_graph(
            [helper.make_node("Abs", ["x"], [f"o{level}"])], f"e{level}", [], [_value(f"o{level}")]
        )
        name = f"v{level}"
        node = helper.make_node("If", [f"f{level}"], [name], f"if{level}", then_branch=body, else_branch=other)
        body = helper.make_graph([node], f"b{level}", [], [_value(name)])
    flags = [helper.make_tensor_value_info(f"f{level}", TensorProto.BOOL, []) for level in range(1, depth + 1)]
    graph = helper.make_graph(body.node, "main", [_value("x"), *flags], body.output)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])


def _value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])


def test_nested_ifs() -> None:
    assert found(nested(15)) == set() and found(nested(16)) == {("ML530", "if16 (If)")}


# -- the table


def test_the_table_holds_every_code() -> None:
    """Every code in the sources is explained, and every explained code occurs in the sources."""
    given: set[str] = set()
    for path in [*(ROOT / "mo_loop").rglob("*.py"), *(ROOT / "transforms").rglob("*.py")]:
        if path.name != "codes.py":
            given |= set(re.findall(r"\bML[2-5]\d\d\b", path.read_text("utf-8")))
    assert given - CODES.keys() == set(), "explain these in mo_loop/look/diagnostics/codes.py"
    assert CODES.keys() - given == set(), "nothing gives these"


MEANINGS = ROOT / "tests" / "unit" / "codes.txt"
"""Each code with its meaning, and below it every message that has it."""


@cache
def messages_by_code() -> dict[str, set[tuple[str, str]]]:
    """Code -> the classes and messages of the errors and warnings with it; `_` is a part known at run time."""
    found: dict[str, set[tuple[str, str]]] = {code: set() for code in CODES}
    for path in [*(ROOT / "mo_loop").rglob("*.py"), *(ROOT / "transforms").rglob("*.py")]:
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "code=" in text else ():
            code = next((each.value for each in getattr(node, "keywords", ()) if each.arg == "code"), None)
            if isinstance(node, ast.Call) and isinstance(code, ast.Constant) and code.value in CODES and node.args:
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                found[str(code.value)].add((name, template(node.args[0])))
    return found


def template(text: ast.expr) -> str:
    """The text of a message without what it learns at run time."""
    if isinstance(text, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "_" for each in text.values)
    return str(text.value) if isinstance(text, ast.Constant) else "_"


def test_a_code_has_one_meaning() -> None:
    """A message with a code is below the meaning of the code, where a reader can compare them.

    UPDATE_GOLDEN=1 writes the list anew: look at the difference before you keep it.
    """
    lines = []
    for code, messages in messages_by_code().items():
        texts = sorted({text for _, text in messages if text != "_"})
        lines += [f"{code} {CODES[code].title}", *(f"    {each}" for each in texts)]
    text = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        MEANINGS.write_text(text, "utf-8")
    assert text == MEANINGS.read_text("utf-8")


@pytest.mark.parametrize("code", CODES)
def test_the_errors_of_a_code_end_with_one_exit_code(code: str) -> None:
    classes = [getattr(errors, name, None) for name, _ in messages_by_code()[code]]
    assert len({each.exit_code for each in classes if hasattr(each, "exit_code")}) <= 1


def test_two_codes_do_not_have_one_meaning() -> None:
    titles = [each.title for each in CODES.values()]
    assert len({*titles}) == len(titles)


@pytest.mark.parametrize("code", CODES)
def test_texts_of_the_table(code: str) -> None:
    """Their parts are joined: a title is a phrase, reasons and helps are sentences without a full stop."""
    meaning = CODES[code]
    for text in (meaning.title, meaning.why, meaning.help):
        assert text == text.strip() and not text.endswith(".") and "  " not in text
    assert meaning.title and (meaning.level == "error") == (code < "ML500")
    assert meaning.why and meaning.help


def test_reports_are_the_same_every_time() -> None:
    made: list[Callable[[], Any]] = [lambda: parsed(LIST), lambda: nested(16), lambda: MODELS[0]]
    for make in made:
        assert examine(make()).diagnostics == examine(make()).diagnostics


def test_warnings_of_one_code_are_one_group_and_errors_of_one_message() -> None:
    several = [Diagnostic("ML510", f"t{number} is declared as f32[2]", why="w") for number in range(16)]
    found = grouped([*several, Diagnostic("ML303", "a"), Diagnostic("ML303", "b"), Diagnostic("ML303", "b")])
    assert [each.message for each in found] == [
        "t0 is declared as f32[2] (16 times, with other names or numbers)", "a", "b (2 times)",
    ]
