"""Fourier transforms, windows, and the matrix of the mel scale; expected numbers are numpy's own transforms."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.cases import read_cases
from tests.harness import check_model, check_node, graph_model, node_model, pairs, parsed, run_converted

dynamics = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
TOLERANCE: dict[Any, Any] = {np.float16: (2e-2, 2e-2), np.float32: (1e-4, 1e-4), np.float64: (1e-4, 1e-4)}


def signal(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def transformed(x: Any, axis: int, length: int | None, inverse: bool, onesided: bool) -> Any:
    """DFT as ONNX's text defines it, by numpy."""
    z = x[..., 0].astype(np.float64) + (1j * x[..., 1].astype(np.float64) if x.shape[-1] == 2 else 0)
    axis = axis if axis >= 0 else axis + x.ndim
    if inverse and onesided:
        return np.fft.irfft(z, length, axis)[..., None]
    if onesided:
        y = np.fft.rfft(z.real, length, axis)
    else:
        y = (np.fft.ifft if inverse else np.fft.fft)(z, length, axis)
    return np.stack([y.real, y.imag], -1)


def check_dft(x: Any, axis: int, length: Any, inverse: bool, onesided: bool, opset: int, dynamic: bool, constants: Any):
    size = None if length is None else np.array(length, np.int64)
    inputs: dict[str, Any] = {"x": x, "n": size}
    attributes = {"inverse": int(inverse), "onesided": int(onesided)}
    if opset < 20:
        attributes["axis"] = axis
    else:
        inputs["axis"] = np.array(axis)
    names = [name for name in ("n", "axis") if name in constants and inputs.get(name) is not None]
    expected = transformed(x, axis, length, inverse, onesided).astype(x.dtype)
    rtol, atol = TOLERANCE[x.dtype.type]
    check_node("DFT", inputs, attributes, opset=opset, constants=names, dynamic=("x",) if dynamic else False,
               expected=[expected], rtol=rtol, atol=atol)


@pairs(kind=[(False, False), (True, False), (False, True), (True, True)], parts=[1, 2], length=[None, 4, 12, 1],
       opset=[17, 20], dynamic=[False, True])
def test_dft(kind: tuple[bool, bool], parts: int, length: int | None, opset: int, dynamic: bool) -> None:
    """Signals that are cut, unchanged or padded, along every axis; known and unknown lengths."""
    inverse, onesided = kind
    if onesided and inverse is False and parts == 2:
        parts = 1  # half of a transform does not determine that of complex signals
    x = signal(3, 7, 5, parts)
    for axis, constants in ((0, ("axis",)), (-2, ("n", "axis"))):
        if length is not None or "n" in constants:
            check_dft(x, axis, length, inverse, onesided, opset, dynamic, constants)


def test_dft_in_a_loop() -> None:
    model = parsed("""main (int64 n, float[2, 4, 2] x) => (float[2, 4, 2] y, float[N, 2, 3, 2] z) {
          y, z = Loop (n, "", x) <body = step (int64 i, bool c, float[2, 4, 2] s)
              => (bool d, float[2, 4, 2] t, float[2, 3, 2] u) {
            d = Identity (c) t = DFT <axis = 1> (s) a = Constant <value_int = 1> () e = Constant <value_ints = [-1]> ()
            r = Constant <value_ints = [0]> () o = Constant <value_ints = [1]> () w = Slice (t, r, o, e)
            u = DFT <axis = 1, onesided = 1> (w) }> }""")
    x = signal(2, 4, 2)
    for count in (2, 0, 3):
        z, rows = x, []
        for _ in range(count):
            z = transformed(z, 1, None, False, False).astype(np.float32)
            rows.append(transformed(z[..., :1], 1, None, False, True).astype(np.float32))
        joined = np.stack(rows) if rows else np.zeros((0, 2, 3, 2), np.float32)
        check_model(model, {"n": np.array(count), "x": x}, expected=[z, joined], rtol=1e-4, atol=1e-4)


# -- STFT


def spectrogram(x: Any, step: int, window: Any, length: int | None, onesided: bool) -> Any:
    size = length or (x.shape[1] if window is None else len(window))
    count = (x.shape[1] - size) // step + 1
    z = x[..., 0] + 1j * x[..., 1] if x.ndim == 3 and x.shape[2] == 2 else x.reshape(x.shape[:2])
    frames = np.stack([z[:, i * step : i * step + size] for i in range(count)], 1)
    frames = frames if window is None else frames * window
    y = np.fft.fft(frames, axis=2)
    y = y[:, :, : size // 2 + 1] if onesided else y
    return np.stack([y.real, y.imag], -1).astype(x.dtype)


@dynamics
@pytest.mark.parametrize("constants", [(), ("step", "window", "length")], ids=["run-time", "constant"])
@pytest.mark.parametrize("onesided", [False, True], ids=["whole", "half"])
@pytest.mark.parametrize(("windowed", "length"), [(True, 5), (True, None), (False, 6), (False, None)])
@pytest.mark.parametrize("parts", [1, 2])
def test_stft(parts: int, windowed: bool, length: Any, onesided: bool, constants: Any, dynamic: bool) -> None:
    if parts == 2 and onesided:
        parts = 1
    x = signal(2, 17, parts)
    window = np.hanning(7)[1:-1].astype(np.float32) if windowed else None
    inputs = {"x": x, "step": np.array(3), "window": window, "length": None if length is None else np.array(length)}
    check_node("STFT", inputs, {"onesided": int(onesided)}, opset=17,
               constants=[name for name in constants if inputs[name] is not None],
               dynamic=("x", "window") if dynamic else False,
               expected=[spectrogram(x, 3, window, length, onesided)], rtol=1e-4, atol=1e-4)


# -- windows and the mel scale


@pytest.mark.parametrize("dtype", [10, 11, 6])
def test_mel_weights_of_other_types(dtype: int) -> None:
    to = helper.tensor_dtype_to_np_dtype(dtype)
    inputs = {"bins": np.array(8, np.int32), "length": np.array(16, np.int32), "rate": np.array(8192, np.int32),
              "low": np.float64(0), "high": np.float64(4096)}
    wanted = run_converted(node_model("MelWeightMatrix", inputs, opset=17), inputs)[0][0][1].astype(to)
    for constants in ((), tuple(inputs)):
        feeds = {} if constants else inputs
        model = graph_model(
            [helper.make_node("MelWeightMatrix", list(inputs), ["y"], output_datatype=dtype)], feeds, ["y"], opset=17,
            constants=inputs if constants else {},
        )
        check_model(model, feeds, expected=[wanted], rtol=1e-3, atol=1e-3)


read_cases(globals())
