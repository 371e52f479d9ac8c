"""Detection and sampling operators: NonMaxSuppression, RoiAlign, GridSample, DeformConv, Col2Im and others.

Col2Im works for any number of dimensions and for shapes known only at run time. In each dimension, the element at
position b of block l belongs to position l * stride + b * dilation of the padded image. Elements with the same position
are summed, and the pads are removed.

RoiAlign with mode max consists of simple operations: ONNX computes the maximum of the weighted corners of all samples,
the runtime that of the interpolated samples.
"""

import math
from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.ops.images.convolution import (
    ConvolutionAttributes,
    Window,
    WindowAttributes,
    biased,
    spatial_rank,
)
from mo_loop.frontend.ops.images.sampling import sampled_at
from mo_loop.frontend.ops.linear import array_of
from mo_loop.frontend.ops.shared import counted, first_numbers, known_size, number, require_choice, unit_matrix
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32, i32
from mo_loop.ops.exact import quotient
from mo_loop.ops.infer import vector_length
from mo_loop.ops.lengths import as_i64, joined, scalar, vector
from mo_loop.ops.ranges import AtLeast3, Integers, Matrix, NotNegative, One, Positive, Positives, Rank3, Rank4, Vector
from mo_loop.target import CRASH, Gap


def scattered_images(columns: Value, image_shape: Value, block_shape: Value, at: Window) -> Value:
    """[N, C, image...] of columns [N, C * block elements, windows]."""
    count = at.count
    sizes, blocks = ([ops.Gather(as_i64(each), i, 0) for i in range(count)] for each in (image_shape, block_shape))
    padded = [size + (low + high) for size, low, high in zip(sizes, at.begin, at.end, strict=True)]
    place: Any = None
    for axis in range(count):
        reach = (blocks[axis] - 1) * at.dilations[axis]
        windows = (padded[axis] - 1 - reach) // at.strides[axis] + 1
        steps = counted(windows, windows) * at.strides[axis]
        offsets = counted(blocks[axis], blocks[axis]) * at.dilations[axis]
        here = _along(offsets, axis, 2 * count) + _along(steps, count + axis, 2 * count)
        place = here if place is None else place * padded[axis] + here
    places = place.reshape([1, 1, -1])
    batch = columns.sizes[:1]
    of_block = ops.Unsqueeze(reduce(lambda a, b: a * b, blocks), 0)
    rows = ops.Concat(batch, columns.sizes[1:2] // of_block, axis=0)
    values = ops.Reshape(columns, ops.Concat(rows, places.sizes[2:3], axis=0))
    area = ops.Unsqueeze(reduce(lambda a, b: a * b, padded), 0)
    empty = ops.Broadcast(number(columns, 0), ops.Concat(rows, area, axis=0))
    flat = ops.ScatterElementsUpdate12(empty, ops.Broadcast(places, values.sizes), values, 2, reduction="sum")
    whole = ops.Reshape(flat, ops.Concat(rows, *(ops.Unsqueeze(each, 0) for each in padded), axis=0))
    first = np.array(at.begin, np.int64)
    return ops.Slice(whole, first, as_i64(image_shape) + first, [1] * count, list(range(2, 2 + count)))


def _along(numbers, axis: int, rank: int) -> Value:
    """A vector reshaped to a rank, with its elements along one axis."""
    return ops.Unsqueeze(numbers, [other for other in range(rank) if other != axis])


def largest_corners(
    x: Value, rois: Value, images: Value, cells: tuple[int, int], samples: int, scale: float, shifted: bool
) -> Value:
    """[R, C, h, w] from x [N, C, H, W], regions [R, 4] and images [R], with samples * samples in each cell. In f32."""
    dtype = x.dtype
    x, rois = x.astype(f32), rois.astype(f32)
    shape = x.sizes
    sizes = [ops.Gather(shape, axis, 0) for axis in (2, 3)]
    pixels = ops.Reshape(ops.Transpose(x, [0, 2, 3, 1]), ops.Concat(joined([-1], x), ops.Gather(shape, [1], 0), axis=0))
    sides = []
    for axis, (size, count) in enumerate(zip(sizes, cells, strict=True)):
        at = _places(rois, 1 - axis, count, samples, scale, shifted)
        sides.append(_corners(at, size.astype(f32)))
    image = images.astype(i32)[:, None, None]
    height, width = (size.astype(i32) for size in sizes)
    best: Any = None
    for row, row_weight in sides[0]:
        for column, column_weight in sides[1]:
            index = (image * height + row[:, :, None]) * width + column[:, None]
            weight = row_weight[:, :, None] * column_weight[:, None]
            value = ops.Gather(pixels, index, 0) * ops.Unsqueeze(weight, [3])  # [R, h * s, w * s, C]
            best = value if best is None else ops.Maximum(best, value)
    # Not -1 for the channels, which is ambiguous if there are no regions.
    pattern = ops.Concat(joined([0, cells[0], samples, cells[1], samples], x), ops.Gather(shape, [1], 0), axis=0)
    grouped = ops.Reshape(best, pattern, special_zero=True)
    return ops.Transpose(ops.ReduceMax(grouped, [2, 4], keep_dims=False), [0, 3, 1, 2]).astype(dtype)


def _places(rois: Value, first: int, count: int, samples: int, scale: float, shifted: bool) -> Value:
    """[R, count * samples]: coordinates of the samples along one axis."""
    offset = 0.5 if shifted else 0.0
    start, end = (ops.Gather(rois, [column], 1) * scale - offset for column in (first, first + 2))
    length: Any = end - start
    if not shifted:
        length = ops.Maximum(length, 1.0)
    fractions = (first_numbers(count * samples, np.float32) + np.float32(0.5)) / np.float32(samples)
    return start + quotient(length, ops.Constant(np.float32(count), graph=rois.graph)) * fractions


def _corners(at: Value, size: Value) -> list[tuple[Any, Any]]:
    """The pixels before and after each coordinate, and their weights: 0 if it is more than one pixel outside."""
    last = size - 1.0
    live = ((at >= -1.0) & (at <= size)).astype(f32)
    clipped = ops.Minimum(ops.Maximum(at, 0.0), last)
    before = ops.Floor(clipped)
    after = ops.Minimum(before + 1.0, last)
    part = clipped - before
    near, far = ops.Subtract(1.0, part, graph=at.graph) * live, part * live
    return [(before.astype(i32), near), (after.astype(i32), far)]


AVOIDS = (
    Gap(
        "col2im-of-computed-shapes", "`Col2Im` to a shape known only at run time crashes the process",
        "added up place by place", CRASH, until="2025.4.1", rule="translator of Col2Im",
    ),
)
"""The errors of the runtime that these translators avoid."""


@translates("NonMaxSuppression", since=10)
def non_max_suppression(
    boxes: Rank3, scores: Rank3, max_output_boxes_per_class: One | Integers = None, iou_threshold: One = None,
    score_threshold: One = None, *, center_point_box: int = 0,
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
        boxes = boxes.reshape([None, -1, 4])  # the runtime needs a static 4
    return ops.NonMaxSuppression(
        boxes, scores, limit, iou, least, box_encoding="center" if center_point_box else "corner",
        sort_result_descending=False,
    )[0]


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
    x: Rank4, rois: Matrix, batch_indices: Vector, *, coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg", output_height: Positive = 1, output_width: Positive = 1, sampling_ratio: NotNegative = 0,
    spatial_scale: float = 1.0,
):
    """`half_pixel` shifts the corners by half a pixel."""
    shifted = coordinate_transformation_mode == "half_pixel"
    rois, images = _columns(rois, 4), vector(batch_indices)
    if mode == "max":
        if sampling_ratio < 1:
            raise UnsupportedError(
                "RoiAlign of mode max whose number of samples depends on the size of the region", code="ML316",
                hint="give sampling_ratio a value above 0",
            )
        cells = (output_height, output_width)
        return largest_corners(x, rois, images, cells, sampling_ratio, spatial_scale, shifted)
    require_choice("mode", mode, ("avg", "max"))
    attributes: dict[str, Any] = {
        "pooled_h": output_height, "pooled_w": output_width, "sampling_ratio": sampling_ratio,
        "spatial_scale": spatial_scale, "mode": mode,
    }
    if not shifted:
        return ops.ROIAlign(x, rois, images, **attributes)
    # The names differ: the runtime's half_pixel would scale about the centres of the pixels as well.
    return ops.ROIAlign9(x, rois, images, aligned_mode="half_pixel_for_nn", **attributes)


def _columns(rois: Value, count: int) -> Value:
    """Regions whose second dimension is static, as the runtime demands."""
    if rois.shape is not None and len(rois.shape) == 2 and rois.shape[1] == count:
        return rois
    return rois.reshape([-1, count])


@translates("MaxRoiPool", since=1)
def max_roi_pool(x: Rank4, rois: Matrix, *, pooled_shape: Positives, spatial_scale: float = 1.0):
    """The largest element in each cell of a region."""
    if len(pooled_shape) != 2:
        raise ModelError(f"pooled_shape has {len(pooled_shape)} numbers, not 2", code="ML227")
    height, width = pooled_shape
    return ops.ROIPooling(x, _columns(rois, 5), pooled_h=height, pooled_w=width, spatial_scale=spatial_scale)


@translates("GridSample", since=1, domain=MICROSOFT)
@translates("GridSample", since=16)
def grid_sample_16(
    x: AtLeast3, grid: AtLeast3, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros",
):
    """Images only."""
    return _grid_sample(x, grid, align_corners, mode, padding_mode)


@translates("GridSample", since=20)
def grid_sample_20(
    x: AtLeast3, grid: AtLeast3, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros",
):
    """Opset 20 renames the modes and adds dimensions."""
    modes = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
    require_choice("mode", mode, modes)
    return _grid_sample(x, grid, align_corners, modes[mode], padding_mode)


def _grid_sample(x: Value, grid: Value, align_corners: int, mode: str, padding_mode: str):
    rank = x.rank if x.rank is not None else grid.rank
    if rank is None:
        raise UnsupportedError("the ranks of the image and of the grid are unknown", code="ML314")
    if rank == 4:
        return ops.GridSample(x, grid, align_corners=bool(align_corners), mode=mode, padding_mode=padding_mode)
    if mode == "bicubic":
        raise UnsupportedError("the mode cubic is translated for images alone, [N, C, H, W]", code="ML316")
    return sampled_at(x, grid, bool(align_corners), mode == "nearest", padding_mode)


@translates("DeformConv", since=19, without="auto_pad")
def deform_conv(
    x: AtLeast3, w: AtLeast3, offset: AtLeast3, b: Vector = None, mask=None, *, offset_group: Positive = 1,
    given: ConvolutionAttributes,
):
    """Samples near the border are interpolated with the zeros outside."""
    if spatial_rank(x, w, given.kernel_shape) != 2:
        raise UnsupportedError("it is translated for images alone, [N, C, H, W]", code="ML316")
    at = given.over(2)
    y = ops.DeformableConvolution(
        x, offset, w, mask, dilations=at.dilations, group=given.group, deformable_group=offset_group,
        bilinear_interpolation_pad=True, **at.attributes(),
    )
    return biased(y, b, 2)


@translates("Col2Im", since=18, without="auto_pad")
def col_2_im(columns, image_shape: Vector | Integers, block_shape: Vector | Integers, *, given: WindowAttributes):
    """Images by an operation of their own, anything else as a transposed convolution whose filters are unit vectors,
    or added up place by place where shapes are known only at run time. The runtime computes only the sizes of images
    there before 2026.0, and crashes."""
    blocks, sizes = block_shape.type.integers, image_shape.type.integers
    if image_shape.shape == (2,) and blocks is not None and sizes is not None:
        at = given.over(2)
        return ops.Col2Im(
            columns, image_shape, block_shape, strides=at.strides, dilations=at.dilations, pads_begin=at.begin,
            pads_end=at.end,
        )
    if blocks is None or sizes is None:
        lengths = (vector_length(each.type) for each in (image_shape, block_shape))
        count = next((length for length in lengths if length is not None), None)
        at = given.over(known_size(count, "the number of dimensions of the image"))
        return scattered_images(columns, image_shape, block_shape, at)
    if len(sizes) != len(blocks):
        raise ModelError(f"Col2Im has {len(sizes)} sizes of the image and {len(blocks)} of the blocks", code="ML227")
    at = given.over(len(blocks))
    reach = at.reach(blocks)
    spans = [size + begin + end - r for size, begin, end, r in zip(sizes, at.begin, at.end, reach, strict=True)]
    counts = [span // stride + 1 for span, stride in zip(spans, at.strides, strict=True)]
    elements = math.prod(blocks)
    unit = unit_matrix(elements, columns.dtype.numpy).reshape(elements, 1, *blocks)
    images = columns.reshape([-1, elements, *counts])
    added = ops.ConvolutionBackpropData(
        images, ops.Constant(unit, graph=columns.graph, dtype=columns.dtype), dilations=at.dilations,
        output_padding=tuple(span % stride for span, stride in zip(spans, at.strides, strict=True)), **at.attributes(),
    )
    return ops.Reshape(added, ops.Concat(ops.Gather(columns.sizes, [0], 0), [-1, *sizes], axis=0))
