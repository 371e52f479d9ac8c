"""Nodes that damaged models showed: each was an internal error, and is refused with a code.

Those that text can express are in tests/cli/recorded/refused_nodes.txt.
"""

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mo_loop import convert_model, ops
from mo_loop.errors import ModelError, MoLoopError, TypeError_, UnsupportedError
from mo_loop.frontend.declared_types import _said
from mo_loop.frontend.ops.attention.linear_attention import recurrence
from mo_loop.frontend.ops.attention.sparse_attention import _layouts
from mo_loop.frontend.ops.classical.forest import Forest
from mo_loop.frontend.ops.quantization.quantization import unless_zero
from mo_loop.frontend.registry import describe, find, listed
from mo_loop.frontend.translators import _has_default
from mo_loop.graph import Graph
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.tensor import ArrayTensor, viewed
from mo_loop.graph.types import UNKNOWN, u4
from mo_loop.ops.quantization import spread
from mo_loop.ops.ranges import AtLeast3, Form, Matrix, Needed, One, Vector, form_of
from tests.cases import read_cases
from tests.harness import f32, parsed, raised
from tests.unit.graph.graphs import parameter


def code_of(model: onnx.ModelProto) -> str:
    caught = raised(MoLoopError, convert_model, model)
    assert caught.exit_code in (2, 3), str(caught)
    return caught.code


def test_an_attribute_that_is_no_text() -> None:
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=1, round_mode=b"\xff")
    assert not _has_default(node, "round_mode", listed("Cast"))
    assert _has_default(onnx.helper.make_node("Cast", ["x"], ["y"], round_mode="up"), "round_mode", listed("Cast"))


def test_a_constant_without_an_output() -> None:
    model = parsed("main (float[2] x) => (y) { k = Constant <value: tensor = float {1}> () y = Neg (x) }")
    del model.graph.node[0].output[:]
    convert_model(model)


def test_a_form_is_declared_beside_the_input() -> None:
    assert form_of(Vector | Matrix) == Form((1, 2)) and form_of(AtLeast3) == Form(least=3)
    assert form_of(Needed | One) == Form(is_one=True, is_needed=True) and form_of(int | None) is None
    found = find("LSTM", 14)
    assert found is not None and list(found.forms)[:4] == ["x", "w", "r", "b"]


def test_a_version_without_an_input_has_its_forms() -> None:
    def function(x: Any, y: Vector = None, z: Matrix = None) -> Any:
        return x

    assert describe("Example", 1, function).forms == {"y": Form((1,)), "z": Form((2,))}


def test_what_needs_the_rank_of_a_tensor() -> None:
    for ask in (lambda: UNKNOWN.dims, lambda: UNKNOWN.known_rank, lambda: normalise_axis(0, None)):
        raised(UnsupportedError, ask, match=r"^ML314: ")


def test_a_constant_in_another_form_has_as_many_elements() -> None:
    tensor = ArrayTensor(f32(1, 2))
    assert tensor.reshaped((1, 2)).shape == (1, 2)
    for wrong in (lambda: tensor.reshaped((3,)), lambda: viewed(tensor, u4, (17,))):
        raised(TypeError_, wrong)
    assert viewed(tensor, u4, (16,)).shape == (16,)


def test_a_decay_of_another_rank() -> None:
    graph = Graph("main")
    shapes = ((1, 4, 2, 1, 3), (1, 4, 2, 3), (1, 4, 2, 3), (1, 4))
    queries, keys, values, decay = (parameter(graph, *shape) for shape in shapes)
    raised(ModelError, recurrence, queries, keys, values, decay, None, parameter(graph, 1, 2, 3, 3), match=r"^ML235: ")


def test_a_permutation_that_is_a_tensor() -> None:
    model = parsed("main (float[N] s, float[2,3] x) => (y) { r = Transpose (x) y = Transpose (r) }", opset=13)
    for node, name in zip(model.graph.node, ("perm", "perm"), strict=True):
        node.attribute.append(onnx.helper.make_attribute(name, numpy_helper.from_array(np.int64([1, 0]))))
    assert list(_said(model.graph.node[0])) == []
    raised(MoLoopError, convert_model, model, match="ML227")


def test_a_zero_point_of_strings() -> None:
    graph = Graph("main")
    raised(ModelError, unless_zero, ops.Constant(np.array(["mul"], object), graph=graph).output, match=r"^ML235: ")


def test_fewer_scales_than_blocks() -> None:
    assert spread(np.ones((2, 2)), 1, (2, 4), 2).shape == (2, 4)
    for scales in (np.ones((2, 1)), np.ones(2)):
        raised(TypeError_, spread, np.repeat(scales, 2, 0), 1, (2, 4), 2, match=r"^ML235: ")


def test_rows_and_columns_of_another_number_of_layouts() -> None:
    graph = Graph("main")
    rows = ops.Constant(np.int32([[0, 1], [0, 1]]), graph=graph).output
    raised(ModelError, _layouts, rows, ops.Constant(np.int32([[0]]), graph=graph).output, match=r"^ML235: ")


def test_a_tree_of_more_levels_than_parts() -> None:
    """Each level is some nodes of its own."""
    count = 5000
    below = np.minimum(np.arange(count) + 1, count - 1)
    none = np.zeros(count, np.int64)
    is_leaf = np.arange(count) == count - 1
    forest = Forest(none, none.astype(float), none, below, below, none.astype(bool), np.int64([0]), is_leaf)
    x = parameter(Graph("main"), 2, 3)
    raised(TypeError_, forest.leaves, x, x.dtype, match=r"^ML236: ")


read_cases(globals())
