"""Operations of object detectors: grids of prior boxes, proposals, detections."""

import math
from functools import reduce
from typing import Literal

from mo_loop.graph import Dimension, ElementType, TensorType, f32, fresh, high, i32, i64
from mo_loop.graph.shape import merge, merge_dim
from mo_loop.ops.base import Op
from mo_loop.ops.infer import same_dtype
from mo_loop.ops.ranges import FLOATS

_SIZES = {"output_size": 1, "image_size": 1}


class PriorBox(Op, opset=8, index=("output_size", "image_size"), ranks=_SIZES):
    """Boxes around the cells of a feature map of size [H, W], for sizes and aspect ratios, and their variances: [2, 4 *
    number of boxes]. Spec: PriorBox-8."""

    min_size: tuple[float, ...] = ()
    max_size: tuple[float, ...] = ()
    aspect_ratio: tuple[float, ...] = ()
    density: tuple[float, ...] = ()
    fixed_ratio: tuple[float, ...] = ()
    fixed_size: tuple[float, ...] = ()
    clip: bool = False
    flip: bool = False
    step: float = 0.0
    offset: float
    variance: tuple[float, ...] = ()
    scale_all_sizes: bool = True
    min_max_aspect_ratios_order: bool = True

    def infer(self, output_size, image_size):
        return _grid(output_size, image_size, self._number())

    def _number(self) -> int:
        """The number of boxes around one cell."""
        self.require(0 not in self.aspect_ratio, "an aspect ratio is 0")
        self.require(all(map(math.isfinite, self.density)), f"the densities {self.density} are not finite")
        ratios = [1.0]
        for ratio in self.aspect_ratio:
            for each in (ratio, 1 / ratio) if self.flip else (ratio,):
                if all(abs(each - other) >= 1e-6 for other in ratios):
                    ratios.append(each)
        if self.fixed_size:
            count = len(ratios) * len(self.fixed_size)
        elif self.scale_all_sizes:
            count = len(ratios) * len(self.min_size) + len(self.max_size)
        else:
            count = len(ratios) + len(self.min_size) - 1
        dense = len(self.fixed_ratio) or len(ratios)
        return count + sum(dense * (int(each) ** 2 - 1) for each in self.density)


class PriorBoxClustered(Op, opset=1, index=("output_size", "image_size"), ranks=_SIZES):
    """Boxes of given widths and heights around the cells of a feature map, as PriorBox. Spec: PriorBoxClustered-1."""

    step: float = 0.0
    step_w: float = 0.0
    step_h: float = 0.0
    width: tuple[float, ...]
    height: tuple[float, ...]
    clip: bool = False
    offset: float
    variance: tuple[float, ...] = ()

    def infer(self, output_size, image_size):
        self.require(len(self.width) == len(self.height), f"{len(self.width)} widths and {len(self.height)} heights")
        return _grid(output_size, image_size, len(self.width))


def _grid(output_size, image_size, number: int):
    for each in (output_size, image_size):
        merge((2,), each.shape)
    sizes = output_size.known
    if sizes is None or output_size.shape != (2,):
        return TensorType(f32, (2, fresh()))
    cells = sizes[0] * sizes[1] if isinstance(sizes[0], int) or isinstance(sizes[1], int) else fresh()
    return TensorType(f32, (2, cells * (4 * number)))


class DetectionOutput(
    Op, opset=8, ranks={"boxes": 2, "scores": 2, "priors": 3, "more_scores": 2, "more_boxes": 2},
    types={"boxes": FLOATS, "priors": FLOATS}
):
    """The best boxes of all classes after non-maximum suppression, [1, 1, number, 7]: image, class, score, corners.
    Spec: DetectionOutput-8."""

    background_label_id: int = 0
    top_k: int = -1
    variance_encoded_in_target: bool = False
    keep_top_k: tuple[int, ...]
    code_type: Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"] = (
        "caffe.PriorBoxParameter.CORNER"
    )
    share_location: bool = True
    nms_threshold: float
    confidence_threshold: float = 0.0
    clip_after_nms: bool = False
    clip_before_nms: bool = False
    decrease_label_id: bool = False
    normalized: bool = False
    input_height: int = 1
    input_width: int = 1
    objectness_score: float = 0.0

    def infer(self, boxes, scores, priors, more_scores=None, more_boxes=None):
        same_dtype(boxes, scores)
        kept = self.keep_top_k[0]
        number: Dimension = fresh()
        if boxes.shape is not None and scores.shape is not None:
            merge_dim(boxes.shape[0], scores.shape[0])
        self._require_numbers(boxes, scores, priors)
        if kept > 0 and boxes.shape is not None:
            number = boxes.shape[0] * kept
        return TensorType(boxes.dtype, (1, 1, number, 7))

    def _require_numbers(self, boxes, scores, priors) -> None:
        """Raise TypeError_ unless there are scores of each class, and 4 coordinates, for each prior box."""
        numbers = [fresh() if each.shape is None else each.shape[-1] for each in (boxes, scores, priors)]
        size, (coordinates, chances, parts) = (4 if self.normalized else 5), numbers
        if not isinstance(parts, int):
            return
        count = parts // size
        self.require(parts % size == 0 and count > 0, f"{parts} numbers are not whole boxes of {size}")
        if isinstance(chances, int):
            self.require(chances % count == 0, f"{chances} scores are not the same number for each of {count} boxes")
            merge_dim(coordinates, 4 * (count if self.share_location else chances))


class GenerateProposals(Op, opset=9, ranks={"images": 2, "anchors": 4, "deltas": 4, "scores": 4}):
    """The best boxes of all images: corners, scores, and how many each image has. Spec: GenerateProposals-9."""

    min_size: float
    nms_threshold: float
    pre_nms_count: int
    post_nms_count: int
    normalized: bool = True
    nms_eta: float = 1.0
    roi_num_type: ElementType = i64

    def infer(self, images, anchors, deltas, scores):
        dtype = same_dtype(images, anchors, deltas, scores)
        batch, count, *sizes = (fresh(), fresh(), fresh(), fresh()) if scores.shape is None else scores.shape
        merge((batch, fresh(3, 4)), images.shape)
        merge((*sizes, count, 4), anchors.shape)
        merge((batch, count * 4, *sizes), deltas.shape)
        most = high(batch)
        number = fresh(0, None if most is None else most * self.post_nms_count)
        return (TensorType(dtype, (number, 4)), TensorType(dtype, (number,)), TensorType(self.roi_num_type, (batch,)))


class ExperimentalDetectronDetectionOutput(Op, opset=6, types={"regions": FLOATS}):
    """Corners, classes and scores of the detections of one image. Spec: ExperimentalDetectronDetectionOutput-6."""

    score_threshold: float
    nms_threshold: float
    max_delta_log_wh: float
    num_classes: int
    post_nms_count: int
    max_detections_per_image: int
    class_agnostic_box_regression: bool = False
    deltas_weights: tuple[float, ...]

    def infer(self, regions, deltas, scores, image):
        same_dtype(regions, deltas, scores, image)
        count, number = self.max_detections_per_image, fresh()
        shapes = ((regions, 4), (deltas, 4 * self.num_classes), (scores, self.num_classes))
        for each, length in shapes:
            number = (merge((number, length), each.shape) or (number,))[0]
        merge((1, 3), image.shape)
        return TensorType(regions.dtype, (count, 4)), TensorType(i32, (count,)), TensorType(regions.dtype, (count,))


class ExperimentalDetectronGenerateProposalsSingleImage(
    Op, opset=6, ranks={"image": 1, "anchors": 2, "deltas": 3, "scores": 3}, types={"image": FLOATS}
):
    """Corners and scores of the best boxes of one image. Spec: ExperimentalDetectronGenerateProposalsSingleImage-6."""

    min_size: float
    nms_threshold: float
    post_nms_count: int
    pre_nms_count: int

    def infer(self, image, anchors, deltas, scores):
        same_dtype(image, anchors, deltas, scores)
        count = self.post_nms_count
        sizes = (fresh(), fresh()) if scores.shape is None else scores.shape[1:]
        merge((fresh(), *sizes), deltas.shape)
        merge((fresh(), 4), anchors.shape)
        merge((3,), image.shape)
        return TensorType(scores.dtype, (count, 4)), TensorType(scores.dtype, (count,))


class ExperimentalDetectronPriorGridGenerator(
    Op, opset=6, ranks={"priors": 2, "features": 4, "image": 4}, types={"priors": FLOATS}
):
    """Prior boxes [P, 4] moved to each cell of a feature map: [H, W, P, 4], or [H * W * P, 4] with `flatten`.
    Spec: ExperimentalDetectronPriorGridGenerator-6."""

    flatten: bool = True
    h: int = 0
    w: int = 0
    stride_x: float = 0.0
    stride_y: float = 0.0

    def infer(self, priors, features, image):
        same_dtype(priors, features, image)
        merge((fresh(), 4), priors.shape)
        if features.shape is not None and image.shape is not None:
            merge_dim(features.shape[0], image.shape[0])
        if priors.shape is None or features.shape is None:
            return TensorType(priors.dtype, (fresh(), 4) if self.flatten else (fresh(), fresh(), fresh(), 4))
        height, width, count = features.shape[2], features.shape[3], priors.shape[0]
        if not self.flatten:
            return TensorType(priors.dtype, (height, width, count, 4))
        static = all(isinstance(each, int) for each in (height, width, count))
        return TensorType(priors.dtype, (height * width * count if static else fresh(), 4))


class ExperimentalDetectronROIFeatureExtractor(Op, opset=6, ranks={"regions": 2}, types={"regions": FLOATS}):
    """Features [R, C, size, size] of regions [R, 4], each from the level of a pyramid that fits its size, and the
    regions. Spec: ExperimentalDetectronROIFeatureExtractor-6."""

    output_size: int
    sampling_ratio: int
    pyramid_scales: tuple[int, ...]
    aligned: bool = False

    def infer(self, regions, *features):
        same_dtype(regions, *features)
        count = (merge((fresh(), 4), regions.shape) or (fresh(),))[0]
        self.require(all(each.rank in (None, 4) for each in features), "features have another rank than 4")
        for each in features:
            if each.shape is not None:
                merge_dim(each.shape[0], 1)
        channels = [each.shape[1] for each in features if each.shape is not None] or [fresh()]
        found = (count, reduce(merge_dim, channels), self.output_size, self.output_size)
        return TensorType(regions.dtype, found), TensorType(regions.dtype, (count, 4))


class ExperimentalDetectronTopKROIs(Op, opset=6, ranks={"regions": 2, "probabilities": 1}, types={"regions": FLOATS}):
    """The regions of the highest probabilities. Spec: ExperimentalDetectronTopKROIs-6."""

    max_rois: int

    def infer(self, regions, probabilities):
        same_dtype(regions, probabilities)
        merge((fresh() if probabilities.shape is None else probabilities.shape[0], 4), regions.shape)
        return TensorType(regions.dtype, (self.max_rois, 4))
