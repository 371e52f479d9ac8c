"""Quantised tensors, and models that ONNX Runtime's quantiser makes."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mo_loop.api import convert_model, save_model
from mo_loop.errors import MoLoopError
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


@every(dynamic=(False, True), dtype=INTEGERS)
def test_one_scale(dtype, dynamic):
    x = numbers(3, 5)
    x[0] = [np.inf, -np.inf, 1e30, -1e30, 2.5]
    inputs = {"x": x, "scale": np.float32(0.37), "zero": np.array(7, dtype)}
    check_node("QuantizeLinear", inputs, opset=21, dynamic=dynamic)
    check_node("DequantizeLinear", {**inputs, "x": integers(dtype, 3, 5)}, opset=21, dynamic=dynamic)


@every(opset=(21, 23), dtype=INTEGERS)
def test_the_output_type_without_a_zero_point(dtype, opset):
    x = np.array([-1e6, -200, -100, -3, 0, 3, 100, 200, 1e6], np.float32)
    info = np.iinfo(dtype)
    expected = np.clip(np.rint(x / np.float32(0.5)), info.min, info.max).astype(dtype)
    number = int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    inputs = {"x": x, "scale": np.float32(0.5)}
    check_node("QuantizeLinear", inputs, {"output_dtype": number}, opset=opset, expected=[expected])


@every(constants=((), ("scale", "zero")), op=("QuantizeLinear", "DequantizeLinear"))
def test_a_scale_along_an_axis(op, constants):
    x = numbers(3, 4, 5) if op == "QuantizeLinear" else integers(np.uint8, 3, 4, 5)
    inputs = {"x": x, "scale": np.array([0.3, 0.5, 1, 2], np.float32), "zero": np.array([1, 2, 3, 4], np.uint8)}
    check_node(op, inputs, {"axis": -2}, opset=13, constants=constants)


@pytest.mark.parametrize("op", ("QuantizeLinear", "DequantizeLinear"))
def test_a_scale_for_each_block(op):
    x = numbers(6, 7) if op == "QuantizeLinear" else integers(np.uint8, 6, 7)
    inputs = {"x": x, "scale": np.abs(numbers(6, 4)) / 100 + np.float32(0.1), "zero": integers(np.uint8, 6, 4)}
    check_node(op, inputs, {"axis": 1, "block_size": 2}, opset=21)


@every(constants=((), ("scale", "zero")), scale=(0.0196078438, 0.1, 0.3, 7.1, 0.5), zero=(121, 128),
       dynamic=(False, True))
def test_halves(scale, zero, constants, dynamic):
    """Multiplied by 1 / scale, as in the runtime, some of these round to the other side."""
    x = (np.arange(-600, 600) * np.float32(scale) / 2).astype(np.float32).reshape(30, 40)
    given = {"x": x, "scale": np.float32(scale), "zero": np.uint8(zero)}
    check_node("QuantizeLinear", given, opset=13, constants=constants, dynamic=dynamic)


@every(scale=(0.0196078438, 0.1, 0.3, 7.1, 0.25, 4.0), zero=(np.uint16(30001), np.int16(-7)),
       constants=((), ("scale",)), dynamic=(False, True))
def test_halves_of_16_bits(scale, zero, constants, dynamic):
    x = (np.arange(-65000, 65000) * np.float32(scale) / 2).astype(np.float32)
    x[:5] = [np.inf, -np.inf, 1e38, -1e38, 0]
    given = {"x": x.reshape(100, -1), "scale": np.float32(scale), "zero": zero}
    check_node("QuantizeLinear", given, opset=21, constants=constants, dynamic=dynamic)


@every(opset=(21, 23), kind=(np.uint8, np.int8, np.int16))
def test_quotients_in_f16(kind, opset):
    """From opset 23 on a quotient has the type of the scale: 201.45 becomes 201.5, and then 202."""
    x = np.linspace(-60, 60, 4001).astype(np.float16)
    x[:4] = [np.inf, -np.inf, 65504, -65504]
    inputs = {"x": x, "scale": np.float16(0.237 if kind is not np.int16 else 0.0937), "zero": kind(3)}
    check_node("QuantizeLinear", inputs, opset=opset)
    check_node("QuantizeLinear", inputs, {"precision": 1}, opset=23)


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


def test_absent_zero_points():
    check_node("QuantizeLinear", {"x": numbers(3, 4), "scale": np.float32(0.37)}, opset=10)
    x = rng().integers(-1000, 1000, (3, 4)).astype(np.int32)
    check_node("DequantizeLinear", {"x": x, "scale": np.float32(0.01)}, opset=13)


@pytest.mark.parametrize("dynamic", (False, True))
def test_dynamic_quantize(dynamic):
    check_node("DynamicQuantizeLinear", {"x": numbers(30, 40)}, opset=11, outputs=3, dynamic=dynamic)


def test_mat_mul_integer():
    inputs = {"a": integers(np.uint8, 3, 600), "b": integers(np.int8, 600, 5), "a_zero": np.uint8(13),
              "b_zero": np.array([1, 2, 3, 4, 5], np.int8)}
    check_node("MatMulInteger", inputs, opset=10)
    inputs |= {"a": inputs["a"][0], "a_zero": np.array([13], np.uint8)}
    check_node("MatMulInteger", inputs, opset=10, dynamic=True)


def test_sums_too_large_for_f32():
    inputs = {"a": np.full((2, 4001), 255, np.uint8), "b": np.full((4001, 2), 255, np.uint8)}
    check_node("MatMulInteger", inputs, opset=10)
    inputs = {"x": np.full((1, 300, 3, 3), 255, np.uint8), "w": np.full((2, 300, 3, 3), 255, np.uint8)}
    check_node("ConvInteger", inputs, opset=10, constants=("w",))


def test_conv_integer():
    inputs = {"x": integers(np.uint8, 2, 4, 6, 6), "w": integers(np.uint8, 6, 2, 3, 3), "x_zero": np.uint8(13),
              "w_zero": np.uint8(100)}
    check_node("ConvInteger", inputs, {"group": 2, "pads": [1, 1, 1, 1]}, opset=10, constants=("w",))


@pytest.mark.parametrize("constants", ((), ("x_scale", "x_zero", "y_scale", "y_zero", "w_scale", "w_zero", "b")))
def test_qlinear_conv(constants):
    inputs = {
        "x": integers(np.uint8, 2, 4, 6, 6), "x_scale": np.float32(0.1), "x_zero": np.uint8(13),
        "w": integers(np.int8, 6, 4, 3, 3), "w_scale": np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.4], np.float32),
        "w_zero": np.zeros(6, np.int8), "y_scale": np.float32(51), "y_zero": np.uint8(100),
        "b": rng().integers(-999, 999, 6).astype(np.int32),
    }
    check_node("QLinearConv", inputs, {"pads": [1, 1, 1, 1]}, opset=10, constants=("w", *constants))


def test_qlinear_mat_mul():
    inputs = {
        "a": integers(np.uint8, 3, 60), "a_scale": np.float32(0.1), "a_zero": np.uint8(3),
        "b": integers(np.uint8, 60, 5), "b_scale": np.array([0.1, 0.2, 0.3, 0.1, 0.4], np.float32),
        "b_zero": np.array([1, 2, 3, 4, 5], np.uint8), "y_scale": np.float32(91), "y_zero": np.uint8(100),
    }
    check_node("QLinearMatMul", inputs, opset=21)


@pytest.mark.parametrize("shape", ((), (3,)))
def test_nothing_but_zeros_quantised_dynamically(shape):
    """The scale is 1, so that there is no division by 0."""
    x = np.zeros(shape, np.float32)
    zeros = np.zeros(shape, np.uint8)
    check_node("DynamicQuantizeLinear", {"x": x}, opset=11, outputs=3, expected=[zeros, np.float32(1), np.uint8(0)])


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("axis", [None, 1, -1])
@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.int16])
def test_extended_quantisation_of_quark(kind: Any, axis: int | None, dynamic: bool) -> None:
    """ONNX's formula: halves are rounded to even, results beyond the range become its ends."""
    generator = np.random.default_rng(5)
    limits = np.iinfo(kind)
    x = generator.integers(-9, 9, (2, 3, 3)).astype(np.float32) * 2.5
    x[0, 0] = 4e4 * np.float32([-1, 0, 1])
    scale = np.float32(0.5) if axis is None else np.float32([0.5, 1, 4])
    zero = np.asarray(limits.max // 3 if axis is None else [1, 0, limits.max // 2], kind)
    shape = () if axis is None else (3, 1) if axis == 1 else (3,)
    by, offset = (np.reshape(each, shape) for each in (scale, zero.astype(np.float32)))
    codes = np.clip(np.rint(x / by) + offset, limits.min, limits.max).astype(kind)
    attributes = {} if axis is None else {"axis": axis}
    fixed = {"scale": scale, "zero": zero}
    check_node("com.amd.quark::ExtendedQuantizeLinear", {"x": x, **fixed}, attributes, opset=1,
               constants=list(fixed), dynamic=dynamic, expected=[codes])
    check_node("com.amd.quark::ExtendedDequantizeLinear", {"x": codes, **fixed}, attributes, opset=1,
               constants=list(fixed), dynamic=dynamic, expected=[(codes.astype(np.float32) - offset) * by])


def test_extended_dequantisation_of_a_bias() -> None:
    x, scale = np.int32([-70000, 0, 2**20 + 1]), np.float32(0.25)
    for inputs in ({"x": x, "scale": scale}, {"x": x, "scale": scale, "zero": np.int32(0)}):
        check_node("com.amd.quark::ExtendedDequantizeLinear", inputs, opset=1, constants=list(inputs)[1:],
                   expected=[x.astype(np.float32) * scale])


@pytest.mark.parametrize(("zero", "said"), [
    (np.float16(0), "to f16: .*nothing would be rounded"), (ml_dtypes.bfloat16(0), "to bf16"),
    (np.int32(0), "to i32: .*not all"), (np.uint32(0), "to u32"),
], ids=["f16", "bf16", "i32", "u32"])
def test_extended_quantisation_to_other_types_is_refused(zero: Any, said: str) -> None:
    inputs = {"x": np.float32([1, 2]), "scale": np.float32(1), "zero": np.asarray(zero)}
    model = node_model("com.amd.quark::ExtendedQuantizeLinear", inputs, opset=1, constants=["scale", "zero"])
    with pytest.raises(MoLoopError, match=said):
        convert_model(model)


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
