"""Boxes, regions and grids."""

import numpy as np
import pytest

from tests.harness import check, check_node, every, parsed

BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, 0.9, 0, -0.1], [0, 10, 1, 11], [0, 100, 1, 101]]], np.float32)
REGIONS = np.array([[0, 0, 9, 9], [0, 5, 4, 9], [1.2, 2.3, 1.4, 2.4], [-1, -1, 13, 11], [3.3, 2.2, 8.8, 7.7]],
                   np.float32)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@every(dynamic=(False, True), center=(0, 1))
@pytest.mark.parametrize(("limit", "iou", "least"),
                         ((None, None, None), (0, 0.5, None), (2, None, 0.4), (100, 0.5, 0.4)))
def test_non_max_suppression(limit, iou, least, center, dynamic):
    inputs = {"boxes": BOXES, "scores": np.random.default_rng(3).random((1, 3, 5)).astype(np.float32),
              "limit": None if limit is None else np.array([limit]),
              "iou": None if iou is None else np.array([iou], np.float32),
              "least": None if least is None else np.array([least], np.float32)}
    check_node("NonMaxSuppression", inputs, {"center_point_box": center}, opset=11, dynamic=dynamic)


@pytest.mark.parametrize("constants", ((), ("iou",)))
def test_an_overlap_as_large_as_the_threshold_is_none(constants):
    inputs = {"boxes": np.array([[[0, 0, 1, 1], [0, 0, 0.5, 1]]], np.float32),
              "scores": np.array([[[0.9, 0.8]]], np.float32), "limit": np.array([5]),
              "iou": np.array([0.5], np.float32)}
    check_node("NonMaxSuppression", inputs, opset=11, constants=constants)


def test_boxes_of_constants():
    """A result of unknown size that is computed from constants alone did not compile."""
    check(parsed("""main (float[1] x) => (float[?,3] y) <
          float[1,2,4] boxes = {0,0,1,1,0,10,1,11}, float[1,1,2] scores = {0.9,0.8}, int64 limit = {2}> {
          i = NonMaxSuppression (boxes, scores, limit)  numbers = Cast <to = 1> (i)  y = Add (numbers, x) }"""),
          {"x": normal(1)}, {"x": 2 * normal(1)})


@pytest.mark.parametrize("dynamic", (False, True))
@pytest.mark.parametrize(("mode", "samples"), (("avg", 0), ("avg", 2), ("max", 1), ("max", 2)))
@pytest.mark.parametrize("coordinates", (None, "half_pixel", "output_half_pixel"))
def test_roi_align(coordinates, mode, samples, dynamic):
    inputs = {"x": normal(2, 3, 10, 12), "rois": REGIONS * 2, "images": np.array([0, 1, 0, 1, 0])}
    attributes = {"mode": mode, "sampling_ratio": samples, "spatial_scale": 0.5, "output_height": 3, "output_width": 4}
    if coordinates is not None:
        attributes["coordinate_transformation_mode"] = coordinates
    check_node("RoiAlign", inputs, attributes, opset=10 if coordinates is None else 16, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", (False, True))
def test_max_roi_pool(dynamic):
    rois = np.array([[0, 0, 0, 3, 3], [1, 1, 1, 4, 5], [1, 2, 2, 2, 2]], np.float32)
    inputs = {"x": normal(2, 3, 5, 6), "rois": rois}
    check_node("MaxRoiPool", inputs, {"pooled_shape": [3, 2]}, opset=11, dynamic=dynamic)


@every(align_corners=(0, 1), padding=("zeros", "border", "reflection"), mode=("bilinear", "nearest", "bicubic"))
def test_grid_sample_of_images(mode, padding, align_corners):
    inputs = {"x": normal(2, 3, 5, 6), "grid": normal(2, 4, 7, 2) * 1.2}
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": align_corners}
    check_node("GridSample", inputs, attributes, opset=16, dynamic=True)


@every(align_corners=(0, 1), padding=("zeros", "border", "reflection"), mode=("linear", "nearest"))
def test_grid_sample_of_volumes(mode, padding, align_corners):
    inputs = {"x": normal(2, 3, 4, 5, 6), "grid": normal(2, 3, 4, 7, 3) * 1.2}
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": align_corners}
    check_node("GridSample", inputs, attributes, opset=20, dynamic=align_corners == 1)


@every(constants=((), ("size",)), align_corners=(0, 1), size=((2, 3, 5, 6), (2, 3, 4, 5, 6)))
def test_affine_grid(size, align_corners, constants):
    count = len(size) - 2
    inputs = {"theta": normal(2, count, count + 1), "size": np.array(size)}
    check_node("AffineGrid", inputs, {"align_corners": align_corners}, opset=20, constants=constants)


def test_affine_grid_of_a_map_of_unknown_size():
    inputs = {"theta": normal(2, 3, 4), "size": np.array((2, 3, 4, 5, 6))}
    check_node("AffineGrid", inputs, opset=20, dynamic=("theta",))


def test_largest_of_regions_in_16_bits():
    inputs = {"x": normal(1, 2, 5, 6).astype(np.float16), "rois": REGIONS[:2].astype(np.float16),
              "images": np.zeros(2, int)}
    check_node("RoiAlign", inputs, {"mode": "max", "sampling_ratio": 2, "output_height": 2}, opset=16, dynamic=True)


def test_largest_of_no_regions():
    inputs = {"x": normal(1, 3, 5, 6), "rois": np.zeros((0, 4), np.float32), "images": np.zeros(0, int)}
    attributes = {"mode": "max", "sampling_ratio": 2, "output_height": 2}
    check_node("RoiAlign", inputs, attributes, opset=16, dynamic=("x",))
