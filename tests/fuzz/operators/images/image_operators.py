"""Regions of images, transposed convolutions whose pads are an input, and windows of channels that are last."""

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node
from tests.fuzz.operators.images.convolution import large_enough, padding, window


def regions(d: Draw) -> Node:
    """Some regions reach beyond the image. Corners are numbers of few bits, or between two pixels or on one."""
    dtype = d.dtype("T1", "float")
    n, channels, height, width = d.size(empty=0), d.size(empty=0), d.size(2, 6, 0), d.size(2, 6, 0)
    count = d.size(1, 4, 0.02)
    corners = np.round(d.values.uniform(-0.1, 1.1, (count, 4)) * 1000) / 1000
    if d.chance(0.5):
        halves = 2 * np.array([height, width, height, width]) - 2
        corners = np.round(corners * halves) / halves
    sizes = np.array([d.integer(1, 4), d.integer(1, 4)])
    return d.node(
        [d.data([n, channels, height, width], dtype), d.given(corners.astype(dtype), 0.2),
         d.given(d.values.integers(0, n, count).astype(np.int32), 0.2), d.parameter(sizes, np.int32)],
        mode=d.maybe(d.pick("bilinear", "nearest")), extrapolation_value=d.maybe(d.number(-2, 2)), atol=1e-3,
    )


def transposed(d: Draw) -> Node:
    dtype, spatial = d.dtype("T"), d.pick(1, 2, 2, 3)
    w, groups = window(d, spatial), d.pick(1, 1, 2)
    channels, each = groups * d.integer(1, 2), d.integer(1, 3)
    x = [d.size(empty=0), channels, *(d.size(2, 5, 0) for _ in range(spatial))]
    weights = d.data([channels, each, *w["kernel"]], dtype, constant=0.8, computed=False)
    bias = d.data([each * groups], dtype, constant=0.8)
    pads = d.parameter(np.array([d.integer(0, k - 1) for k in (*w["kernel"], *w["kernel"])]), constant=0.3)
    more = [d.integer(0, max(stride, step) - 1) for stride, step in zip(w["strides"], w["dilations"], strict=True)]
    return d.node([d.data(x, dtype), weights, pads, d.optional(bias)], group=groups, kernel_shape=d.maybe(w["kernel"]),
                  strides=w["strides"], dilations=w["dilations"], output_padding=d.maybe(more, 0.4))


def pooled(d: Draw) -> Node:
    """NhwcMaxPool."""
    kind, spatial = d.dtype("T"), d.pick(1, 2, 2, 3)
    w = window(d, spatial)
    pads = padding(d, w["kernel"], 0.3)
    dilated = d.chance(0.5) and not str(pads["auto_pad"]).startswith("SAME")
    dilations = w["dilations"] if dilated else [1] * spatial
    x = d.data([d.size(empty=0), *large_enough(d, w["kernel"], dilations), d.size(1, 20, 0)], kind)
    info = np.iinfo(kind)
    x.array = d.values.integers(info.min, info.max + 1, x.shape).astype(kind)
    return d.node(
        [x], kernel_shape=w["kernel"], strides=d.maybe(w["strides"]), dilations=dilations if dilated else OMITTED,
        ceil_mode=d.maybe(d.pick(0, 1), 0.5), **pads,
    )


OPERATORS = {"com.microsoft::CropAndResize": regions, "com.microsoft::ConvTransposeWithDynamicPads": transposed,
             "com.microsoft::NhwcMaxPool": pooled}
