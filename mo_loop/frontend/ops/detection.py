"""NonMaxSuppression, RoiAlign, MaxRoiPool, GridSample, DeformConv and Col2Im."""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.errors import ModelError, UnsupportedError
from mo_loop.frontend.ops.convolution import biased, spatial_rank
from mo_loop.frontend.ops.grid import sampled_at
from mo_loop.frontend.ops.shared import scalar
from mo_loop.frontend.ops.windows import window
from mo_loop.frontend.registry import translates
from mo_loop.graph import Value
from mo_loop.ops.base import Constant

Ints = tuple[int, ...]


@translates("NonMaxSuppression", since=10)
def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_boxes_per_class: Any = None,
    iou_threshold: Any = None,
    score_threshold: Any = None,
    *,
    center_point_box: int = 0,
) -> Any:
    """An absent limit means none at all; an absent least score lets every box pass."""
    limit = Constant(np.int64(0), graph=boxes.graph).output
    if max_output_boxes_per_class is not None:
        limit = scalar(max_output_boxes_per_class)
    iou = Constant(np.float32(0), graph=boxes.graph).output if iou_threshold is None else scalar(iou_threshold)
    least = Constant(np.finfo(np.float32).min, graph=boxes.graph).output
    if score_threshold is not None:
        least = scalar(score_threshold)
    return ops.NonMaxSuppression(
        boxes, scores, limit, iou, least, box_encoding="center" if center_point_box else "corner",
        sort_result_descending=False,
    ).outputs[0]  # fmt: skip


@translates("RoiAlign", since=10)
def roi_align_10(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    """Corners as they are given."""
    return ops.ROIAlign(
        x, rois, batch_indices, pooled_h=output_height, pooled_w=output_width, sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale, mode=_pooling(mode),
    )  # fmt: skip


@translates("RoiAlign", since=16)
def roi_align_16(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:
    """Opset 16 shifts the corners by half a pixel."""
    attributes: dict[str, Any] = {
        "pooled_h": output_height, "pooled_w": output_width, "sampling_ratio": sampling_ratio,
        "spatial_scale": spatial_scale, "mode": _pooling(mode),
    }  # fmt: skip
    if coordinate_transformation_mode == "output_half_pixel":
        return ops.ROIAlign(x, rois, batch_indices, **attributes)
    return ops.ROIAlign9(x, rois, batch_indices, aligned_mode="half_pixel_for_nn", **attributes)


def _pooling(mode: str) -> str:
    if mode not in ("avg", "max"):
        raise ModelError(f"RoiAlign has the mode {mode!r}", code="ML227")
    return mode


@translates("MaxRoiPool", since=1)
def max_roi_pool(x: Any, rois: Any, *, pooled_shape: Ints, spatial_scale: float = 1.0) -> Any:
    """The largest element in each cell of a region."""
    return ops.ROIPooling(x, rois, pooled_h=pooled_shape[0], pooled_w=pooled_shape[1], spatial_scale=spatial_scale)


@translates("GridSample", since=16)
def grid_sample_16(
    x: Any, grid: Any, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Any:
    """Images only."""
    return _grid_sample(x, grid, align_corners, mode, padding_mode)


@translates("GridSample", since=20)
def grid_sample_20(
    x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Any:
    """Opset 20 renames the modes, and knows more dimensions."""
    modes = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
    if mode not in modes:
        raise ModelError(f"GridSample has the mode {mode!r}", code="ML227")
    return _grid_sample(x, grid, align_corners, modes[mode], padding_mode)


def _grid_sample(x: Value, grid: Value, align_corners: int, mode: str, padding_mode: str) -> Any:
    rank = x.rank if x.rank is not None else grid.rank
    if rank is None:
        raise UnsupportedError("GridSample of tensors of unknown rank", code="ML314")
    if rank == 4:
        return ops.GridSample(x, grid, align_corners=bool(align_corners), mode=mode, padding_mode=padding_mode)
    if mode == "bicubic":
        raise UnsupportedError("cubic GridSample of other tensors than images", code="ML303")
    return sampled_at(x, grid, bool(align_corners), mode == "nearest", padding_mode)


@translates("DeformConv", since=19)
def deform_conv(
    x: Any,
    w: Any,
    offset: Any,
    b: Any = None,
    mask: Any = None,
    *,
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    offset_group: int = 1,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """Samples near the border are interpolated with the zeros outside."""
    count = spatial_rank(x, w, kernel_shape)
    if count != 2:
        raise UnsupportedError("DeformConv of other tensors than images", code="ML303")
    at = window(count, strides=strides, pads=pads, dilations=dilations)
    y = ops.DeformableConvolution(
        x, offset, w, mask, dilations=at.dilations, group=group, deformable_group=offset_group,
        bilinear_interpolation_pad=True, **at.attributes(),
    ).output  # fmt: skip
    return biased(y, b, count)


@translates("Col2Im", since=18)
def col_2_im(
    columns: Any,
    image_shape: Any,
    block_shape: Any,
    *,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """Images only."""
    if image_shape.shape != (2,):
        raise UnsupportedError("Col2Im of other tensors than images", code="ML303")
    at = window(2, strides=strides, pads=pads, dilations=dilations)
    return ops.Col2Im(
        columns, image_shape, block_shape, strides=at.strides, dilations=at.dilations, pads_begin=at.begin,
        pads_end=at.end,
    )  # fmt: skip


