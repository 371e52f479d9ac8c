"""Operators that ONNX has as well, and small operators on tensors."""

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node, Port
from tests.fuzz.operators.indexing import gather_nd


def triangle(d: Draw) -> Node:
    k = d.parameter(np.array(d.integer(-3, 3)))
    return d.node([d.data(d.shape(2, 4), d.dtype("T")), d.optional(k, 0.7)], upper=d.maybe(d.pick(0, 1)))


def grid_sample(d: Draw) -> Node:
    dtype = d.dtype("T1", "float float16")
    n, channels, *sizes = d.shape(4, 4, empty=0.01)
    places = d.data([n, d.size(), d.size(), 2], dtype, "unit" if d.chance(0.6) else "small", constant=0.2)
    mode = d.pick("bilinear", "nearest", "bicubic")
    return d.node([d.data([n, channels, *(max(each, 2) for each in sizes)], dtype), places], mode=d.maybe(mode, 0.8),
                  padding_mode=d.maybe(d.pick("zeros", "border", "reflection"), 0.8),
                  align_corners=d.maybe(d.pick(0, 1)))


def pad(d: Draw) -> Node:
    """Pads may be negative, and a matrix of one row."""
    dtype, mode = d.dtype("T"), d.pick("constant", "reflect", "edge")
    x = d.data(d.shape(1, 4, low=3, empty=0), dtype)
    low = -1 if mode == "constant" else 0
    widths = np.array([d.integer(low, 2) for _ in range(2 * x.rank)])
    pads = d.parameter(widths[None] if d.chance(0.3) else widths)
    value = d.parameter(np.full([] if d.chance(0.5) else [1], d.number(-2, 2)), dtype)
    return d.node([x, pads, d.optional(value, 0.5) if mode == "constant" else None], mode=d.maybe(mode, 0.9)
                  if mode == "constant" else mode)


def arange(d: Draw) -> Node:
    dtype = d.dtype("T")
    start, count, step = d.integer(-5, 5), d.integer(0, 6), d.pick(1, 2, 3, -1, -2)
    with_step = d.chance(0.7)
    step = step if with_step else 1

    def scalar(number: int) -> Port:
        return d.parameter(np.array([number] if d.chance(0.3) else number), dtype)

    return d.node([scalar(start), scalar(start + count * step), scalar(step) if with_step else None])


def unique(d: Draw) -> Node:
    return d.node([d.data([d.size(1, 8)], d.dtype("T"))], outputs=3)


def expand(d: Draw) -> Node:
    x = d.data(d.shape(0, 4), d.dtype("T"))
    return d.node([x, d.parameter(np.array(d.integer(-x.rank - 1, x.rank)), np.int32)])


def unfold(d: Draw) -> Node:
    shape = d.shape(1, 4, empty=0.02)
    axis, size = d.integer(0, len(shape) - 1), d.integer(1, 3)
    shape[axis] = d.size(size, size + 4, 0)
    x = d.data(shape, d.dtype("T", "float double int64 int32"))
    dim = OMITTED if axis == x.rank - 1 else axis - x.rank * d.pick(0, 1)
    return d.node([x], dim=dim, size=size, step=d.maybe(d.integer(1, 3)))


def echo(d: Draw) -> Node:
    """SampleOp."""
    return d.node([d.data(d.shape(0, 4), d.dtype("T"))])


OPERATORS = {
    "com.microsoft::Trilu": triangle, "com.microsoft::GatherND": gather_nd, "com.microsoft::GridSample": grid_sample,
    "com.microsoft::Pad": pad, "com.microsoft::Range": arange, "com.microsoft::Unique": unique,
    "com.microsoft::ExpandDims": expand, "com.microsoft::UnfoldTensor": unfold,
    "com.microsoft::SampleOp": echo,
}
