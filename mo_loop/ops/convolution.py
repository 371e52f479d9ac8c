"""Convolutions and transposed convolutions, with and without groups."""


from mo_loop.graph.dimension import Dimension, fresh
from mo_loop.graph.shape import merge_dim
from mo_loop.graph.types import TensorType
from mo_loop.ops.element_kinds import NUMBERS
from mo_loop.ops.infer import same_dtype
from mo_loop.ops.window import Windowed, span


class Convolution(Windowed, opset=1, types={"x": NUMBERS}):
    """Correlation of x [N, C, D...] with filters [O, C, K...]. Spec: Convolution-1."""

    dilations: tuple[int, ...]

    def infer(self, x, filters):
        dtype = same_dtype(x, filters)
        if filters.shape is None:
            return TensorType(dtype, None if x.shape is None else _batch_only(x))
        self.require(len(filters.shape) >= 2, f"filters {filters}")
        outputs, channels, *kernel = filters.shape
        return self._result(x, dtype, outputs, channels, kernel)

    def _result(self, x, dtype, outputs: Dimension, channels: Dimension, kernel: list[Dimension]):
        self.require(0 not in kernel, f"an empty filter, of size {kernel}")
        sizes = self.spatial(x, len(kernel))
        batch = fresh() if x.shape is None else x.shape[0]
        if x.shape is not None:
            merge_dim(x.shape[1], channels)  # raises if the shapes do not fit
        return TensorType(dtype, (batch, outputs, *self.windows(sizes, kernel, self.dilations)))


class GroupConvolution(Convolution, opset=1):
    """Convolution of each group of channels with separate filters [G, O/G, C/G, K...]. Spec: GroupConvolution-1."""

    def infer(self, x, filters):
        dtype = same_dtype(x, filters)
        if filters.shape is None:
            return TensorType(dtype, None if x.shape is None else _batch_only(x))
        self.require(len(filters.shape) >= 3, f"filters {filters}")
        groups, outputs, channels, *kernel = filters.shape
        return self._result(x, dtype, groups * outputs, groups * channels, kernel)


class ConvolutionBackpropData(Windowed, opset=1, index=("output_shape",), types={"x": NUMBERS}):
    """The transpose of a convolution: x [N, C, D...], filters [C, O, K...].

    `output_shape` gives the spatial dimensions, from which the pads then follow. Spec: ConvolutionBackpropData-1.
    """

    dilations: tuple[int, ...]
    output_padding: tuple[int, ...]

    def infer(self, x, filters, output_shape=None):
        dtype = same_dtype(x, filters)
        if filters.shape is None:
            return TensorType(dtype, None if x.shape is None else _batch_only(x))
        self.require(len(filters.shape) >= 2, f"filters {filters}")
        channels, outputs, *kernel = filters.shape
        return self._result(x, dtype, outputs, channels, kernel, output_shape)

    def _result(
        self, x, dtype, outputs: Dimension, channels: Dimension, kernel: list[Dimension], asked
    ):
        self.require(0 not in kernel, f"an empty filter, of size {kernel}")
        sizes = self.spatial(x, len(kernel))
        batch = fresh() if x.shape is None else x.shape[0]
        if x.shape is not None:
            merge_dim(x.shape[1], channels)  # raises if the shapes do not fit
        if asked is None:
            spatial = self._grown(sizes, kernel)
        elif asked.known is not None:
            self.require(asked.known.shape == (len(kernel),), f"output_shape {asked} for {len(kernel)} dimensions")
            spatial = tuple(asked.known.reshape(-1))
        else:
            spatial = tuple(fresh() for _ in kernel)
        return TensorType(dtype, (batch, outputs, *spatial))

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

    def infer(self, x, filters, output_shape=None):
        dtype = same_dtype(x, filters)
        if filters.shape is None:
            return TensorType(dtype, None if x.shape is None else _batch_only(x))
        self.require(len(filters.shape) >= 3, f"filters {filters}")
        groups, channels, outputs, *kernel = filters.shape
        return self._result(x, dtype, groups * outputs, groups * channels, kernel, output_shape)


def _batch_only(x) -> tuple[Dimension, ...]:
    return (x.shape[0], *(fresh() for _ in x.shape[1:]))
