"""Quantised tensors, and models that ONNX Runtime's quantiser makes."""

from pathlib import Path
from typing import Any

import ml_dtypes as ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mo_loop.api import convert_model, save_model
from tests.cases import read_cases
from tests.harness import check, check_node, every, node_model, parsed, run_ir

# -- Quantised tensors: integers are exact, ties included


INTEGERS = (np.uint8, np.int8, np.uint16, np.int16)


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def numbers(*shape: int) -> np.ndarray:
    return (rng().standard_normal(shape) * 40).astype(np.float32)


def integers(dtype, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng().integers(info.min, info.max, shape, dtype, endpoint=True)


@every(opset=(21, 23), dtype=INTEGERS)
def test_the_output_type_without_a_zero_point(dtype, opset):
    x = np.array([-1e6, -200, -100, -3, 0, 3, 100, 200, 1e6], np.float32)
    info = np.iinfo(dtype)
    expected = np.clip(np.rint(x / np.float32(0.5)), info.min, info.max).astype(dtype)
    number = int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    inputs = {"x": x, "scale": np.float32(0.5)}
    check_node("QuantizeLinear", inputs, {"output_dtype": number}, opset=opset, expected=[expected])


def test_quotients_in_bf16():
    import ml_dtypes

    x = np.linspace(-60, 60, 4001).astype(ml_dtypes.bfloat16)
    scale = np.asarray(0.237, ml_dtypes.bfloat16)
    quotient = (x.astype(np.float32) / np.float32(scale)).astype(ml_dtypes.bfloat16).astype(np.float32)
    expected = np.clip(np.rint(quotient) + 3, -128, 127).astype(np.int8)
    check_node("QuantizeLinear", {"x": x, "scale": scale, "zero": np.int8(3)}, opset=23, expected=[expected])


@every(kind=("float8_e4m3fn", "float8_e5m2"), scale=(1.0, 0.0317))
def test_floats_of_8_bits_beside_halves(kind, scale):
    """The runtime rounds to f16 first, which moves some of these to the middle of two numbers."""
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, kind))
    halves = (np.arange(17, 257) / 8 * np.float32(scale)).astype(np.float32)
    x = np.concatenate([halves, *(halves * np.float32(1 + each) for each in (1e-4, -1e-4, 1e-6, -1e-6)), [1e9, -1e9]])
    largest = float(ml_dtypes.finfo(dtype).max)
    expected = np.clip(x.astype(np.float32) / np.float32(scale), -largest, largest).astype(dtype)
    inputs = {"x": x.astype(np.float32), "scale": np.float32(scale), "zero": np.zeros((), dtype)}
    check_node("QuantizeLinear", inputs, opset=19, expected=[expected], constants=("scale", "zero"))


@every(dynamic=(False, True), dtype=INTEGERS, constants=((), ("scale", "zero")))
def test_every_bit_of_a_difference_times_a_scale(dtype, dynamic, constants, tmp_path):
    """The runtime would compute q * scale - zero * scale."""
    q = integers(dtype, 40, 50)
    inputs = {"x": q, "scale": np.float32(0.05), "zero": np.array(100, dtype)}
    model = node_model("DequantizeLinear", inputs, opset=21, constants=constants, dynamic=dynamic)
    feeds = {name: value for name, value in inputs.items() if name not in constants}
    assert np.array_equal(exact(model, feeds, tmp_path), (q.astype(np.float32) - np.float32(100)) * np.float32(0.05))


def test_requantisation_rounds_halves_to_even(tmp_path):
    """From a scale of 0.05 to one of 0.02, the quotients of half of the integers are halves."""
    model = parsed("""main (uint8[256] p) => (uint8[256] q) <float s = {0.05}, uint8 z = {100}, float t = {0.02},
      uint8 k = {30}> { d = DequantizeLinear (p, s, z) q = QuantizeLinear (d, t, k) }""")
    p = np.arange(256).astype(np.uint8)
    numbers = (p.astype(np.float32) - np.float32(100)) * np.float32(0.05)
    expected = np.clip(np.rint(numbers / np.float32(0.02)) + 30, 0, 255)
    assert np.array_equal(exact(model, {"p": p}, tmp_path), expected)


def exact(model: onnx.ModelProto, feeds: dict[str, np.ndarray], folder: Path) -> np.ndarray:
    save_model(convert_model(model, quantization="exact"), folder / "model.xml")
    ((_, found),) = run_ir(folder / "model.xml", [feeds])[0]
    return found


# -- Models that ONNX Runtime's quantiser makes, with ONNX Runtime's own operators: they convert and agree with it.
#
# A convolutional network in the format QOperator, and a network of matrix products that is quantised dynamically and
# then optimised by ONNX Runtime.


ort = pytest.importorskip("onnxruntime")
RANDOM = np.random.default_rng(20)


def network(nodes: list[tuple[Any, ...]], weights: dict[str, Any], shape: list[Any]) -> onnx.ModelProto:
    """A model of nodes (operator, inputs, output, attributes) from `x` to `y`."""
    made = [helper.make_node(op, ins.split(), [out], name=out, **attributes) for op, ins, out, attributes in nodes]
    ends = [helper.make_tensor_value_info("y", 1, None)]
    constants = [numpy_helper.from_array(each.astype(np.float32), name) for name, each in weights.items()]
    graph = helper.make_graph(made, "g", [helper.make_tensor_value_info("x", 1, shape)], ends, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convolutional() -> onnx.ModelProto:
    """Convolutions, an Add, a Concat, pools, a Sigmoid, a LeakyRelu, a Gemm and a Softmax."""
    weights = {"w1": RANDOM.normal(0, 0.3, (8, 3, 3, 3)), "b1": RANDOM.normal(0, 0.1, 8),
               "w2": RANDOM.normal(0, 0.2, (8, 8, 1, 1)), "w3": RANDOM.normal(0, 0.3, (16, 10)),
               "b3": RANDOM.normal(0, 0.1, 10)}
    nodes = [
        ("Conv", "x w1 b1", "c1", {"pads": [1, 1, 1, 1]}), ("LeakyRelu", "c1", "r", {"alpha": 0.1}),
        ("Conv", "r w2", "c2", {}), ("Sigmoid", "c2", "s", {}), ("Mul", "c2 s", "m", {}), ("Add", "m r", "a", {}),
        ("Concat", "a r", "j", {"axis": 1}), ("AveragePool", "j", "p", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("GlobalAveragePool", "p", "g", {}), ("Flatten", "g", "f", {}), ("Gemm", "f w3 b3", "l", {}),
        ("Softmax", "l", "y", {}),
    ]
    return network(nodes, weights, ["N", 3, 12, 12])


def products() -> onnx.ModelProto:
    """Two matrix products with biases and a Relu between them."""
    weights = {"w1": RANDOM.normal(0, 0.1, (64, 96)), "b1": RANDOM.normal(0, 0.1, 96),
               "w2": RANDOM.normal(0, 0.1, (96, 32))}
    nodes = [("MatMul", "x w1", "m1", {}), ("Add", "m1 b1", "a", {}), ("Relu", "a", "r", {}),
             ("MatMul", "r w2", "y", {})]
    return network(nodes, weights, ["N", "L", 64])


class Reader:
    """Calibration data of a network."""

    def __init__(self, arrays: list[Any]) -> None:
        self.rest = iter(arrays)

    def get_next(self) -> dict[str, Any] | None:
        array = next(self.rest, None)
        return None if array is None else {"x": array}


def operators(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node if node.domain == "com.microsoft"}


@pytest.mark.parametrize("quantization", ["fast", "exact"])
def test_static(tmp_path: Path, quantization: str) -> None:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    reader = type("Data", (Reader, CalibrationDataReader), {})
    source, target = tmp_path / "float.onnx", tmp_path / "static.onnx"
    onnx.save(convolutional(), source)
    arrays = [RANDOM.standard_normal((2, 3, 12, 12)).astype(np.float32) for _ in range(4)]
    quantize_static(str(source), str(target), reader(arrays), quant_format=QuantFormat.QOperator,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, reduce_range=True)
    model = onnx.load(target)
    wanted = {"QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearSigmoid", "QLinearLeakyRelu", "QGemm"}
    assert wanted <= operators(model), operators(model)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = [{"x": arrays[0]}, {"x": arrays[1][:1]}]
    expected = [[("y", session.run(["y"], each)[0])] for each in feeds]
    check(model, *feeds, expected=expected, quantization=quantization, atol=0.02 if quantization == "fast" else 1e-3)


@pytest.mark.parametrize("quantization", ["fast", "exact"])
def test_dynamic(tmp_path: Path, quantization: str) -> None:
    from onnxruntime.quantization import quantize_dynamic

    source, target, optimised = (tmp_path / f"{name}.onnx" for name in ("float", "dynamic", "optimised"))
    onnx.save(products(), source)
    quantize_dynamic(str(source), str(target), reduce_range=True)
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(optimised)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    ort.InferenceSession(str(target), options, providers=["CPUExecutionProvider"])
    model = onnx.load(optimised)
    assert operators(model) & {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"}, operators(model)
    x = RANDOM.standard_normal((2, 5, 64)).astype(np.float32)
    check(model, {"x": x}, {"x": x[:1, :3]}, quantization=quantization, atol=0.02 if quantization == "fast" else 1e-3)


read_cases(globals())
