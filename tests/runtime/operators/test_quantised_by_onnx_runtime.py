"""Models that ONNX Runtime's quantiser makes, with ONNX Runtime's own operators: they convert and agree with it.

A convolutional network in the format QOperator, and a network of matrix products that is quantised dynamically and then
optimised by ONNX Runtime.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.harness import check

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
