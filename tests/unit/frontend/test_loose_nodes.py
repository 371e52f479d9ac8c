"""Nodes that their opset does not allow convert with a warning, and are refused in a strict conversion."""

import re
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, ConversionWarning, MoLoopError
from tests.cases import read_cases
from tests.harness import node_model, parsed

X = np.ones((2, 3, 4), np.float32)
ONE = np.ones((3,), np.float32)
AXES = np.array([1])


def graph_with(model: Any, code: str, text: str) -> Any:
    """The graph of a model that converts with one warning, and not if the conversion is strict."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = convert_model(model).graph
    said = [each.message for each in caught if isinstance(each.message, ConversionWarning)]
    assert [each.code for each in said] == [code] and text in str(said[0])
    with warnings.catch_warnings(), pytest.raises(MoLoopError, match="because the conversion is strict"):
        warnings.simplefilter("ignore")
        convert_model(model, strict=True)
    return graph


def domain_model(op: str, domain: str, kind: int, **attributes: Any) -> Any:
    """A model of one node whose domain is not imported."""
    node = helper.make_node(op, ["x"], ["y"], domain=domain, **attributes)
    ports = [helper.make_tensor_value_info("x", kind, [2, 2]), helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def one(graph: Any, kind: type) -> Any:
    (node,) = graph.of(kind)
    return node


# -- operators that the opset does not have


def test_an_operator_of_a_later_opset_takes_its_first_version() -> None:
    model = node_model("Gelu", {"x": X}, {"approximate": "tanh"}, opset=17)
    graph = graph_with(model, "ML516", "ONNX has Gelu from opset 20 on, and the model imports 17")
    assert one(graph, ops.Gelu).approximation_mode == "TANH"


def test_a_later_operator_that_is_a_function() -> None:
    inputs = {"q": X[None], "k": X[None], "v": X[None]}
    graph = graph_with(node_model("Attention", inputs, opset=17), "ML516", "ONNX has Attention from opset 23 on")
    assert graph.results[0].value.type.dims == (1, 2, 3, 4)


def test_the_newest_version_of_a_domain_that_is_not_imported() -> None:
    """Version 4 of LabelEncoder has tensors as attributes; version 1 has strings only."""
    tables = {"keys_tensor": [1, 2], "values_tensor": [3, 4], "default_tensor": [9]}
    attributes = {name: helper.make_tensor("", 7, [len(each)], each) for name, each in tables.items()}
    model = domain_model("LabelEncoder", "ai.onnx.ml", 7, **attributes)
    graph_with(model, "ML516", "LabelEncoder is read as one of version 4")


@pytest.mark.parametrize("opset", [1, 9, 17])
def test_experimental_operators(opset: int) -> None:
    model = node_model("Affine", {"x": X}, {"alpha": 2.0, "beta": 3.0}, opset=opset)
    graph = graph_with(model, "ML516", "Affine is an operator that ONNX did not keep")
    assert one(graph, ops.Multiply) and one(graph, ops.Add)


# -- forms of other versions

FORMS: dict[str, tuple[Any, type, str]] = {
    "axes as attribute": (node_model("ReduceSum", {"x": X}, {"axes": [1]}, opset=13), ops.ReduceSum, "of opset 1"),
    "axes as input": (
        node_model("Unsqueeze", {"x": X, "axes": AXES}, opset=11, constants=["axes"]), ops.Unsqueeze, "of opset 13"),
    "bounds as attributes": (node_model("Clip", {"x": X}, {"min": -1.0, "max": 1.0}, opset=13), ops.Clamp, "opset 6"),
    "pads as attribute": (
        node_model("Pad", {"x": X}, {"pads": [0, 0, 0, 0, 0, 1]}, opset=13), ops.Pad, "read as one of opset 2"),
    "spatial": (
        node_model("BatchNormalization", {"x": X, **dict.fromkeys("abcd", ONE)}, {"spatial": 1}, opset=9),
        ops.BatchNormInference, "read as one of opset 7"),
    "broadcast": (
        node_model("Add", {"x": X, "y": ONE}, {"axis": 1, "broadcast": 1}, opset=9), ops.Add, "read as one of opset 1",
    ),
    "no third input": (node_model("Gemm", {"x": X[0], "y": X[0].T}, opset=9), ops.MatMul, "read as one of opset 11"),
}


@pytest.mark.parametrize("case", FORMS)
def test_the_form_of_another_version(case: str) -> None:
    model, kind, text = FORMS[case]
    graph = graph_with(model, "ML517", f"{model.graph.node[0].op_type} of opset")
    with pytest.warns(ConversionWarning, match=text):
        convert_model(model)
    assert graph.of(kind)


def test_the_version_that_has_the_form_decides_the_meaning() -> None:
    """Before opset 7 the axis gives the dimensions of the second operand."""
    model = node_model("Add", {"x": X, "y": ONE}, {"axis": 1, "broadcast": 1}, opset=9)
    with pytest.warns(ConversionWarning):
        assert convert_model(model).graph.results[0].value.type.dims == (2, 3, 4)


def test_attributes_that_no_version_has_are_ignored_by_name() -> None:
    model = node_model("Relu", {"x": X}, {"slope": 1.0, "inplace": 1}, opset=13)
    graph_with(model, "ML517", "Relu of opset 13 has no attribute 'inplace', 'slope': it is ignored")


def test_an_attribute_that_would_change_the_result_is_not_ignored() -> None:
    """No version has both ratio and seed; is_test is not the default."""
    attributes = {"ratio": 0.5, "is_test": 1, "seed": 7}
    with pytest.raises(ConversionErrors, match="Dropout of opset 13 has no attribute '"):
        convert_model(node_model("Dropout", {"x": X}, attributes, opset=13))


def test_a_missing_axis_of_cumsum_is_0() -> None:
    graph = graph_with(node_model("CumSum", {"x": X}, opset=14), "ML517", "CumSum lacks the input 'axis': 0 is taken")
    assert one(graph, ops.CumSum).inputs[1].constant == 0


def test_a_missing_shape_is_that_of_a_scalar() -> None:
    graph = graph_with(node_model("ConstantOfShape", {}, opset=13), "ML517", "ConstantOfShape lacks the input 'shape'")
    assert graph.results[0].value.type.dims == ()


# -- kinds of attributes

KINDS: dict[str, tuple[str, dict[str, Any], str, Any]] = {
    "int for float": ("LeakyRelu", {"alpha": 2}, "alpha", 2.0),
    "float for int": ("Softmax", {"axis": 1.0}, "axis", 1),
    "floats for ints": ("Transpose", {"perm": [2.0, 0.0, 1.0]}, "perm", (2, 0, 1)),
    "a list of one for an int": ("Softmax", {"axis": [1]}, "axis", 1),
    "one int for ints": ("ReduceSum", {"axes": 1}, "axes", (1,)),
}


@pytest.mark.parametrize("case", KINDS)
def test_numbers_of_another_kind(case: str) -> None:
    op, attributes, name, value = KINDS[case]
    graph_with(node_model(op, {"x": X}, attributes, opset=11), "ML517", f"the attribute {name!r} of {op} is not of")
    right = node_model(op, {"x": X}, {name: value}, opset=11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        wrong = convert_model(node_model(op, {"x": X}, attributes, opset=11))
    assert str(wrong.graph.results[0].value.type) == str(convert_model(right).graph.results[0].value.type)


@pytest.mark.parametrize(("op", "attributes"), [("Softmax", {"axis": 1.5}), ("Softmax", {"axis": "1"})])
def test_numbers_that_would_change_are_refused(op: str, attributes: dict[str, Any]) -> None:
    with pytest.raises(ConversionErrors, match="the attribute 'axis' is not of the kind int"):
        convert_model(node_model(op, {"x": X}, attributes, opset=13))


def test_attributes_without_a_kind() -> None:
    """Files of IR version 1 do not state it."""
    model = node_model("Softmax", {"x": X}, {"axis": 2}, opset=13)
    model.graph.node[0].attribute[0].ClearField("type")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert one(convert_model(model).graph, ops.Softmax).axis == 2


# -- names that two nodes make

REPEATED = {
    "the first is not read": ("u = Neg (x) u = Abs (x) y = Sqrt (u)", ops.Abs),
    "the second is not read": ("u = Neg (x) y = Sqrt (u) u = Abs (x)", ops.Negative),
    "equal nodes": ("u = Neg (x) v = Sqrt (u) u = Neg (x) y = Add (u, v)", ops.Negative),
    "neither is read": ("u = Neg (x) u = Abs (x) y = Sin (x)", ops.Sin),
    "an output of the graph": ("y = Neg (x) y = Abs (x)", ops.Abs),
}


@pytest.mark.parametrize("text", [
    "u = Neg (x) v = Abs (u) u = Sin (x) y = Add (u, v)", "u = Neg (x) u = Abs (u) y = Sin (u)",
    "y = Sin (u) u = Neg (x) u = Abs (x)",
], ids=["both are read", "one reads the other", "read before both"])
def test_names_that_are_not_clear(text: str) -> None:
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(parsed(f"main (float[3] x) => (float[3] y) {{ {text} }}"))
    with pytest.raises(Exception, match=r"two nodes make 'u': node \d \(Neg\) and node \d \((Sin|Abs)\)"):
        convert_model(parsed(f"main (float[3] x) => (float[3] y) {{ {text} }}"))


NEW = {
    "an input": ("x = Neg (x) y = Exp (x)", "'x' is an input or initializer, and node 0 (Neg) makes it"),
    "an initializer": ("[n] w = Neg (x) y = Exp (w)", "'w' is an input or initializer, and n (Neg) makes it"),
    "one node": ("u, u = Split <axis = 0> (z) y = Add (x, x)", "node 0 (Split) makes 'u' twice"),
    "three nodes": ("[a] u = Neg (x) [b] u = Abs (u) [c] u = Sin (u) y = Exp (u)",
                    "3 nodes make 'u': a (Neg), b (Abs) and c (Sin)"),
    "a body": ('y = Loop ("", k, x) <body = b (int64 i, bool c, s) => (c, t) { c = Not (k) t = Neg (s) }>',
               "'c' is an input or initializer, and node 0 (Not) makes it"),
}


@pytest.mark.parametrize("case", NEW)
def test_a_name_that_is_made_again_is_refused_with_all_that_make_it(case: str) -> None:
    text, message = NEW[case]
    with pytest.raises(MoLoopError, match=re.escape(message)) as caught:
        convert_model(parsed(f"main (float[3] x, float[4] z, bool k) => (y) <float[3] w = {{1, 2, 3}}> {{ {text} }}"))
    assert caught.value.code == "ML220"


read_cases(globals())
