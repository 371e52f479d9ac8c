"""Operators on tensors of 8 bits: roundings of ONNX Runtime's kernels, and operators without a kernel."""

import numpy as np
import pytest

from tests.harness import check_node

RANDOM = np.random.default_rng(18)


def number(value, kind=np.float32):
    return np.array(value, kind)


def numbers(*shape, kind=np.uint8):
    info = np.iinfo(kind)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(kind)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_halves_are_rounded_after_adding_the_zero_point(op):
    """0.5 + 1 is 2, and not 0 + 1."""
    a = np.arange(12, dtype=np.uint8)
    parameters = {"a_scale": number(1), "a_zero": number(0, np.uint8)}
    other = {"b": number([1], np.uint8), "b_scale": number(1),
             "b_zero": number(0 if op == "QLinearMul" else 1, np.uint8)}
    last = {"c_scale": number(2), "c_zero": number(1, np.uint8)}
    (found,) = check_node(f"com.microsoft::{op}", {"a": a, **parameters, **other, **last}, opset=1,
                          constants=[*parameters, *other, *last], dynamic=True)
    assert found[1] == 2


def test_halves_of_a_sum_of_other_scales():
    """erf(x) + 1 in a quantised GELU: each sum is a half of a step, which the products with the scales would miss."""
    a = np.arange(256, dtype=np.uint8)
    given = {"a": a, "a_scale": number(2 / 255), "a_zero": number(127, np.uint8)}
    given |= {"b": number([255], np.uint8), "b_scale": number(1 / 255), "b_zero": number(0, np.uint8)}
    given |= {"c_scale": number(2 / 255), "c_zero": number(0, np.uint8)}
    (found,) = check_node("com.microsoft::QLinearAdd", given, opset=1, constants=list(given)[1:], dynamic=True)
    assert np.array_equal(found, np.rint(a + 0.5).clip(0, 255))


def test_softmax_counts_whole_steps():
    """1 / y_scale is 254.99998 in f32, of which ONNX Runtime's kernel takes 254."""
    given = {"x": number([[255, 0]], np.uint8), "x_scale": number(1), "x_zero": number(0, np.uint8)}
    given |= {"y_scale": number(1 / 255), "y_zero": number(0, np.uint8)}
    (found,) = check_node("com.microsoft::QLinearSoftmax", given, {"axis": -1, "opset": 13}, opset=1,
                          constants=list(given)[1:])
    assert found.tolist() == [[254, 0]]


@pytest.mark.parametrize(("count", "expected"), [(2, 1), (3, 2)])
def test_halves_of_means(count, expected):
    """The kernel for windows rounds after adding the zero point, that for one window with all elements before."""
    given = {"x": np.array([[[0, 1, 0]]], np.uint8)[..., :count], "x_scale": number(1), "x_zero": number(0, np.uint8)}
    given |= {"y_scale": number(1), "y_zero": number(1, np.uint8)}
    (found,) = check_node("com.microsoft::QLinearAveragePool", given, {"kernel_shape": [2]}, opset=1,
                          constants=list(given)[1:])
    assert found[0, 0, 0] == expected


def test_means_of_windows_that_begin_behind_the_data():
    """Rounding up adds no window that has none of it."""
    given = {"x": numbers(1, 2, 3), "x_scale": number(1), "x_zero": number(0, np.uint8)}
    given |= {"y_scale": number(1), "y_zero": number(1, np.uint8)}
    attributes = {"kernel_shape": [1], "strides": [3], "ceil_mode": 1, "count_include_pad": 1}
    (found,) = check_node("com.microsoft::QLinearAveragePool", given, attributes, opset=1, constants=list(given)[1:],
                          dynamic=True)
    assert found.shape == (1, 2, 1)


def test_absent_zero_points():
    """The schema allows it, ONNX Runtime's kernel does not."""
    x = numbers(2, 3)
    given = {"a": x, "a_scale": number(0.5), "a_zero": None, "b": x.T.copy().reshape(2, 3), "b_scale": number(0.25)}
    given |= {"b_zero": None, "c_scale": number(1)}
    total = given["a"] * 0.5 + given["b"] * 0.25
    check_node("com.microsoft::QLinearAdd", given, opset=1, constants=["a_scale", "b_scale", "c_scale"],
               expected=[np.rint(total).clip(0, 255).astype(np.uint8)])


@pytest.mark.parametrize("keepdims", [0, 1])
def test_mean_along_axes(keepdims):
    """ONNX Runtime has no kernel for it."""
    x = numbers(2, 3, 4, kind=np.int8)
    given = {"x": x, "x_scale": number(0.5), "x_zero": number(3, np.int8), "y_scale": number(0.3)}
    given["y_zero"] = number(-2, np.int8)
    mean = ((x.astype(np.float64) - 3) * 0.5).mean((0, 2), keepdims=bool(keepdims))
    check_node("com.microsoft::QLinearReduceMean", given, {"axes": [0, -1], "keepdims": keepdims}, opset=1,
               dynamic=["x"], constants=list(given)[1:],
               expected=[(np.rint(mean / 0.3) - 2).clip(-128, 127).astype(np.int8)])
