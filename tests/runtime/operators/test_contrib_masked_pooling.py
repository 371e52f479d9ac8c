"""MaxpoolWithMask: a window's row ends at its first masked element."""

import numpy as np
import pytest

from tests.harness import check_node

X = np.array([[[3, 1, 4, 1, 5, 9, 2, np.nan]]], np.float32)
MASK = np.array([[[1, 1, 0, 1, 1, 1, 1, 1]]], np.int32)
LOWEST = np.finfo(np.float32).min
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


@dynamic_or_not
def test_rows_end_at_the_mask(dynamic) -> None:
    """A window that starts at a masked element is empty, for any following elements; NaN is never the largest."""
    (y,) = check_node("com.microsoft::MaxpoolWithMask", {"x": X, "mask": MASK}, {"kernel_shape": [3]}, opset=1,
                      dynamic=dynamic)
    assert y.ravel().tolist() == [3, 1, LOWEST, 9, 9, 9]


@dynamic_or_not
def test_rows_of_images_end_alone(dynamic) -> None:
    """Each row of a window ends at its own masked element; of the first element of an image the mask is not read."""
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    mask = np.array([[[[0, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]]]], np.int32)
    attributes = {"kernel_shape": [2, 2], "strides": [1, 2], "pads": [0, 0, 1, 0]}
    inputs = {"x": x, "mask": mask}
    (y,) = check_node("com.microsoft::MaxpoolWithMask", inputs, attributes, opset=1, dynamic=dynamic)
    assert y[0, 0].tolist() == [[5, 3], [5, 11], [LOWEST, 11]]


@dynamic_or_not
def test_masks_of_channels(dynamic) -> None:
    """The kernel of ONNX Runtime takes the mask of a channel from its first element modulo the number of masks on."""
    rng = np.random.default_rng(3)
    x, mask = rng.standard_normal((2, 3, 7)).astype(np.float32), (rng.random((1, 3, 7)) > 0.3).astype(np.int32)
    check_node("com.microsoft::MaxpoolWithMask", {"x": x, "mask": mask}, {"kernel_shape": [3]}, opset=1,
               dynamic=dynamic)
