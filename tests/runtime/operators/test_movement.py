"""Operators that move elements: Reshape, Squeeze, Transpose, Concat, Split, Slice, DepthToSpace, ReverseSequence ..."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cases import read_cases
from tests.harness import check_model, check_node, every, graph_model

LAST, FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def floats(*shape: int) -> Any:
    return np.random.default_rng(7).uniform(-2, 2, shape).astype(np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


DYNAMIC = [(), ("x",)]
both = pytest.mark.parametrize("dynamic", DYNAMIC, ids=["static", "dynamic"])
SLICES = [
    # starts, ends, axes, steps
    ((1,), (3,), None, None),
    ((0, 1), (2, 100), None, None),
    ((1,), (-1,), (1,), None),
    ((-3,), (LAST,), (-1,), None),
    ((0,), (LAST,), (0,), (2,)),
    ((-1,), (FIRST,), (1,), (-1,)),
    ((-1,), (-100,), (1,), (-1,)),
    ((LAST,), (FIRST,), (1,), (-2,)),
    ((3, 1), (0, 4), (2, 1), (-1, 2)),
    ((5,), (2,), (0,), None),
    ((100,), (200,), (0,), None),
    ((-100,), (2,), (1,), (1,)),
    ((2**31,), (2**40,), (0,), None),
    ((0,), (2**31 - 1,), (1,), (1,)),
    ((2,), (-(2**31),), (1,), (-1,)),
    ((0,), (5,), (1,), (2**40,)),
]


@every(dynamic=DYNAMIC, bounds=SLICES)
def test_slice(bounds: Any, dynamic: Any) -> None:
    starts, ends, axes, steps = bounds
    x = floats(4, 5, 6)
    if steps is None:
        attributes = {"starts": starts, "ends": ends} | ({} if axes is None else {"axes": [a % 3 for a in axes]})
        check_node("Slice", {"x": x}, attributes, opset=1, dynamic=dynamic)
    for kind in (np.int64, np.int32):
        values = (starts, ends, axes, steps)
        if kind is np.int32 and any(abs(v) >= 2**31 for part in values if part for v in part):
            continue
        names = dict(zip(("starts", "ends", "axes", "steps"), values, strict=True))
        inputs = {"x": x} | {k: None if v is None else np.array(v, kind) for k, v in names.items()}
        present = tuple(name for name, value in inputs.items() if value is not None and name != "x")
        for opset in (10, 13):
            check_node("Slice", inputs, opset=opset, constants=present, dynamic=dynamic)
        if all(abs(v) < 2**31 for part in values if part for v in part):
            check_node("Slice", inputs, opset=13, dynamic=dynamic)
            check_node("Slice", inputs, opset=13, dynamic=dynamic, constants=("axes", "steps"))


def test_slice_bounds_that_other_nodes_compute() -> None:
    """INT64_MAX that passes through a Concat still means "to the end"."""
    nodes = [helper.make_node("Concat", ["near", "far"], ["ends"], axis=0),
             helper.make_node("Slice", ["x", "starts", "ends"], ["y"])]
    feeds = {"x": floats(5, 6), "near": ints(3)}
    model = graph_model(nodes, feeds, ["y"], opset=13, constants={"starts": ints(0, 1), "far": ints(LAST)})
    check_model(model, feeds)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
def test_a_piece_cast_to_boolean(dtype: type) -> None:
    """The runtime does not compile a Convert to boolean of an output of VariadicSplit."""
    nodes = [helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=0),
             helper.make_node("Cast", ["b"], ["y"], to=TensorProto.BOOL)]
    graph = helper.make_graph(
        nodes, "pieces", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [2])],
        [helper.make_tensor_value_info("y", TensorProto.BOOL, [1])],
        [numpy_helper.from_array(np.array([1, 1]), "sizes")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    for last in (0, 3):
        check_model(model, {"x": np.array([1, last], dtype)})


def test_an_input_reshaped_at_run_time_and_returned():
    """The runtime kept the largest shape of a result that is such an input after a copy."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Identity", ["r"], ["y"])]
    feeds = [{"x": floats(n), "shape": ints(n)} for n in (2, 5, 2, 1)]
    check_model(graph_model(nodes, feeds[0], ["y"], opset=13, dynamic=["x"]), *feeds)


read_cases(globals())
