"""Elements read, written and found by index: Gather*, Scatter*, NonZero, Compress, OneHot, TopK, Unique."""

from typing import Any

import numpy as np
import openvino
import pytest

from mo_loop import convert_model, ops
from tests.cases import read_cases
from tests.harness import check_node, node_model, pairs

from .test_movement import DYNAMIC, both, floats, ints


def some(*shape: int, dtype: Any = np.float32, high: int = 9) -> Any:
    return np.random.default_rng(3).integers(0, high, shape).astype(dtype)


everything = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


@everything
@pytest.mark.parametrize(("op", "opset"), [("Scatter", 9), ("ScatterElements", 11), ("ScatterElements", 18)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(axis: int, op: str, opset: int, dynamic: bool) -> None:
    inputs = {"x": floats(3, 4), "p": np.array([[0, 2], [-2, -1]]), "u": floats(2, 2) * 9}
    if op == "Scatter":
        inputs["p"] = np.abs(inputs["p"]) % 3
    for constants in ((), ("p",)):
        check_node(op, inputs, {"axis": axis}, opset=opset, constants=constants, dynamic=dynamic)


def test_scatter_of_booleans_with_a_reduction() -> None:
    x, updates = np.array([True, False, True, False]), np.array([False, True])
    either, both_of = np.logical_or, np.logical_and
    for reduction, function in (("add", either), ("mul", both_of), ("min", both_of), ("max", either)):
        expected = x.copy()
        function.at(expected, [0, 1], updates)
        inputs = {"x": x, "p": ints(0, 1), "u": updates}
        check_node("ScatterElements", inputs, {"reduction": reduction}, opset=18, expected=[expected])
        inputs["p"] = np.array([[0], [1]])
        check_node("ScatterND", inputs, {"reduction": reduction}, opset=18, expected=[expected])


def hot(indices: Any, depth: int, off: Any, on: Any, axis: int) -> Any:
    at = axis if axis >= 0 else indices.ndim + 1 + axis
    steps = np.arange(depth).reshape((-1,) + (1,) * (indices.ndim - at))
    places = np.expand_dims(np.where(indices < 0, indices + depth, indices).astype(np.int64), at)
    return np.where(places == steps, on, off)


@both
@pytest.mark.parametrize(("shape", "k", "largest"), [((5000,), 300, 1), ((3, 400), 33, 0), ((2, 900), 900, 0)])
def test_keys_of_places(shape: Any, k: int, largest: int, dynamic: Any) -> None:
    """ARM compares the bits of integers as those of floats: no search reads negative ones."""
    rng = np.random.default_rng(8)
    feeds = {"x": rng.choice(np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1, -3], np.float32), shape), "k": ints(k)}
    model = node_model("TopK", feeds, {"largest": largest}, opset=11, outputs=2, constants=("k",), dynamic=dynamic)
    converted = convert_model(model).to_openvino()
    searches = [each.input_value(0) for each in converted.get_ops() if each.get_type_name() == "TopK"]
    keys = [each for each in searches if each.get_element_type().is_integral()]
    assert keys
    converted.add_outputs(keys)
    found = openvino.compile_model(converted, "CPU")({"x": feeds["x"]})
    assert min(each.min() for each in list(found.values())[2:]) >= 0


def test_top_k_takes_no_stable_search_of_many() -> None:
    """The runtime takes n * k steps for it, and for the values alone none is needed."""
    for k, outputs in ((100, 2), (3, ["v"])):
        model = node_model("TopK", {"x": floats(3000), "k": ints(k)}, opset=11, outputs=outputs, constants=("k",))
        found = [node for node in convert_model(model).graph.ordered() if isinstance(node, ops.TopK)]
        assert found and not any(getattr(node, "stable", False) for node in found)


@pairs(place=[((6, 2), 0), ((2, 7), 1), ((3, 8, 2), -2), ((9,), 0), ((1, 1), 0)],
       dtype=[np.float32, np.int64, np.bool_], in_order=[0, 1], dynamic=DYNAMIC)
def test_unique_along_an_axis(place: Any, dtype: Any, in_order: int, dynamic: Any) -> None:
    shape, axis = place
    x = some(*shape, dtype=dtype, high=2)
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    if not in_order:
        order = np.argsort(first)
        inverse = np.argsort(order)[inverse.reshape(-1)]
        y, first, counts = np.take(y, order, axis), first[order], counts[order]
    expected = [y, first, inverse.reshape(-1), counts]
    attributes = {"axis": axis, "sorted": in_order}
    check_node("Unique", {"x": x}, attributes, opset=11, outputs=4, dynamic=dynamic, expected=expected)


read_cases(globals())
