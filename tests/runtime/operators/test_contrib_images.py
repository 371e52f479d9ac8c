"""Pooling of images whose channels are last."""

import numpy as np
import pytest

from tests.harness import check_node


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
