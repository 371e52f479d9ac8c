"""Operators that ONNX did not keep, at the opsets for which ONNX Runtime has kernels."""

import numpy as np

from .draw import OMITTED, Draw, Node
from .table import between, unary


def crop(d: Draw) -> Node:
    """By borders, or to a size."""
    x = d.data(d.shape(4, 4, low=4, high=7, empty=0), d.dtype())
    left, top = d.integer(0, 2), d.integer(0, 2)
    kept = [d.integer(1, 2), d.integer(1, 2)] if d.chance(0.5) else None
    return d.node([x], border=[left, top, d.integer(0, 1), d.integer(0, 1)], scale=OMITTED if kept is None else kept)


def scaled_image(d: Draw) -> Node:
    """The number of biases is that of the channels."""
    channels = d.integer(1, 4)
    x = d.data([d.size(), channels, d.size(), d.size()], d.dtype())
    return d.node([x], scale=d.maybe(d.number(0.2, 2)), bias=[d.number(-1, 1) for _ in range(channels)])


def scaled(d: Draw) -> Node:
    """Functions of a multiple of x; ONNX Runtime requires both factors."""
    return d.node([d.data(d.shape(), d.dtype())], alpha=d.number(0.2, 2), beta=d.number(0.2, 2))


def dynamic_slice(d: Draw) -> Node:
    """Bounds beyond the tensor and from its end."""
    x = d.data(d.shape(1, 4), d.dtype("T", "float int32 int64"))
    axes = [axis for axis in range(x.rank) if d.chance(0.7)] or [0]
    some = d.chance(0.6)
    count = len(axes) if some else x.rank
    indices = d.dtype("Tind")
    bounds = [d.parameter([d.integer(*limits) for _ in range(count)], indices) for limits in ((-3, 1), (2, 9))]
    return d.node([x, *bounds, d.parameter(np.array(axes), indices) if some else None])


OPERATORS = {
    "Affine": unary(alpha=between(0.2, 2), beta=between(-2, 2)),
    "Crop": crop,
    "DynamicSlice": dynamic_slice,
    "ImageScaler": scaled_image,
    "ParametricSoftplus": scaled,
    "Scale": unary(scale=between(0.2, 2)),
    "ScaledTanh": scaled,
}
