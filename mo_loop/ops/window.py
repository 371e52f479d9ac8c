"""Base of operations with a sliding window: attributes, and the number of positions of the window.

    span   = (kernel - 1) * dilation + 1                                     elements that a window covers
    places = floor((size + begin + end - span) / stride) + 1                 or ceil, by an attribute
"""

from collections.abc import Sequence
from typing import Literal

from mo_loop.graph.dimension import Dimension, fresh, high, low
from mo_loop.ops.base import Op

AutoPad = Literal["explicit", "same_upper", "same_lower", "valid"]
"""The padding of a window: the given pads, pads so that places = ceil(size / stride), or none."""


def span(kernel: Dimension, dilation: int) -> Dimension:
    """The number of elements that a window covers."""
    return (kernel - 1) * dilation + 1


def places(size: Dimension, reach: Dimension, stride: int, begin: int, end: int, rounding: str = "floor") -> Dimension:
    """The number of positions of a window of `reach` elements; `ceil_torch` drops a last one in the padding."""
    extent = size + (begin + end) - reach
    if rounding == "floor":
        return _at_least(_floor(extent, stride) + 1, 0)
    count = _floor(extent + (stride - 1), stride) + 1
    if rounding == "ceil_torch" and isinstance(count, int) and isinstance(size, int):
        return count - 1 if (count - 1) * stride >= size + begin else count
    if rounding == "ceil_torch" and not isinstance(count, int):
        return fresh(max(low(count) - 1, 0), high(count))
    return _at_least(count, 0)


def _floor(dim: Dimension, stride: int) -> Dimension:
    return dim // stride


def _at_least(dim: Dimension, least: int) -> Dimension:
    return max(dim, least) if isinstance(dim, int) else dim


class Windowed(Op, abstract=True):
    """An operation whose window slides over the dimensions after batch and channel."""

    strides: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]
    auto_pad: AutoPad = "explicit"

    def windows(
        self, sizes: Sequence[Dimension], kernel: Sequence[Dimension], dilations: Sequence[int], rounding: str = "floor"
    ) -> tuple[Dimension, ...]:
        """The spatial dimensions of the result."""
        count = len(kernel)
        lists = (self.strides, self.pads_begin, self.pads_end, dilations)
        self.require(len(sizes) == count, f"{len(sizes)} spatial dimensions, but a window of {count}")
        self.require(all(len(each) == count for each in lists), f"not one stride, pad and dilation for each of {count}")
        self.require(min((*self.strides, *dilations), default=1) > 0, "strides and dilations are positive")
        result = []
        for size, length, stride, begin, end, dilation in zip(
            sizes, kernel, self.strides, self.pads_begin, self.pads_end, dilations, strict=True
        ):
            if self.auto_pad in ("same_upper", "same_lower"):
                result.append(_floor(size + (stride - 1), stride))
                continue
            if self.auto_pad == "valid":
                begin = end = 0
            made = places(size, span(length, dilation), stride, begin, end, rounding)
            self.require(not isinstance(made, int) or made > 0 or size == 0, f"a window of {length} exceeds {size}")
            result.append(made)
        return tuple(result)

    def spatial(self, x, count: int) -> tuple[Dimension, ...]:
        """The dimensions of x that the window slides over; unknown ones for an unknown rank."""
        if x.shape is None:
            return tuple(fresh() for _ in range(count))
        self.require(len(x.shape) == count + 2, f"a tensor of rank {len(x.shape)} for a window of {count} dimensions")
        dims: tuple[Dimension, ...] = x.shape[2:]
        return dims
