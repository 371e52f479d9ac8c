"""`axis_map` and `along` of operations, and the facts that their bases state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Constant, Op, Parameter
from tests.unit.ops.examples import EXAMPLES, Example

EACH = pytest.mark.parametrize("example", EXAMPLES, ids=[f"{n}-{each.name}" for n, each in enumerate(EXAMPLES)])


def node_of(example: Example) -> Op:
    graph = Graph()
    inputs = [
        None if type_ is None
        else Parameter(graph=graph, type=type_) if type_.known is None
        else Constant(np.array(type_.known.tolist()), graph=graph, dtype=type_.dtype)
        for type_ in example.types
    ]
    made: Op = getattr(ops, example.name)(*inputs, graph=graph, **example.attributes)
    return made


@EACH
def test_every_axis_of_the_results_is_one_of_the_input_or_none(example: Example) -> None:
    node = node_of(example)
    for port, value in enumerate(node.inputs):
        axes = node.axis_map(port)
        own = [axis for axis in axes if axis is not None]
        assert len(axes) == (node.outputs[0].rank or 0)
        assert len(set(own)) == len(own) and all(0 <= axis < (value.rank if value else 0) for axis in own)
    assert node.along is None or all(0 <= axis < (node.operands[0].rank or 0) for axis in node.along)


@EACH
def test_a_movement_gives_elements_of_its_first_input(example: Example) -> None:
    node = node_of(example)
    if not isinstance(node, ops.Movement):
        return
    x, *others = (_array(each) for each in node.operands)
    if x is None:
        return
    x = np.arange(x.size).reshape(x.shape) + 7
    found: Any = node.evaluate(x, *others)
    for array in () if found is NotImplemented else found if isinstance(found, tuple) else (found,):
        assert set(array.flat) <= set(x.flat)
        assert not isinstance(node, ops.SameElements) or list(array.flat) == list(x.flat)


def _array(value: Value) -> Any:
    """The numbers of a constant; zeros of the shape otherwise, None if a size is unknown."""
    if isinstance(value.node, Constant):
        return value.node.array
    return np.zeros(value.type.dims, np.int64) if is_static(value.shape) else None


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "port", "axes"),
    [
        ("Add", {}, ["f32[2,1,3]", "f32[4,1]"], 1, (None, 0, 1)),
        ("PReLU", {}, ["f32[2,3,4]", "f32[3]"], 0, (0, 1, 2)),
        ("PReLU", {}, ["f32[2,3,4]", "f32[3]"], 1, (None, None, None)),
        ("Transpose", {}, ["f32[2,3,4]", [2, 0, 1]], 0, (2, 0, 1)),
        ("Squeeze", {}, ["f32[1,3,1]", [0, -1]], 0, (1,)),
        ("Unsqueeze", {}, ["f32[2,3]", [0, -1]], 0, (None, 0, 1, None)),
        ("Reshape", {}, ["f32[2,3,4,5]", [2, 12, 5]], 0, (0, None, 3)),
        ("Reshape", {}, ["f32[6]", [2, 3]], 0, (None, None)),
        ("ReduceSum", {}, ["f32[2,3,4]", [1]], 0, (0, 2)),
        ("ReduceSum", {"keep_dims": True}, ["f32[2,3,4]", [1]], 0, (0, None, 2)),
        ("Gather", {}, ["f32[2,3,4]", 0, 1], 0, (0, 2)),
        ("Gather", {}, ["f32[2,3,4]", [0, 2], 1], 0, (0, 1, 2)),
        ("Gather", {}, ["f32[2,3,4]", [[0], [2]], 1], 0, (0, None, None, 2)),
        ("Broadcast", {}, ["f32[3,1]", [2, 3, 4]], 0, (None, 0, 1)),
        ("Concat", {"axis": 1}, ["f32[2,3]", "f32[2,4]"], 1, (0, 1)),
        ("MatMul", {}, ["f32[2,1,3,4]", "f32[5,4,6]"], 0, (0, 1, 2, None)),
        ("MatMul", {}, ["f32[2,1,3,4]", "f32[5,4,6]"], 1, (None, 0, None, 2)),
        ("MatMul", {"transpose_a": True, "transpose_b": True}, ["f32[4,3]", "f32[6,4]"], 0, (1, None)),
        ("MatMul", {"transpose_a": True, "transpose_b": True}, ["f32[4,3]", "f32[6,4]"], 1, (None, 0)),
        ("MatMul", {}, ["f32[2,3,4]", "f32[4]"], 0, (0, 1)),
        ("MatMul", {}, ["f32[4]", "f32[2,4,3]"], 1, (0, 2)),
        ("Einsum", {"equation": "bij,bjk->kbi"}, ["f32[2,3,4]", "f32[2,4,5]"], 0, (None, 0, 1)),
        (
            "Convolution", {"strides": (1,), "pads_begin": (0,), "pads_end": (0,), "dilations": (1,)},
            ["f32[2,3,9]", "f32[5,3,3]"], 0, (0, None, 2),
        ),
        ("ReduceSum", {}, ["f32[2,3,4]", "i64[1]"], 0, ()),
        ("NonZero", {}, ["f32[2,3]"], 0, (None, None)),
    ],
)
def test_axes_of_results(name: str, attributes: dict[str, Any], inputs: list[Any], port: int, axes: Any) -> None:
    assert node_of(Example(name, attributes, *inputs)).axis_map(port) == axes


def test_axes_along_which_an_operation_works_are_counted_from_the_front() -> None:
    assert node_of(Example("Softmax", {"axis": -1}, "f32[2,3]")).along == (1,)
    assert node_of(Example("MVN", {}, "f32[2,3,4]", [1, -1])).along == (1, 2)
    assert node_of(Example("MVN", {}, "f32[2,3,4]", "i64[2]")).along is None
    assert node_of(Example("Add", {}, "f32[2]", "f32[2]")).along == ()
