"""Versions of an operator that share a function: each decorator describes its own schema."""

from typing import Any

import onnx
import pytest

from mo_loop import convert_model
from mo_loop.errors import ConversionErrors, ConversionWarning
from mo_loop.frontend.registry import REQUIRED, Translator, find, translates
from mo_loop.ops.convolution import AvgPool


def found(op: str, opset: int) -> Translator:
    translator = find(op, opset)
    assert translator is not None
    return translator


def test_parameters_that_a_version_lacks() -> None:
    old, new = found("QuantizeLinear", 13), found("QuantizeLinear", 19)
    assert old.function is new.function
    assert (set(old.attributes), set(new.attributes)) == ({"axis"}, {"axis", "saturate"})
    assert set(old.kinds) == {"axis"} and found("Split", 2).inputs == ("input",)


def test_inputs_that_a_version_requires() -> None:
    assert (found("Gemm", 7).required, found("Gemm", 11).required) == (3, 2)


def test_defaults_of_a_version() -> None:
    assert (found("Concat", 1).attributes["axis"], found("Concat", 4).attributes["axis"]) == (1, REQUIRED)
    assert found("Concat", 1).given == {"axis": 1} and found("Concat", 4).given == {}


@pytest.mark.parametrize(("opset", "excluded"), [(1, False), (7, True)])
def test_a_fixed_attribute_reaches_the_function(opset: int, excluded: bool) -> None:
    """Before opset 7 AveragePool counts the padding without an attribute for it."""
    (pool,) = pooled(opset).graph.of(AvgPool)
    assert pool.exclude_pad is excluded


def test_an_attribute_that_only_a_later_version_has() -> None:
    """The node is read as one of that version."""
    with pytest.warns(ConversionWarning, match="AveragePool of opset 6 has other inputs or attributes: .* opset 7"):
        (pool,) = pooled(6, count_include_pad=1).graph.of(AvgPool)
    assert not pool.exclude_pad
    with pytest.raises(ConversionErrors, match="because the conversion is strict: y: AveragePool of opset 6"):
        pooled(6, strict=True, count_include_pad=1)


def pooled(opset: int, strict: bool = False, **attributes: int) -> Any:
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 1, 4, 4]) for name in "xy")
    y.type.tensor_type.ClearField("shape")
    node = onnx.helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], pads=[1, 1, 1, 1], **attributes)
    graph = onnx.helper.make_graph([node], "main", [x], [y])
    opsets = [onnx.helper.make_opsetid("", opset)]
    return convert_model(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), strict=strict)


@pytest.mark.parametrize(
    "arguments", [{"without": "size"}, {"required": "y"}, {"defaults": {"x": 1}}, {"fixed": {"size": 1}}],
    ids=["without", "required", "defaults", "fixed"],
)
def test_names_that_are_no_parameters(arguments: dict[str, Any]) -> None:
    def function(x: Any, *, axis: int = 0) -> Any:
        return x

    with pytest.raises(ValueError, match="Example of version 1: there is no parameter"):
        translates("Example", since=1, **arguments)(function)
