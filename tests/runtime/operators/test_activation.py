"""Activations, compared with ONNX Runtime."""

import numpy as np
import pytest

from tests.harness import check_node, every

RNG = np.random.default_rng(11)
X = np.concatenate([RNG.uniform(-8, 8, 27), [0.0, -0.0, 30.0, -30.0, 0.5, -0.5, 1.0, -1.0, 6.0]]).astype(np.float32)
X = X.reshape(2, 3, 6)
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])

CASES = [
    ("Relu", 6, {}), ("Relu", 14, {}), ("LeakyRelu", 6, {}), ("LeakyRelu", 16, {"alpha": 0.3}),
    ("LeakyRelu", 16, {"alpha": 1.5}), ("LeakyRelu", 16, {"alpha": -0.5}), ("Elu", 6, {}), ("Elu", 22, {"alpha": 0.7}),
    ("Celu", 12, {}), ("Celu", 12, {"alpha": 2.5}), ("Celu", 12, {"alpha": -1.5}),
    ("Selu", 6, {}), ("Selu", 22, {"alpha": 1.1, "gamma": 0.8}), ("ThresholdedRelu", 10, {}),
    ("ThresholdedRelu", 10, {"alpha": -1.5}), ("Sigmoid", 13, {}), ("HardSigmoid", 6, {}),
    ("HardSigmoid", 6, {"alpha": 0.4, "beta": 0.1}), ("HardSwish", 14, {}), ("Softplus", 1, {}), ("Softsign", 1, {}),
    ("Mish", 18, {}), ("Gelu", 20, {}), ("Gelu", 20, {"approximate": "tanh"}), ("Swish", 24, {}),
    ("Swish", 24, {"alpha": 1.7}),
    ("Shrink", 9, {}), ("Shrink", 9, {"lambd": 1.5, "bias": 0.5}), ("Shrink", 9, {"lambd": -1.0, "bias": 0.5}),
]


@pytest.mark.parametrize(("op", "opset", "attributes"), CASES)
@dynamic_or_not
def test_activation(op, opset, attributes, dynamic):
    check_node(op, {"x": X}, attributes, opset=opset, dynamic=dynamic)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("op", ["Relu", "Sigmoid", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "Softplus", "Softsign"])
def test_float_types(op, dtype):
    check_node(op, {"x": X.astype(dtype)}, opset=16, rtol=2e-3, atol=2e-3)


def test_defaults_of_opset_1():
    x = np.array([-1.0, 1.0], np.float32)
    expected = np.where(x < 0, 1.0507 * 1.6732 * np.expm1(x), 1.0507 * x).astype(np.float32)
    check_node("Selu", {"x": x}, opset=1, expected=[expected])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_integers(dtype):
    x = np.arange(-4, 5).astype(dtype)
    check_node("Relu", {"x": x}, opset=14, expected=[np.maximum(x, 0)])
    y = np.where(x < -2, x + 1, np.where(x > 2, x - 1, 0)).astype(dtype)
    check_node("Shrink", {"x": x}, {"lambd": 2.0, "bias": 1.0}, opset=9, expected=[y])


@every(shape=[(), (1,), (6,), (3, 1), (3, 6), (1, 1, 1), (2, 1, 1), (1, 3, 1), (2, 3, 6)], constant=[False, True],
       dynamic=[False, True])
def test_slopes(shape, constant, dynamic):
    slope = RNG.uniform(0.1, 0.9, shape).astype(np.float32)
    check_node("PRelu", {"x": X, "slope": slope}, opset=16, dynamic=dynamic, constants=["slope"] if constant else [])


def test_slope_of_one_channel_is_not_one_of_the_last_dimension():
    x, slope = X[:, :, :3], np.array([0.1, 0.2, 0.3], np.float32)
    check_node("PRelu", {"x": x, "slope": slope}, opset=9, constants=["slope"])
    per_channel = np.where(x < 0, x * slope[:, None], x)
    check_node("PRelu", {"x": x, "slope": slope}, opset=6, constants=["slope"], expected=[per_channel])
    check_node("PRelu", {"x": x, "slope": slope[:1]}, opset=6, expected=[np.where(x < 0, x * slope[0], x)])
    for dynamic in (False, True):  # ONNX Runtime repeats the one channel of x
        check_node("PRelu", {"x": x[:, :1], "slope": slope[:, None]}, opset=9, constants=["slope"], dynamic=dynamic)


# -- Clip


@pytest.mark.parametrize("attributes", [{}, {"min": -1.5}, {"max": 2.0}, {"min": -1.0, "max": 3.0}])
def test_bounds_as_attributes(attributes):
    check_node("Clip", {"x": X}, attributes, opset=6)
    expected = X if not attributes else np.clip(X, attributes.get("min"), attributes.get("max"))
    check_node("Clip", {"x": X}, attributes, opset=1, expected=[expected.astype(np.float32)])


@every(dtype=[np.float32, np.float16, np.float64, np.int8, np.uint8, np.int32, np.int64],
       bounds=[(None, None), (2, None), (None, 5), (2, 5), (5, 2)], constant=[False, True])
def test_bounds_as_inputs(dtype, bounds, constant):
    x = np.arange(10).astype(dtype)
    low, high = (None if bound is None else np.array(bound, dtype) for bound in bounds)
    names = [name for name, value in (("low", low), ("high", high)) if constant and value is not None]
    expected = x if low is None else np.maximum(x, low)
    expected = expected if high is None else np.minimum(expected, high)
    check_node("Clip", {"x": x, "low": low, "high": high}, opset=13, constants=names, expected=[expected])


def test_clip_by_one_element_vectors():
    for x in (X, np.array(9, np.float32)):
        bounds = {"low": np.array([-1], np.float32), "high": np.array([2], np.float32)}
        check_node("Clip", {"x": x, **bounds}, opset=11, expected=[np.clip(x, -1, 2)], dynamic=True)


# -- along an axis


@every(op=["Softmax", "LogSoftmax", "Hardmax"], opset=[1, 11, 13], axis=[None, 0, 1, 2], dynamic=[False, True])
def test_along_axis(op, opset, axis, dynamic):
    check_node(op, {"x": X}, {} if axis is None else {"axis": axis}, opset=opset, dynamic=dynamic)


@every(op=["Softmax", "LogSoftmax", "Hardmax"], opset=[11, 13], axis=[-1, -2, -3])
def test_axis_from_behind(op, opset, axis):
    check_node(op, {"x": X}, {"axis": axis}, opset=opset, dynamic=True)


@pytest.mark.parametrize("shape", [(4,), (2, 5), (2, 5, 1, 1)])
def test_softmax_of_other_ranks(shape):
    x = RNG.standard_normal(shape).astype(np.float32)
    check_node("Softmax", {"x": x}, {"axis": 0 if len(shape) == 1 else 1}, opset=9, dynamic=True)


def test_softmax_of_large_numbers():
    x = np.array([[1000, 1001, 999], [-1000, -1001, -999], [0, -np.inf, 0]], np.float32)
    check_node("Softmax", {"x": x}, opset=13)
    check_node("LogSoftmax", {"x": x[:2]}, opset=13)


def test_hardmax_takes_the_first_of_equals():
    check_node("Hardmax", {"x": np.array([[1, 3, 3], [2, 2, 2]], np.float32)}, opset=13, dynamic=True)
    x = np.full((4, 9000), -np.inf, np.float32)
    x[1, 5000:] = 2
    x[2, [4095, 4096, 8200]] = np.inf
    for dynamic in (False, True):
        check_node("Hardmax", {"x": x}, opset=13, dynamic=dynamic)


@pytest.mark.parametrize("opset", [11, 13])
def test_hardmax_of_nothing(opset):
    check_node("Hardmax", {"x": np.zeros((2, 3, 0), np.float32)}, {"axis": 2 if opset > 11 else 1}, opset=opset)


def test_relu_of_large_integers() -> None:
    x = np.array([2**24 + 1, 2**31 - 1, -(2**31), -1], np.int32)
    check_node("Relu", {"x": x}, opset=14, expected=[np.maximum(x, 0)])
