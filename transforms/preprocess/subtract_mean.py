"""--mean-values."""

from __future__ import annotations

from mo_loop import ops
from transforms.preprocess.channel_values import ChannelValues


class SubtractMean(ChannelValues):
    """x  ->  x - mean"""

    operation = ops.Subtract
    neutral = 0.0
    step = "mean_values"
