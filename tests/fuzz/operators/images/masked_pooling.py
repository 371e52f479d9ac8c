"""Windows that end at a masked element."""

import numpy as np

from tests.fuzz.operators.draw import Draw, Node
from tests.fuzz.operators.images.convolution import large_enough, padding, window


def masked(d: Draw) -> Node:
    """MaxpoolWithMask: one mask for all channels, or several, which the kernel counts in a way of its own."""
    dtype, spatial = d.dtype("T"), d.pick(1, 2, 2, 3)
    w = window(d, spatial)
    shape = [d.integer(1, 3), d.integer(1, 3), *large_enough(d, w["kernel"], [1] * spatial)]
    mask = d.pick([1, 1], [1, 1], [1, shape[1]], shape[:2]) + shape[2:]
    numbers = (d.values.random(mask) > 0.3).astype(np.int32)
    return d.node([d.data(shape, dtype), d.given(numbers, 0.3)], kernel_shape=w["kernel"],
                  strides=d.maybe(w["strides"]), **padding(d, w["kernel"], 0.3))


OPERATORS = {"com.microsoft::MaxpoolWithMask": masked}
