"""Quantised layers: which products saturate, how averages and dynamic quantisation are written."""

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from mo_loop.api import Model, convert_model, save_model
from mo_loop.compare.execution.isolated import Hosted
from mo_loop.compare.execution.runtime import compile_ir
from mo_loop.errors import ConversionWarning
from mo_loop.graph.types import i8
from mo_loop.ops.base import Constant
from mo_loop.support.workers import Pool
from mo_loop.transforms.low_precision.weights import integer_layers
from tests import ROOT
from tests.harness import check, every, floats, oracle, parsed, with_weights
from tools.runtimes import chosen_interpreter

# -- Layers in 8 bits on a processor without VNNI: which of them saturate, also with --quantization portable


Array = np.ndarray[Any, Any]
STEP, SIZE = 1.0, 0.01
SATURATED, EXACT = 0.05, 1e-5
"""Parts of the largest output: by how much layers that saturate differ at least, and others at most."""

LAYERS: dict[str, tuple[str, list[int], list[int]]] = {
    "MatMul": ("MatMul (d, v)", [4, 64], [64, 32]),
    "batch": ("MatMul (d, v)", [2, 4, 64], [64, 32]),
    "Gemm": ("Gemm <transB = 1> (d, v)", [4, 64], [32, 64]),
    "pooled": ("Conv (p, v)", [1, 64, 5, 5], [64, 64, 1, 1]),
    "Conv": ("Conv (d, v)", [1, 64, 5, 5], [64, 64, 3, 3]),
    "Conv1D": ("Conv (d, v)", [1, 64, 9], [64, 64, 3]),
    "groups": ("Conv <group = 2> (d, v)", [1, 64, 5, 5], [64, 32, 3, 3]),
    "depthwise": ("Conv <group = 64> (d, v)", [1, 64, 5, 5], [64, 1, 3, 3]),
    "ConvTranspose": ("ConvTranspose (d, v)", [1, 64, 5, 5], [64, 32, 3, 3]),
    "activations": ("MatMul (d, e)", [4, 64], []),
}
NEVER = "depthwise"
RUN = """
import json, sys
import numpy as np
from mo_loop.compare.execution.runtime import compile_ir
for xml, feeds, result in json.load(sys.stdin):
    np.save(result, compile_ir(xml).run(dict(np.load(feeds)))[0][1])
"""


def layer(name: str, signed: bool, largest: int) -> tuple[onnx.ModelProto, Array]:
    """One layer between quantised activations and weights up to `largest`, and activations that are all large."""
    text, shape, sizes = LAYERS[name]
    kind, top = ("int8", 127) if signed else ("uint8", 255)
    free = ", ".join("?" * len(shape))
    model = parsed(f"""main (float[{", ".join(map(str, shape))}] x) => (float[{free}] y)
      <float s = {{{STEP}}}, {kind} z = {{0}}, float t = {{{SIZE}}}, int8 n = {{0}}> {{
      q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z)
      {"p = MaxPool <kernel_shape = [1, 1]> (d)" if "(p" in text else ""}
      {"v = DequantizeLinear (w, t, n)" if sizes else "r = QuantizeLinear (m, t, n) e = DequantizeLinear (r, t, n)"}
      y = {text} }}""")
    numbers = np.random.default_rng(34).integers(largest // 2, largest + 1, sizes or [64, 32])
    if sizes:
        with_weights(model, w=numbers.astype(np.int8))
    else:
        model.graph.input.append(onnx.helper.make_tensor_value_info("m", onnx.TensorProto.FLOAT, numbers.shape))
    return model, np.full(shape, top, np.float32)


def differences(folder: Path, quantization: str, rows: list[tuple[str, bool, int]]) -> list[float]:
    """How much each layer differs from ONNX Runtime on a processor without VNNI, as a part of the largest output."""
    jobs, expected = [], []
    for number, row in enumerate(rows):
        model, x = layer(*row)
        feeds = {"x": x, "m": np.full([64, 32], row[2] * SIZE, np.float32)}
        feeds = {each.name: feeds[each.name] for each in model.graph.input}
        place = folder / f"{quantization}{number}"
        save_model(convert_model(model, quantization=quantization), place.with_suffix(".xml"))
        np.savez(place.with_suffix(".npz"), **feeds)
        expected.append(oracle(model, [feeds]).values[0][0][1])
        jobs.append([str(place.with_suffix(each)) for each in (".xml", ".npz", ".npy")])
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", RUN], input=json.dumps(jobs), text=True, env=environment, check=True)
    found = [np.load(result) for _, _, result in jobs]
    return [float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(expected, found, strict=True)]


@pytest.mark.filterwarnings("ignore:.*may saturate")
def test_layers_that_saturate_without_vnni(tmp_path: Path) -> None:
    """The warning is about the layers that differ, and portable makes all of them right."""
    rows = [(name, signed, 127) for name in LAYERS for signed in (False, True)]
    fast = differences(tmp_path, "fast", rows)
    for (name, *_), difference in zip(rows, fast, strict=True):
        assert difference < EXACT if name == NEVER else difference > SATURATED, name
    assert max(differences(tmp_path, "portable", rows)) < EXACT
    for row in rows:
        model, _ = layer(*row)
        assert [each.saturates for each in integer_layers(convert_model(model).graph)] == [row[0] != NEVER]
        assert not any(each.saturates for each in integer_layers(convert_model(model, quantization="portable").graph))


def test_small_weights_stay_integers_everywhere(tmp_path: Path) -> None:
    rows = [(name, signed, 64) for name in LAYERS for signed in (False, True) if LAYERS[name][2]]
    assert max(differences(tmp_path, "portable", rows)) < EXACT
    for row in rows:
        layers = list(integer_layers(convert_model(layer(*row)[0], quantization="portable").graph))
        # a transposed convolution of s8 loses a bit of its weights on some processors
        assert len(layers) == (row[:2] != ("ConvTranspose", True)) and not any(each.saturates for each in layers)


@pytest.mark.filterwarnings("ignore:.*may saturate")
@pytest.mark.parametrize("name", [name for name in LAYERS if LAYERS[name][2]])
def test_portable_weights_keep_their_type(name: str) -> None:
    graph = convert_model(layer(name, False, 127)[0], quantization="portable").graph
    assert max((each.tensor for each in graph.of(Constant)), key=lambda tensor: tensor.size).dtype is i8


def test_one_warning_says_how_many_layers_saturate() -> None:
    weights = {name: np.zeros([4, 4], np.int8) for name in "ab"}
    weights["a"][1:3, 2], weights["b"][1:3, 2] = (64, 65), (64, 64)
    model = with_weights("""main (float[2, 4] x) => (float[2, 4] y) <float s = {0.5}, int8[4, 4] a, int8[4, 4] b> {
      q = QuantizeLinear (x, s) d = DequantizeLinear (q, s) v = DequantizeLinear (a, s) h = MatMul (d, v)
      r = QuantizeLinear (h, s) e = DequantizeLinear (r, s) w = DequantizeLinear (b, s) y = MatMul (e, w) }""", weights)
    text = "^1 of 2 layers in 8 bits may saturate on processors without VNNI: --quantization portable"
    with pytest.warns(ConversionWarning, match=text) as heard:
        convert_model(model)
    assert [each.message.code for each in heard] == ["ML508"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("quantization", ["portable", "exact"])
def test_no_warning_where_nothing_saturates(quantization: str) -> None:
    for name in LAYERS:
        convert_model(layer(name, False, 127)[0], quantization=quantization)


# -- Averages of quantised tensors that have few elements, without AVX-512


KINDS = {"of channels": "GlobalAveragePool (b)", "of places": "AveragePool <kernel_shape = [5, 5]> (b)",
         "maximum of places": "MaxPool <kernel_shape = [5, 5]> (b)"}
BEHIND = {"nothing": "Identity (p)", "a view": "Flatten (p)", "a number": "Mul (p, half)"}
SHAPES = {"static": "1,3,6,6", "unknown image": "1,3,H,W"}


@pytest.mark.filterwarnings("ignore:.*may saturate")
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pool", KINDS)
def test_averages_before_a_quantisation(pool: str, shape: str, signed: bool) -> None:
    """The weights are small, so that no sum saturates. A step of the second scale is 0.02."""
    random = np.random.default_rng(34)
    weights = random.integers(-50, 50, (3, 3, 1, 1)).astype(np.int8)
    feeds = {"x": random.uniform(-1, 3, (1, 3, 6, 6)).astype(np.float32)}
    for behind in BEHIND.values():
        is_matrix = "Flatten" in behind
        kind, zero = ("int8", "-10") if signed else ("uint8", "0")
        model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 13]>
            main (float[{SHAPES[shape]}] x) => (float[{"a,b" if is_matrix else "a,b,c,d"}] y)
            <float s1 = {{0.03}}, float s2 = {{0.02}}, float half = {{0.5}}, {kind} z = {{{zero}}}, int8 n = {{0}}> {{
                q = QuantizeLinear (x, s1, z)  d = DequantizeLinear (q, s1, z)
                v = DequantizeLinear (w, s2, n)  c = Conv (d, v)
                r = QuantizeLinear (c, s1, z)  b = DequantizeLinear (r, s1, z)
                p = {KINDS[pool]}  h = {behind}
                t = QuantizeLinear (h, s2, z)  e = DequantizeLinear (t, s2, z)
                y = {"Abs (e)" if is_matrix else "Conv (e, v)"}
            }}""")
        with_weights(model, w=weights)
        wanted = oracle(model, [feeds]).values[0][0][1]
        (found,) = results_of(convert_model(model), [feeds], "AVX2")
        assert np.abs(found - wanted).max() <= 0.05, behind


# -- Products of dynamically quantised activations: right on every instruction set, with weights that keep 8 bits


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


# -- Products of Unsqueezes, whose dimensions of 1 are removed again


TEXT = """main (float[M, N] x, float[M] y) => (float t, float e) {{
      zero = Constant <value_ints = [0]> ()
      one = Constant <value_ints = [1]> () first = Constant <value_ints = [0, 1]> ()
      {}
    }}"""


@pytest.mark.parametrize("body", [
    "a = Unsqueeze (x, zero) b = Unsqueeze (y, one) p = Mul (a, b) t = Squeeze (p, zero) e = Exp (p)",
    "a = Unsqueeze (x, zero) b = Unsqueeze (y, one) p = Mul (a, b) t = Transpose <perm = [1, 0, 2]> (p) e = Exp (p)",
    "a = Unsqueeze (x, first) b = Unsqueeze (y, one) p = Mul (a, b) t = Squeeze (p, first) e = Exp (t)",
    "a = Unsqueeze (x, first) b = Unsqueeze (y, one) p = Sub (b, a) t = Squeeze (p, zero) e = Exp (t)",
])
def test_values(body: str) -> None:
    model = parsed(TEXT.format(body))
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    check(model, *({"x": floats(*shape), "y": floats(shape[0])} for shape in ((4, 2), (1, 3), (4, 1), (0, 2))))


def test_values_of_a_product_with_an_input_whose_sizes_are_checked() -> None:
    """The check is a Reshape, through which the runtime moves the Squeeze too."""
    model = parsed("""main (float[1, 4, N, M] x, float[N] y) => (float[4, N, M, 1] t) {
      one = Constant <value_ints = [1]> ()
      b = Unsqueeze (y, one) p = Mul (x, b) t = Transpose <perm = [1, 2, 3, 0]> (p)
    }""")
    check(model, *({"x": floats(1, 4, *sizes), "y": floats(sizes[0])} for sizes in ((2, 3), (1, 3), (4, 1))))
