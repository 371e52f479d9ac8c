"""Numbers of 8 bits and fewer: one scale per tensor, axis or block."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node, Port
from tests.fuzz.operators.images.convolution import large_enough, padding, window
from tests.fuzz.operators.model import FOUR_BITS

FROM_8_BITS = "int8 uint8 int16 uint16 float8e4m3fn float8e5m2"
NARROW = f"{FROM_8_BITS} int4 uint4"


def _scales(d: Draw, shape: list[int], kind: Any) -> Any:
    return (2.0 ** d.values.integers(-4, 1, shape) * d.values.choice((1.0, 1.0, 0.75), shape)).astype(kind)


def _zeros(d: Draw, shape: list[int], kind: Any) -> Any:
    if kind.kind not in "iu" or kind.itemsize > 2:
        return np.zeros(shape, kind)
    low = 0 if kind.kind == "u" else -10
    return d.values.integers(low, 20, shape).astype(kind)


def _granularity(d: Draw, x: list[int]) -> tuple[list[int], int | None, int | None]:
    """The shape of the scales, the axis, the size of a block."""
    way = d.pick("tensor", "tensor", "axis", "block")
    axis = d.integer(0, max(len(x) - 1, 0))
    has_blocks = "block_size" in d.schema.attributes and len(x) >= 2
    if not x or way == "tensor" or d.opset < 13 or (way == "block" and not has_blocks):
        return [], None, None
    if way == "axis":
        return [x[axis]], axis, None
    size = d.integer(1, 3)
    return [-(-dim // size) if i == axis else dim for i, dim in enumerate(x)], axis, size


def quantized(d: Draw) -> Node:
    """QuantizeLinear: the zero point or an attribute determines the type."""
    first, second = [each.type_str for each in d.schema.inputs[:2]]
    narrow = NARROW if d.opset >= 21 else FROM_8_BITS  # Cast takes the others from opset 21 on
    kind, target = d.dtype(first, "float float16 int32"), d.dtype(d.schema.outputs[0].type_str, narrow)
    x = d.shape(0, 4, empty=0.02)
    shape, axis, block = _granularity(d, x)
    scale_kind = kind if first == second else d.dtype(second, "float float16")
    scale_kind = kind if kind.kind == "f" and d.since >= 19 else scale_kind
    values = d.data(x, kind)
    values.array = (values.array * 20).astype(kind)
    scale = d.given(_scales(d, shape, scale_kind), 0.7)
    zero = d.given(_zeros(d, shape, target), 0.7)
    if (d.since < 21 and target != np.uint8) or d.chance(0.7):
        return d.node([values, scale, zero], axis=_written(d, axis, len(x)), block_size=block,
                      narrow=_is_narrow(target))
    named = OMITTED if target == np.uint8 or d.since < 21 else _onnx(target)
    return d.node([values, scale], axis=_written(d, axis, len(x)), block_size=block, output_dtype=named,
                  narrow=_is_narrow(target) and named is not OMITTED)


def dequantized(d: Draw) -> Node:
    first, second = [each.type_str for each in d.schema.inputs[:2]]
    kind = d.dtype(first, f"{NARROW if d.opset >= 21 else FROM_8_BITS} int32")
    scale_kind = d.dtype(second, "float float16") if second != "tensor(float)" else np.dtype(np.float32)
    x = d.shape(0, 4, empty=0.02)
    shape, axis, block = _granularity(d, x)
    values = d.data(x, kind, "extreme" if kind.itemsize == 1 else "any", constant=0.4)
    zero = _zeros(d, shape, kind) if kind != np.int32 else np.zeros(shape, kind)
    ports: list[Port | None] = [values, d.given(_scales(d, shape, scale_kind), 0.7),
                                d.optional(d.given(zero, 0.7), 0.7)]
    return d.node(ports, axis=_written(d, axis, len(x)), block_size=block)


def _written(d: Draw, axis: int | None, rank: int) -> Any:
    """The axis attribute, if it has an effect."""
    if axis is None:
        return d.maybe(0, 0.1) if rank else OMITTED
    return d.maybe(1) if axis == 1 else d.signed(axis, rank)


def _is_narrow(dtype: Any) -> bool:
    return str(dtype.name) in FOUR_BITS


def _onnx(dtype: Any) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype))


def dynamic(d: Draw) -> Node:
    return d.node([d.data(d.shape(0, 4, empty=0), np.float32)], outputs=3)


def whole_product(d: Draw) -> Node:
    """MatMulInteger: zero points per tensor, row or column."""
    a_kind, b_kind = d.dtype("T1"), d.dtype("T2")
    before, (rows, inner, columns) = d.shape(0, 1), (d.size(), d.size(empty=0), d.size())
    a, b = d.data([*before, rows, inner], a_kind, "extreme"), d.data([inner, columns], b_kind, "extreme", constant=0.6)
    by_column = [columns] if d.chance(0.4) else []
    zeros = [d.given(_zeros(d, [], a_kind), 0.6), d.given(_zeros(d, by_column, b_kind), 0.6)]
    return d.node([a, b, *zeros[: d.integer(0, 2)]])


def whole_convolution(d: Draw) -> Node:
    """ConvInteger and QLinearConv."""
    linear = d.op.endswith("QLinearConv")
    kinds = d.dtype("T1"), d.dtype("T2")
    spatial = d.pick(1, 2, 2)
    w = window(d, spatial)
    pads = padding(d, w["kernel"], 0.3)
    same = str(pads["auto_pad"]).startswith("SAME")
    dilations = [1] * spatial if same else w["dilations"]
    groups = d.pick(1, 1, 2)
    each, out = d.integer(1, 2), groups * d.integer(1, 3)
    x = d.data([d.size(empty=0), groups * each, *large_enough(d, w["kernel"], dilations)], kinds[0], "extreme")
    weights = d.data([out, each, *w["kernel"]], kinds[1], constant=0.8, computed=d.chance(0.05))
    written = {"group": groups, "strides": d.maybe(w["strides"]), "dilations": OMITTED if same else dilations, **pads}
    x_zero = d.given(_zeros(d, [], kinds[0]), 0.7)
    by_channel = [out] if d.chance(0.3) else []
    if not linear:
        w_zero = d.given(_zeros(d, [], kinds[1]), 0.7)
        return d.node([x, weights, *[x_zero, w_zero][: d.integer(0, 2)]], **written)
    w_zero = d.given(np.zeros(by_channel, kinds[1]), 0.8)
    scales = [d.given(_scales(d, shape, np.float32), 0.8) for shape in ([], by_channel, [])]
    scales[2].array = np.float32(2.0) * scales[2].array
    y_zero = d.given(_zeros(d, [], d.dtype("T3")), 0.8)
    bias = d.given(d.values.integers(-20, 20, out).astype(np.int32), 0.8)
    ports = [x, scales[0], x_zero, weights, scales[1], w_zero, scales[2], y_zero, d.optional(bias)]
    return d.node(ports, **written)


def quantized_product(d: Draw) -> Node:
    """QLinearMatMul."""
    a_kind, b_kind, y_kind = d.dtype("T1"), d.dtype("T2"), d.dtype("T3")
    scale = np.dtype(np.float32) if d.since < 21 else d.dtype("TS", "float float16")
    before, (rows, inner, columns) = d.shape(0, 1), (d.size(), d.size(empty=0), d.size())
    a, b = d.data([*before, rows, inner], a_kind, "extreme"), d.data([inner, columns], b_kind, constant=0.6)
    ports = []
    for kind, port in ((a_kind, a), (b_kind, b), (y_kind, None)):
        ports += [*([port] if port else []), d.given(_scales(d, [], scale), 0.8), d.given(_zeros(d, [], kind), 0.8)]
    return d.node(ports)


OPERATORS = {
    "QuantizeLinear": quantized, "DequantizeLinear": dequantized, "DynamicQuantizeLinear": dynamic,
    "MatMulInteger": whole_product, "ConvInteger": whole_convolution, "QLinearConv": whole_convolution,
    "QLinearMatMul": quantized_product,
}
