"""Operations with a sliding window: convolutions and transposed convolutions, with and without groups, and pooling, the
maximum or the mean of each window.

    span   = (kernel - 1) * dilation + 1                                     elements that a window covers
    places = floor((size + begin + end - span) / stride) + 1                 or ceil, by an attribute
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from mo_loop.graph import Dimension, ElementType, TensorType, fresh, high, i64, low
from mo_loop.graph.shape import merge_dim
from mo_loop.ops.base import Op
from mo_loop.ops.infer import same_dtype
from mo_loop.ops.ranges import NUMBERS

AutoPad = Literal["explicit", "same_upper", "same_lower", "valid"]
"""The padding of a window: the given pads, pads so that places = ceil(size / stride), or none."""


def span(kernel: Dimension, dilation: int) -> Dimension:
    """The number of elements that a window covers."""
    return (kernel - 1) * dilation + 1


def places(size: Dimension, reach: Dimension, stride: int, begin: int, end: int, rounding: str = "floor") -> Dimension:
    """The number of positions of a window of `reach` elements; `ceil_torch`: not one that starts in the padding."""
    extent = size + (begin + end) - reach
    if rounding == "floor":
        return _at_least(extent // stride + 1, 0)
    count = (extent + (stride - 1)) // stride + 1
    if rounding == "ceil_torch" and isinstance(count, int) and isinstance(size, int):
        return count - 1 if (count - 1) * stride >= size + begin else count
    if rounding == "ceil_torch" and not isinstance(count, int):
        return fresh(max(low(count) - 1, 0), high(count))
    return _at_least(count, 0)


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
        self.require(len(sizes) == count, f"the input has {len(sizes)} spatial dimensions, the window {count}")
        self.require(all(len(each) == count for each in lists), f"a list of the window is not of {count} dimensions")
        self.require(min((*self.strides, *dilations), default=1) > 0, "a stride or dilation is below 1")
        result = []
        for size, length, stride, begin, end, dilation in zip(
            sizes, kernel, self.strides, self.pads_begin, self.pads_end, dilations, strict=True
        ):
            if self.auto_pad in ("same_upper", "same_lower"):
                result.append((size + (stride - 1)) // stride)
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
        self.require(len(x.shape) == count + 2, f"the input has rank {len(x.shape)}, not {count + 2}")
        return x.shape[2:]


class Filtered(Windowed, abstract=True, keeps_axes=True):
    """Base of convolutions; filters of groups have the number of groups as their first dimension."""

    dilations: tuple[int, ...]

    _in_groups: ClassVar[bool] = False
    _outputs_first: ClassVar[bool] = True
    """Whether the output channels of the filters come before their input channels."""

    def axis_map(self, port):
        return tuple(None if axis == 1 else axis for axis in super().axis_map(port))

    def _result(self, x, filters, asked=None):
        dtype = same_dtype(x, filters)
        if filters.shape is None:
            return TensorType(dtype, None if x.shape is None else (x.shape[0], *(fresh() for _ in x.shape[1:])))
        self.require(len(filters.shape) >= 2 + self._in_groups, f"the filters are {filters}, whose rank is too small")
        *groups, first, second = filters.shape[: 2 + self._in_groups]
        outputs, channels = (first, second) if self._outputs_first else (second, first)
        if groups:
            outputs, channels = groups[0] * outputs, groups[0] * channels
        kernel = list(filters.shape[2 + self._in_groups :])
        self.require(0 not in kernel, f"a filter of size {kernel} is empty")
        sizes = self.spatial(x, len(kernel))
        batch = fresh() if x.shape is None else x.shape[0]
        if x.shape is not None:
            merge_dim(x.shape[1], channels)  # raises if the shapes do not fit
        return TensorType(dtype, (batch, outputs, *self._places(sizes, kernel, asked)))

    def _places(self, sizes: tuple[Dimension, ...], kernel: list[Dimension], asked) -> tuple[Dimension, ...]:
        """The spatial dimensions of the result; `asked` are those that are given."""
        raise NotImplementedError


class Convolution(Filtered, opset=1, types={"x": NUMBERS}):
    """Correlation of x [N, C, D...] with filters [O, C, K...]. Spec: Convolution-1."""

    def infer(self, x, filters):
        return self._result(x, filters)

    def _places(self, sizes, kernel, asked):
        return self.windows(sizes, kernel, self.dilations)


class GroupConvolution(Convolution, opset=1):
    """Convolution of each group of channels with separate filters [G, O/G, C/G, K...]. Spec: GroupConvolution-1."""

    _in_groups = True


class ConvolutionBackpropData(Filtered, opset=1, index=("output_shape",), types={"x": NUMBERS}):
    """The transpose of a convolution: x [N, C, D...], filters [C, O, K...].

    `output_shape` gives the spatial dimensions, from which the pads then follow. Spec: ConvolutionBackpropData-1.
    """

    output_padding: tuple[int, ...]

    _outputs_first = False

    def infer(self, x, filters, output_shape=None):
        return self._result(x, filters, output_shape)

    def _places(self, sizes, kernel, asked):
        if asked is None:
            return self._grown(sizes, kernel)
        if asked.known is None:
            return tuple(fresh() for _ in kernel)
        self.require(asked.known.shape == (len(kernel),), f"output_shape is {asked}, not {len(kernel)} sizes")
        return tuple(asked.known.reshape(-1))

    def _grown(self, sizes: tuple[Dimension, ...], kernel: list[Dimension]) -> tuple[Dimension, ...]:
        lists = (self.strides, self.dilations, self.pads_begin, self.pads_end, self.output_padding)
        fits = all(len(each) == len(kernel) for each in lists)
        self.require(fits, f"strides, pads and dilations need numbers for {len(kernel)} dimensions")
        pads = zip(self.pads_begin, self.pads_end, self.output_padding, strict=True)
        explicit = self.auto_pad == "explicit"
        return tuple(
            (size - 1) * stride + span(length, dilation) + extra - (begin + end if explicit else 0)
            for size, length, stride, dilation, (begin, end, extra) in zip(
                sizes, kernel, self.strides, self.dilations, pads, strict=True
            )
        )


class GroupConvolutionBackpropData(ConvolutionBackpropData, opset=1):
    """The transpose of a group convolution: filters [G, C/G, O/G, K...]. Spec: GroupConvolutionBackpropData-1."""

    _in_groups = True


Rounding = Literal["floor", "ceil", "ceil_torch"]
"""`ceil_torch`, of opset 14, drops a last window that starts in the padding."""


class Pooling(Windowed, abstract=True, keeps_axes=True):
    """Base of windows over each channel of x [N, C, D...]."""

    kernel: tuple[int, ...]

    def pooled(self, x, rounding: str, dilations: tuple[int, ...] = ()) -> TensorType:
        """The type of the result."""
        sizes = self.spatial(x, len(self.kernel))
        made = self.windows(sizes, self.kernel, dilations or (1,) * len(self.kernel), rounding)
        return TensorType(x.dtype, (*((fresh(), fresh()) if x.shape is None else x.shape[:2]), *made))


class MaxPool(Pooling, opset=1):
    """The largest element of each window. Spec: MaxPool-1."""

    rounding_type: Rounding = "floor"

    def infer(self, x):
        return self.pooled(x, self.rounding_type)


class MaxPool8(Pooling, opset=8, type="MaxPool"):
    """The largest elements, and their positions in x flattened from dimension `axis` on. Spec: MaxPool-8."""

    dilations: tuple[int, ...]
    rounding_type: Rounding = "floor"
    index_element_type: ElementType = i64
    axis: int = 0

    def infer(self, x):
        made = self.pooled(x, self.rounding_type, self.dilations)
        return made, made.with_dtype(self.index_element_type)


class MaxPool14(MaxPool8, opset=14, type="MaxPool"):
    """MaxPool with a rounding mode that drops a last window that starts in the padding. Spec: MaxPool-14."""


class AvgPool(Pooling, opset=1):
    """The mean of each window, with or without the padding in it. Spec: AvgPool-1."""

    exclude_pad: bool
    rounding_type: Rounding = "floor"

    def infer(self, x):
        return self.pooled(x, self.rounding_type)

    def xml_attributes(self) -> dict[str, Any]:
        return {key.replace("exclude_pad", "exclude-pad"): value for key, value in self.attribute_values().items()}

    @classmethod
    def from_xml(cls, data: dict[str, str]) -> dict[str, str]:
        return {key.replace("exclude-pad", "exclude_pad"): text for key, text in data.items()}


class AvgPool14(AvgPool, opset=14, type="AvgPool"):
    """AvgPool with a rounding mode that drops a last window that starts in the padding. Spec: AvgPool-14."""
