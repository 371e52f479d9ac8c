"""Convolutions and transposed convolutions, with and without groups."""

from typing import ClassVar

from mo_loop.graph.dimension import Dimension, fresh
from mo_loop.graph.shape import merge_dim
from mo_loop.graph.types import TensorType
from mo_loop.ops.element_kinds import NUMBERS
from mo_loop.ops.infer import same_dtype
from mo_loop.ops.window import Windowed, span


class Filtered(Windowed, abstract=True, keeps_axes=True):
    """A window with filters; those of groups have the number of groups as their first dimension."""

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
        self.require(len(filters.shape) >= 2 + self._in_groups, f"filters {filters}")
        *groups, first, second = filters.shape[: 2 + self._in_groups]
        outputs, channels = (first, second) if self._outputs_first else (second, first)
        if groups:
            outputs, channels = groups[0] * outputs, groups[0] * channels
        kernel = list(filters.shape[2 + self._in_groups :])
        self.require(0 not in kernel, f"an empty filter, of size {kernel}")
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
        self.require(asked.known.shape == (len(kernel),), f"output_shape {asked} for {len(kernel)} dimensions")
        return tuple(asked.known.reshape(-1))

    def _grown(self, sizes: tuple[Dimension, ...], kernel: list[Dimension]) -> tuple[Dimension, ...]:
        lists = (self.strides, self.dilations, self.pads_begin, self.pads_end, self.output_padding)
        fits = all(len(each) == len(kernel) for each in lists)
        self.require(fits, f"not one stride, pad and dilation for each of {len(kernel)}")
        pads = zip(self.pads_begin, self.pads_end, self.output_padding, strict=True)
        explicit = self.auto_pad == "explicit"
        return tuple(
            (size - 1) * stride + span(length, dilation) + extra - (begin + end if explicit else 0)
            for size, length, stride, dilation, (begin, end, extra) in zip(
                sizes, kernel, self.strides, self.dilations, pads, strict=True
            )
        )


class GroupConvolutionBackpropData(ConvolutionBackpropData, opset=1, index=("output_shape",)):
    """The transpose of a group convolution: filters [G, C/G, O/G, K...]. Spec: GroupConvolutionBackpropData-1."""

    _in_groups = True
