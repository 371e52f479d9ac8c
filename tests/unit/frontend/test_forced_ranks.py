"""Ranks that are not declared at an input are those that nodes force; a rank that is only declared is a warning."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, ConversionWarning, MoLoopError
from mo_loop.frontend.declared_types import Forced, Ranks
from mo_loop.frontend.registry import is_elementwise

MODELS = sorted((Path(__file__).parents[2] / "models" / "pytorch").glob("*.onnx"))
WEIGHTS = {"w": np.ones((4, 3, 3, 3), np.float32), "m": np.ones((3, 5), np.float32), "two": np.array([2, 2])}


def model(nodes: list[Any], *, inner: int | None = None, output: int | None = None, opset: int = 13) -> Any:
    """A model with an input x without shape and a vector s; `inner` and `output` are the declared ranks of a and y."""
    x = helper.make_tensor_value_info("x", 1, None)
    s = helper.make_tensor_value_info("s", 7, ["k"])
    y = helper.make_tensor_value_info("y", 1, None if output is None else [None] * output)
    a = [] if inner is None else [helper.make_tensor_value_info("a", 1, [None] * inner)]
    constants = [numpy_helper.from_array(value, name) for name, value in WEIGHTS.items()]
    read = {name for each in nodes for name in each.input}
    inputs = [each for each in (x, s) if each.name in read]
    graph = helper.make_graph(nodes, "g", inputs, [y], constants, value_info=a)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def node(op: str, inputs: str, output: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), [output], **attributes)


FORCED: dict[str, tuple[list[Any], int]] = {
    "filters": ([node("Conv", "x w")], 4),
    "a kernel": ([node("MaxPool", "x", kernel_shape=[2])], 3),
    "Gemm": ([node("Gemm", "x m")], 2),
    "a permutation": ([node("Transpose", "x", perm=[0, 2, 1])], 3),
    "Concat with a constant": ([node("Concat", "w x", axis=0)], 4),
    "a recurrence": ([helper.make_node("GRU", ["x", "m", "m"], ["y"], hidden_size=1)], 3),
    "after others": ([node("Relu", "x", "a"), node("Softmax", "a", "b"), node("Conv", "b w")], 4),
    "from a branch": ([node("Relu", "x", "a"), node("MatMul", "x m"), node("Transpose", "a", "b", perm=[1, 0])], 2),
}


@pytest.mark.parametrize("case", FORCED)
def test_nodes_force_ranks(case: str) -> None:
    nodes, rank = FORCED[case]
    assert Ranks(model(nodes).graph, {"x": None}).of("x") == Forced(rank, by_declaration=False)


def test_an_input_has_the_rank_that_a_node_forces() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = convert_model(model([node("Relu", "x", "a"), node("Conv", "a w")])).graph
    assert str(graph.parameters[0].value_type) == "f32[?,?,?,?]"


def test_a_contradiction_gives_none() -> None:
    nodes = [node("Transpose", "x", "a", perm=[1, 0]), node("Conv", "x w")]
    assert Ranks(model(nodes).graph, {"x": None}).of("x") is None


@pytest.mark.parametrize("op", ["Reshape", "Expand"])
def test_a_shape_of_unknown_length(op: str) -> None:
    """The vector has as many elements as the result has dimensions."""
    forced = convert_model(model([node(op, "m s", "a"), node("Conv", "a w")])).graph
    assert forced.results[0].value.rank == 4


def declared(made: Any, name: str, rank: int) -> Any:
    """The graph of a model that converts with a warning about a declared rank, and not in a strict conversion."""
    with pytest.warns(ConversionWarning, match=f"{name} has rank {rank} because the model declares it") as caught:
        graph = convert_model(made).graph
    assert [each.message.code for each in caught] == ["ML519"]
    with pytest.raises(MoLoopError, match="because the conversion is strict"):
        convert_model(made, strict=True)
    return graph


def test_a_declared_rank_of_an_inner_value() -> None:
    graph = declared(model([node("Expand", "m s", "a"), node("Relu", "a")], inner=3), "a", 3)
    assert graph.results[0].value.rank == 3


def test_a_declared_rank_of_an_output() -> None:
    assert declared(model([node("ConstantOfShape", "s")], output=2), "y", 2).results[0].value.rank == 2
    assert declared(model([node("Relu", "x")], output=2), "x", 2).parameters[0].value_type.rank == 2


def test_what_nodes_force_precedes_a_declaration() -> None:
    with pytest.warns(ConversionWarning) as caught:
        graph = convert_model(model([node("Reshape", "m s", "a"), node("Conv", "a w")], inner=3)).graph
    assert [each.message.code for each in caught] == ["ML510"] and graph.results[0].value.rank == 4


@pytest.mark.parametrize(("nodes", "option"), [
    ([node("Relu", "x")], '--input "x[?,?,?]"'),
    ([node("MatMul", "x m", "a"), node("Flatten", "a")], '--input "x[?,?,?]"'),
    ([node("Reshape", "m s")], '--input "s[3]"'),
    ([node("Abs", "s", "a"), node("Reshape", "m a", "b"), node("Flatten", "b")], '--input "s[3]"'),
], ids=["input", "translator", "length", "computed length"])
def test_the_error_names_the_input_to_declare(nodes: list[Any], option: str) -> None:
    with pytest.raises(ConversionErrors) as caught:
        convert_model(model(nodes))
    assert option in str(caught.value)
    flag, text = option.split(maxsplit=1)
    assert flag == "--input" and convert_model(model(nodes), input=text.strip('"').replace("?,?,?", "2,3")) is not None


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_forced_ranks_are_those_of_inference(path: Path) -> None:
    """No rank is forced that ONNX's own inference contradicts, in any scope of real models."""
    made = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False))
    known = {each.name: each for each in (*made.graph.input, *made.graph.value_info, *made.graph.output)}
    ranks = Ranks(made.graph, {})
    for name, entry in known.items():
        found = ranks.of(name)
        if found is not None and not found.by_declaration and entry.type.tensor_type.HasField("shape"):
            assert found.rank == len(entry.type.tensor_type.shape.dim), name


def test_translators_say_which_operators_work_element_by_element() -> None:
    assert all(map(is_elementwise, ("Add", "Cast", "Identity", "Max", "Relu", "Tanh", "Where")))
    assert not any(map(is_elementwise, ("Clip", "CumSum", "MatMul", "Softmax", "Unknown")))
