"""Pooling of images whose channels are last, and regions."""

import numpy as np
import pytest

from tests.harness import check_node, every


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_padding_is_smaller_than_all_integers(kind):
    """The least integer is the largest of a window that reaches into the padding; 0 would be larger for int8."""
    x = np.full((1, 3, 3, 2), np.iinfo(kind).min, kind)
    x[0, 1, 1] = [5, 6]
    attributes = {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    (y,) = check_node("com.microsoft::NhwcMaxPool", {"x": x}, attributes, opset=1, dynamic=True)
    least = np.iinfo(kind).min
    assert y[0, ..., 0].tolist() == [[least, least], [least, 5]]
    assert y[0, ..., 1].tolist() == [[least, least], [least, 6]]


@every(mode=["nearest", "bilinear"], dynamic=[False, True], seed=[0, 1, 2, 3])
def test_places_of_a_crop_are_rounded_as_by_onnx_runtime(mode, dynamic, seed):
    """At halves, at borders, and for one row: the last place is computed from the end alone."""
    rng = np.random.default_rng(seed)
    height, width = (int(each) for each in rng.integers(1, 12, 2))
    x, rois = rng.standard_normal((2, 2, height, width)), np.round(rng.uniform(-0.1, 1.1, (400, 4)) * 20) / 20
    inputs = {"x": x.astype(np.float32), "rois": rois.astype(np.float32),
              "images": rng.integers(0, 2, 400).astype(np.int32), "size": rng.integers(1, 8, 2).astype(np.int32)}
    check_node("com.microsoft::CropAndResize", inputs, {"mode": mode, "extrapolation_value": -7.0}, opset=1,
               dynamic=dynamic)
