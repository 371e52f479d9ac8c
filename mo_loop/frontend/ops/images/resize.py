"""Resize and Upsample as Interpolate if it gives the same numbers, else composed from simple operations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mo_loop.frontend.ops.images.sampling import Axis, Sampling, float_of, sampled
from mo_loop.frontend.ops.linear import array_of
from mo_loop.frontend.ops.shared import ranked, require_choice
from mo_loop.frontend.vocabulary import ModelError, Value, ops, translates
from mo_loop.graph import f32, i64, low, normalise_axis
from mo_loop.ops.exact import quotient
from mo_loop.ops.lengths import joined, vector
from mo_loop.ops.ranges import Vector

_OLD = Sampling("nearest", "asymmetric", "simple", -0.75, False, False, 0.0)
"""Before opset 11."""

_COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@translates("Upsample", since=1)
def upsample_1(x, *, height_scale: float, mode: str = "nearest", width_scale: float):
    """Images only."""
    return _by_scales(x, np.array([1, 1, height_scale, width_scale], np.float32), mode)


@translates("Upsample", since=7)
def upsample_7(x, *, mode: str = "nearest", scales: tuple[float, ...]):
    """A scale for each dimension."""
    return _by_scales(x, np.array(scales, np.float32), mode)


@translates("Upsample", since=9, one_rank="x")
@translates("Resize", since=10)
def resize_10(x, scales: Vector, *, mode: str = "nearest"):
    """The scales are an input. Those of Resize may be below 1."""
    return _by_scales(x, scales, mode)


def _by_scales(x: Value, scales, mode: str) -> Value:
    how = replace(_OLD, mode="linear" if mode == "bilinear" else mode)
    return _resized(x, None, scales, None, None, "stretch", how)


@translates("Resize", since=11, without="antialias axes keep_aspect_ratio_policy", required="roi scales")
@translates("Resize", since=13, without="antialias axes keep_aspect_ratio_policy")
@translates("Resize", since=18, one_rank="x")
def resize(
    x, roi: Vector = None, scales: Vector = None, sizes: Vector = None, *, antialias: int = 0,
    axes: tuple[int, ...] | None = None, coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75, exclude_outside: int = 0, extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest", nearest_mode: str = "round_prefer_floor",
):
    """One of `scales` and `sizes` is absent or empty."""
    require_choice("coordinate_transformation_mode", coordinate_transformation_mode, _COORDINATES)
    require_choice("nearest_mode", nearest_mode, _ROUNDINGS)
    how = Sampling(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside), bool(antialias),
        extrapolation_value,
    )
    return _resized(x, roi, scales, sizes, axes, keep_aspect_ratio_policy, how)


def _resized(
    x: Value, roi: Value | None, scales, sizes: Value | None, axes: Sequence[int] | None, policy: str, how: Sampling,
) -> Value:
    require_choice("mode", how.mode, ("nearest", "linear", "cubic"))
    rank = ranked(x)
    numbers = [normalise_axis(axis, rank) for axis in axes] if axes is not None else list(range(rank))
    given = sizes if sizes is not None and sizes.shape != (0,) else None
    if given is None and scales is None:
        raise ModelError("it has neither scales nor sizes", code="ML227")
    plan = _by_sizes(x, given, numbers, policy) if given is not None else _by_factors(x, scales, numbers)
    if how.coordinates == "tf_crop_and_resize" and roi is not None:
        plan = [_with_region(x, each, roi, i, len(plan)) for i, each in enumerate(plan)]
    else:
        plan = [each for each in plan if isinstance(each.scale, Value) or each.scale != 1]
    if not plan:
        return x
    if not x.dtype.is_float and how.mode != "nearest":
        return sampled(x.astype(f32), plan, how).astype(x.dtype)
    is_stretched = given is None or policy == "stretch"
    if is_stretched and _is_native(x, plan, how, by_sizes=given is not None):
        return _interpolate(x, plan, how, by_sizes=given is not None)
    return sampled(x, plan, how)


def _by_factors(x: Value, scales, numbers: Sequence[int]) -> list[Axis]:
    """new = floor(size * scale)"""
    constant = scales if isinstance(scales, np.ndarray) else array_of(scales)
    if constant is not None and len(constant) != len(numbers):
        raise ModelError(f"there are {len(constant)} scales for {len(numbers)} dimensions", code="ML227")
    if constant is not None and not np.isfinite(constant).all():
        raise ModelError(f"the scales are {[float(each) for each in constant]}, and must be finite", code="ML235")
    made = []
    for i, number in enumerate(numbers):
        scale = np.float32(constant[i]) if constant is not None else ops.Gather(vector(scales), i, 0)
        size = x.size(number)
        if isinstance(size, int) and not isinstance(scale, Value):
            new: Any = _product(size, scale)
        elif isinstance(scale, np.floating) and float(scale).is_integer():
            new = size * int(scale)
        else:
            wide = size.astype(f32) if isinstance(size, Value) else np.float32(size)
            new = ops.Floor(wide * scale).astype(i64)
        made.append(Axis(number, size, new, scale))
    return made


def _product(size: int, scale: np.floating[Any]) -> int:
    """The product in f32, rounded down. OverflowError if it is infinite."""
    with np.errstate(over="ignore"):
        return int(np.float32(size) * scale)


def _by_sizes(x: Value, sizes: Value, numbers: Sequence[int], policy: str) -> list[Axis]:
    """scale = new / size; the same on all axes, and sizes rounded, where the aspect ratio is kept."""
    known = sizes.known.reshape(-1) if sizes.known is not None else [None] * len(numbers)
    if len(known) != len(numbers):
        raise ModelError(f"there are {len(known)} sizes for {len(numbers)} dimensions", code="ML227")
    made = []
    for i, (number, item) in enumerate(zip(numbers, known, strict=True)):
        size = x.size(number)
        new = item if isinstance(item, int) else ops.Gather(vector(sizes), i, 0)
        assert x.shape is not None
        if item is not None and item == x.shape[number]:
            made.append(Axis(number, size, new, np.float32(1)))
        elif isinstance(size, int) and isinstance(new, int):
            made.append(Axis(number, size, new, np.float32(new) / np.float32(size)))
        else:
            made.append(Axis(number, size, new, quotient(float_of(x.graph, new), float_of(x.graph, size))))
    return made if policy == "stretch" else _one_ratio(x, made, policy)


def _one_ratio(x: Value, axes: Sequence[Axis], policy: str) -> list[Axis]:
    require_choice("keep_aspect_ratio_policy", policy, ("stretch", "not_larger", "not_smaller"))
    if not any(isinstance(each.scale, Value) for each in axes):
        scale = (min if policy == "not_larger" else max)(each.scale for each in axes)
        rounded = [int(np.floor(np.float32(each.size) * scale + np.float32(0.5))) for each in axes]
        return [replace(each, scale=scale, new=new) for each, new in zip(axes, rounded, strict=True)]
    extreme = ops.Minimum if policy == "not_larger" else ops.Maximum
    common = float_of(x.graph, axes[0].scale)
    for each in axes[1:]:
        common = extreme(common, float_of(x.graph, each.scale))
    return [
        replace(each, scale=common, new=ops.Floor(float_of(x.graph, each.size) * common + 0.5).astype(i64))
        for each in axes
    ]


def _with_region(x: Value, axis: Axis, roi: Value, i: int, count: int) -> Axis:
    """`roi` holds all starts, then all ends."""
    constant = array_of(roi)
    if constant is not None and constant.size < 2 * count:
        raise ModelError(f"the input 'roi' is {roi.type}, and needs {2 * count} numbers for {count} axes", code="ML235")
    if constant is not None:
        return replace(axis, start=float(constant[i]), end=float(constant[count + i]))
    roi = roi.astype(f32)
    return replace(axis, start=ops.Gather(roi, i, 0), end=ops.Gather(roi, count + i, 0))


def _is_native(x: Value, axes: Sequence[Axis], how: Sampling, *, by_sizes: bool) -> bool:
    """Whether Interpolate is known to give the same numbers."""
    if how.coordinates in ("half_pixel_symmetric", "tf_crop_and_resize"):
        return False
    if how.mode == "nearest" and how.coordinates == "align_corners":
        return False  # the runtime divides first: an index on a rounding boundary differs by 1
    if how.antialias or (how.mode == "cubic" and how.exclude_outside) or not x.dtype.is_float:
        return False
    assert x.rank is not None
    trailing = [each.number for each in axes] == list(range(x.rank - len(axes), x.rank))
    if not trailing or x.rank - len(axes) < 2 or len(axes) > (2 if how.mode == "cubic" else 3):
        return False
    if how.mode == "cubic" and (len(axes) != 2 or x.rank != 4):
        return False
    if by_sizes:
        return True
    return _sizes_agree(x, axes) and (how.nearest != "simple" or _simple_rounding(axes) is not None)


def _simple_rounding(axes: Sequence[Axis]) -> str | None:
    """The name of the rounding of opset 10, if it is the same on all axes."""
    if any(isinstance(each.scale, Value) for each in axes):
        return None
    down = {bool(each.scale < 1) for each in axes}
    return None if len(down) == 2 else "ceil" if down == {True} else "floor"


def _sizes_agree(x: Value, axes: Sequence[Axis]) -> bool:
    """Whether the runtime is certain to compute the same sizes and to resize each axis.

    The runtime does not resize an axis whose size stays the same (3 elements with a scale of 1.3).
    """
    assert x.shape is not None
    for each in axes:
        if isinstance(each.scale, Value):
            return False
        scale, dim = float(each.scale), x.shape[each.number]
        if isinstance(dim, int) and isinstance(each.new, int):
            if each.new == dim or int((dim + 1e-6) * np.float32(scale)) != each.new:
                return False
        elif 1 < scale < 2 and low(dim) < 1 / (scale - 1):
            return False
    return True


def _interpolate(x: Value, axes: Sequence[Axis], how: Sampling, *, by_sizes: bool) -> Value:
    graph = x.graph
    news = joined([each.new for each in axes], x)
    if by_sizes or any(isinstance(each.scale, Value) for each in axes):
        scales = ops.Constant(np.ones(len(axes), np.float32), graph=graph)  # not used in this mode
    else:
        scales = ops.Constant(np.array([each.scale for each in axes], np.float32), graph=graph)
    rounding = (_simple_rounding(axes) if how.nearest == "simple" else how.nearest) or "floor"
    return ops.Interpolate(
        x, news, scales, [each.number for each in axes],
        mode="linear_onnx" if how.mode == "linear" else how.mode,
        shape_calculation_mode="sizes" if by_sizes else "scales",
        coordinate_transformation_mode=how.coordinates, nearest_mode=rounding, cube_coeff=how.cubic,
    )
