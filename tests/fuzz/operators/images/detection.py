"""Regions, boxes, grids."""

import numpy as np

from tests.fuzz.operators.draw import Draw, Node, Port


def boxes(d: Draw) -> Node:
    """NonMaxSuppression: limits as constants, at run time, or absent."""
    batch, classes, count = d.size(1, 2, 0), d.size(1, 3, 0), d.size(1, 6, 0.01)
    centre = d.chance(0.3)
    corners = np.sort(d.values.uniform(0, 10, (batch, count, 2, 2)), axis=2).reshape(batch, count, 4)
    if centre:
        corners = np.concatenate([corners[..., :2], np.abs(corners[..., 2:]) / 3 + 0.5], -1)
    scores = d.values.permutation(np.linspace(0.05, 0.95, batch * classes * count)).reshape(batch, classes, count)
    # Only the last limits are absent.
    limits: list[Port | None] = [
        d.optional(d.parameter(np.array(d.integer(1, 4))[None] if d.chance(0.5) else d.integer(1, 4)), 0.9),
        d.optional(d.parameter(np.array([d.number(0.1, 0.8)]), np.float32), 0.8),
        d.optional(d.parameter(np.array([d.number(0.0, 0.5)]), np.float32), 0.6),
    ]
    ports = [d.given(each.astype(np.float32), 0.02, True) for each in (corners, scores)]
    return d.node([*ports, *limits[: d.integer(0, 3)]], center_point_box=1 if centre else d.maybe(0))


def regions(d: Draw) -> Node:
    """RoiAlign."""
    dtype = d.dtype("T1")
    shape = [d.size(1, 3, 0), d.size(1, 3, 0), d.size(3, 6, 0), d.size(3, 6, 0)]
    count = d.size(1, 4, 0.03)
    corners = np.sort(d.values.uniform(0, 5, (count, 2, 2)), axis=1).reshape(count, 4).astype(dtype)
    batches = d.values.integers(0, shape[0], count)
    return d.node([d.data(shape, dtype), d.given(corners, 0.1), d.given(batches, 0.1)],
                  mode=d.maybe(d.pick("avg", "max")), output_height=d.maybe(d.integer(1, 3)),
                  output_width=d.maybe(d.integer(1, 3)), sampling_ratio=d.maybe(d.integer(0, 3)),
                  spatial_scale=d.maybe(d.number(0.3, 1)),
                  coordinate_transformation_mode=d.maybe(d.pick("half_pixel", "output_half_pixel")), atol=1e-3)


def largest(d: Draw) -> Node:
    """MaxRoiPool."""
    dtype = d.dtype()
    shape = [d.size(1, 3, 0), d.size(1, 3, 0), d.size(3, 6, 0), d.size(3, 6, 0)]
    count = d.size(1, 4, 0)
    corners = np.sort(d.values.integers(0, 6, (count, 2, 2)), axis=1).reshape(count, 4)
    rows = np.concatenate([d.values.integers(0, shape[0], (count, 1)), corners], 1).astype(dtype)
    return d.node([d.data(shape, dtype), d.given(rows, 0.1)], pooled_shape=[d.integer(1, 3), d.integer(1, 3)],
                  spatial_scale=d.maybe(d.pick(1.0, 0.5)))


def sampled(d: Draw) -> Node:
    """GridSample over two or three dimensions."""
    spatial = 2 if d.since < 20 or d.chance(0.7) else 3
    kinds = d.dtype("T1", "float float16 double"), d.dtype("T2", "float float16 double")
    modes = ("bilinear", "nearest", "bicubic") if d.since < 20 else ("linear", "nearest", "cubic")
    mode = d.pick(*modes[: 2 if spatial == 3 else 3])
    batch = d.size(1, 3, 0)
    x = [batch, d.size(1, 3, 0), *(d.size(2, 5, 0) for _ in range(spatial))]
    grid = [batch, *(d.size(1, 4, 0.01) for _ in range(spatial)), spatial]
    places = d.values.uniform(-1.3, 1.3, grid).astype(kinds[1])
    return d.node(
        [d.data(x, kinds[0]), d.given(places, 0.05, True)],
        mode=d.maybe(mode) if mode in ("linear", "bilinear") else mode,
        padding_mode=d.maybe(d.pick("zeros", "border", "reflection")), align_corners=d.maybe(d.pick(0, 1)), atol=1e-3,
    )


def affine(d: Draw) -> Node:
    spatial, batch = d.pick(2, 3), d.size(1, 3, 0)
    sizes = [batch, d.integer(1, 3), *(d.size(1, 4, 0) for _ in range(spatial))]
    theta = d.data([batch, spatial, spatial + 1], d.dtype("T1"))
    return d.node([theta, d.parameter(sizes)], align_corners=d.maybe(d.pick(0, 1)), atol=1e-3)


def deformed(d: Draw) -> Node:
    dtype = d.dtype()
    kernel, strides = [d.integer(1, 3), d.integer(1, 3)], [d.integer(1, 2), d.integer(1, 2)]
    dilations, pads = [d.pick(1, 1, 2), d.pick(1, 1, 2)], [d.integer(0, 1) for _ in range(4)]
    groups, offsets = d.pick(1, 1, 2), d.pick(1, 1, 2)
    channels, out = groups * offsets * d.integer(1, 2), groups * d.integer(1, 2)
    batch, sides = d.size(1, 2, 0), [d.size(5, 7, 0), d.size(5, 7, 0)]
    ends = [(sides[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in range(2)]
    area = kernel[0] * kernel[1]
    offset = d.given(d.values.uniform(-1, 1, (batch, offsets * area * 2, *ends)).astype(dtype), 0.05)
    mask = d.given(d.values.uniform(0, 1, (batch, offsets * area, *ends)).astype(dtype), 0.05)
    x = d.data([batch, channels, *sides], dtype)
    weights = d.data([out, channels // groups, *kernel], dtype, constant=0.7, computed=False)
    bias = d.data([out], dtype, constant=0.7)
    return d.node([x, weights, offset, d.optional(bias), d.optional(mask)], group=groups, offset_group=offsets,
                  kernel_shape=d.maybe(kernel), strides=strides, dilations=dilations, pads=pads, atol=1e-3)


def columns(d: Draw) -> Node:
    """Col2Im: an image from its blocks."""
    spatial = d.pick(1, 2, 2, 3)
    block = [d.integer(1, 3) for _ in range(spatial)]
    strides, dilations = [d.integer(1, 2) for _ in block], [d.pick(1, 1, 2) for _ in block]
    pads = [d.integer(0, 1) for _ in (*block, *block)]
    image = [d.size(5, 7, 0) for _ in block]
    ends = [(image[i] + pads[i] + pads[i + spatial] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1
            for i in range(spatial)]
    x = d.data([d.size(1, 2, 0.01), d.integer(1, 2) * int(np.prod(block)), int(np.prod(ends))], d.dtype())
    return d.node([x, d.parameter(image, constant=0.7), d.parameter(block, constant=0.8)], strides=strides,
                  dilations=dilations, pads=pads)


OPERATORS = {"NonMaxSuppression": boxes, "RoiAlign": regions, "MaxRoiPool": largest, "GridSample": sampled,
             "AffineGrid": affine, "DeformConv": deformed, "Col2Im": columns}
