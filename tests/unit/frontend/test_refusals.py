"""Operators without translator: each has a reason, and no operator with a translator is among them."""

from typing import Any

import onnx
import pytest
from onnx import helper

from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError
from mo_loop.frontend import registry, schemas
from mo_loop.frontend.refusals import REASONS

SCHEMAS = {registry.qualified(each.domain, each.name): each for each in onnx.defs.get_all_schemas()}
OTHERS = {registry.qualified(each.domain, each.name): each for each in schemas.contrib_schemas()}


def refused(model: Any) -> MoLoopError:
    with pytest.raises(MoLoopError) as caught:
        convert_model(model)
    assert caught.value.exit_code == 3
    return caught.value


def has_body(schema: Any) -> bool:
    return bool(schema.has_function or schema.has_context_dependent_function)


def test_every_operator_of_onnx_is_handled_or_has_a_reason() -> None:
    """A new operator in onnx's newest opset that is not known here fails this test."""
    for name, schema in SCHEMAS.items():
        if schema.deprecated or has_body(schema):
            continue
        is_translated = registry.find(schema.name, schema.since_version, schema.domain) is not None
        assert is_translated != (name in REASONS), f"{name} of {schema.since_version}"


def test_every_version_of_every_operator() -> None:
    """Older versions too: no operator is translated only from a later version on, without a body in its schema."""
    for schema in onnx.defs.get_all_schemas_with_history():
        name = registry.qualified(schema.domain, schema.name)
        if schema.deprecated or name in REASONS or has_body(schema):
            continue
        assert registry.find(schema.name, schema.since_version, schema.domain), f"{name} of {schema.since_version}"


@pytest.mark.parametrize("name", sorted(REASONS))
def test_reasons(name: str) -> None:
    """The message contains the operator, its opset, the node and the reason."""
    schema: Any = SCHEMAS.get(name) or OTHERS[name]
    ports = [port for port in schema.inputs if port.option != onnx.defs.OpSchema.FormalParameterOption.Optional]
    inputs = [f"i{k}" for k in range(max(len(ports), 1))]
    node = helper.make_node(schema.name, inputs, ["y"], domain=schema.domain, name="odd")
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(each, 1, [2]) for each in inputs],
        [helper.make_empty_tensor_value_info("y")],
    )
    opsets = [helper.make_opsetid("", 20)]
    if schema.domain:
        opsets.append(helper.make_opsetid(schema.domain, schema.since_version))
    error = refused(helper.make_model(graph, opset_imports=opsets))
    assert error.code == "ML302"
    version = schema.since_version if schema.domain else 20
    assert f"{name} (opset {version}) is not supported: {REASONS[name]}" in str(error) and "where: odd" in str(error)


def test_files_that_were_optimised_for_one_machine() -> None:
    node = helper.make_node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")
    ports = [helper.make_tensor_value_info(name, 1, [1, 8, 4, 4]) for name in "xy"]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft.nchwc", 1)]
    text = str(refused(helper.make_model(helper.make_graph([node], "g", ports[:1], ports[1:]), opset_imports=opsets)))
    assert "this file was optimised for one machine (ReorderInput of com.microsoft.nchwc)" in text
    assert "export it again with the level basic" in text


@pytest.mark.parametrize(
    ("op", "hint"),
    [("com.microsoft::QuikGelu", "did you mean 'QuickGelu'? Else give the model a function"),
     ("Sofmax", "did you mean 'Softmax'?"), ("com.microsoft::Zzz", "give the model a function")],
)
def test_similar_names_of_unknown_operators(op: str, hint: str) -> None:
    domain, _, name = op.rpartition("::")
    ports = [helper.make_tensor_value_info(each, 1, [2]) for each in "xy"]
    graph = helper.make_graph([helper.make_node(name, ["x"], ["y"], domain=domain)], "g", ports[:1], ports[1:])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    assert f"help:  {hint}" in str(refused(helper.make_model(graph, opset_imports=opsets)))


STRINGS = {
    "LabelEncoder": ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "ML227", "keys of strings for f32"),
    "OneHotEncoder": ("OneHotEncoder", {"cats_strings": ["a"]}, "ML303", "no operation that compares or makes strings"),
}


@pytest.mark.parametrize("case", STRINGS)
def test_operators_of_numbers_refuse_strings(case: str) -> None:
    op, attributes, code, text = STRINGS[case]
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)], "g",
        [helper.make_tensor_value_info("x", 1, [3, 2])], [helper.make_empty_tensor_value_info("y")],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    with pytest.raises(MoLoopError, match=code) as caught:
        convert_model(helper.make_model(graph, opset_imports=opsets))
    assert text in str(caught.value)
