"""Interpolation to another size."""

from typing import Literal

from mo_loop.graph.dimension import Dimension, fresh
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Op
from mo_loop.ops.element_kinds import RESIZED, SMALL_FLOATS
from mo_loop.ops.infer import dims_of

Coordinates = Literal["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
NearestMode = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]


class Resizing(Op, abstract=True, along="axes", keeps_axes=True):
    """The base of all versions of Interpolate."""

    shape_calculation_mode: Literal["sizes", "scales"]
    coordinate_transformation_mode: Coordinates = "half_pixel"
    nearest_mode: NearestMode = "round_prefer_floor"
    antialias: bool = False
    pads_begin: tuple[int, ...] = (0,)
    pads_end: tuple[int, ...] = (0,)
    cube_coeff: float = -0.75

    def resized(self, x, sizes, axes) -> TensorType:
        """The type of x with new sizes (None: known only at run time) along its axes."""
        if x.shape is None:
            return TensorType(x.dtype, None)
        shape: list[Dimension] = list(x.shape)
        places = range(len(shape)) if axes is None else axes.integers
        if places is None:
            return TensorType(x.dtype, tuple(fresh() for _ in shape))
        new = [fresh() for _ in places] if sizes is None or sizes.known is None else dims_of(sizes.known)
        self.require(len(new) == len(places), f"{len(new)} sizes for {len(places)} axes")
        for axis, dim in zip(places, new, strict=True):
            self.require(0 <= axis < len(shape), f"axis {axis} of rank {len(shape)}")
            shape[axis] = dim
        return TensorType(x.dtype, tuple(shape))


class Interpolate(
    Resizing, opset=4, index=("sizes", "axes"), ranks={"sizes": 1, "scales": 1, "axes": 1},
    types={"x": RESIZED, "scales": SMALL_FLOATS}
):
    """x resized along its axes; `sizes` are those of the result in both modes. Spec: Interpolate-4."""

    mode: Literal["nearest", "linear", "linear_onnx", "cubic"]

    def infer(self, x, sizes, scales, axes=None):
        return self.resized(x, sizes, axes)


class Interpolate11(
    Resizing, opset=11, type="Interpolate", index=("axes",), ranks={"sizes_or_scales": 1, "axes": 1},
    types={"x": RESIZED}
):
    """As Interpolate with one input for sizes or scales, and the modes of Pillow. Spec: Interpolate-11."""

    mode: Literal["nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"]

    def infer(self, x, sizes_or_scales, axes=None):
        return self.resized(x, sizes_or_scales if self.shape_calculation_mode == "sizes" else None, axes)
