"""Detection and sampling operators: NonMaxSuppression, RoiAlign, GridSample, DeformConv, Col2Im and others."""

import math
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import unit_matrix
from mo_loop.frontend.ops.images.col2im import scattered_images
from mo_loop.frontend.ops.images.convolution import ConvolutionAttributes, biased, spatial_rank
from mo_loop.frontend.ops.images.grid import affine, sampled_at
from mo_loop.frontend.ops.images.regions import largest_corners
from mo_loop.frontend.ops.images.windows import WindowAttributes
from mo_loop.frontend.ops.weight_layout import array_of
from mo_loop.frontend.vocabulary import ModelError, UnsupportedError, Value, ops, translates
from mo_loop.ops.infer import vector_length
from mo_loop.ops.lengths import scalar
from mo_loop.ops.ranges import (
    AtLeast3,
    Integers,
    Matrix,
    NotNegative,
    One,
    Positive,
    Positives,
    Rank3,
    Rank4,
    Vector,
)
from mo_loop.target import CRASH, Gap

AVOIDS = {
    "Col2Im": (
        Gap(
            "col2im-of-computed-shapes", "`Col2Im` to a shape known only at run time crashes the process",
            "added up place by place", CRASH, until="2025.4.1",
        ),
    ),
}  # fmt: skip
"""Operator -> the errors of the runtime that its translator avoids."""

Ints = tuple[int, ...]


@translates("NonMaxSuppression", since=10)
def non_max_suppression(
    boxes: Rank3,
    scores: Rank3,
    max_output_boxes_per_class: One | Integers = None,
    iou_threshold: One = None,
    score_threshold: One = None,
    *,
    center_point_box: int = 0,
):
    """An absent limit means 0 boxes; without a score threshold all boxes are considered."""
    limit = ops.Constant(np.int64(0), graph=boxes.graph)
    if max_output_boxes_per_class is not None:
        limit = scalar(max_output_boxes_per_class)
    iou = _just_above(boxes, iou_threshold)
    least = ops.Constant(np.finfo(np.float32).min, graph=boxes.graph)
    if score_threshold is not None:
        least = scalar(score_threshold)
    if boxes.shape is None or boxes.shape[-1] != 4:
        boxes = ops.Reshape(boxes, [0, -1, 4], special_zero=True)  # the runtime needs a static 4
    return ops.NonMaxSuppression(
        boxes, scores, limit, iou, least, box_encoding="center" if center_point_box else "corner",
        sort_result_descending=False,
    )[0]  # fmt: skip


def _just_above(boxes: Value, threshold: Value | None) -> Value:
    """The next larger number: ONNX drops boxes with an overlap above the threshold, the runtime also those at it."""
    constant = np.zeros((), np.float32) if threshold is None else array_of(threshold)
    if constant is not None:
        least = np.finfo(np.float32).tiny  # smaller ones count as 0
        above = np.maximum(np.nextafter(constant.reshape(()), np.float32(2)), least)
        return ops.Constant(above.astype(np.float32), graph=boxes.graph)
    assert threshold is not None
    return ops.Maximum(scalar(threshold) * np.float32(1 + 2**-23), np.finfo(np.float32).tiny)


@translates("RoiAlign", since=10, fixed={"coordinate_transformation_mode": "output_half_pixel"})
@translates("RoiAlign", since=16)
def roi_align(
    x: Rank4,
    rois: Matrix,
    batch_indices: Vector,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: Positive = 1,
    output_width: Positive = 1,
    sampling_ratio: NotNegative = 0,
    spatial_scale: float = 1.0,
):
    """`half_pixel` shifts the corners by half a pixel."""
    shifted = coordinate_transformation_mode == "half_pixel"
    cells = (output_height, output_width)
    return _roi_align(x, rois, batch_indices, mode, cells, sampling_ratio, spatial_scale, shifted)


def _roi_align(
    x: Value, rois: Value, images: Value, mode: str, cells: tuple[int, int], samples: int, scale: float, shifted: bool
):
    rois, images = _columns(rois, 4), images if images.rank == 1 else ops.Reshape(images, [-1])
    if mode == "max":
        if samples < 1:
            raise UnsupportedError(
                "RoiAlign of mode max whose number of samples depends on the size of the region", code="ML316",
                hint="give sampling_ratio a value above 0",
            )  # fmt: skip
        return largest_corners(x, rois, images, cells, samples, scale, shifted)
    if mode != "avg":
        raise ModelError(f"RoiAlign has the mode {mode!r}", code="ML227")
    attributes: dict[str, Any] = {
        "pooled_h": cells[0], "pooled_w": cells[1], "sampling_ratio": samples, "spatial_scale": scale, "mode": mode,
    }  # fmt: skip
    if not shifted:
        return ops.ROIAlign(x, rois, images, **attributes)
    # The names differ: the runtime's half_pixel would scale about the centres of the pixels as well.
    return ops.ROIAlign9(x, rois, images, aligned_mode="half_pixel_for_nn", **attributes)


def _columns(rois: Value, count: int) -> Value:
    """Regions whose second dimension is static, as the runtime demands."""
    if rois.shape is not None and len(rois.shape) == 2 and rois.shape[1] == count:
        return rois
    return ops.Reshape(rois, [-1, count])


@translates("MaxRoiPool", since=1)
def max_roi_pool(x: Rank4, rois: Matrix, *, pooled_shape: Positives, spatial_scale: float = 1.0):
    """The largest element in each cell of a region."""
    if len(pooled_shape) != 2:
        raise ModelError(f"MaxRoiPool has {len(pooled_shape)} numbers in pooled_shape, not 2", code="ML227")
    height, width = pooled_shape
    return ops.ROIPooling(x, _columns(rois, 5), pooled_h=height, pooled_w=width, spatial_scale=spatial_scale)


@translates("GridSample", since=16)
def grid_sample_16(
    x: AtLeast3, grid: AtLeast3, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros",
):  # fmt: skip
    """Images only."""
    return _grid_sample(x, grid, align_corners, mode, padding_mode)


@translates("GridSample", since=20)
def grid_sample_20(
    x: AtLeast3, grid: AtLeast3, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros",
):  # fmt: skip
    """Opset 20 renames the modes and adds dimensions."""
    modes = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
    if mode not in modes:
        raise ModelError(f"GridSample has the mode {mode!r}", code="ML227")
    return _grid_sample(x, grid, align_corners, modes[mode], padding_mode)


def _grid_sample(x: Value, grid: Value, align_corners: int, mode: str, padding_mode: str):
    rank = x.rank if x.rank is not None else grid.rank
    if rank is None:
        raise UnsupportedError("GridSample of tensors of unknown rank", code="ML314")
    if rank == 4:
        return ops.GridSample(x, grid, align_corners=bool(align_corners), mode=mode, padding_mode=padding_mode)
    if mode == "bicubic":
        raise UnsupportedError("cubic GridSample of other tensors than images", code="ML316")
    return sampled_at(x, grid, bool(align_corners), mode == "nearest", padding_mode)


@translates("AffineGrid", since=20)
def affine_grid(theta: Rank3, size: Vector | Integers, *, align_corners: int = 0):
    """The grid that GridSample reads."""
    return affine(theta, size, bool(align_corners))


@translates("DeformConv", since=19, without="auto_pad")
def deform_conv(
    x: AtLeast3,
    w: AtLeast3,
    offset: AtLeast3,
    b: Vector = None,
    mask=None,
    *,
    offset_group: Positive = 1,
    given: ConvolutionAttributes,
):
    """Samples near the border are interpolated with the zeros outside."""
    if spatial_rank(x, w, given.kernel_shape) != 2:
        raise UnsupportedError("DeformConv of other tensors than images", code="ML316")
    at = given.over(2)
    y = ops.DeformableConvolution(
        x, offset, w, mask, dilations=at.dilations, group=given.group, deformable_group=offset_group,
        bilinear_interpolation_pad=True, **at.attributes(),
    )  # fmt: skip
    return biased(y, b, 2)


@translates("Col2Im", since=18, without="auto_pad")
def col_2_im(
    columns,
    image_shape: Vector | Integers,
    block_shape: Vector | Integers,
    *,
    given: WindowAttributes,
):
    """Images by an operation of their own, anything else as a transposed convolution whose filters are unit vectors,
    or added up place by place where shapes are known only at run time. The runtime computes only the sizes of images
    there before 2026.0, and crashes."""
    blocks, sizes = block_shape.type.integers, image_shape.type.integers
    if image_shape.shape == (2,) and blocks is not None and sizes is not None:
        at = given.over(2)
        return ops.Col2Im(
            columns, image_shape, block_shape, strides=at.strides, dilations=at.dilations, pads_begin=at.begin,
            pads_end=at.end,
        )  # fmt: skip
    if blocks is None or sizes is None:
        lengths = (vector_length(each.type) for each in (image_shape, block_shape))
        count = next((length for length in lengths if length is not None), None)
        if count is None:
            raise UnsupportedError("Col2Im of an unknown number of dimensions", code="ML314")
        at = given.over(count)
        return scattered_images(columns, image_shape, block_shape, at)
    if len(sizes) != len(blocks):
        raise ModelError(f"Col2Im has {len(sizes)} sizes of the image and {len(blocks)} of the blocks", code="ML227")
    at = given.over(len(blocks))
    reach = at.reach(blocks)
    spans = [size + begin + end - r for size, begin, end, r in zip(sizes, at.begin, at.end, reach, strict=True)]
    counts = [span // stride + 1 for span, stride in zip(spans, at.strides, strict=True)]
    elements = math.prod(blocks)
    unit = unit_matrix(elements, columns.dtype.numpy).reshape(elements, 1, *blocks)
    images = ops.Reshape(columns, [-1, elements, *counts])
    added = ops.ConvolutionBackpropData(
        images, ops.Constant(unit, graph=columns.graph, dtype=columns.dtype), dilations=at.dilations,
        output_padding=tuple(span % stride for span, stride in zip(spans, at.strides, strict=True)), **at.attributes(),
    )  # fmt: skip
    batch = ops.Gather(ops.ShapeOf(columns), [0], 0)
    rest = ops.Constant(np.array([-1, *sizes]), graph=columns.graph)
    return ops.Reshape(added, ops.Concat(batch, rest, axis=0))
