"""The traversal of the graphs of an ONNX model, and the tensors in them."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mo_loop.frontend.model import opened
from mo_loop.frontend.node_order import NamesRead
from mo_loop.frontend.onnx_graphs import all_graphs, tensor_protos

ONE = np.ones(1, np.float32)


def tensor(name: str) -> onnx.TensorProto:
    return numpy_helper.from_array(ONE, name)


def sparse(name: str) -> onnx.SparseTensorProto:
    indices = numpy_helper.from_array(np.zeros(1, np.int64), f"{name}_indices")
    return helper.make_sparse_tensor(tensor(name), indices, [2])


def model() -> onnx.ModelProto:
    """An If in the main graph, whose branch calls a function."""
    result = helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, None)
    call = helper.make_node("Twice", ["x"], ["r"], domain="own")
    then = helper.make_graph([call], "then", [], [result], [tensor("in_branch")])
    other = helper.make_graph([helper.make_node("Constant", [], ["r"], value=tensor("in_node"))], "other", [], [result])
    choice = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    inputs = [
        helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1]),
    ]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    main = helper.make_graph([choice], "main", inputs, outputs, sparse_initializer=[sparse("values")])
    held = helper.make_node("Constant", [], ["k"], sparse_value=sparse("in_function"))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    nodes = [held, helper.make_node("Add", ["a", "k"], ["b"])]
    function = helper.make_function("own", "Twice", ["a"], ["b"], nodes, opsets)
    return helper.make_model(main, opset_imports=opsets, functions=[function])


def test_graphs_outer_ones_first_then_functions() -> None:
    assert [graph.path for graph in all_graphs(opened(model()))] == ["", "y/other", "y/then", "Twice"]


def test_the_tensors_of_each_graph() -> None:
    """The tensors of a body are not those of the graph around it; a sparse one consists of two."""
    found = [[each.name for each in tensor_protos(graph) if each.name] for graph in all_graphs(opened(model()))]
    assert found == [["values", "values_indices"], ["in_node"], ["in_branch"], ["in_function", "in_function_indices"]]


def test_the_names_that_a_node_reads_include_those_its_bodies_capture() -> None:
    (choice,) = model().graph.node
    names = NamesRead()
    assert names.of_node(choice) == {"c", "x"}
    captured = {each.name: names.captured_by(each.g) for each in choice.attribute}
    assert captured == {"then_branch": {"x"}, "else_branch": frozenset()}
