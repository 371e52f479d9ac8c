"""Elements read, written and found by index: Gather*, Scatter*, NonZero, Compress, OneHot, TopK, Unique."""

from typing import Any

import numpy as np
import openvino
import pytest
from onnx import helper

from mo_loop import convert_model, ops
from mo_loop.errors import MoLoopError
from tests.harness import NEWEST, check_model, check_node, every, graph_model, node_model, pairs, parsed

from .test_movement import DYNAMIC, both, floats, given, ints


def some(*shape: int, dtype: Any = np.float32, high: int = 9) -> Any:
    return np.random.default_rng(3).integers(0, high, shape).astype(dtype)


everything = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
TYPES = [np.float32, np.float16, np.float64, np.int64, np.int32, np.uint8, np.int8, np.bool_]


@pairs(indices=[ints(0, 2, -1), np.array([[1, -3], [0, 0]]), np.array(-2), np.zeros((0,), int)],
       kind=[np.int64, np.int32], axis=[0, 1, -1], opset=[1, 11, 13], constants=[(), ("p",)], dynamic=DYNAMIC)
def test_gather(indices: Any, kind: Any, axis: int, opset: int, constants: Any, dynamic: Any) -> None:
    inputs = {"x": floats(3, 4), "p": indices.astype(kind)}
    check_node("Gather", inputs, {"axis": axis}, opset=opset, constants=constants, dynamic=dynamic)


@both
@pytest.mark.parametrize("dtype", TYPES)
def test_gather_of_other_types(dtype: Any, dynamic: Any) -> None:
    check_node("Gather", {"x": some(4, 3, dtype=dtype), "p": ints(1, -1)}, opset=13, dynamic=dynamic)


@everything
@given
@pytest.mark.parametrize(("shape", "axis"), [((3, 4), 0), ((3, 4), 1), ((2, 4), -2), ((5, 2), 0), ((1, 1), 1)])
def test_gather_elements(shape: Any, axis: int, constants: Any, dynamic: bool) -> None:
    """Dimensions of the indices may be smaller than those of the data; negative indices count from the end."""
    x = floats(3, 4)
    size = x.shape[axis]
    inputs = {"x": x, "p": np.random.default_rng(2).integers(-size, size, shape)}
    for opset in (11, 13):
        check_node("GatherElements", inputs, {"axis": axis}, opset=opset, constants=constants, dynamic=dynamic)


@both
@given
@pytest.mark.parametrize(("indices", "batch"), [
    ([[0, 1], [-1, -2]], 0), ([[0], [-1]], 0), ([[[0, 0, 1]]], 0), ([1], 0), ([[0], [-2]], 1),
    ([[[0, 1], [-1, -4]], [[2, 2], [0, 0]]], 1), ([[[0], [1], [2]], [[-1], [-2], [0]]], 2),
])
def test_gather_nd(indices: Any, batch: int, constants: Any, dynamic: Any) -> None:
    inputs = {"x": floats(2, 3, 4), "p": np.array(indices)}
    if not batch:
        check_node("GatherND", inputs, opset=11, constants=constants, dynamic=dynamic)
    for opset in (12, 13):
        check_node("GatherND", inputs, {"batch_dims": batch}, opset=opset, constants=constants, dynamic=dynamic)


@everything
@pytest.mark.parametrize(("op", "opset"), [("Scatter", 9), ("ScatterElements", 11), ("ScatterElements", 18)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(axis: int, op: str, opset: int, dynamic: bool) -> None:
    inputs = {"x": floats(3, 4), "p": np.array([[0, 2], [-2, -1]]), "u": floats(2, 2) * 9}
    if op == "Scatter":
        inputs["p"] = np.abs(inputs["p"]) % 3
    for constants in ((), ("p",)):
        check_node(op, inputs, {"axis": axis}, opset=opset, constants=constants, dynamic=dynamic)


@every(dynamic=[False, True], dtype=TYPES)
def test_scatter_of_other_types(dtype: Any, dynamic: bool) -> None:
    x, updates = some(4, 3, dtype=dtype), some(2, 3, dtype=dtype)
    inputs = {"x": x, "p": np.array([[0, 3, 1], [-1, 2, 0]]), "u": updates}
    check_node("ScatterElements", inputs, opset=13, dynamic=dynamic)
    check_node("ScatterND", inputs | {"p": np.array([[2], [0]])}, opset=13, dynamic=dynamic)


@every(dynamic=[False, True], dtype=[np.float32, np.int64, np.int32, np.uint8, np.float16])
@pytest.mark.parametrize(("reduction", "opset"), [("add", 16), ("mul", 16), ("min", 18), ("max", 18)])
def test_scatter_with_a_reduction(reduction: str, opset: int, dtype: Any, dynamic: bool) -> None:
    """Indices repeat: every update counts."""
    x, updates = some(4, 3, dtype=dtype, high=5), some(2, 3, dtype=dtype, high=5)
    inputs = {"x": x, "p": np.array([[0, 3, 1], [0, -1, 0]]), "u": updates}
    check_node("ScatterElements", inputs, {"reduction": reduction}, opset=opset, dynamic=dynamic)
    inputs["p"] = np.array([[-2], [2]])
    check_node("ScatterND", inputs, {"reduction": reduction}, opset=opset, dynamic=dynamic)


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


@everything
@pytest.mark.parametrize(
    ("indices", "shape"),
    [([[0], [-1]], (2, 4)), ([[1, 2], [-2, -4]], (2,)), ([[[0]], [[2]]], (2, 1, 4)), ([[2, 0]], (1,))],
)
def test_scatter_nd(indices: Any, shape: Any, dynamic: bool) -> None:
    inputs = {"x": floats(3, 4), "p": np.array(indices), "u": floats(*shape) * 9}
    for constants in ((), ("p",)):
        for opset in (11, 13, 18):
            names = ("x", "u") if dynamic else False
            check_node("ScatterND", inputs, opset=opset, constants=constants, dynamic=names)


@everything
@pytest.mark.parametrize(("mode", "starts"),
                         [("linear", (1, 0)), ("linear", None), ("circular", (3, 2)), ("circular", (4, 0))])
@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 5, 4), -2), ((1, 3, 5, 4), 2), ((2, 5, 3), 1), ((2, 3, 5), -1)])
def test_tensor_scatter(shape: Any, axis: int, mode: str, starts: Any, dynamic: bool) -> None:
    cache = floats(*shape)
    update = np.take(cache, [0, 1], axis) * 10
    inputs = {"x": cache, "u": update, "p": None if starts is None else ints(*starts[: shape[0]])}
    attributes = {"axis": axis, "mode": mode}
    check_node("TensorScatter", inputs, attributes, opset=24, dynamic=("x", "u") if dynamic else False)


def test_tensor_scatter_along_the_batch_is_refused() -> None:
    node = helper.make_node("TensorScatter", ["x", "u"], ["y"], axis=-3)
    model = graph_model([node], {"x": floats(2, 5, 3), "u": floats(1, 5, 3)}, ["y"], opset=24)
    with pytest.raises(MoLoopError, match="the axis is 0, which is that of the batch"):
        convert_model(model)


@pairs(shape=[(5,), (3, 4), (2, 0), (2, 3, 2), (1,)], dtype=TYPES, opset=[9, 13], dynamic=DYNAMIC)
def test_non_zero(shape: Any, dtype: Any, opset: int, dynamic: Any) -> None:
    check_node("NonZero", {"x": some(*shape, dtype=dtype, high=2)}, opset=opset, dynamic=dynamic)


@pytest.mark.parametrize("value", [0, 1])
def test_non_zero_of_a_scalar(value: int) -> None:
    check_node("NonZero", {"x": np.float32(value)}, opset=13)


@pairs(axis=[None, 0, 1, -1], condition=[[0, 1, 1], [1], [0, 0, 0], [1, 1, 0, 1]], opset=[9, 11],
       constants=[(), ("p",)], dynamic=DYNAMIC)
def test_compress(axis: Any, condition: Any, opset: int, constants: Any, dynamic: Any) -> None:
    inputs = {"x": floats(4, 4), "p": np.array(condition, bool)}
    attributes = {} if axis is None else {"axis": axis}
    opset = 11 if axis == -1 else opset  # before, an axis is not negative
    check_node("Compress", inputs, attributes, opset=opset, constants=constants, dynamic=dynamic)


def hot(indices: Any, depth: int, off: Any, on: Any, axis: int) -> Any:
    at = axis if axis >= 0 else indices.ndim + 1 + axis
    steps = np.arange(depth).reshape((-1,) + (1,) * (indices.ndim - at))
    places = np.expand_dims(np.where(indices < 0, indices + depth, indices).astype(np.int64), at)
    return np.where(places == steps, on, off)


@pairs(shape=[(), (1,)], kind=[np.int64, np.int32, np.float32, np.uint8],
       dtype=[np.float32, np.int64, np.bool_, np.float16], axis=[0, 1, -1], constants=[(), ("d",), ("d", "v")],
       dynamic=DYNAMIC)
def test_one_hot(shape: Any, kind: Any, dtype: Any, axis: int, constants: Any, dynamic: Any) -> None:
    """Negative indices count from the end; one out of range has no effect."""
    indices = np.array([[1, 0, 4], [3, 7, 2]] if kind is np.uint8 else [[1, -1, 4], [-4, 7, -9]]).astype(kind)
    values = np.array([0, 1]).astype(dtype)
    inputs = {"x": indices, "d": np.full(shape, 4).astype(np.int64), "v": values}
    expected = [hot(indices, 4, *values, axis)]
    check_node("OneHot", inputs, {"axis": axis}, opset=11, constants=constants, dynamic=dynamic, expected=expected)


@both
def test_one_hot_of_scalar_and_float_depth(dynamic: Any) -> None:
    """ONNX Runtime refuses indices of rank 0."""
    values = floats(2)
    inputs = {"x": np.array(-2), "d": np.float32(5), "v": values}
    check_node("OneHot", inputs, opset=9, dynamic=dynamic, expected=[values[[0, 0, 0, 1, 0]]])


@pairs(dtype=[np.float32, np.int64, np.int32, np.float64], largest=[0, 1], axis=[0, 1, -1], k=[1, 3, None],
       constants=[(), ("k",)], dynamic=DYNAMIC)
def test_top_k(dtype: Any, largest: int, axis: int, k: int | None, constants: Any, dynamic: Any) -> None:
    """Of equal elements the first one comes first."""
    x = some(5, 6, dtype=dtype, high=4)
    inputs = {"x": x, "k": ints(x.shape[axis] if k is None else k)}
    options = {"outputs": 2, "constants": constants, "dynamic": dynamic}
    check_node("TopK", inputs, {"axis": axis, "largest": largest}, opset=11, **options)
    if largest and dtype is np.float32:
        check_node("TopK", inputs, {"axis": axis}, opset=10, **options)


@both
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.float16, np.uint32, np.uint64])
def test_top_k_of_other_types(dtype: Any, dynamic: Any) -> None:
    x = some(3, 40, dtype=dtype, high=7)
    values, order = np.sort(x)[:, ::-1][:, :5], np.argsort(-x.astype(np.float64), kind="stable")[:, :5]
    check_node("TopK", {"x": x, "k": ints(5)}, opset=24, outputs=2, dynamic=dynamic, expected=[values, order])


@pairs(shape=[(5000,), (3, 400), (2, 300, 3), (20000,), (1, 2000, 8)],
       dtype=[np.float32, np.int64, np.int32, np.uint8, np.float64], largest=[0, 1], k=[3, 12, 32, 33, 200, None],
       high=[2, 30, 250], constants=[(), ("k",)], dynamic=DYNAMIC)
def test_top_k_of_many(shape: Any, dtype: Any, largest: int, k: Any, high: int, constants: Any, dynamic: Any) -> None:
    """So many that the runtime's stable search is not used: equal elements keep their order all the same."""
    x = some(*shape, dtype=dtype, high=high)
    axis = int(len(shape) > 1)
    k = k or x.shape[axis]
    sign = -1 if largest else 1
    order = np.take(np.argsort(sign * x.astype(np.int64), axis, kind="stable"), range(k), axis)
    check_node("TopK", {"x": x, "k": ints(k)}, {"axis": axis, "largest": largest, "sorted": k % 2}, opset=24, outputs=2,
               constants=constants, dynamic=dynamic, expected=[np.take_along_axis(x, order, axis), order])


@both
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_top_k_of_extremes(dtype: Any, dynamic: Any) -> None:
    """Infinities; integers whose differences exceed 32 bits, and whose neighbours are equal as f32."""
    rng = np.random.default_rng(4)
    ends = (-np.inf, np.inf) if dtype is np.float32 else (-(2**31), 2**31 - 1)
    choice = np.array([ends[0], ends[0] + 1, ends[1] - 1, ends[1], -3, 0], dtype)
    feeds = {"x": rng.choice(choice, 900), "k": ints(500)}
    for largest in (0, 1):
        check_node("TopK", feeds, {"largest": largest}, opset=11, outputs=2, dynamic=dynamic)


def test_places_of_more_than_two_digits() -> None:
    """The number of a group times k does not fit into 31 bits."""
    x = np.random.default_rng(0).integers(0, 30000, 60000).astype(np.float32)
    for constants, dynamic in (((), ("x",)), (("k",), False)):
        feeds = {"x": x, "k": ints(55000)}
        check_node("TopK", feeds, opset=11, outputs=2, constants=constants, dynamic=dynamic)


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


def test_top_k_of_a_row_too_long_for_keys() -> None:
    """The key of the last place would be larger than that of elements behind all."""
    x = np.zeros(2**24 - 2**18 + 2, np.float32)
    x[-9:] = 1
    check_node("TopK", {"x": x, "k": ints(9)}, opset=11, outputs=2, constants=("k",))


@both
def test_top_k_of_many_in_a_loop(dynamic: Any) -> None:
    body = helper.make_graph(
        [helper.make_node("TopK", ["s", "k"], ["values", "places"]),
         helper.make_node("GatherElements", ["s", "places"], ["found"], axis=0),
         helper.make_node("Neg", ["s"], ["next"]), helper.make_node("Identity", ["go"], ["more"])],
        "body",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("go", 9, []),
         helper.make_tensor_value_info("s", 1, ["?" if dynamic else 1000])],
        [helper.make_empty_tensor_value_info(name) for name in ("more", "next", "found", "places")],
    )
    feeds = {"x": some(1000, high=30)}
    loop = helper.make_node("Loop", ["trips", "", "x"], ["last", "found", "all"], body=body)
    constants = {"trips": np.array(3), "k": ints(40)}
    check_model(graph_model([loop], feeds, ["found", "all"], opset=18, constants=constants, dynamic=dynamic), feeds)


def test_top_k_takes_no_stable_search_of_many() -> None:
    """The runtime takes n * k steps for it, and for the values alone none is needed."""
    for k, outputs in ((100, 2), (3, ["v"])):
        model = node_model("TopK", {"x": floats(3000), "k": ints(k)}, opset=11, outputs=outputs, constants=("k",))
        found = [node for node in convert_model(model).graph.ordered() if isinstance(node, ops.TopK)]
        assert found and not any(getattr(node, "stable", False) for node in found)


@both
def test_top_k_of_opset_1(dynamic: Any) -> None:
    x = floats(3, 7)
    order = np.argsort(-x, kind="stable")[:, :2]
    expected = [np.take_along_axis(x, order, 1), order]
    check_node("TopK", {"x": x}, {"k": 2}, opset=1, outputs=2, dynamic=dynamic, expected=expected)


@both
def test_top_k_of_large_integers(dynamic: Any) -> None:
    """Neighbours above 2^24, which are equal as float."""
    x = np.int64(2**24 + 1) + np.array([[3, 1, 4, 1, 5, 9, 2, 6, 8, 7]])
    for largest in (0, 1):
        check_node("TopK", {"x": x, "k": ints(4)}, {"largest": largest}, opset=11, outputs=2, dynamic=dynamic)


def test_top_k_of_nothing() -> None:
    for constants in ((), ("k",)):
        check_node("TopK", {"x": floats(3, 5), "k": ints(0)}, opset=11, outputs=2, constants=constants)
        check_node("TopK", {"x": floats(3, 0), "k": ints(0)}, opset=11, outputs=2, constants=constants, dynamic=("x",))


def test_top_k_of_a_size_that_may_be_0() -> None:
    """The number of rows of y, which is known as a size when the model is converted."""
    model = parsed("""
        main (float[3,6] x, float[N,2] y) => (v, p) { n = Shape <start = 0, end = 1> (y) v, p = TopK (x, n) }
    """)
    check_model(model, *({"x": floats(3, 6), "y": floats(rows, 2)} for rows in (2, 0, 6)))


def test_top_k_with_a_k_that_changes() -> None:
    feeds = {"x": floats(3, 6), "k": ints(2)}
    model = node_model("TopK", feeds, opset=11, outputs=2)
    check_model(model, feeds, feeds | {"k": ints(5)}, feeds | {"k": ints(1)})


@pairs(shape=[(1,), (12,), (3, 4), (2, 3, 2)], dtype=[np.float32, np.int64, np.int8, np.float64], in_order=[0, 1],
       dynamic=DYNAMIC)
def test_unique(shape: Any, dtype: Any, in_order: int, dynamic: Any) -> None:
    x = some(*shape, dtype=dtype, high=4)
    check_node("Unique", {"x": x}, {"sorted": in_order}, opset=11, outputs=4, dynamic=dynamic)
    if in_order:
        check_node("Unique", {"x": x}, opset=NEWEST, outputs=4, dynamic=dynamic)
    check_node("Unique", {"x": x}, {"sorted": in_order}, opset=11, outputs=["y", "", "i"], dynamic=dynamic)


@both
def test_unique_of_nothing(dynamic: Any) -> None:
    """The runtime's own operation crashes here."""
    for attributes in ({}, {"sorted": 0}, {"axis": 1}):
        check_node("Unique", {"x": floats(3, 0)}, attributes, opset=11, outputs=4, dynamic=dynamic)


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


@both
def test_in_the_body_of_a_loop(dynamic: Any) -> None:
    """Constants that a translator makes are in the body, and captured ones are known there."""
    body = helper.make_graph(
        [
            helper.make_node("Trilu", ["s", "diagonal"], ["t"], upper=0),
            helper.make_node("TopK", ["t", "k"], ["values", "places"], axis=0),
            helper.make_node("GatherElements", ["s", "places"], ["g"], axis=0),
            helper.make_node("Concat", ["values", "g"], ["c"], axis=0),
            helper.make_node("Slice", ["c", "from", "to"], ["shorter"]),
            helper.make_node("Pad", ["shorter", "pads", "late"], ["padded"]),
            helper.make_node("Split", ["padded"], ["next", "other"], axis=0, num_outputs=2),
            helper.make_node("Unique", ["other"], ["u", "", "inverse"]),
            helper.make_node("Identity", ["go"], ["more"]),
        ],
        "body",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("go", 9, []),
         helper.make_tensor_value_info("s", 1, ["?", "?"])],
        [helper.make_empty_tensor_value_info(name) for name in ("more", "next", "inverse")],
    )
    feeds = {"x": floats(4, 3), "late": np.float32(0.5)}
    constants = {"trips": np.array(3), "diagonal": np.array(1), "k": ints(4), "from": ints(1), "to": ints(-1),
                 "pads": ints(1, 0, 1, 0)}
    loop = helper.make_node("Loop", ["trips", "", "x"], ["last", "all"], body=body)
    model = graph_model([loop], feeds, ["last", "all"], opset=18, constants=constants, dynamic=dynamic)
    check_model(model, feeds)


@every(dynamic=[False, True], axis=[0, 1])
def test_gather_elements_behind_a_slice(axis: int, dynamic: bool) -> None:
    """The runtime removes the Slice, but negative indices count from its end, and sizes must agree with it."""
    cut = helper.make_node("Slice", ["x", "from", "to", "axes"], ["cut"])
    gathered = helper.make_node("GatherElements", ["cut", "at"], ["y"], axis=0)
    constants = {"from": ints(0), "to": ints(2), "axes": ints(axis)}
    at = np.array([[-1, 0, -2, 1], [1, 1, -1, 0]])[:, : 4 if axis == 0 else 2]
    feeds = {"x": floats(3, 4), "at": at}
    check_model(graph_model([cut, gathered], feeds, ["y"], opset=13, constants=constants, dynamic=dynamic), feeds)


@pytest.mark.parametrize("wanted", [["values"], ["values", "first"], ["values", "", "", "times"], ["v", "f", "b", "t"]])
def test_unique_without_order(wanted: list[str]) -> None:
    """The runtime's own operation gives wrong numbers if its third output is not used."""
    x = np.array([0.5, 0.1, 0.5, -0.3, 0.1, 0.7, -0.3, 0.5], np.float32)
    check_node("Unique", {"x": x}, {"sorted": 0}, opset=11, outputs=wanted)
    check_node("Unique", {"x": x}, {"sorted": 0}, opset=11, outputs=wanted, dynamic=True)


@pairs(dtype=[np.float32, np.int64], in_order=[0, 1], dynamic=DYNAMIC)
def test_unique_of_many(dtype: Any, in_order: int, dynamic: Any) -> None:
    """Neighbouring numbers that f32 does not distinguish, of which the runtime's own operation compares all pairs."""
    x = (np.random.default_rng(7).integers(0, 3000, 8000) + (2**24 if dtype is np.int64 else 0)).astype(dtype)
    check_node("Unique", {"x": x}, {"sorted": in_order}, opset=11, outputs=4, dynamic=dynamic)
