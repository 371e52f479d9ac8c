"""Models in which a fault is hard to tell from rounding, and others: each with inputs.

    model, feeds = KINDS["detector"](np.random.default_rng(3))
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.parser import parse_model

from tests.fuzz.control_flow.generator import generate
from tests.fuzz.graphs import draw

Drawn = tuple[onnx.ModelProto, dict[str, np.ndarray]]


def made(text: str, **weights: Any) -> onnx.ModelProto:
    """The model of a text, with initializers."""
    model = parse_model(f'<ir_version: 9, opset_import: ["": 18]> {text}')
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items())
    return model


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def control_flow(rng: np.random.Generator) -> Drawn:
    """A random model with loops, branches and functions."""
    case = generate(int(rng.integers(1 << 20)), int(rng.integers(1 << 20)))
    return case.declared, dict(case.feeds[0])


def graph(rng: np.random.Generator) -> Drawn:
    """A random graph of operators."""
    case = draw(int(rng.integers(1 << 20)), int(rng.integers(1 << 20)))
    return case.model, dict(case.sets[0])


def sums(rng: np.random.Generator) -> Drawn:
    """Differences of almost equal sums, which rounding moves far."""
    w = 300 * floats(rng, 128, 64)
    model = made(
        """m (float[4,128] x) => (float[4,64] y) {
          a = MatMul (x, w) b = MatMul (x, v) s = Sub (a, b) t = Mul (s, k) u = Add (t, c)
          y = LeakyRelu <alpha = 0.1> (u) }""",
        w=w, v=w + np.float32(0.01) * floats(rng, 128, 64), k=floats(rng, 64), c=floats(rng, 64),
    )
    return model, {"x": floats(rng, 4, 128)}


def detector(rng: np.random.Generator) -> Drawn:
    """Rows of tied scores, which swap by rounding."""
    base = rng.standard_normal(32)
    features = np.stack([rng.permutation(base) for _ in range(100)])
    features[:10] += np.arange(10, 0, -1)[:, None]
    model = made(
        """m (float[100,32] f, float[100,4] box) => (float[50,5] y) {
          q = MatMul (f, w) s = Squeeze (q, one) v, i = TopK (s, k) g = Mul (box, stride) h = Add (g, shift)
          b = Gather <axis = 0> (h, i) e = Sigmoid (v) u = Unsqueeze (e, one) y = Concat <axis = 1> (b, u) }""",
        w=np.ones((32, 1), np.float32), one=np.array([1]), k=np.array([50]),
        stride=np.full(4, 640, np.float32), shift=floats(rng, 4),
    )
    return model, {"f": features.astype(np.float32), "box": rng.random((100, 4)).astype(np.float32)}


def chaos(rng: np.random.Generator) -> Drawn:
    """100 steps of a chaotic map."""
    model = made(
        """m (float[6] x) => (float[6] y) {
          [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[6] v) => (bool d, float[6] w) {
            d = Identity (c) o = Sub (one, v) p = Mul (v, o) w = Mul (r, p) }> }""",
        n=np.int64(100), one=np.float32(1), r=np.float32(rng.uniform(3.8, 4)),
    )
    return model, {"x": rng.uniform(0.1, 0.9, 6).astype(np.float32)}


def recurrent(rng: np.random.Generator) -> Drawn:
    """100 steps of a recurrent network, with the states of all steps."""
    model = made(
        """m (float[100,8] x, float[8] h) => (float[8] last, float[100,8] all) {
          [scan] last, all = Scan <num_scan_inputs = 1,
              body = step (float[8] s, float[8] e) => (float[8] t, float[8] z) {
            a = MatMul (s, w) b = Add (a, e) c = Add (b, bias) t = Tanh (c) z = Mul (t, k) }> (h, x) }""",
        w=(floats(rng, 8, 8) * np.float32(0.6)), bias=floats(rng, 8), k=floats(rng, 8),
    )
    return model, {"x": floats(rng, 100, 8), "h": floats(rng, 8)}


def vocoder(rng: np.random.Generator) -> Drawn:
    """Convolutions of 8 bits and activations, whose steps amplify rounding."""
    pairs = """q{n} = QuantizeLinear ({x}, s, z) d{n} = DequantizeLinear (q{n}, s, z)
      v{n} = DequantizeLinear (w{n}, t, o) c{n} = Conv <pads = [1, 1]> (d{n}, v{n}, b{n})
      r{n} = LeakyRelu <alpha = 0.1> (c{n}) e{n} = Sin (r{n}) g{n} = Add (e{n}, {x})"""
    body, last = "", "x"
    weights: dict[str, Any] = {}
    for number in range(4):
        body += pairs.format(n=number, x=last)
        last = f"g{number}"
        weights[f"w{number}"] = rng.integers(-60, 60, (8, 8, 3)).astype(np.int8)
        weights[f"b{number}"] = floats(rng, 8)
    model = made(
        f"m (float[1,8,40] x) => (float[1,8,40] y) {{ {body} y = Tanh ({last}) }}",
        s=np.float32(0.03), z=np.uint8(128), t=np.float32(0.01), o=np.int8(0), **weights,
    )
    return model, {"x": floats(rng, 1, 8, 40)}


def convolutions(rng: np.random.Generator) -> Drawn:
    """Convolutions with normalisation, which are fused, pooling and a classifier."""
    model = made(
        """m (float[2,3,16,16] x) => (float[2,10] y) {
          c = Conv <pads = [1,1,1,1]> (x, w) n = BatchNormalization (c, g, b, m, v) r = Relu (n)
          p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r) d = Conv <pads = [1,1,1,1]> (p, u) e = Add (d, p)
          h = HardSwish (e) a = GlobalAveragePool (h) f = Flatten (a) l = Gemm (f, q) y = Softmax <axis = 1> (l) }""",
        w=floats(rng, 8, 3, 3, 3), g=floats(rng, 8), b=floats(rng, 8), m=floats(rng, 8),
        v=rng.uniform(0.5, 2, 8).astype(np.float32), u=floats(rng, 8, 8, 3, 3), q=floats(rng, 8, 10),
    )
    return model, {"x": floats(rng, 2, 3, 16, 16)}


def attention(rng: np.random.Generator) -> Drawn:
    """A layer of a transformer."""
    model = made(
        """m (float[2,6,16] x) => (float[2,6,16] y) {
          q = MatMul (x, a) k = MatMul (x, b) v = MatMul (x, c) t = Transpose <perm = [0,2,1]> (k) s = MatMul (q, t)
          z = Mul (s, scale) p = Softmax <axis = -1> (z) o = MatMul (p, v) r = Add (o, x)
          n = LayerNormalization <axis = -1> (r, gamma, beta) f = MatMul (n, d) e = Erf (f) y = Add (e, n) }""",
        a=floats(rng, 16, 16), b=floats(rng, 16, 16), c=floats(rng, 16, 16), scale=np.float32(0.25),
        gamma=floats(rng, 16), beta=floats(rng, 16), d=floats(rng, 16, 16),
    )
    return model, {"x": floats(rng, 2, 6, 16)}


def half(rng: np.random.Generator) -> Drawn:
    """f16 inside, f32 at both ends."""
    model = made(
        """m (float[2,4,10,10] x) => (float[2,8,10,10] y) {
          a = Cast <to = 10> (x) c = Conv <pads = [1,1,1,1]> (a, w, b) r = Relu (c) m = Mul (r, k) d = Cast <to = 1> (m)
          e = Mul (d, s) y = Add (e, t) }""",
        w=(0.3 * floats(rng, 8, 4, 3, 3)).astype(np.float16), b=floats(rng, 8).astype(np.float16),
        k=np.float16(1.5), s=np.float32(1.3), t=np.float32(-0.4),
    )
    return model, {"x": floats(rng, 2, 4, 10, 10)}


KINDS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    each.__name__: each
    for each in (control_flow, graph, sums, detector, chaos, recurrent, vocoder, convolutions, attention, half)
}
