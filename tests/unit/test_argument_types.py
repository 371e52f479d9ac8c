"""The types and texts of the arguments of public functions: Literal where the values are known, and no flags."""

import dataclasses
import inspect
import io
import re
from types import FunctionType
from typing import Any

import onnx
import pytest

import mo_loop
from mo_loop.batching.batch_options import BatchOptions
from mo_loop.compare.verify_options import VerifyOptions
from mo_loop.options import ConvertOptions
from mo_loop.support.flags import flags_of

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


MODEL = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 18]>
decay (float[N,4] x, int64 n) => (float[N,4] y) {
    y = Loop (n, "", x) <body = step (int64 i, bool on, float[N,4] v) => (bool on, float[N,4] w) { w = Exp (v) }>
}
""")


class TestNotebook:
    def test_a_model_shows_inputs_outputs_control_flow_and_sizes(self) -> None:
        shown = mo_loop.convert_model(MODEL)._repr_html_()
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
        model = mo_loop.convert_model(MODEL)
        del model.graph.rt_info["sizes"]
        assert "not recorded" in model._repr_html_()


@pytest.mark.parametrize("given", [lambda model: io.BytesIO(model.SerializeToString()), lambda model: model])
def test_verify_takes_what_convert_model_takes(given: Any) -> None:
    assert mo_loop.verify(given(MODEL), sets=1)
