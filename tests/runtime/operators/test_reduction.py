"""Reductions, ArgMax and ArgMin, compared with ONNX Runtime or numpy."""

import numpy as np
import pytest
from onnx import helper

from mo_loop import convert_model
from mo_loop.text import to_text
from tests.harness import NEWEST, check_model, check_node, every, folded, graph_model, pairs

RNG = np.random.default_rng(3)
X = RNG.uniform(0.1, 2, (2, 3, 4)).astype(np.float32)
OPS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
       "ReduceLogSum", "ReduceLogSumExp"]
ATTRIBUTE_FORMS = [(op, opset) for op in OPS for opset in (1, 11, 13) if (op, opset) != ("ReduceSum", 13)]


def by_numpy(op, x, axes, keep):
    y = x.astype(np.float64)
    sums = {
        "ReduceSum": lambda: np.sum(y, axes, keepdims=keep), "ReduceMean": lambda: np.mean(y, axes, keepdims=keep),
        "ReduceMax": lambda: np.max(y, axes, keepdims=keep), "ReduceMin": lambda: np.min(y, axes, keepdims=keep),
        "ReduceProd": lambda: np.prod(y, axes, keepdims=keep), "ReduceL1": lambda: np.sum(abs(y), axes, keepdims=keep),
        "ReduceL2": lambda: np.sqrt(np.sum(y * y, axes, keepdims=keep)),
        "ReduceSumSquare": lambda: np.sum(y * y, axes, keepdims=keep),
        "ReduceLogSum": lambda: np.log(np.sum(y, axes, keepdims=keep)),
        "ReduceLogSumExp": lambda: np.log(np.sum(np.exp(y), axes, keepdims=keep)),
    }
    return np.asarray(sums[op]()).astype(x.dtype)


@pairs(form=ATTRIBUTE_FORMS, axes=[None, (1,), (0, 2), (0, 1, 2)], keep=[0, 1])
def test_axes_as_attribute(form, axes, keep):
    op, opset = form
    given = {"keepdims": keep} if axes is None else {"keepdims": keep, "axes": list(axes)}
    check_node(op, {"x": X}, given, opset=opset, dynamic=True, expected=[by_numpy(op, X, axes, bool(keep))])


@pairs(op=OPS, axes=[None, (), (1,), (-1,), (2, 0)], keep=[0, 1], known=[(True, False), (True, True), (False, False)])
def test_axes_as_input(op, axes, keep, known):
    constant, dynamic = known
    given = None if axes is None else np.array(axes, np.int64)
    expected = by_numpy(op, X, tuple(axes) if axes else None, bool(keep))
    check_node(op, {"x": X, "axes": given}, {"keepdims": keep}, opset=18, expected=[expected], dynamic=dynamic,
               constants=["axes"] if constant and given is not None else [])


@every(op=OPS, axes=[(), (0,), (-1, 0)], noop=[0, 1])
def test_unknown_number_of_axes(op, axes, noop):
    """With kept dimensions even the number of axes may be known at run time only."""
    given = tuple(axes) or (() if noop else None)
    check_node(op, {"x": X, "axes": np.array(axes, np.int64)}, {"noop_with_empty_axes": noop}, opset=18, dynamic=True,
               expected=[by_numpy(op, X, given, True)])


@every(op=OPS, axes=[None, ()])
def test_no_axes_reduce_nothing_if_asked(op, axes):
    given = None if axes is None else np.array(axes, np.int64)
    check_node(
        op, {"x": X, "axes": given}, {"noop_with_empty_axes": 1}, opset=18, constants=["axes"] if axes == () else [],
        expected=[by_numpy(op, X, (), True)],
    )


@every(dtype=[np.int32, np.int64, np.uint32, np.uint64, np.float16, np.float64], op=OPS[:8])
def test_types(op, dtype):
    x = RNG.integers(1, 6, (3, 4)).astype(dtype)
    check_node(op, {"x": x}, {"axes": [1]}, opset=11, expected=[by_numpy(op, x, (1,), True)])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_means_of_integers_are_cut_off(dtype):
    x = np.array([[1, 2, 2], [-1, -2, -2], [3, 3, 3]], dtype)
    check_node("ReduceMean", {"x": x}, {"axes": [1]}, opset=13, dynamic=True)


@every(dtype=[np.uint8, np.int8, np.int64], op=["ReduceMax", "ReduceMin"])
def test_extremes_of_integers(op, dtype):
    check_node(op, {"x": RNG.integers(0, 100, (3, 4)).astype(dtype)}, {"axes": [0]}, opset=13)


@every(op=["ReduceMax", "ReduceMin"], dynamic=[False, True])
def test_booleans(op, dynamic):
    x = np.array([[True, True], [True, False], [False, False]])
    arrays = {"x": x, "axes": np.array([1])}
    for keep in (0, 1):
        expected = (x.max if op == "ReduceMax" else x.min)(1, keepdims=bool(keep))
        check_node(op, arrays, {"keepdims": keep}, opset=20, constants=["axes"], dynamic=dynamic, expected=[expected])


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize(("op", "value"), [
    ("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -np.inf), ("ReduceMin", np.inf), ("ReduceLogSum", -np.inf),
    ("ReduceLogSumExp", -np.inf), ("ReduceL1", 0), ("ReduceL2", 0), ("ReduceSumSquare", 0),
])
def test_nothing_to_reduce(op, value, keep):
    expected = np.full((2, 1, 4) if keep else (2, 4), value, np.float32)
    arrays = {"x": np.zeros((2, 0, 4), np.float32), "axes": np.array([1])}
    check_node(op, arrays, {"keepdims": keep}, opset=20, constants=["axes"], expected=[expected])


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
def test_nothing_to_reduce_at_run_time(op):
    value = {"ReduceProd": 1, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf}.get(op, 0)
    arrays = {"x": np.zeros((2, 0, 4), np.float32), "axes": np.array([1])}
    expected = np.full((2, 1, 4), value, np.float32)
    check_node(op, arrays, opset=18, constants=["axes"], dynamic=True, expected=[expected])


def test_log_sum_exp_is_stable():
    x = np.array([[1000, 1000], [-1000, -1001], [-np.inf, -np.inf], [np.inf, 0]], np.float32)
    check_node("ReduceLogSumExp", {"x": x}, {"axes": [1]}, opset=13)


def test_scalar():
    for op in OPS:
        x = np.array(2, np.float32)
        check_node(op, {"x": x}, opset=18, expected=[by_numpy(op, x, None, True)])


@every(maker=["Sigmoid", "Softmax", "Relu", "Exp", "Clip"], op=["ReduceMax", "ReduceMin"])
def test_extremes_of_what_is_bounded_need_no_guard(op, maker):
    x = np.array([[-np.inf, 3, -np.inf], [-np.inf] * 3, [np.inf, 1, -2], [-1, np.inf, 0]], np.float32)[None]
    x = np.nan_to_num(x) if maker == "Softmax" else x
    inputs = ["x", "low", "high"] if maker == "Clip" else ["x"]
    nodes = [helper.make_node(maker, inputs, ["made"]),
             helper.make_node("Transpose", ["made"], ["moved"], perm=[2, 0, 1]),
             helper.make_node(op, ["moved", "axes"], ["y"])]
    constants = {"axes": np.array([0]), "low": np.float32(-1), "high": np.float32(2)}
    model = graph_model(nodes, {"x": x}, ["y"], opset=18, constants=constants)
    check_model(model, {"x": x})
    is_open = op == "ReduceMin" and maker in ("Relu", "Exp")
    assert to_text(convert_model(model, **folded()).graph).count("Multiply") == 2 * is_open


# -- ArgMax, ArgMin


@every(op=["ArgMax", "ArgMin"], axis=[0, 1, -1], keep=[0, 1], last=[0, 1], dynamic=[False, True])
def test_places(op, axis, keep, last, dynamic):
    x = RNG.integers(0, 3, (4, 5, 6)).astype(np.float32)  # many ties
    given = {"axis": axis, "keepdims": keep, "select_last_index": last}
    check_node(op, {"x": x}, given, opset=NEWEST, dynamic=dynamic)


@pairs(op=["ArgMax", "ArgMin"], dtype=[np.float32, np.int64, np.uint8], high=[1, 3, 200],
       shape=[(3, 1500), (2, 1500, 1), (1200,), (70, 33), (2, 9000)], last=[0, 1], keep=[0, 1],
       dynamic=[False, True])
def test_places_in_long_rows(op, dtype, high, shape, last, keep, dynamic):
    x, axis = RNG.integers(0, high, shape).astype(dtype), int(len(shape) > 1)
    find = np.argmax if op == "ArgMax" else np.argmin
    place = shape[axis] - 1 - find(np.flip(x, axis), axis) if last else find(x, axis)
    place = np.expand_dims(place, axis) if keep else np.asarray(place)
    given = {"axis": axis, "keepdims": keep, "select_last_index": last}
    check_node(op, {"x": x}, given, opset=13, dynamic=dynamic, expected=[place])


@every(op=["ArgMax", "ArgMin"], last=[0, 1], length=[40, 1100, 9000], dynamic=[False, True])
def test_places_of_infinities_in_long_rows(op, last, length, dynamic):
    """The reductions of the runtime give the largest finite number for a row of infinities."""
    x = np.full((4, length), -np.inf if op == "ArgMax" else np.inf, np.float32)
    x[1] *= -1
    x[2, [7, 30]] = np.inf
    x[3, [7, 30]] = -5
    check_node(op, {"x": x}, {"axis": 1, "select_last_index": last}, opset=13, dynamic=dynamic)


@every(opset=[1, 11], op=["ArgMax", "ArgMin"])
def test_places_of_old(op, opset):
    check_node(op, {"x": RNG.integers(0, 3, (4, 5)).astype(np.float32)}, {"keepdims": 0}, opset=opset)


@every(dtype=[np.uint8, np.int8, np.int32, np.int64, np.float16, np.float64], length=[5, 50])
def test_places_of_types(dtype, length):
    x = RNG.integers(0, 100, (4, length)).astype(dtype)
    check_node("ArgMax", {"x": x}, {"axis": 1}, opset=13, expected=[np.argmax(x, 1)[:, None]])


@every(dynamic=[False, True], operator=["ReduceMax", "ReduceMin"])
def test_rows_of_infinity(operator: str, dynamic: bool) -> None:
    """The runtime starts from the largest finite number, which the result for a fully masked row would show."""
    bound = np.float32(-np.inf if operator == "ReduceMax" else np.inf)
    rows = np.array([[bound, bound], [1, bound], [-bound, bound], [2, 3]], np.float32)
    check_node(operator, {"x": rows}, {"axes": [1], "keepdims": 0}, opset=13, dynamic=dynamic)


def test_log_sum_exp_of_infinities() -> None:
    rows = np.array([[np.inf, 1], [np.inf, -np.inf], [-np.inf, -np.inf]], np.float32)
    expected = np.array([[np.inf], [np.inf], [-np.inf]], np.float32)
    check_node("ReduceLogSumExp", {"x": rows}, {"axes": [1]}, opset=13, expected=[expected])


@every(dynamic=[False, True], keepdims=[0, 1], operator=["ReduceMax", "ReduceMin"])
def test_extremes_of_32_bits(operator, keepdims, dynamic):
    """The runtime compares integers in f32, where the largest one becomes the smallest."""
    ends = np.iinfo(np.int32)
    rows = np.array(
        [[ends.max, ends.min, 0], [ends.max, ends.max - 1, 7], [ends.min, ends.min + 1, ends.min], [-(2**16), -5, -1]],
        np.int32,
    )
    for x in (rows, rows.astype(np.int64)):
        check_node(operator, {"x": x}, {"axes": [1], "keepdims": keepdims}, opset=13, dynamic=dynamic)


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_extremes_of_no_integers_at_run_time(operator):
    check_node(operator, {"x": np.zeros((2, 0), np.int32)}, {"axes": [1]}, opset=13, dynamic=True)


def test_mean_of_no_integers_at_run_time():
    check_node("ReduceMean", {"x": np.zeros((2, 0), np.int32)}, {"axes": [1]}, opset=13, dynamic=True)
