"""The domain org.openvinotoolkit: the numbers and attributes of OpenVINO's own front end."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from mo_loop.api import convert_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.errors import MoLoopError
from tests.harness import check, node_model

RNG = np.random.default_rng(11)
DOMAIN = "org.openvinotoolkit"


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def corners(*shape: int, size: float = 32.0) -> Any:
    """Boxes [..., 4] with ordered corners."""
    first = RNG.random((*shape, 2)) * size * 0.6
    return np.concatenate([first, first + RNG.random((*shape, 2)) * size * 0.35 + 2], axis=-1).astype(np.float32)


def shares(*shape: int) -> Any:
    """Positive scores; those of the last dimension add up to 1."""
    values = RNG.random(shape).astype(np.float32) + 0.01
    return values / values.sum(-1, keepdims=True)


IMAGE, DATA = np.zeros((1, 3, 32, 40), np.float32), floats(2, 4, 6, 5)
GRID = {"x": floats(1, 3, 4, 5), "image": IMAGE}
PRIORS = (corners(16) / 32).reshape(1, 1, 64)
DETECTED = {"boxes": floats(2, 64) * 0.1, "scores": shares(2, 16, 3).reshape(2, 48),
            "priors": np.concatenate([PRIORS, np.full_like(PRIORS, 0.1)], axis=1)}
PROPOSED = {"s": RNG.random((2, 3, 4, 5)).astype(np.float32), "d": floats(2, 12, 4, 5) * 0.1}
SIZES = np.array([[32, 40, 1], [32, 40, 1]], np.float32)
SINGLE = {"i": SIZES[0], "a": corners(60), "d": floats(12, 4, 5) * 0.1, "s": RNG.random((3, 4, 5)).astype(np.float32)}
DETECTRON = {"r": corners(10), "d": floats(10, 12), "s": shares(10, 3), "i": SIZES[:1]}
OUTPUT = {"num_classes": 3, "post_nms_count": 20, "max_detections_per_image": 8}
RANGE = {"a": np.float32([-1]), "b": np.float32([1.5]), "c": np.float32([-0.5]), "d": np.float32([2])}
CHANNELS = {"s": floats(4), "b": floats(4)}
DEFORMED = {"x": floats(1, 4, 8, 7), "o": floats(1, 36, 8, 7), "w": floats(6, 4, 3, 3)}

CASES: dict[str, tuple[str, dict[str, Any], int, dict[str, Any], str]] = {
    "FakeQuantize": ("FakeQuantize", {"x": DATA, **RANGE}, 1, {"levels": 16}, "FakeQuantize"),
    "Normalize": ("Normalize", {"x": DATA, "w": floats(4)}, 1, {"eps": 1e-6}, "NormalizeL2"),
    "Normalize of all": ("Normalize", {"x": DATA, "w": floats(1)}, 1,
                         {"eps": 1e-6, "across_spatial": 1, "channel_shared": 1}, "NormalizeL2"),
    "Swish": ("Swish", {"x": DATA}, 1, {}, ""),
    "Swish with beta": ("Swish", {"x": DATA, "beta": np.float32([1.5])}, 1, {}, ""),
    "GroupNorm": ("GroupNorm", {"x": DATA, **CHANNELS}, 1, {"num_groups": 2}, ""),
    "GroupNorm of Detectron": ("ExperimentalDetectronGroupNorm", {"x": DATA, **CHANNELS}, 1,
                               {"num_groups": 2, "eps": 0.1}, ""),
    "DeformableConv2D": ("DeformableConv2D", DEFORMED, 1, {"deformable_groups": 2, "pads": [1, 1, 1, 1]},
                         "DeformableConvolution"),
    "DeformableConv2D with a mask": ("DeformableConv2D",
                                     {**DEFORMED, "o": floats(1, 18, 8, 7), "m": floats(1, 9, 8, 7)}, 1,
                                     {"auto_pad": "SAME_UPPER"}, ""),
    "PriorBox": (
        "PriorBox", GRID, 1,
        {"min_size": [8.0, 3.0], "max_size": [16.0], "aspect_ratio": [2.0, 1.0], "flip": 1, "step": 8.0, "offset": 0.5,
         "variance": [0.1, 0.1, 0.2, 0.2]}, "PriorBox",
    ),
    "PriorBox in another order": (
        "PriorBox", GRID, 1,
        {"min_size": [8.0, 3.0], "max_size": [16.0, 9.0], "aspect_ratio": [2.0], "clip": 1, "scale_all_sizes": 0,
         "min_max_aspect_ratios_order": 0}, "PriorBox",
    ),
    "PriorBox of densities": (
        "PriorBox", GRID, 1,
        {"fixed_size": [8.0], "fixed_ratio": [1.0, 2.0], "density": [2.0], "variance": [0.1], "offset": 0.5},
        "PriorBox",
    ),
    "PriorBoxClustered": ("PriorBoxClustered", GRID, 1,
                          {"width": [8.0, 4.0], "height": [16.0, 3.0], "step_w": 8.0, "step_h": 9.0, "clip": 1},
                          "PriorBoxClustered"),
    "DetectionOutput": ("DetectionOutput", DETECTED, 1,
                        {"num_classes": 3, "nms_threshold": 0.4, "keep_top_k": 9, "confidence_threshold": 0.1},
                        "DetectionOutput"),
    "DetectionOutput by centers": (
        "DetectionOutput", DETECTED, 1,
        {"nms_threshold": 0.3, "keep_top_k": -1, "top_k": 6, "background_label_id": 1, "clip_after_nms": 1,
         "code_type": "caffe.PriorBoxParameter.CENTER_SIZE"}, "DetectionOutput",
    ),
    "GenerateProposals": ("GenerateProposals", {**PROPOSED, "i": SIZES, "a": corners(3) - 16}, 3,
                          {"post_nms_topN": 7, "pre_nms_topN": 30, "nms_thresh": 0.6}, "GenerateProposals"),
    "GenerateProposals without the added one": ("GenerateProposals", {**PROPOSED, "i": SIZES, "a": corners(3) - 16}, 3,
                                                {"legacy_plus_one": 0}, "GenerateProposals"),
    "proposals of one image": ("ExperimentalDetectronGenerateProposalsSingleImage", SINGLE, 2,
                               {"post_nms_count": 9, "pre_nms_count": 40},
                               "ExperimentalDetectronGenerateProposalsSingleImage"),
    "prior grid": ("ExperimentalDetectronPriorGridGenerator", {"p": corners(3), **GRID}, 1, {},
                   "ExperimentalDetectronPriorGridGenerator"),
    "prior grid of rank 4": ("ExperimentalDetectronPriorGridGenerator", {"p": corners(3), **GRID}, 1,
                             {"flatten": 0, "stride_x": 4.0}, ""),
    "features of regions": ("ExperimentalDetectronROIFeatureExtractor",
                            {"r": corners(5), "a": floats(1, 8, 16, 16), "b": floats(1, 8, 8, 8)}, 2,
                            {"output_size": 3, "pyramid_scales": [2, 4], "aligned": 1},
                            "ExperimentalDetectronROIFeatureExtractor"),
    "best regions": ("ExperimentalDetectronTopKROIs", {"r": corners(10), "p": RNG.random(10).astype(np.float32)}, 1,
                     {"max_rois": 4}, "ExperimentalDetectronTopKROIs"),
    "output of Detectron": ("ExperimentalDetectronDetectionOutput", DETECTRON, 3, OUTPUT,
                            "ExperimentalDetectronDetectionOutput"),
}


def by_openvino(model: bytes, feeds: Mapping[str, Any], kind: str) -> tuple[list[Any], dict[str, Any]]:
    """The outputs of the model that OpenVINO's front end reads, and the attributes of its operation of a type."""
    import openvino

    core = openvino.Core()
    read = core.read_model(io.BytesIO(model))
    found = next((dict(each.get_attributes()) for each in read.get_ops() if each.get_type_name() == kind), {})
    results = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(dict(feeds))
    return [np.array(each) for each in results.values()], found


DYNAMIC = ("Normalize", "GroupNorm", "PriorBox", "PriorBoxClustered", "DetectionOutput", "GenerateProposals")


@pytest.mark.parametrize(("case", "dynamic"), [*((each, False) for each in CASES), *((each, True) for each in DYNAMIC)])
def test_as_openvinos_front_end(case: str, dynamic: bool) -> None:
    op, inputs, outputs, attributes, kind = CASES[case]
    constants = ["w"] if op == "Normalize" else []
    free = ["x", "scores", "boxes", "s", "d"] if dynamic and op != "GroupNorm" else ["x"] if dynamic else False
    model = node_model(f"{DOMAIN}::{op}", inputs, attributes, opset=1, outputs=outputs, constants=constants,
                       dynamic=free)
    feeds = {name: value for name, value in inputs.items() if name not in constants}
    fixed = node_model(f"{DOMAIN}::{op}", inputs, attributes, opset=1, outputs=outputs, constants=constants)
    arrays, theirs = isolated(by_openvino, fixed.SerializeToString(), feeds, kind)
    check(model, feeds, expected=[[(f"out{place}", array) for place, array in enumerate(arrays)]])
    ours = next((each for each in convert_model(model).graph.ordered() if each.type == kind), None)
    assert (ours is not None) == bool(kind)
    for name, value in theirs.items() if ours is not None else ():
        own = getattr(ours, name)
        if isinstance(value, float | list):
            assert np.allclose(own, value), name
        elif not isinstance(value, dict):
            assert str(own) == str(value), name


def test_prior_boxes_in_another_order_need_known_sizes() -> None:
    """The runtime does not compile them otherwise."""
    op, inputs, _, attributes, _ = CASES["PriorBox in another order"]
    with pytest.raises(MoLoopError, match="the runtime compiles min_max_aspect_ratios_order = 0 for known sizes only"):
        convert_model(node_model(f"{DOMAIN}::{op}", inputs, attributes, opset=1, dynamic=["x"]))
