"""Sums of products of integers."""

from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.operators.draw import Draw, Node, Port
from tests.fuzz.operators.quantization.quantization import whole_convolution
from tests.fuzz.operators.quantization.quantized_operators import integers, parameters
from tests.fuzz.operators.recurrent.recurrent import recurrent


def weights_of(d: Draw, kind: Any, shape: list[int], constant: float = 0.7) -> Port:
    """Weights around their zero point, so small that a step of the activations matters little."""
    port = d.data(shape, kind, "unit", constant=constant, computed=False)
    port.array = (d.values.integers(-20, 21, shape) + middle(kind)).astype(kind)
    return port


def middle(kind: Any) -> int:
    return 128 if np.dtype(kind).kind == "u" else 0


def columns(d: Draw, kind: Any, count: int) -> tuple[Port, Port]:
    """A scale and a zero point, or one for each column."""
    shape = [count] if d.chance(0.4) else []
    scales = (0.01 * d.values.choice((1.0, 0.5, 0.75), shape)).astype(np.float32)
    zeros = (d.values.integers(-3, 4, shape) + middle(kind)).astype(kind)
    return d.given(scales, 0.8, fixed=True), d.given(zeros, 0.8, fixed=True)


def dynamic(d: Draw) -> Node:
    """DynamicQuantizeMatMul: the integers of a may differ by one step, which is 0.1 times a weight below 0.25."""
    kind = d.dtype("T2")
    before, (rows, inner, count) = d.shape(0, 2), (d.size(empty=0), d.size(1, 9, 0), d.integer(1, 6))
    a, b = d.data([*before, rows, inner], np.float32), weights_of(d, kind, [inner, count])
    b_scale, b_zero = columns(d, kind, count)
    bias = d.given(d.values.standard_normal(count).astype(np.float32), 0.8, fixed=True)
    return d.node([a, b, b_scale, d.optional(b_zero, 0.8), d.optional(bias)], atol=0.025)


def to_float(d: Draw) -> Node:
    """MatMulIntegerToFloat."""
    a_kind, b_kind = d.dtype("T1"), d.dtype("T2")
    before, (rows, inner, count) = d.shape(0, 2), (d.size(empty=0), d.size(1, 9, 0), d.integer(1, 6))
    a, b = integers(d, [*before, rows, inner], a_kind), weights_of(d, b_kind, [inner, count])
    a_scale, a_zero = parameters(d, a_kind)
    b_scale, b_zero = columns(d, b_kind, count)
    bias = d.given(d.values.standard_normal(count).astype(np.float32), 0.8, fixed=True)
    zeros = [d.optional(a_zero, 0.8) if a_zero else None, d.optional(b_zero, 0.8)]
    return d.node([a, b, a_scale, b_scale, *zeros, d.optional(bias)], atol=2e-4)


def gemm(d: Draw) -> Node:
    """QGemm, with a result of 8 bits or of f32."""
    a_kind, b_kind = d.dtype("TA"), d.dtype("TB")
    rows, inner, count = d.size(empty=0), d.size(1, 9, 0), d.integer(1, 6)
    turned = [d.pick(0, 1), d.pick(0, 1)]
    a = integers(d, [inner, rows] if turned[0] else [rows, inner], a_kind)
    b = weights_of(d, b_kind, [count, inner] if turned[1] else [inner, count])
    b_scale, b_zero = columns(d, b_kind, count)
    c = d.given(d.values.integers(-400, 400, d.pick([count], [1, count], [])).astype(np.int32), 0.8, fixed=True)
    ports = [a, *parameters(d, a_kind), b, b_scale, b_zero, d.optional(c)]
    if d.chance(0.6):
        ports += parameters(d, a_kind, low=-5, high=0, even=True)
    return d.node(
        ports, transA=d.maybe(turned[0]) if not turned[0] else 1, transB=d.maybe(turned[1]) if not turned[1] else 1,
        alpha=d.maybe(d.pick(0.5, 2.0)), atol=2e-4,
    )


def short_products(d: Draw) -> Node:
    """MatMulInteger16."""
    before, (rows, inner, count) = d.shape(0, 1), (d.size(empty=0), d.size(1, 9, 0), d.size(empty=0))
    ports = []
    for shape in ([*before, rows, inner], [inner, count]):
        port = d.data(shape, np.int16, constant=0.3)
        port.array = d.values.integers(-8000, 8000, shape).astype(np.int16)
        ports.append(port)
    return d.node(ports)


def convolved(d: Draw) -> Node:
    """QLinearConv, often with the channels last."""
    node, last = whole_convolution(d), d.chance(0.5)
    x = node.ports[0]
    if last and x is not None:
        node.ports[0] = replace(x, array=np.ascontiguousarray(np.moveaxis(x.array, 1, -1)))
    return replace(node, attributes={**node.attributes, "channels_last": int(last)})


def dynamic_lstm(d: Draw) -> Node:
    """DynamicQuantizeLSTM: the kernel rounds x and the states to 8 bits."""
    kind, node = d.dtype("T2"), recurrent(d)
    ways = len(node.ports[1].array)  # type: ignore[union-attr]
    ports: list[Port | None] = [*node.ports, *[None] * (8 - len(node.ports))]
    for at in (1, 2):
        ports[at] = weights_of(d, kind, list(np.swapaxes(ports[at].array, 1, 2).shape), 1.0)  # type: ignore[union-attr]
    for at in (1, 2):
        gates = ports[at].shape[2]  # type: ignore[union-attr]
        shape = [ways, gates] if d.chance(0.5) else [ways]
        ports.append(d.given(d.values.uniform(0.01, 0.03, shape).astype(np.float32), 1.0))
        ports.append(d.given(np.full(shape, middle(kind), kind), 1.0))
    return replace(node, ports=ports, atol=0.05, rtol=0.05)


OPERATORS = {"com.microsoft::DynamicQuantizeMatMul": dynamic, "com.microsoft::MatMulIntegerToFloat": to_float,
             "com.microsoft::QGemm": gemm, "com.microsoft::MatMulInteger16": short_products,
             "com.microsoft::QLinearConv": convolved, "com.microsoft::DynamicQuantizeLSTM": dynamic_lstm}
