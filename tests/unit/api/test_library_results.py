"""The functions of the library: types and texts of their arguments, and what they return."""

import dataclasses
import inspect
import io
import json
import re
from pathlib import Path
from types import FunctionType
from typing import Any

import onnx
import onnx.parser
import pytest

import mo_loop
from mo_loop import ops
from mo_loop.batching.batch_options import BatchOptions
from mo_loop.compare.verify_options import VerifyOptions
from mo_loop.errors import UsageError
from mo_loop.options import ConvertOptions
from mo_loop.printable import ShownResult
from mo_loop.support.flags import flags_of

# -- The functions of the library: what they return is typed, short in a session, and complete as text and plain data


MODEL = """
<ir_version: 9, opset_import: ["": 18]>
m (float[N, 2] x, int64 n) => (float[N, 2] y) <float[2] w = {0.5, 2.0}> {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[N, 2] s) => (bool d, float[N, 2] t) {
    d = Identity (c) [times] t = Mul (s, w) }>
}"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(MODEL), "model.onnx")
    return "model.onnx"


def shown(result: Any) -> dict[str, Any]:
    """Its plain data; every form is there."""
    assert isinstance(result, ShownResult)
    short = repr(result)
    assert short.startswith(f"<{type(result).__name__} ") and "\n" not in short and len(short) < 100
    assert str(result) == result.text() and result._repr_html_().startswith("<pre>")
    data: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    return data


def test_check(model: str) -> None:
    report = mo_loop.check(model, target="2026.4")
    assert repr(report) == "<CheckReport model.onnx: 1 note>" and report
    (entry,) = shown(report)["models"]
    assert [each["code"] for each in entry["findings"]] == ["ML520"]
    assert not mo_loop.check("none.onnx") and mo_loop.check("none.onnx").refused is not None


def test_inspect(model: str) -> None:
    found = mo_loop.inspect(model)
    assert repr(found) == "<Inspection model.onnx: 3 nodes in 2 scopes>"
    assert "Loop loop" in found.text() and shown(found)["inputs"][0]["name"] == "x"


def test_diff(model: str) -> None:
    onnx.save(onnx.parser.parse_model(MODEL.replace("2.0", "3.0")), "other.onnx")
    found = mo_loop.diff(model, "other.onnx")
    assert repr(found) == "<Difference model.onnx -> other.onnx: 1 changed>" and len(shown(found)["changes"]) == 1


def test_verify_and_reduce(model: str) -> None:
    report = mo_loop.verify(model, options={"target": "2026.4"})
    assert repr(report) == "<Report model.onnx: every output agrees>" and shown(report)["passed"]
    found = mo_loop.reduce(model, "test -f {}", sets=1, seconds=60, jobs=1)
    assert shown(found)["after"]["nodes"] < shown(found)["before"]["nodes"]
    found.save("small.onnx")
    assert len(onnx.load("small.onnx").graph.node) <= 1


def test_batch(model: str) -> None:
    onnx.save(onnx.parser.parse_model(MODEL.replace("Mul (s, w)", "Unknown (s, w)")), "bad.onnx")
    report = mo_loop.batch([model, "bad.onnx"], "ir", jobs=1, options={"target": "2026.4"})
    assert repr(report) == "<BatchReport ir: 2 models: 1 converted, 1 failed>" and not report
    assert [each.model.name for each in report.failures] == ["bad.onnx"] and Path("ir", "model.xml").is_file()
    assert shown(report)["totals"]["failed"] == 1 and report.text().startswith("failed bad.onnx: ML302")
    Path("report.json").write_text(json.dumps(report.to_dict()), "utf-8")
    again = mo_loop.batch([model, "bad.onnx"], "ir", jobs=1, options={"target": "2026.4"}, baseline="report.json")
    assert again and repr(again) == "<BatchReport ir: 2 models: 1 skipped, 1 failed>"
    other = mo_loop.batch(model, "ir", jobs=1, options={"target": "2025.4"}, durable=True, scratch=1 << 30)
    assert repr(other) == "<BatchReport ir: 1 model: 1 converted>"


def test_the_help_of_batch_has_every_option_once() -> None:
    text = mo_loop.batch.__doc__ or ""
    arguments = list(inspect.signature(mo_loop.batch).parameters)[2:]
    assert {each.name for each in dataclasses.fields(BatchOptions)} < set(arguments)
    assert all(text.count(f"\n        {each} (") == 1 for each in arguments)
    with pytest.raises(TypeError, match="unexpected keyword argument 'job': did you mean 'jobs'"):
        mo_loop.batch("model.onnx", "ir", job=1)


def test_a_batch_refuses_what_a_worker_cannot_have(model: str) -> None:
    with pytest.raises(UsageError, match="extensions as paths"):
        mo_loop.batch(model, "ir", options={"extensions": (print,)})


@pytest.mark.parametrize("function", [mo_loop.convert_model, mo_loop.check])
def test_the_help_of_a_function_has_every_option_with_its_type(function: Any) -> None:
    text = function.__doc__
    fields = {each.name: each.type for each in dataclasses.fields(mo_loop.ConvertOptions) if each.name in text}
    named = [name for name in inspect.signature(function).parameters if name not in ("source", "model")]
    assert [name for name in named if f"        {name} ({fields.get(name, '')}" not in text] == []
    assert "see `" not in text and "Can be repeated" not in text


def test_an_unknown_argument_names_the_closest_one() -> None:
    with pytest.raises(TypeError, match=r"convert_model\(\) got .*'targt': did you mean 'target'\?"):
        mo_loop.convert_model("model.onnx", targt="2026.4")  # type: ignore[call-arg]


@pytest.mark.parametrize("source", [123, None, object(), ["model.onnx"]])
def test_what_is_no_model_is_an_error_that_says_what_is_one(source: Any) -> None:
    for function in (mo_loop.convert_model, mo_loop.inspect):
        with pytest.raises(UsageError, match=r"is not an ONNX model(?s:.*)give a path, an open binary file"):
            function(source)


def test_saving_a_model_of_openvino_names_its_function(model: str) -> None:
    pytest.importorskip("openvino")
    with pytest.raises(UsageError, match=r"openvino\.save_model"):
        mo_loop.save_model(mo_loop.convert_model(model).to_openvino(), "model.xml")


def test_dir_lists_public_names_alone() -> None:
    assert dir(mo_loop) == sorted(mo_loop.__all__)


@pytest.mark.parametrize(("operation", "signature"), [
    ("Softmax", "(x, *, axis: int = 1, "),
    ("MatMul", "(a, b, *, transpose_a: bool = False, transpose_b: bool = False, "),
    ("Concat", "(*xs, axis: int, "),
    ("Constant", "(value, *, graph: "),
    ("Loop", "(trip_count, execution_condition, *types, input_map: tuple[typing.Any, ...], output_map: "),
    ("TensorIterator", "(*types, input_map: tuple[typing.Any, ...], output_map: "),
    ("If", "(condition, *types, input_map: tuple[typing.Any, ...], output_map: "),
])
def test_the_signature_of_an_operation_has_its_ports_and_attributes(operation: str, signature: str) -> None:
    assert str(inspect.signature(getattr(ops, operation))).startswith(signature)


def test_every_operation_has_a_signature() -> None:
    for names in ops.FAMILIES.values():
        for name in names.split():
            found = getattr(ops, name)
            if isinstance(found, type) and issubclass(found, ops.Op):
                kinds = [each.kind for each in inspect.signature(found).parameters.values()]
                assert inspect.Parameter.VAR_KEYWORD not in kinds


# -- The types and texts of the arguments of public functions: Literal where the values are known, and no flags


FUNCTIONS = [name for name in mo_loop.__all__ if isinstance(getattr(mo_loop, name), FunctionType)]


def literals(annotation: str) -> tuple[str, ...]:
    return tuple(re.findall(r"'(\w+)'|\"(\w+)\"", annotation)) if "Literal[" in annotation else ()


@pytest.mark.parametrize("cls", [ConvertOptions, BatchOptions])
def test_an_option_with_known_values_has_a_literal_type(cls: type) -> None:
    known = flags_of(cls)
    for each in dataclasses.fields(cls):
        choices = known[each.name].settings.get("choices") if each.name in known else None
        values = tuple(a or b for a, b in literals(str(each.type)))
        assert values == tuple(choices or ()), each.name


@pytest.mark.parametrize("cls", [ConvertOptions, BatchOptions, VerifyOptions])
def test_no_option_is_of_any_type(cls: type) -> None:
    assert [each.name for each in dataclasses.fields(cls) if each.type == "Any"] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_describes_arguments_and_not_flags(name: str) -> None:
    text = getattr(mo_loop, name).__doc__
    assert not re.search(r"(?<![\w`])--(?!dump\b)[a-z]|Can be repeated|\[default:", text), text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_has_a_description(name: str) -> None:
    function = getattr(mo_loop, name)
    names = inspect.signature(function).parameters
    assert [each for each in names if not re.search(rf"^ +{each}(: | \()", function.__doc__, re.MULTILINE)] == []


CLASSES = [name for name in mo_loop.__all__ if inspect.isclass(getattr(mo_loop, name))]


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_member_of_a_class_has_a_docstring(name: str) -> None:
    """The operators of Value on lengths are described in its own docstring."""
    cls = getattr(mo_loop, name)
    members = {key: each for key, each in vars(cls).items() if not key.startswith("_")}
    named = {key: getattr(each, "fget", getattr(each, "__func__", each)) for key, each in members.items()}
    lacking = [key for key, each in named.items() if isinstance(each, FunctionType) and not each.__doc__]
    assert [key for key in lacking if f"x.{key}" not in (cls.__doc__ or "")] == []


def test_switches_are_described_by_what_true_does() -> None:
    text = " ".join((mo_loop.convert_model.__doc__ or "").split())
    assert "plugins (bool): Use the extensions of installed packages." in text


PLAIN = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 18]>
decay (float[N,4] x, int64 n) => (float[N,4] y) {
    y = Loop (n, "", x) <body = step (int64 i, bool on, float[N,4] v) => (bool on, float[N,4] w) { w = Exp (v) }>
}
""")


class TestNotebook:
    def test_a_model_shows_inputs_outputs_control_flow_and_sizes(self) -> None:
        shown = mo_loop.convert_model(PLAIN)._repr_html_()
        for text in ("decay", "x: f32[N,4]", "y: f32[N,4]", "<td>1 Loop</td>", "? may change, 4 is"):
            assert text in shown

    def test_names_are_escaped(self) -> None:
        text = '<ir_version: 9, opset_import: ["": 18]> m (float[2] x) => (float[2] y) {y = Neg(x)}'
        model = onnx.parser.parse_model(text)
        model.graph.input[0].name = model.graph.node[0].input[0] = "<script>&\n"
        shown = mo_loop.convert_model(model)._repr_html_()
        assert "<script>" not in shown and "&lt;script&gt;&amp;\\n" in shown

    def test_many_inputs_are_some_rows(self) -> None:
        names = [f"x{place}" for place in range(500)]
        inputs = ", ".join(f"float[2] {name}" for name in names)
        model = onnx.parser.parse_model(
            f'<ir_version: 9, opset_import: ["": 18]> m ({inputs}) => (float[2] y) {{y = Sum ({", ".join(names)})}}'
        )
        shown = mo_loop.convert_model(model)._repr_html_()
        assert "x10:" in shown and "x11:" not in shown and "and 489 more" in shown

    def test_a_model_of_another_converter_has_no_recorded_sizes(self) -> None:
        model = mo_loop.convert_model(PLAIN)
        del model.graph.rt_info["sizes"]
        assert "not recorded" in model._repr_html_()


@pytest.mark.parametrize("given", [lambda model: io.BytesIO(model.SerializeToString()), lambda model: model])
def test_verify_takes_what_convert_model_takes(given: Any) -> None:
    assert mo_loop.verify(given(PLAIN), sets=1)
