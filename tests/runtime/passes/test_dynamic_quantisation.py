"""Products of dynamically quantised activations: right on every instruction set, with weights that keep 8 bits."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from mo_loop import Model, convert_model, save_model
from mo_loop.compare.execution.isolated import Hosted
from mo_loop.compare.execution.runtime import compile_ir
from mo_loop.ops.base import Constant
from mo_loop.support.workers import Pool
from tests.harness import every, oracle
from tools.runtimes import chosen_interpreter

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(34)
SETS = ("SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_VNNI")
"""Instruction sets of oneDNN; a CPU without one of them uses the largest that it has."""


@functools.cache
def _worker(instructions: str) -> Pool:
    env = {"ONEDNN_MAX_CPU_ISA": instructions}
    return Pool("mo_loop.compare.execution.isolated:serve", env=env, limit=120, python=chosen_interpreter())


def results_of(model: Model, sets: list[dict[str, Array]], instructions: str = "ALL") -> list[Array]:
    """The first output of every inference, where oneDNN uses no larger instruction set than `instructions`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        save_model(model, path)
        compiled = Hosted(compile_ir, str(path), pool=_worker(instructions))
    return [compiled.run(feeds)[0][1] for feeds in sets]


def _integers(shape: tuple[int, ...], largest: int, random: np.random.Generator = RANDOM) -> Array:
    return random.integers(-largest - 1, largest + 1, shape).astype(np.int8)


def _with_large_rows() -> Array:
    """Small numbers, but for some in 2 of 64 rows."""
    weights = np.clip(RANDOM.standard_normal((64, 40)) * 12, -40, 40).astype(np.int8)
    weights[[5, 17], :9] = RANDOM.choice([127, -128, 100], (2, 9))
    return weights


def _constant(array: Array, name: str) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(array), name)


def _model(product: str, weights: Array, zero: Array | None = None) -> Any:
    """x, quantised dynamically, times the weights."""
    dims = "N,64" if "MatMul" in product else "N,8,7,7"
    given = product.format(", wz" if zero is not None else "")
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        main (float[{dims}] x) => (y) <float ws = {{0.01}}> {{
            q, s, z = DynamicQuantizeLinear (x)
            {given}
        }}""")
    model.graph.initializer.extend([_constant(weights, "W"), *([] if zero is None else [_constant(zero, "wz")])])
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return model


PRODUCT = "p = {} (q, W, z{{}}) f = Cast <to = 1> (p) t = Mul (s, ws) y = Mul (f, t)"
MATRIX, IMAGE = PRODUCT.format("MatMulInteger"), PRODUCT.format("ConvInteger")
TO_FLOAT = "y = com.microsoft.MatMulIntegerToFloat (q, W, s, ws, z)"
IN_ONE = "y = com.microsoft.DynamicQuantizeMatMul (x, W, ws)"
MODELS = {
    "small": (MATRIX, np.clip(_with_large_rows(), -40, 40), None),
    "large rows": (MATRIX, _with_large_rows(), None),
    "whole range": (MATRIX, _integers((64, 40), 127), None),
    "u8": (MATRIX, RANDOM.integers(0, 256, (64, 40)).astype(np.uint8), np.full(40, 128, np.uint8)),
    "u8 beyond i8": (MATRIX, RANDOM.integers(0, 256, (64, 40)).astype(np.uint8), np.uint8(100)),
    "MatMulIntegerToFloat": (TO_FLOAT, _integers((64, 40), 127), None),
    "DynamicQuantizeMatMul": (IN_ONE, _with_large_rows(), None),
    "ConvInteger": (IMAGE, _integers((16, 8, 3, 3), 127), None),
    "ConvInteger, u8": (IMAGE, RANDOM.integers(0, 256, (16, 8, 3, 3)).astype(np.uint8), np.uint8(130)),
}


@every(quantization=["fast", "exact"], name=MODELS)
def test_no_sum_saturates(name: str, quantization: str) -> None:
    """The weights are large, and the activations too: without VNNI sums of two products exceed 16 bits."""
    model = _model(*MODELS[name])
    shape = (8, 7, 7) if "Conv" in name else (64,)
    sets = [{"x": RANDOM.uniform(-0.1, 1, (rows, *shape)).astype(np.float32)} for rows in (3, 1)]
    wanted = [each[0][1] for each in oracle(model, sets).values]
    made = convert_model(model, quantization=quantization)
    for instructions in SETS:
        for right, found in zip(wanted, results_of(made, sets, instructions), strict=True):
            assert np.abs(found - right).max() <= 1e-3 * np.abs(right).max(), instructions


@every(quantization=["fast", "exact"], name=MODELS)
def test_weights_keep_8_bits(name: str, quantization: str) -> None:
    product, weights, zero = MODELS[name]
    graph = convert_model(_model(product, weights, zero), quantization=quantization).graph
    sizes = {each.output.type.dtype.bits for each in graph.of(Constant) if each.tensor.size == weights.size}
    assert sizes == {8}


@pytest.mark.parametrize("as_float", [True, False])
def test_large_sums_are_one_product_where_they_are_read_in_floating_point(as_float: bool) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        main (float[N,1024] x) => ({"float" if as_float else "int32"}[N,8] y) {{
            q, s, z = DynamicQuantizeLinear (x)  p = MatMulInteger (q, W, z)
            y = {"Cast <to = 1>" if as_float else "Identity"} (p)
        }}""")
    model.graph.initializer.append(_constant(_integers((1024, 8), 127), "W"))
    kinds = [each.type for each in convert_model(model).graph.ordered()]
    assert kinds.count("MatMul") == (1 if as_float else 2)


def test_the_ends_of_a_symmetric_range_have_the_integers_of_onnx_runtime() -> None:
    """They are in the middle of two steps: the last bit of the scale decides."""
    model = _model(MATRIX, np.eye(64, dtype=np.int8))
    x = np.resize(np.float32([-1, 1, 0.25]), (1, 64))
    ((_, wanted),) = oracle(model, [{"x": x}]).values[0]
    (found,) = results_of(convert_model(model), [{"x": x}])
    assert np.abs(found - wanted).max() < 1e-6


LSTM = {
    "forward": ("forward", False, False), "reverse with lengths": ("reverse", True, False),
    "both, by channel": ("bidirectional", False, True), "both, with lengths": ("bidirectional", True, True),
}


@every(name=LSTM, quantization=["fast", "exact"])
def test_a_quantised_lstm(name: str, quantization: str) -> None:
    """Of 7 bits: ONNX Runtime saturates on CPUs without VNNI, too. With one thread it quantises the whole batch."""
    direction, has_lengths, by_channel = LSTM[name]
    count, hidden, features = 2 if direction == "bidirectional" else 1, 12, 10
    random = np.random.default_rng(5)  # its own: near a half, a number is rounded otherwise by another order of sums
    scales = (count, 4 * hidden) if by_channel else (count,)
    shapes = {"W": (count, features, 4 * hidden), "R": (count, hidden, 4 * hidden)}
    constants = {key: _integers(shape, 63, random) for key, shape in shapes.items()}
    for each in "wr":
        constants[f"{each}s"] = random.uniform(0.01, 0.03, scales).astype(np.float32)
        constants[f"{each}z"] = np.zeros(scales, np.int8)
    lengths = "lens" if has_lengths else '""'
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        main (float[T,N,{features}] x{", int32[N] lens" if has_lengths else ""}) => (float[T,D,N,{hidden}] y) {{
            y, h, c = com.microsoft.DynamicQuantizeLSTM <hidden_size = {hidden}, direction = "{direction}">
                (x, W, R, "", {lengths}, "", "", "", ws, wz, rs, rz)
        }}""")
    model.graph.initializer.extend(_constant(array, key) for key, array in constants.items())
    feeds = {"x": random.standard_normal((7, 3, features)).astype(np.float32)}
    if has_lengths:
        feeds["lens"] = np.int32([7, 2, 5])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)
    made = convert_model(model, quantization=quantization)
    tensors = [each.tensor for scope in made.graph.scopes() for each in scope.of(Constant)]
    assert {each.dtype.bits for each in tensors if each.size >= features * 4 * hidden} == {8}
    (found,) = results_of(made, [feeds])
    assert np.abs(found - wanted).max() < (1e-5 if quantization == "exact" else 0.1)
