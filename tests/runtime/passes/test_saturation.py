"""Layers in 8 bits on a processor without VNNI: which of them saturate, also with --quantization portable."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mo_loop import convert_model, save_model
from mo_loop.errors import ConversionWarning
from mo_loop.graph.types import i8
from mo_loop.ops.base import Constant
from mo_loop.transforms.low_precision.weights import integer_layers
from tests import ROOT
from tests.harness import oracle, parsed

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
        model.graph.initializer.append(numpy_helper.from_array(numbers.astype(np.int8), "w"))
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
    model = parsed("""main (float[2, 4] x) => (float[2, 4] y) <float s = {0.5}, int8[4, 4] a, int8[4, 4] b> {
      q = QuantizeLinear (x, s) d = DequantizeLinear (q, s) v = DequantizeLinear (a, s) h = MatMul (d, v)
      r = QuantizeLinear (h, s) e = DequantizeLinear (r, s) w = DequantizeLinear (b, s) y = MatMul (e, w) }""")
    for name, second in (("a", 65), ("b", 64)):
        weights = np.zeros([4, 4], np.int8)
        weights[1:3, 2] = 64, second
        model.graph.initializer.append(numpy_helper.from_array(weights, name))
    text = "^1 of 2 layers in 8 bits may saturate on processors without VNNI: --quantization portable"
    with pytest.warns(ConversionWarning, match=text) as heard:
        convert_model(model)
    assert [each.message.code for each in heard] == ["ML508"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("quantization", ["portable", "exact"])
def test_no_warning_where_nothing_saturates(quantization: str) -> None:
    for name in LAYERS:
        convert_model(layer(name, False, 127)[0], quantization=quantization)
