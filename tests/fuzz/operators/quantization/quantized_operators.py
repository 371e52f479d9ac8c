"""Operators on tensors of 8 bits with one scale and one zero point."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import Draw, Node, Port
from tests.fuzz.operators.images.convolution import large_enough, padding, window
from tests.fuzz.operators.quantization.quantization import dequantized, quantized


def integers(d: Draw, shape: list[int], kind: Any, constant: float = 0.12, computed: bool = True) -> Port:
    """An input with numbers of the whole range."""
    port = d.data(shape, kind, constant=constant, computed=computed)
    info = np.iinfo(kind)
    port.array = d.values.integers(info.min, info.max + 1, shape).astype(kind)
    return port


def scale(d: Draw, low: int = -4, high: int = 0, even: bool = False) -> Port:
    """A scale; an `even` one is a power of two: quotients are then exact, so that halves are halves."""
    number = 2.0 ** d.values.integers(low, high + 1) * d.values.choice((1.0, 1.0 if even else 0.75))
    return d.given(np.array(number, np.float32), 0.8)


def parameters(d: Draw, kind: Any, *, share: float = 1.0, **limits: Any) -> list[Port | None]:
    """A scale, and a zero point with the probability `share`: some kernels do not do without."""
    info = np.iinfo(kind)
    zero = np.array(d.values.integers(info.min, info.max + 1), kind)
    return [scale(d, **limits), d.optional(d.given(zero, 0.8), share)]


def two(d: Draw) -> Node:
    """QLinearAdd, QLinearMul."""
    kind, shapes = d.dtype("T"), d.broadcast(2)
    a, b = integers(d, shapes[0], kind), integers(d, shapes[1], kind, 0.3)
    wide = {"low": 2, "high": 5} if d.op.endswith("Mul") else {"low": -2, "high": 3}
    return d.node([a, *parameters(d, kind), b, *parameters(d, kind), *parameters(d, kind, even=True, **wide)])


def one(d: Draw) -> Node:
    """QLinearSigmoid, QLinearLeakyRelu."""
    kind = d.dtype("T")
    small = {"low": -8, "high": -7} if d.op.endswith("Sigmoid") else {}
    x, whole = integers(d, d.shape(0, 4), kind), d.chance(0.85)
    ports = [x, *parameters(d, kind), *parameters(d, kind, even=True, **small)]
    if not whole:  # without a fifth input the kernel ends the process
        ports[2] = None
    return d.node(ports, alpha=d.maybe(d.number(0.01, 0.9)))


def chosen(d: Draw) -> Node:
    """QLinearWhere."""
    kind, shapes = d.dtype("T"), d.broadcast(3)
    condition = d.data(shapes[0], np.bool_)
    x, y = integers(d, shapes[1], kind), integers(d, shapes[2], kind)
    # The kernel reads the scales and zero points when it is made.
    rest = [parameters(d, kind), parameters(d, kind), parameters(d, kind, even=True)]
    return d.node([condition, x, *_constant(rest[0]), y, *_constant(rest[1]), *_constant(rest[2])])


def _constant(ports: list[Port | None]) -> list[Port | None]:
    for each in ports:
        if each is not None and each.given != "constant":
            each.given = "constant"
    return ports


def parts(d: Draw) -> Node:
    """QLinearConcat."""
    kind, shape = np.dtype(d.pick(np.uint8, np.int8)), d.shape(1, 4)
    at = d.integer(0, len(shape) - 1)
    ports: list[Port | None] = []
    for _ in range(d.integer(1, 3)):
        own = [d.size() if axis == at else size for axis, size in enumerate(shape)]
        ports += [integers(d, own, kind), *parameters(d, kind)]
    return d.node([*parameters(d, kind, even=True), *ports], axis=d.signed(at, len(shape)))


def exponentials(d: Draw) -> Node:
    """QLinearSoftmax: the kernel takes a scale of 1/256 and the least integer as the zero point of the result."""
    kind, shape = d.dtype("T"), d.shape(1, 4, empty=0)
    x = integers(d, shape, kind, computed=False)
    x.fixed = True
    ports = [x, *_constant(parameters(d, kind, share=0.8))]
    ports += [d.given(np.array(2.0**-8, np.float32), 1.0), d.given(np.array(np.iinfo(kind).min, kind), 1.0)]
    return d.node(ports, axis=d.maybe(d.axis(len(shape))), opset=d.pick(11, 13))


def pooled(d: Draw) -> Node:
    """QLinearAveragePool."""
    kind, spatial = np.dtype(d.pick(np.uint8, np.int8)), d.pick(1, 2, 2, 3)
    w, last = window(d, spatial), d.chance(0.3)
    pads = padding(d, w["kernel"], 0.3)
    if str(pads["auto_pad"]).startswith("SAME"):  # the kernel pads by less than nothing
        w["strides"] = [min(pair) for pair in zip(w["strides"], w["kernel"], strict=True)]
    sizes = large_enough(d, w["kernel"], [1] * spatial)
    batch, channels = d.size(empty=0), d.size(empty=0)
    x = integers(d, [batch, *sizes, channels] if last else [batch, channels, *sizes], kind)
    return d.node([x, *parameters(d, kind), *parameters(d, kind, even=True)], kernel_shape=w["kernel"],
                  strides=d.maybe(w["strides"]), ceil_mode=d.maybe(d.pick(0, 1), 0.5), channels_last=int(last),
                  count_include_pad=d.maybe(d.pick(0, 1), 0.5), **pads)


def all_pooled(d: Draw) -> Node:
    """QLinearGlobalAveragePool."""
    kind = np.dtype(d.pick(np.uint8, np.int8))
    sizes = [d.size(1, 5, 0) for _ in range(d.integer(1, 3))]
    batch, channels, last = d.size(empty=0), d.size(empty=0), d.chance(0.4)
    x = integers(d, [batch, *sizes, channels] if last else [batch, channels, *sizes], kind)
    ports = [x, *parameters(d, kind), *parameters(d, kind, even=True)]
    return d.node(ports, channels_last=1 if last else d.maybe(0))


OPERATORS = {
    "com.microsoft::QuantizeLinear": quantized, "com.microsoft::DequantizeLinear": dequantized,
    "com.microsoft::QLinearAdd": two, "com.microsoft::QLinearMul": two, "com.microsoft::QLinearSigmoid": one,
    "com.microsoft::QLinearLeakyRelu": one, "com.microsoft::QLinearWhere": chosen,
    "com.microsoft::QLinearConcat": parts, "com.microsoft::QLinearSoftmax": exponentials,
    "com.microsoft::QLinearAveragePool": pooled, "com.microsoft::QLinearGlobalAveragePool": all_pooled,
}
