"""Resize and Upsample: modes, coordinate transformations, rounding, by factors or sizes, of all axes or some."""

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node

SCALES = (0.5, 1.0, 2.0, 1.5, 0.75, 3.0, 0.6, 1.6)
PLACES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize",
          "half_pixel_symmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def resized(d: Draw) -> Node:
    """Factors until opset 10; from 11 on also sizes, a region, cubic curves; from 18 on some axes, antialiasing."""
    constraint = "T" if d.since == 10 else "T1"
    dtype = d.dtype(constraint, "float float16 int32 int8 uint8")
    whole = dtype.kind != "f"
    mode = "nearest" if whole else d.pick("nearest", "linear", "linear", "cubic" if d.since >= 11 else "linear")
    rank = 4 if mode == "cubic" or d.chance(0.6) else d.integer(2, 5)
    shape = [d.size(1, 3, 0.02), d.size(1, 3, 0), *(d.size(2, 6, 0) for _ in range(rank - 2))][:rank]
    spatial = list(range(2, rank)) if rank > 2 else [0, 1]
    moved = [axis for axis in spatial if d.chance(0.8)]
    partial = d.since >= 18 and d.chance(0.4)
    axes = spatial if partial else list(range(rank))
    scales = [d.pick(*SCALES) if axis in moved else 1.0 for axis in axes]
    sizes = [max(1, int(shape[axis] * scale)) if axis in moved else shape[axis]
             for axis, scale in zip(axes, scales, strict=True)]
    x = d.data(shape, dtype)
    if d.since == 10:
        return d.node([x, d.parameter(scales, np.float32)], mode=d.maybe(mode) if mode == "nearest" else mode)
    place = d.pick(*PLACES[: 6 if d.since >= 19 else 5])
    if place == "tf_crop_and_resize" and d.chance(0.6):
        place = "half_pixel"
    ends = [*(0.0 if scale == 1 else 0.1 for scale in scales), *(1.0 if scale == 1 else 0.9 for scale in scales)]
    region = d.parameter(ends, dtype if dtype.kind == "f" and dtype.itemsize > 2 else np.float32, constant=0.9)
    if place != "tf_crop_and_resize":
        region = None  # type: ignore[assignment]
    by_sizes = d.chance(0.5) and region is None
    factors = d.parameter([] if by_sizes else scales, np.float32, constant=1.0 if by_sizes else 0.6)
    if d.since < 13 and region is None:
        region = d.parameter([], np.float32, constant=1.0)
    ports = [x, region, None if by_sizes and d.since >= 13 else factors, d.parameter(sizes) if by_sizes else None]
    policy = d.pick("stretch", "not_larger", "not_smaller") if by_sizes and partial else OMITTED
    return d.node(
        ports, mode=mode, coordinate_transformation_mode=place if place != "half_pixel" else d.maybe(place),
        nearest_mode=d.maybe(d.pick(*ROUNDINGS)) if mode == "nearest" else OMITTED,
        cubic_coeff_a=d.maybe(d.pick(-0.5, -0.75), 0.4) if mode == "cubic" else OMITTED,
        exclude_outside=d.maybe(1, 0.2) if mode == "cubic" else OMITTED,
        extrapolation_value=d.maybe(d.number(-2, 2), 0.3), antialias=d.maybe(1, 0.15) if mode != "nearest" else OMITTED,
        axes=[d.signed(axis, rank) if policy is OMITTED else axis for axis in axes] if partial else OMITTED,
        keep_aspect_ratio_policy=d.maybe(policy, 0.5), atol=1e-3 if dtype.kind == "f" else None,
    )


def upsampled(d: Draw) -> Node:
    """Factors as an attribute until opset 8."""
    dtype = d.dtype(only="float float16 int32 int8 uint8")
    mode = d.pick("nearest", "linear") if dtype.kind == "f" else "nearest"
    rank = 4 if mode == "linear" else d.integer(2, 5)
    shape = [d.size(1, 3, 0.02), d.size(1, 3, 0), *(d.size(1, 4, 0) for _ in range(rank - 2))][:rank]
    scales = [1.0, 1.0, *(d.pick(1.0, 2.0, 3.0, 1.5) for _ in range(rank - 2))][:rank]
    x = d.data(shape, dtype)
    if d.since < 9:
        return d.node([x], mode=mode, scales=scales)
    return d.node([x, d.parameter(scales, np.float32)], mode=d.maybe(mode) if mode == "nearest" else mode)


OPERATORS = {"Resize": resized, "Upsample": upsampled}
