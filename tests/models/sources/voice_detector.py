"""A streaming detector of voice, with the interface and the form of silero-vad, and random weights.

    model = voice_detector()             # input, state [2,batch,64], sr -> output [batch,1], stateN
    model = voice_detector(split=True)   # input, h [2,batch,64], c [2,batch,64], sr -> output, hn, cn

An If by the sampling rate `sr` has a branch for 16,000 and one for 8,000. Each has a convolution over `input`
[batch,samples], whose frames an LSTM reads, and its own weights. `state` holds the hidden and the cell state of one
layer; `h` and `c` hold those of two layers.
"""

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import numpy_helper, parser

HIDDEN, CHANNELS = 64, 16
RATES = {16000: ("wide", 64), 8000: ("narrow", 32)}
"""Sampling rate -> the prefix of the names of a branch, and the samples of its kernel."""
SAMPLES = {16000: 512, 8000: 256}
"""Sampling rate -> samples of a step."""

FRAMES = """
    @column = Unsqueeze (input, one)
    @spectrum = Conv <strides = [STRIDE]> (@column, @kernel, @offset)
    @features = Relu (@spectrum)
    @frames = Transpose <perm = [2, 0, 1]> (@features)
"""
ONE_LAYER = """
    @h, @c = Split <axis = 0> (state, halves)
    @all, @hn, @cn = LSTM <hidden_size = 64> (@frames, @input0, @state0, @bias0, , @h, @c)
    @last = Squeeze (@hn, zero)
    @next = Concat <axis = 0> (@hn, @cn)
"""
TWO_LAYERS = """
    @h0, @h1 = Split <axis = 0> (h, halves)
    @c0, @c1 = Split <axis = 0> (c, halves)
    @y0, @hn0, @cn0 = LSTM <hidden_size = 64> (@frames, @input0, @state0, @bias0, , @h0, @c0)
    @deeper = Squeeze (@y0, one)
    @y1, @hn1, @cn1 = LSTM <hidden_size = 64> (@deeper, @input1, @state1, @bias1, , @h1, @c1)
    @last = Squeeze (@hn1, zero)
    @next = Concat <axis = 0> (@hn0, @hn1)
    @next_c = Concat <axis = 0> (@cn0, @cn1)
"""
SCORE = """
    @score = MatMul (@last, @weights)
    @voice = Sigmoid (@score)
"""


def voice_detector(split: bool = False) -> onnx.ModelProto:
    """The model with one tensor for both states, or with two (`split`)."""
    states = ("h", "c") if split else ("state",)
    found = ("hn", "cn") if split else ("stateN",)
    wide, narrow = (_branch(prefix, split, kernel) for prefix, kernel in RATES.values())
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 17]>
    detector (float[batch, samples] input, {_typed(states)}, int64 sr) => (float[batch, 1] output, {_typed(found)})
    <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[2] halves = {{1, 1}}, int64 rate = {{16000}}> {{
      is_wide = Equal (sr, rate)
      output, {", ".join(found)} = If (is_wide) <then_branch = {wide}, else_branch = {narrow}>
    }}""")
    model.graph.initializer.extend(_weights(2 if split else 1))
    return model


def _typed(names: tuple[str, ...]) -> str:
    return ", ".join(f"float[2, batch, {HIDDEN}] {name}" for name in names)


def _branch(prefix: str, split: bool, kernel: int) -> str:
    nodes = FRAMES.replace("STRIDE", str(kernel)) + (TWO_LAYERS if split else ONE_LAYER) + SCORE
    names = ("@next", "@next_c") if split else ("@next",)
    return f"{prefix} () => (float[batch, 1] @voice, {_typed(names)}) {{{nodes}}}".replace("@", f"{prefix}_")


def _weights(layers: int) -> Iterator[onnx.TensorProto]:
    random = np.random.default_rng(0)
    for prefix, kernel in RATES.values():
        shapes = {"kernel": (CHANNELS, 1, kernel), "offset": (CHANNELS,), "weights": (HIDDEN, 1)}
        for layer in range(layers):
            shapes[f"input{layer}"] = (1, 4 * HIDDEN, HIDDEN if layer else CHANNELS)
            shapes[f"state{layer}"] = (1, 4 * HIDDEN, HIDDEN)
            shapes[f"bias{layer}"] = (1, 8 * HIDDEN)
        for name, shape in shapes.items():
            values = random.standard_normal(shape) * 0.2
            yield numpy_helper.from_array(values.astype(np.float32), f"{prefix}_{name}")
