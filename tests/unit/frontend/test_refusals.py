"""Operators without translator, and refusals of nodes: lists that cannot run, ranges, sizes."""

from types import NoneType
from typing import Any

import onnx
import pytest
from onnx import helper

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError, TypeError_
from mo_loop.frontend import registry, schemas
from mo_loop.frontend.refusals import REASONS
from mo_loop.frontend.registry import describe, find
from mo_loop.graph import Graph
from mo_loop.graph.dimension import named
from mo_loop.graph.shape import MOST_ELEMENTS, require_sizes
from mo_loop.graph.types import f32
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Loop
from mo_loop.ops.ranges import MOST, Indices, Positive, Range, range_of
from tests.harness import parsed, raised, refusal

# -- Operators without translator: each has a reason, and no operator with a translator is among them


SCHEMAS = {registry.qualified(each.domain, each.name): each for each in onnx.defs.get_all_schemas()}
OTHERS = {registry.qualified(each.domain, each.name): each for each in schemas.contrib_schemas()}


def refused(model: Any) -> MoLoopError:
    caught = raised(MoLoopError, convert_model, model)
    assert caught.exit_code == 3
    return caught


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
    "OneHotEncoder": ("OneHotEncoder", {"cats_strings": ["a"]}, "ML303", "no operation that computes this with"),
}


@pytest.mark.parametrize("case", STRINGS)
def test_operators_of_numbers_refuse_strings(case: str) -> None:
    op, attributes, code, text = STRINGS[case]
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)], "g",
        [helper.make_tensor_value_info("x", 1, [3, 2])], [helper.make_empty_tensor_value_info("y")],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
    assert text in str(raised(MoLoopError, convert_model, helper.make_model(graph, opset_imports=opsets), match=code))


# -- Optionals and lists that are empty; others that cannot run are in tests/cli/recorded/refused_lists.txt


def program(text: str) -> Any:
    """A model around nodes that make y; z is 0, far is 2 and s a list of two vectors."""
    return parsed(f"""
        main (float[N] x, float[2,3] m, int64[K] shape, int64 n, bool c, string[N] w) => (float[?] y) {{
          z = Constant <value_int=0> () far = Constant <value_int=2> () s = SequenceConstruct (x, x)
          {text}
        }}""")


def empty_optional(model: Any) -> Any:
    """The model with the element type of its Optional, which the text form cannot express."""
    optional = next(node for node in model.graph.node if node.op_type == "Optional")
    optional.attribute.append(helper.make_attribute("type", helper.make_tensor_type_proto(1, [None])))
    return model


def test_the_element_of_an_optional_that_is_empty() -> None:
    error = refusal(empty_optional(program("o = Optional () y = OptionalGetElement (o)")))
    assert (error.code, error.exit_code, error.where) == ("ML241", 2, "y")
    assert error.message.startswith("OptionalGetElement (opset ")


@pytest.mark.parametrize("text", ["q = OptionalGetElement (o)", "q = SequenceAt (e, i)"])
def test_a_loop_that_reads_what_is_not_there_is_left_out(text: str) -> None:
    model = empty_optional(program(f"""o = Optional () e = SequenceEmpty ()
      y = Loop (n, "", x) <body = step (int64 i, bool g, float[?] p) => (bool d, float[?] q) {{
        d = Identity (g) {text} }}>"""))
    graph = convert_model(model).graph
    assert not graph.of(Loop)
    assert graph.results[0].value.node.inputs[0] is graph.parameters[0].output  # a copy of x


# -- Refusals of a node before its translator runs: ranges of attributes, absent inputs, sizes that are too large


def test_a_range_is_declared_beside_the_default() -> None:
    def function(x: Any, *, size: Positive, pads: Indices | None = None, axis: int = 0) -> Any:
        return x

    found = describe("Example", 1, function)
    assert found.kinds == {"size": (int,), "pads": (tuple[int, ...], NoneType), "axis": (int,)}
    assert found.ranges == {"size": Range(1), "pads": Range(-MOST)} and range_of(float | None) is None
    conv = find("Conv", 18)
    assert conv is not None and conv.ranges.keys() == {"dilations", "group", "kernel_shape", "pads", "strides"}


def test_the_ends_of_a_range_belong_to_it() -> None:
    for value in (1, MOST, (1, MOST), ()):
        Range(1).require("size", value)
    for value in (0, MOST + 1, (1, 0)):
        with pytest.raises(TypeError_, match=r"the attribute 'size' is \d+, and its range is 1 to 2147483647"):
            Range(1).require("size", value)


def test_an_operation_refuses_an_attribute_out_of_its_range() -> None:
    x = Parameter(graph=Graph("main"), dtype=f32, shape=(4,))
    split = ops.Split(x, 0, num_splits=2)
    for attempt in (lambda: ops.Split(x, 0, num_splits=0), lambda: setattr(split, "num_splits", 2**40)):
        raised(TypeError_, attempt, match="the attribute 'num_splits' is")
    assert split.num_splits == 2 and len(x.output.uses) == 1


def test_the_sizes_of_a_tensor_that_can_exist() -> None:
    for shape in [(), (0, MOST_ELEMENTS), (MOST_ELEMENTS,), (named("N"), MOST_ELEMENTS)]:
        require_sizes(shape)
    for shape in [(-1,), (named("N"), -1), (2**40, 2**40), (0, 2**62)]:
        raised(TypeError_, require_sizes, shape, match=r"^ML242: ")
