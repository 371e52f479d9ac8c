"""Quantised networks on the runtime: which nodes compute with integers, and by how many steps results differ."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mo_loop import convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from tests.cases import read_cases
from tests.harness import check, oracle

Array = np.ndarray[Any, Any]
CHANNELS = 32
STEP = np.float32(0.05)
LARGEST = 64
"""The largest weight: CPUs without VNNI add two products in 16 bits, and 2 * 255 * 64 fits."""


class Network:
    """A network of quantised layers, written as QuantizeLinear and DequantizeLinear or as operators on integers."""

    def __init__(self, kind: type[Any] = np.uint8, *, by_channel: bool = False) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.numbers = np.random.default_rng(16)
        self.zero: Any = kind(120 if kind is np.uint8 else 3)
        self.by_channel = by_channel
        self.count = 0

    def constant(self, array: Any) -> str:
        self.count += 1
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{self.count}"))
        return f"c{self.count}"

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        self.count += 1
        self.nodes.append(helper.make_node(op, inputs, [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def quantised(self, x: str, scale: Any = STEP) -> str:
        return self.node("QuantizeLinear", x, self.constant(scale), self.constant(self.zero))

    def dequantised(self, q: str, scale: Any = STEP) -> str:
        return self.node("DequantizeLinear", q, self.constant(scale), self.constant(self.zero))

    def both(self, x: str, scale: Any = STEP) -> str:
        return self.dequantised(self.quantised(x, scale), scale)

    def weights(self, *shape: int) -> tuple[str, str, str]:
        """The integers, scales and zero points of weights whose first axis is the output."""
        integers = self.numbers.integers(-LARGEST, LARGEST + 1, shape).astype(np.int8)
        count = shape[0] if self.by_channel else 1
        scale = (self.numbers.random(count) * 0.001 + 0.0005).astype(np.float32)
        zero = np.zeros(count, np.int8)
        if not self.by_channel:
            scale, zero = scale.reshape(()), zero.reshape(())
        return self.constant(integers), self.constant(scale), self.constant(zero)

    def convolution(self, x: str) -> str:
        axis = {"axis": 0} if self.by_channel else {}
        w = self.node("DequantizeLinear", *self.weights(CHANNELS, CHANNELS, 3, 3), **axis)
        bias = self.constant(self.numbers.standard_normal(CHANNELS).astype(np.float32))
        return self.node("Conv", x, w, bias, pads=[1, 1, 1, 1])

    def integer_convolution(self, q: str) -> str:
        parameters = [self.constant(STEP), self.constant(self.zero)]
        bias = self.constant(self.numbers.integers(-999, 999, CHANNELS).astype(np.int32))
        weights = self.weights(CHANNELS, CHANNELS, 3, 3)
        return self.node("QLinearConv", q, *parameters, *weights, *parameters, bias, pads=[1, 1, 1, 1])

    def model(self, y: str, shape: Any = (1, CHANNELS, 12, 12)) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        result = helper.make_tensor_value_info(y, TensorProto.FLOAT, [None] * len(shape))
        graph = helper.make_graph(self.nodes, "g", [x], [result], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.checker.check_model(model)
        return model


def image() -> Array:
    return np.random.default_rng(1).standard_normal((1, CHANNELS, 12, 12)).astype(np.float32)


def run_fast(model: onnx.ModelProto, x: Array) -> tuple[Array, dict[str, set[str]]]:
    """The result, and the precisions of the executed nodes by their type."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        save_model(convert_model(model), path)
        return isolated(_run, path, x)


def _run(path: Path, x: Array) -> tuple[Array, dict[str, set[str]]]:
    import openvino

    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    nodes: dict[str, set[str]] = {}
    for each in compiled.get_runtime_model().get_ops():
        info = each.get_rt_info()
        nodes.setdefault(info["layerType"].astype(str), set()).add(info["runtimePrecision"].astype(str))
    return np.array(compiled(x)[0]), nodes


def steps_off(found: Array, model: onnx.ModelProto, x: Array, step: float = float(STEP)) -> Array:
    """By how many quantisation steps each element differs from ONNX Runtime's, where products are exact."""
    ((_, wanted),) = oracle(model, [{"x": x}]).values[0]
    assert found.shape == wanted.shape
    return np.abs(found - wanted) / step


@pytest.mark.parametrize(("kind", "by_channel"), [(np.uint8, False), (np.int8, False), (np.int8, True)])
def test_convolutions_compute_with_8_bits(kind: type[np.generic], by_channel: bool) -> None:
    net = Network(kind, by_channel=by_channel)
    y = net.both(net.node("Relu", net.convolution(net.both("x"))))
    model = net.model(net.both(net.node("Relu", net.convolution(y))))
    found, nodes = run_fast(model, image())
    assert nodes["Convolution"] <= {"u8", "i8"}
    off = steps_off(found, model, image())
    assert off.max() < 2.01 and np.mean(off > 0.01) < 0.02


@pytest.mark.parametrize("transposed", (False, True))
@pytest.mark.parametrize(("zero", "largest"), [(128, 64), (100, 64), (100, 155)])
def test_filters_of_u8_with_zero_points(zero: int, largest: int, transposed: bool) -> None:
    """They become i8 if they fit. The runtime limits other filters of a transposed convolution to i8."""
    net = Network()
    net.zero = np.uint8(0)
    size = (CHANNELS, CHANNELS, 2, 2)
    integers = np.clip(net.numbers.integers(zero - largest, zero + largest + 1, size), 0, 255).astype(np.uint8)
    scale = net.constant(np.float32(0.002))
    w = net.node("DequantizeLinear", net.constant(integers), scale, net.constant(np.uint8(zero)))
    x = net.both("x")
    y = net.node("ConvTranspose", x, w, strides=[2, 2]) if transposed else net.node("Conv", x, w)
    model = net.model(y)
    found, nodes = run_fast(model, image())
    if largest == LARGEST:
        assert nodes["Deconvolution" if transposed else "Convolution"] <= {"u8", "i8"}
    assert steps_off(found, model, image()).max() < 0.01


def test_between_quantised_layers() -> None:
    """A residual sum, a Concat, pooling and Resize stay in 8 bits or are right in f32."""
    net = Network()
    x = net.both("x")
    s = net.both(net.node("Add", x, net.both(net.convolution(x))))
    pooled = net.both(net.node("AveragePool", s, kernel_shape=[2, 2], strides=[2, 2]))
    sizes = net.constant(np.array([1, CHANNELS, 12, 12]))
    wide = net.both(net.node("Resize", pooled, "", "", sizes, mode="nearest"))
    window = [net.constant(np.array([number])) for number in (8, 8 + CHANNELS, 1)]
    joined = net.node("Slice", net.node("Concat", s, wide, axis=1), *window)
    model = net.model(net.both(net.convolution(joined)))
    found, nodes = run_fast(model, image())
    assert nodes["Convolution"] <= {"u8", "i8"}
    assert steps_off(found, model, image()).max() < 3.01


def test_matrix_products_compute_with_8_bits() -> None:
    net = Network(by_channel=False)
    w = net.node("DequantizeLinear", *net.weights(64, 48))
    model = net.model(net.both(net.node("MatMul", net.both("x"), w)), ("rows", 64))
    x = np.random.default_rng(2).standard_normal((7, 64)).astype(np.float32)
    found, nodes = run_fast(model, x)
    assert nodes["FullyConnected"] <= {"u8", "i8"}
    assert steps_off(found, model, x).max() < 1.01


@pytest.mark.parametrize("axis", (0, 1, 2))
def test_activations_with_a_scale_for_each_slice(axis: int) -> None:
    """The runtime does not compile a FakeQuantize whose range varies along the third axis."""
    net = Network()
    scale = np.array([0.05, 0.1, 0.07, 0.03], np.float32)
    parameters = net.constant(scale), net.constant(np.array([120, 100, 0, 255], np.uint8))
    q = net.node("QuantizeLinear", "x", *parameters, axis=axis)
    model = net.model(net.node("DequantizeLinear", q, *parameters, axis=axis), (4, 4, 4))
    x = np.random.default_rng(5).standard_normal((4, 4, 4)).astype(np.float32) * 5
    found, _ = run_fast(model, x)
    assert steps_off(found, model, x, 0.03).max() < 3.4


@pytest.mark.parametrize("zero", (np.uint16(31000), np.int16(0)))
def test_16_bits(zero: np.generic) -> None:
    """The runtime would remove a FakeQuantize of 65,536 levels, and with it the limits of the range."""
    net = Network()
    net.zero, step = zero, np.float32(0.0001)
    model = net.model(net.both(net.convolution(net.both("x", step)), step))
    found, _ = run_fast(model, image())
    assert steps_off(found, model, image(), float(step)).max() < 1.01


@pytest.mark.parametrize("name", ("FLOAT8E4M3FN", "FLOAT8E5M2", "INT8"))
def test_weights_that_are_quantised_in_the_graph_keep_their_type(name: str) -> None:
    net = Network()
    kind = getattr(TensorProto, name)
    w = net.constant(net.numbers.standard_normal((CHANNELS, CHANNELS, 1, 1)).astype(np.float32))
    parameters = [net.constant(np.float32(0.02)), "zero"]
    net.constants.append(helper.make_tensor("zero", kind, [], [0]))
    q = net.node("QuantizeLinear", w, *parameters)
    model = net.model(net.node("Conv", net.both("x"), net.node("DequantizeLinear", q, *parameters)))
    graph = convert_model(model).graph
    constants = [each.output.type for each in graph.ordered() if each.type == "Const"]
    assert [each.dtype.onnx for each in constants if each.shape == (CHANNELS, CHANNELS, 1, 1)] == [kind]
    check(model, {"x": image()}, rtol=1e-2, atol=1e-2)


def dynamically_quantised(weights: Array, zero_point: Array | None = None) -> onnx.ModelProto:
    """A product of weights and activations whose scale is known at run time."""
    net = Network()
    net.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]))
    zeros = [] if zero_point is None else [net.constant(zero_point)]
    product = net.node("MatMulInteger", "q", net.constant(weights), "z", *zeros)
    total = net.node("Cast", product, to=TensorProto.FLOAT)
    scale = net.node("Mul", "s", net.constant(np.float32(0.02)))
    return net.model(net.node("Mul", total, scale), ("rows", weights.shape[0]))


@pytest.mark.parametrize("inner", (300, 3072))
@pytest.mark.parametrize("offset", (0, -3, 3), ids=("zero", "negative", "positive"))
def test_dynamic_quantisation_computes_with_8_bits(inner: int, offset: float) -> None:
    random = np.random.default_rng(3)
    x = (random.standard_normal((5, inner)) + offset).astype(np.float32)
    step = float(max(x.max(), 0) - min(x.min(), 0)) / 255
    weights = random.integers(-LARGEST, LARGEST + 1, (inner, 48)).astype(np.int8)
    zero = random.integers(100, 140, 48).astype(np.uint8)
    for model in (dynamically_quantised(weights), dynamically_quantised((weights + zero).astype(np.uint8), zero)):
        found, nodes = run_fast(model, x)
        assert nodes["FullyConnected"] <= {"u8", "i8"}
        assert steps_off(found, model, x, 0.02 * LARGEST * step).max() < 1.01


def test_activations_of_zeros_are_quantised_dynamically() -> None:
    found, _ = run_fast(dynamically_quantised(np.full((32, 16), 5, np.int8)), np.zeros((2, 32), np.float32))
    assert not found.any()


def test_exact_tells_the_runtime() -> None:
    """Without this it would quantise activations before compressed weights."""
    net = Network()
    graph = convert_model(net.model(net.both("x")), quantization="exact").graph
    assert graph.rt_info["runtime_options"] == {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}
    assert "runtime_options" not in convert_model(net.model("x")).graph.rt_info


read_cases(globals())
