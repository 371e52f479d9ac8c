"""Normalisation and Dropout, compared with ONNX Runtime or the ONNX reference evaluator."""

import numpy as np
import pytest
from onnx import helper

from mo_loop.target import Processor
from tests.harness import NEWEST, check_model, check_node, every, graph_model
from tests.running.processor import wrong_under

RNG = np.random.default_rng(13)
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def statistics(*shape, dtype=np.float32):
    """Scale, bias, mean and variance."""
    values = [RNG.uniform(0.5, 2, shape).astype(dtype) for _ in range(4)]
    return dict(zip(("scale", "bias", "mean", "variance"), values, strict=True))


# -- BatchNormalization


@every(opset=[7, 9, 14, 15], shape=[(2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 2, 2)], constant=[False, True],
       dynamic=[False, True])
def test_batch(opset, shape, constant, dynamic):
    given = statistics(3)
    check_node("BatchNormalization", {"x": floats(*shape), **given}, {"epsilon": 0.01}, opset=opset, dynamic=dynamic,
               constants=list(given) if constant else [])


@pytest.mark.parametrize("opset", [1, 6])
def test_batch_of_old(opset):
    x, given = floats(2, 3, 4), statistics(3)
    s, b, m, v = (each[:, None] for each in given.values())
    y = (x - m) / np.sqrt(v + 1e-5) * s + b
    old = {"is_test": 1, **({"consumed_inputs": [0, 0, 0, 1, 1]} if opset == 1 else {})}
    names = ["y", "m", "v", "sm", "sv"]
    expected = [y, *(given[name] for name in ("mean", "variance", "mean", "variance"))]
    check_node("BatchNormalization", {"x": x, **given}, old, opset=opset, outputs=names, expected=expected)
    check_node("BatchNormalization", {"x": x, **given}, old, opset=opset, expected=[y])


@pytest.mark.parametrize("opset", [1, 6, 7])
def test_batch_of_each_element(opset):
    x, given = floats(2, 3, 4), statistics(3, 4)
    s, b, m, v = given.values()
    old = {"spatial": 0, **({"consumed_inputs": [0, 0, 0, 1, 1]} if opset == 1 else {})}
    y = (x - m) / np.sqrt(v + 1e-5) * s + b
    check_node("BatchNormalization", {"x": x, **given}, old, opset=opset, expected=[y])
    own = x.mean(0), x.var(0)
    y = (x - own[0]) / np.sqrt(own[1] + 1e-5) * s + b
    trained = [y, 0.9 * m + 0.1 * own[0], 0.9 * v + 0.1 * own[1], *own]
    check_node("BatchNormalization", {"x": x, **given}, old, opset=opset, outputs=5, expected=trained)


def test_batch_of_one_dimension():
    x, given = floats(5), statistics(1)
    s, b, m, v = given.values()
    check_node("BatchNormalization", {"x": x, **given}, opset=15, expected=[(x - m) / np.sqrt(v + 1e-5) * s + b])


@pytest.mark.parametrize("shape", [(0,), (2, 0), (2, 0, 4, 5)])
def test_batch_without_channels(shape):
    """OpenVINO does not read its operation then."""
    given = statistics(0 if len(shape) > 1 else 1)
    check_node("BatchNormalization", {"x": floats(*shape), **given}, opset=15, expected=[floats(*shape)])


@every(opset=[9, 15], dynamic=[False, True])
def test_batch_in_training(opset, dynamic):
    """The statistics of x normalise it, and update the running ones."""
    names, given = (["y", "m", "v"], {"training_mode": 1}) if opset == 15 else (["y", "m", "v", "", ""], {})
    arrays = {"x": floats(2, 3, 4, 5), **statistics(3)}
    check_node("BatchNormalization", arrays, {"momentum": 0.8, **given}, opset=opset, outputs=names, dynamic=dynamic)


def test_batch_of_mixed_types():
    x, given = floats(2, 3, 4, dtype=np.float16), statistics(3)
    s, b, m, v = (each[:, None] for each in given.values())
    y = ((x - m) / np.sqrt(v + 1e-5) * s + b).astype(np.float16)
    check_node("BatchNormalization", {"x": x, **given}, opset=15, expected=[y])


# -- over parts of one sample


@every(shape=[(2, 3, 7), (2, 3, 4, 5), (2, 3, 2, 3, 4)], opset=[6, 22], dynamic=[False, True])
def test_instance(shape, opset, dynamic):
    arrays = {"x": floats(*shape), "scale": floats(3), "bias": floats(3)}
    check_node("InstanceNormalization", arrays, {"epsilon": 0.02}, opset=opset, dynamic=dynamic)


@wrong_under(Processor.SSE41, "MVN")
@every(axis=[0, 1, 2, -1, -2], bias=[False, True], outputs=[["y"], ["y", "mean", "inverse"], ["y", "", "inverse"]],
       dynamic=[False, True])
def test_layer(axis, bias, outputs, dynamic):
    shape = (2, 3, 4)[axis:]
    arrays = {"x": floats(2, 3, 4), "scale": floats(*shape), "bias": floats(*shape) if bias else None}
    check_node("LayerNormalization", arrays, {"axis": axis}, opset=17, outputs=outputs, dynamic=dynamic)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_layer_types(dtype):
    arrays = {"x": floats(2, 3, 4, dtype=dtype), "scale": floats(4, dtype=dtype), "bias": floats(4, dtype=dtype)}
    check_node("LayerNormalization", arrays, opset=17)


@every(shape=[(2, 4, 3), (2, 4, 3, 5), (1, 4, 2, 2, 2)], groups=[1, 2, 4], opset=[18, 21], dynamic=[False, True])
def test_group(shape, groups, opset, dynamic):
    x, scale, bias = floats(*shape), floats(groups if opset == 18 else 4), floats(groups if opset == 18 else 4)
    flat = x.reshape(shape[0], groups, -1).astype(np.float64)
    y = (flat - flat.mean(2, keepdims=True)) / np.sqrt(flat.var(2, keepdims=True) + 1e-5)
    wide = [np.repeat(each, 4 // len(each)).reshape(-1, *[1] * (len(shape) - 2)) for each in (scale, bias)]
    expected = (y.reshape(shape) * wide[0] + wide[1]).astype(np.float32)
    arrays = {"x": x, "scale": scale, "bias": bias}
    check_node("GroupNormalization", arrays, {"num_groups": groups}, opset=opset, dynamic=dynamic, expected=[expected])


@dynamic_or_not
def test_group_in_a_loop(dynamic):
    """The runtime refuses GroupNormalization-12 in a body; it accepts the composition."""
    shape = [None if dynamic else dim for dim in (1, 4, 3, 3)]
    body = helper.make_graph(
        [helper.make_node("GroupNormalization", ["x", "scale", "bias"], ["y"], num_groups=2),
         helper.make_node("Identity", ["c"], ["c_out"])],
        "body",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("c", 9, []),
         helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("c_out", 9, []), helper.make_tensor_value_info("y", 1, shape)],
    )
    node = helper.make_node("Loop", ["n", "", "start"], ["out"], body=body)
    arrays = {"start": floats(1, 4, 3, 3), "scale": floats(4), "bias": floats(4)}
    constants = {"n": np.array(3, np.int64), "scale": arrays["scale"], "bias": arrays["bias"]}
    model = graph_model([node], {"start": arrays["start"]}, ["out"], opset=21, constants=constants, dynamic=dynamic)
    check_model(model, {"start": arrays["start"]})


@every(axis=[-1, 1, 0], dynamic=[False, True])
def test_rms(axis, dynamic):
    x = floats(2, 3, 4)
    scale = floats(*x.shape[axis:])
    y = x / np.sqrt(np.mean(x * x, tuple(range(axis % 3, 3)), keepdims=True) + 0.01) * scale
    given = {"axis": axis, "epsilon": 0.01}
    check_node("RMSNormalization", {"x": x, "scale": scale}, given, opset=23, dynamic=dynamic, expected=[y])


@every(p=[1, 2], axis=[-1, 0, 1], dynamic=[False, True])
def test_lp(p, axis, dynamic):
    x = floats(2, 3, 4)
    x[0, :, 0] = 0
    x[:, 1] = 0
    check_node("LpNormalization", {"x": x}, {"axis": axis, "p": p}, opset=22, dynamic=dynamic)


@every(size=[1, 2, 3, 4, 5], dynamic=[False, True])
def test_lrn(size, dynamic):
    x = floats(2, 7, 3, 3)
    squares = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)])
    y = x / (2 + 0.5 / size * sum(squares[:, i : i + 7] for i in range(size))) ** 0.6
    given = {"size": size, "alpha": 0.5, "beta": 0.6, "bias": 2.0}
    check_node("LRN", {"x": x}, given, opset=13, dynamic=dynamic, expected=[y])


@every(axes=[None, [0, 2, 3], [1], [-1], [0, 1, 2, 3], [3, 1]], dynamic=[False, True])
def test_mean_variance(axes, dynamic):
    given = {} if axes is None else {"axes": axes}
    x = floats(2, 3, 4, 5)
    over = tuple(axes or (0, 2, 3))
    y = (x - x.mean(over, keepdims=True)) / (x.std(over, keepdims=True) + 1e-9)
    check_node("MeanVarianceNormalization", {"x": x}, given, opset=13, dynamic=dynamic, expected=[y])


# -- Dropout


@every(opset=[1, 6, 7, 10, 12, 13, NEWEST], mask=[False, True])
def test_dropout_copies(opset, mask):
    x = floats(2, 3)
    expected = [x, np.ones_like(x, dtype=np.float32 if opset < 10 else bool)]
    outputs = ["y", "mask"] if mask else ["y"]
    check_node("Dropout", {"x": x}, opset=opset, outputs=outputs, dynamic=True, expected=expected[: len(outputs)])


@pytest.mark.parametrize(("ratio", "training"), [(0.5, False), (0.0, True), (0.0, False)])
def test_dropout_that_drops_nothing(ratio, training):
    arrays = {"x": floats(2, 3), "ratio": np.array(ratio, np.float32), "training": np.array(training)}
    expected = [arrays["x"], np.ones((2, 3), bool)]
    check_node("Dropout", arrays, opset=13, outputs=2, constants=["ratio", "training"], expected=expected)


@every(dynamic=[False, True], bias=[0.5, 1.5, 2.0])
def test_local_response_of_any_bias(bias, dynamic):
    """The runtime truncates the bias, and does not run without a known number of channels."""
    attributes = {"size": 3, "alpha": 0.7, "bias": bias}
    check_node("LRN", {"x": floats(2, 5, 3, 2)}, attributes, opset=13, dynamic=dynamic)


# -- versions that ONNX Runtime adds to the default domain


@wrong_under(Processor.SSE41, "MVN")
@pytest.mark.parametrize("opset", [11, 16])
@pytest.mark.parametrize("outputs", [["y"], ["y", "mean", "inverse"]], ids=["one", "three"])
@dynamic_or_not
def test_layers_before_opset_17(opset, outputs, dynamic):
    given = {"x": floats(2, 3, 4), "scale": floats(4), "bias": floats(4)}
    check_node("LayerNormalization", given, {"axis": -1}, opset=opset, outputs=outputs, dynamic=dynamic)


@every(across=[0, 1], variance=[0, 1])
def test_mean_and_variance_before_opset_9(across, variance):
    attributes = {"across_channels": across, "normalize_variance": variance}
    check_node("MeanVarianceNormalization", {"x": floats(2, 3, 4, 5)}, attributes, opset=8)
