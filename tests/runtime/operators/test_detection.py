"""Boxes, regions and grids."""

import numpy as np
import pytest

from tests.cases import read_cases
from tests.harness import check, check_node, parsed

BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, 0.9, 0, -0.1], [0, 10, 1, 11], [0, 100, 1, 101]]], np.float32)
REGIONS = np.array([[0, 0, 9, 9], [0, 5, 4, 9], [1.2, 2.3, 1.4, 2.4], [-1, -1, 13, 11], [3.3, 2.2, 8.8, 7.7]],
                   np.float32)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


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


read_cases(globals())
