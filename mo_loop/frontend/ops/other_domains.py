"""The domains org.openvinotoolkit and ai.onnx.preview.training.

The first has operations of OpenVINO, in models that were exported for it. The form of each operator is the one that
OpenVINO's own front end gives it. The second has steps of an optimiser. X are the tensors, G their gradients, V and H
the accumulated values; G' = norm_coefficient * X + G and r is the learning rate at update T.

    Adagrad     H' = H + G'^2                  X' = X - r G' / (sqrt(H') + epsilon)
    Adam        V' = alpha V + (1 - alpha) G'   H' = beta H + (1 - beta) G'^2
                X' = (1 - norm_coefficient_post) (X - r V' / (sqrt(H') + epsilon))
    Momentum    V' = alpha V + beta G'         X' = X - r V'        or, Nesterov's, X - r (G' + alpha V')
"""

from collections.abc import Sequence
from typing import Any

from mo_loop.frontend.ops.images.convolution import WindowAttributes
from mo_loop.frontend.ops.normalisation import group_normalization_21
from mo_loop.frontend.ops.shared import constant_like, integers, ranked, require_choice
from mo_loop.frontend.vocabulary import ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import ElementType
from mo_loop.ops.lengths import joined, scalar
from mo_loop.ops.ranges import Floats, Matrix, NotNegative, Positive, Positives, Rank4

OPENVINO = "org.openvinotoolkit"


@translates("FakeQuantize", since=1, domain=OPENVINO)
def fake_quantize(x, input_low, input_high, output_low, output_high, *, levels: int):
    """x clamped to a range and rounded to `levels` values."""
    return ops.FakeQuantize(x, input_low, input_high, output_low, output_high, levels=levels)


@translates("Normalize", since=1, domain=OPENVINO)
def normalize(x, weights, *, across_spatial: int = 0, channel_shared: int = 0, eps: float = 0.0):
    """x divided by its norm over the channels, or over all dimensions but the first; times one weight or one for each
    channel."""
    rank = ranked(x)
    normal = ops.NormalizeL2(x, list(range(1, rank)) if across_spatial else [1], eps=eps)
    shaped = weights if channel_shared else weights.reshape([1, -1, *[1] * (rank - 2)])
    return normal * shaped


@translates("Swish", since=1, domain=OPENVINO)
def swish(x, beta=None):
    """x * sigmoid(beta * x), beta of one element."""
    return ops.Swish(x, None if beta is None else scalar(beta))


@translates("ExperimentalDetectronGroupNorm", since=1, domain=OPENVINO)
@translates("GroupNorm", since=1, domain=OPENVINO)
def group_norm(x, scale, bias, *, eps: float = 1e-6, num_groups: Positive):
    """GroupNormalization with one scale and bias for each channel."""
    return group_normalization_21(x, scale, bias, epsilon=eps, num_groups=num_groups)


@translates("DeformableConv2D", since=1, domain=OPENVINO, ignored="kernel_shape")
def deformable_conv(
    x: Rank4, offset: Rank4, w: Rank4, mask: Rank4 = None, *, deformable_groups: Positive = 1, group: Positive = 1,
    kernel_shape: Positives | None = None, given: WindowAttributes,
):
    """Samples near the border are not interpolated with zeros outside, as DeformConv of ONNX does."""
    at = given.over(2)
    return ops.DeformableConvolution(
        x, offset, w, mask, dilations=at.dilations, group=group, deformable_group=deformable_groups, **at.attributes()
    )


@translates("PriorBox", since=1, domain=OPENVINO)
def prior_box(
    x, image, *, aspect_ratio: Floats = (), clip: int = 0, density: Floats = (), fixed_ratio: Floats = (),
    fixed_size: Floats = (), flip: int = 0, max_size: Floats = (), min_max_aspect_ratios_order: int = 1,
    min_size: Floats = (), offset: float = 0.0, scale_all_sizes: int = 1, step: float = 0.0, variance: Floats = (),
):
    """Boxes for the places of a feature map, [1, 2, 4 * number]."""
    places, pixels = _sizes(x), _sizes(image)
    if not min_max_aspect_ratios_order and None in (integers(places), integers(pixels)):
        raise UnsupportedError(
            "the runtime compiles min_max_aspect_ratios_order = 0 for known sizes only", code="ML316",
            hint="give the shapes of the images (--input)",
        )
    boxes = ops.PriorBox(
        places, pixels, aspect_ratio=aspect_ratio, clip=clip, density=density, fixed_ratio=fixed_ratio,
        fixed_size=fixed_size, flip=flip, max_size=max_size, min_max_aspect_ratios_order=min_max_aspect_ratios_order,
        min_size=min_size, offset=offset, scale_all_sizes=scale_all_sizes, step=step, variance=variance,
    )
    return boxes[None]


@translates("PriorBoxClustered", since=1, domain=OPENVINO)
def prior_box_clustered(
    x, image, *, clip: int = 0, height: Floats, offset: float = 0.0, step: float = 0.0, step_h: float = 0.0,
    step_w: float = 0.0, variance: Floats = (), width: Floats,
):
    """As PriorBox, with widths and heights."""
    boxes = ops.PriorBoxClustered(
        _sizes(x), _sizes(image), clip=clip, height=height, offset=offset, step=step, step_h=step_h, step_w=step_w,
        variance=variance or (0.1,), width=width,
    )
    return boxes[None]


def _sizes(x: Value) -> Value:
    """The height and width of [N, C, H, W]."""
    return x.sizes[2:4]


@translates("ExperimentalDetectronPriorGridGenerator", since=1, domain=OPENVINO)
def prior_grid(
    priors: Matrix, features: Rank4, image: Rank4, *, flatten: int = 1, h: int = 0, stride_x: float = 0.0,
    stride_y: float = 0.0, w: int = 0,
):
    """Prior boxes moved to the places of a feature map."""
    return ops.ExperimentalDetectronPriorGridGenerator(
        priors, features, image, flatten=flatten, h=h, w=w, stride_x=stride_x, stride_y=stride_y
    )


@translates("GenerateProposals", since=1, domain=OPENVINO)
def generate_proposals(
    scores, deltas, image, anchors, *, legacy_plus_one: int = 1, min_size: float = 1.0, nms_thresh: float = 0.7,
    post_nms_topN: NotNegative = 300, pre_nms_topN: NotNegative = 6000,
):
    """The anchors [A, 4] are those of every place of the scores [N, A, H, W]."""
    if anchors.rank not in (None, 2):
        raise ModelError(f"the anchors have rank {anchors.rank}, not 2", code="ML227")
    ranked(scores, "the scores")
    sizes = [scores.size(2), scores.size(3), scores.size(1), 4]
    return ops.GenerateProposals(
        image, ops.Broadcast(anchors, joined(sizes, scores)), deltas, scores, min_size=min_size,
        nms_threshold=nms_thresh, post_nms_count=post_nms_topN, pre_nms_count=pre_nms_topN,
        normalized=not legacy_plus_one,
    )


@translates("ExperimentalDetectronGenerateProposalsSingleImage", since=1, domain=OPENVINO)
def single_proposals(
    image, anchors, deltas, scores, *, min_size: float = 0.0, nms_threshold: float = 0.7,
    post_nms_count: NotNegative = 1000, pre_nms_count: NotNegative = 1000,
):
    """The best boxes of one image."""
    return ops.ExperimentalDetectronGenerateProposalsSingleImage(
        image, anchors, deltas, scores, min_size=min_size, nms_threshold=nms_threshold, post_nms_count=post_nms_count,
        pre_nms_count=pre_nms_count,
    )


@translates("ExperimentalDetectronTopKROIs", since=1, domain=OPENVINO)
def top_regions(regions, probabilities, *, max_rois: NotNegative = 1000):
    """The regions of the highest probabilities."""
    return ops.ExperimentalDetectronTopKROIs(regions, probabilities, max_rois=max_rois)


@translates("ExperimentalDetectronROIFeatureExtractor", since=1, domain=OPENVINO)
def region_features(
    regions, *features, aligned: int = 0, output_size: Positive = 7, pyramid_scales: Positives = (4, 8, 16, 32, 64),
    sampling_ratio: NotNegative = 2,
):
    """The features of regions, from a pyramid."""
    return ops.ExperimentalDetectronROIFeatureExtractor(
        regions, *features, aligned=aligned, output_size=output_size, pyramid_scales=pyramid_scales,
        sampling_ratio=sampling_ratio,
    )


@translates("ExperimentalDetectronDetectionOutput", since=1, domain=OPENVINO)
def detectron_output(
    regions, deltas, scores, image, *, class_agnostic_box_regression: int = 0,
    deltas_weights: Floats = (10.0, 10.0, 5.0, 5.0), max_delta_log_wh: float = 4.135166645050049,
    max_detections_per_image: NotNegative = 100, nms_threshold: float = 0.5, num_classes: Positive = 81,
    post_nms_count: NotNegative = 2000, score_threshold: float = 0.05,
):
    """The detections of one image."""
    return ops.ExperimentalDetectronDetectionOutput(
        regions, deltas, scores, image, class_agnostic_box_regression=class_agnostic_box_regression,
        deltas_weights=deltas_weights, max_delta_log_wh=max_delta_log_wh,
        max_detections_per_image=max_detections_per_image, nms_threshold=nms_threshold, num_classes=num_classes,
        post_nms_count=post_nms_count, score_threshold=score_threshold,
    )


@translates("DetectionOutput", since=1, domain=OPENVINO, ignored="num_classes")
def detection_output(
    boxes, scores, priors, more_scores=None, more_boxes=None, *, background_label_id: int = 0, clip_after_nms: int = 0,
    clip_before_nms: int = 0, code_type: str = "caffe.PriorBoxParameter.CORNER", confidence_threshold: float = 0.0,
    decrease_label_id: int = 0, input_height: int = 1, input_width: int = 1, keep_top_k: int = 1,
    nms_threshold: float, normalized: int = 1, num_classes: Positive | None = None, objectness_score: float = 0.0,
    share_location: int = 1, top_k: int = -1, variance_encoded_in_target: int = 0,
):
    """The number of classes follows from the shapes."""
    return ops.DetectionOutput(
        boxes, scores, priors, more_scores, more_boxes, background_label_id=background_label_id,
        clip_after_nms=clip_after_nms, clip_before_nms=clip_before_nms, code_type=code_type,
        confidence_threshold=confidence_threshold, decrease_label_id=decrease_label_id, input_height=input_height,
        input_width=input_width, keep_top_k=(keep_top_k,), nms_threshold=nms_threshold, normalized=normalized,
        objectness_score=objectness_score, share_location=share_location, top_k=top_k,
        variance_encoded_in_target=variance_encoded_in_target,
    )


DOMAIN = "ai.onnx.preview.training"


@translates("Adagrad", since=1, domain=DOMAIN)
def adagrad(r, t, *inputs, decay_factor: float = 0.0, epsilon: float = 1e-6, norm_coefficient: float = 0.0):
    """The learning rate decreases with the number of updates."""
    made: list[list[Any]] = []
    for x, g, h in _tuples("Adagrad", inputs, 3):
        rate, count = _scalars(x.dtype, r, t)
        rate = rate / (count * decay_factor + 1)
        gradient = _regularized(x, g, norm_coefficient)
        squares = h + gradient * gradient
        made.append([x - gradient / (ops.Sqrt(squares) + epsilon) * rate, squares])
    return _in_turn(made)


@translates("Adam", since=1, domain=DOMAIN)
def adam(
    r, t, *inputs, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0,
):
    """The learning rate corrects the bias of the accumulated means, whose initial value is 0."""
    made: list[list[Any]] = []
    for x, g, v, h in _tuples("Adam", inputs, 4):
        rate, count = _scalars(x.dtype, r, t)
        one = constant_like(x, 1)
        fading = [one - ops.Power(constant_like(x, each), count) for each in (alpha, beta)]
        adjusted = rate * ops.Sqrt(fading[1]) / fading[0]
        rate = ops.Select(count > 0, adjusted, rate)
        gradient = _regularized(x, g, norm_coefficient)
        mean = v * alpha + gradient * (1 - alpha)
        squares = h * beta + gradient * gradient * (1 - beta)
        new = x - mean / (ops.Sqrt(squares) + epsilon) * rate
        made.append([new * (1 - norm_coefficient_post) if norm_coefficient_post else new, mean, squares])
    return _in_turn(made)


@translates("Momentum", since=1, domain=DOMAIN)
def momentum(r, t, *inputs, alpha: float, beta: float, mode: str, norm_coefficient: float):
    """The first update does not scale the gradient by beta."""
    require_choice("mode", mode, ("standard", "nesterov"))
    made: list[list[Any]] = []
    for x, g, v in _tuples("Momentum", inputs, 3):
        rate, count = _scalars(x.dtype, r, t)
        share = ops.Select(count > 0, constant_like(x, beta), constant_like(x, 1))
        gradient = _regularized(x, g, norm_coefficient)
        new = v * alpha + gradient * share
        step: Any = new
        if mode == "nesterov":
            step = gradient + new * alpha
        made.append([x - step * rate, new])
    return _in_turn(made)


def _tuples(op: str, inputs: Sequence[Value], size: int) -> list[tuple[Value, ...]]:
    """The inputs of each tensor; in the operator all tensors come first, then all gradients, and so on."""
    count, rest = divmod(len(inputs), size)
    if rest or not count:
        raise ModelError(f"{op} has {len(inputs)} inputs after r and t, not {size} for each tensor", code="ML227")
    return [tuple(inputs[i::count]) for i in range(count)]


def _in_turn(made: Sequence[Sequence[Any]]) -> list[Any]:
    """The outputs: all new tensors, then all accumulated values of the first kind, and so on."""
    return [each for kind in zip(*made, strict=True) for each in kind]


def _scalars(dtype: ElementType, *values: Value) -> list[Value]:
    return [scalar(each.astype(dtype)) for each in values]


def _regularized(x: Value, gradient: Value, coefficient: float) -> Value:
    return x * coefficient + gradient if coefficient else gradient
