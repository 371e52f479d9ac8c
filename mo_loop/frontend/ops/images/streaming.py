"""Operators for streams, whose state is an input and an output."""

import numpy as np

from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.ops.images.convolution import biased
from mo_loop.frontend.vocabulary import ModelError, ops, translates
from mo_loop.ops.lengths import dimension, joined


@translates("CausalConvWithState", since=27)
def causal_conv_with_state(input, weight, bias=None, past_state=None, *, activation: str = "none"):
    """A causal convolution of each channel of [N, C, L] with its kernel [C, 1, K]; the state has K - 1 elements."""
    if activation not in ("none", "silu", "swish"):
        raise ModelError(f"activation {activation!r}: ONNX defines none, silu and swish", code="ML227")
    size = dimension(weight, 2)
    reach = size - 1
    if past_state is None:
        before = joined([0, 0, reach], input)
        whole = ops.Pad(input, before, np.zeros(3, np.int64), number(input, 0))
    else:
        whole = ops.Concat(past_state, input, axis=2)
    product = ops.GroupConvolution(
        whole, ops.Unsqueeze(weight, 1), strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,)
    )
    y = biased(product, bias, 1)
    # Counted from the end: an input may be shorter than the state.
    length = ops.Gather(ops.ShapeOf(whole), [2], 0)
    kept = ops.Slice(whole, length - joined([reach], input), length, [1], [2])
    return [y if activation == "none" else ops.Swish(y), kept]
