"""Operations on regions of images: non-maximum suppression, pooling of regions, sampling at given positions,
and interpolation to another size.
"""

from typing import Any, Literal

from mo_loop.graph import Dimension, ElementType, TensorType, f32, fresh, high, i64
from mo_loop.graph.shape import is_static, merge, merge_dim
from mo_loop.ops.base import Op
from mo_loop.ops.convolution import Windowed, places, span
from mo_loop.ops.infer import dims_of, same_dtype
from mo_loop.ops.ranges import FLOATS, INTEGERS, NUMBERS, RESIZED, SMALL_FLOATS


class NonMaxSuppression(
    Op, opset=5, index=("max_boxes",), ranks={"boxes": 3, "scores": 3}, single=("max_boxes", "iou", "least", "sigma"),
    types=dict.fromkeys(("boxes", "scores", "iou", "least", "sigma"), SMALL_FLOATS)
):
    """Selects from boxes [N, B, 4] with scores [N, C, B] those that no box of a higher score overlaps. Outputs:
    [K, 3] (image, class, box), [K, 3] (image, class, score), the number of boxes. Spec: NonMaxSuppression-5."""

    box_encoding: Literal["corner", "center"] = "corner"
    sort_result_descending: bool = True
    output_type: ElementType = i64

    def infer(self, boxes, scores, max_boxes=None, iou=None, least=None, sigma=None):
        most = None
        if boxes.shape is not None:
            merge_dim(boxes.shape[2], 4)
            if scores.shape is not None:
                merge_dim(boxes.shape[0], scores.shape[0])
                merge_dim(boxes.shape[1], scores.shape[2])
        if scores.shape is not None:
            limits = [high(dim) for dim in scores.shape]
            if all(limit is not None for limit in limits):
                images, classes, count = (int(str(limit)) for limit in limits)
                limit = max_boxes.integers[0] if max_boxes is not None and max_boxes.integers else count
                most = images * classes * max(min(count, limit), 0)
        number = fresh(0, most)
        return (
            TensorType(self.output_type, (number, 3)), TensorType(f32, (number, 3)), TensorType(self.output_type, (1,))
        )


class NonMaxSuppression9(NonMaxSuppression, opset=9, type="NonMaxSuppression"):
    """As NonMaxSuppression; the first output is never padded. Spec: NonMaxSuppression-9."""


class ROIAlign(Op, opset=3, ranks={"x": 4, "regions": 2, "images": 1}, types={"x": FLOATS, "images": INTEGERS}):
    """Regions [R, 4] of x [N, C, H, W], averaged over samples in each of the cells [R, C, h, w]. Spec: ROIAlign-3."""

    pooled_h: int
    pooled_w: int
    sampling_ratio: int
    spatial_scale: float
    mode: Literal["avg", "max"]

    def infer(self, x, regions, images):
        same_dtype(x, regions)
        number: Dimension = fresh()
        if regions.shape is not None:
            number = regions.shape[0]
            merge_dim(regions.shape[1], 4)
        if images.shape is not None:
            number = merge_dim(number, images.shape[0])
        channels = fresh() if x.shape is None else x.shape[1]
        return TensorType(x.dtype, (number, channels, self.pooled_h, self.pooled_w))


class ROIAlign9(ROIAlign, opset=9, type="ROIAlign"):
    """As ROIAlign; an attribute shifts the corners by half a pixel. Spec: ROIAlign-9."""

    aligned_mode: Literal["asymmetric", "half_pixel_for_nn", "half_pixel"] = "asymmetric"


class ROIPooling(Op, opset=2, ranks={"x": 4, "regions": 2}, types={"x": FLOATS}):
    """The largest element in each cell of regions [R, 5] (image, corners) of x [N, C, H, W]. Spec: ROIPooling-2."""

    pooled_h: int
    pooled_w: int
    spatial_scale: float
    method: Literal["max", "bilinear"] = "max"

    def infer(self, x, regions):
        same_dtype(x, regions)
        number = fresh()
        if regions.shape is not None:
            number = regions.shape[0]
            merge_dim(regions.shape[1], 5)
        channels = fresh() if x.shape is None else x.shape[1]
        return TensorType(x.dtype, (number, channels, self.pooled_h, self.pooled_w))

    def xml_attributes(self) -> dict[str, Any]:
        return {"output_size": (self.pooled_h, self.pooled_w), **self.attribute_values()}

    @classmethod
    def from_xml(cls, data: dict[str, str]) -> dict[str, str]:
        return {key: text for key, text in data.items() if key != "output_size"}


class GridSample(Op, opset=9, ranks={"x": 4, "grid": 4}, types={"grid": FLOATS}):
    """x [N, C, H, W] sampled at the positions of a grid [N, h, w, 2], each from -1 to 1. Spec: GridSample-9."""

    align_corners: bool = False
    mode: Literal["bilinear", "bicubic", "nearest"] = "bilinear"
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros"

    def infer(self, x, grid):
        batch, channels = (fresh(), fresh()) if x.shape is None else x.shape[:2]
        size = (fresh(), fresh())
        if grid.shape is not None:
            batch, size = merge_dim(batch, grid.shape[0]), grid.shape[1:3]
            merge_dim(grid.shape[3], 2)
        return TensorType(x.dtype, (batch, channels, *size))


class DeformableConvolution(
    Windowed, opset=8, ranks={"x": 4, "offsets": 4, "filters": 4, "mask": 4}, types={"x": NUMBERS, "mask": NUMBERS}
):
    """Convolution that reads each element at an offset, weighted by a mask. Spec: DeformableConvolution-8."""

    dilations: tuple[int, ...]
    group: int = 1
    deformable_group: int = 1
    bilinear_interpolation_pad: bool = False

    def infer(self, x, offsets, filters, mask=None):
        same_dtype(x, offsets, filters)
        if filters.shape is None:
            return TensorType(x.dtype, tuple(fresh() for _ in range(4)))
        outputs, channels, *kernel = filters.shape
        sizes = self.spatial(x, len(kernel))
        batch = fresh() if x.shape is None else x.shape[0]
        if x.shape is not None:
            merge_dim(x.shape[1], channels * self.group)
        places = self.windows(sizes, kernel, self.dilations)
        for each, parts in ((offsets, 2), (mask, 1)):
            if each is not None and each.shape is not None:
                count = kernel[0] * kernel[1] * (parts * self.deformable_group) if is_static(kernel) else fresh()
                merge((batch, count, *places), each.shape)
        return TensorType(x.dtype, (batch, outputs, *places))


class Col2Im(
    Op, opset=15, index=("output_size", "kernel_size"), ranks={"x": (2, 3), "output_size": 1, "kernel_size": 1}
):
    """Images [N, C, H, W] as sums of their columns [N, C * k * l, L]. Spec: Col2Im-15."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]

    def infer(self, x, output_size, kernel_size):
        for each in (output_size, kernel_size):
            if each.shape is not None:
                merge_dim(each.shape[0], 2)
        size = tuple(output_size.known.reshape(-1)) if output_size.known is not None else (fresh(), fresh())
        if x.shape is None:
            return TensorType(x.dtype, (fresh(), fresh(), *size))
        channels: Dimension = fresh()
        if kernel_size.integers is not None:
            self.require(0 not in kernel_size.integers, f"kernel_size {list(kernel_size.integers)} has a 0")
            area, depth = kernel_size.integers[0] * kernel_size.integers[1], x.shape[-2]
            self.require(not isinstance(depth, int) or depth % area == 0, f"{depth} channels do not divide by {area}")
            channels = depth // area
            self._require_places(x, size, kernel_size.integers)
        return TensorType(x.dtype, (*([x.shape[0]] if len(x.shape) == 3 else []), channels, *size))

    def _require_places(self, x, size: tuple[Dimension, ...], kernel: tuple[int, ...]) -> None:
        count: Dimension = 1
        for length, begin, end, reach, step in zip(
            size, self.pads_begin, self.pads_end, map(span, kernel, self.dilations), self.strides, strict=True
        ):
            if not isinstance(length, int):
                return
            count = count * places(length, reach, step, begin, end)
        merge_dim(x.shape[-1], count)


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
        self.require(len(new) == len(places), f"there are {len(new)} sizes for {len(places)} axes")
        for axis, dim in zip(places, new, strict=True):
            self.require(0 <= axis < len(shape), f"axis {axis} is outside a tensor of rank {len(shape)}")
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
