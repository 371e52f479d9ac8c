"""Operators on images: regions resized to one size, transposed convolutions whose pads are an input, windows."""

from typing import Any

from mo_loop.frontend.ops.elementwise.arithmetic import as_type, number
from mo_loop.frontend.ops.images.channels import channels_first, channels_last
from mo_loop.frontend.ops.images.convolution import ConvolutionAttributes, biased, conv_transpose
from mo_loop.frontend.ops.images.pooling import max_pool
from mo_loop.frontend.ops.images.windows import WindowAttributes
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32
from mo_loop.ops.exact import quotient_of_integer
from mo_loop.ops.lengths import as_i64, as_value, dimension, joined
from mo_loop.ops.ranges import AtLeast3, Integers, Matrix, NotNegatives, Positive, Positives, Rank4, Vector

Ints = tuple[int, ...]


# -- regions


@translates("CropAndResize", since=1, domain=MICROSOFT)
def crop_and_resize(
    x: Rank4, rois: Matrix, batch_indices: Vector | Integers, crop_size: Vector | Integers, *,
    extrapolation_value: float = 0.0, mode: str = "bilinear",
):  # fmt: skip
    """Each region [y1, x1, y2, x2], where 1 is the last row or column, read at evenly spaced positions from one corner
    to the other; a single position lies in the middle. Positions outside of the image have `extrapolation_value`."""
    if mode not in ("bilinear", "nearest"):
        raise ModelError(f"mode {mode!r}: the operator supports bilinear and nearest", code="ML227")
    height, width = (as_value(dimension(x, axis), x.graph) for axis in (2, 3))
    rows = _positions(rois, 0, height, ops.Gather(crop_size, 0, 0))
    columns = _positions(rois, 1, width, ops.Gather(crop_size, 1, 0))
    table = ops.Reshape(ops.Transpose(x, [0, 2, 3, 1]), joined([-1, dimension(x, 1)], x))
    first = as_i64(batch_indices) * height  # the row of each image in the table

    def read(row: Value, column: Value) -> Any:
        """The channels [R, h, w, C] at rows [R, h] and columns [R, w]."""
        line = (ops.Unsqueeze(first, 1) + _index(row, height)) * width
        return ops.Gather(table, ops.Unsqueeze(line, 2) + ops.Unsqueeze(_index(column, width), 1), 0)

    if mode == "nearest":
        y = read(*map(_nearest, (rows, columns)))
    else:
        above, left = ops.Floor(rows), ops.Floor(columns)
        below, right = ops.Ceiling(rows), ops.Ceiling(columns)
        down = as_type(ops.Unsqueeze(rows - above, [2, 3]), x.dtype)
        across = as_type(ops.Unsqueeze(columns - left, [1, 3]), x.dtype)
        top, bottom = (_between(read(line, left), read(line, right), across) for line in (above, below))
        y = _between(top, bottom, down)
    is_inside = ops.Unsqueeze(_is_inside(rows, height), [2, 3]) & ops.Unsqueeze(_is_inside(columns, width), [1, 3])
    return ops.Transpose(ops.Select(is_inside, y, number(x, extrapolation_value)), [0, 3, 1, 2])


def _positions(rois: Value, column: int, size: Value, count: Value) -> Value:
    """Positions [R, count] along one dimension of `size` elements, in f32, rounded as ONNX Runtime does: the last bit
    decides whether a position is inside, and which element is the nearest. The last one is that of the end."""
    start, end = (as_type(ops.Gather(rois, [at], 1), f32) for at in (column, column + 2))  # [R, 1]
    last = as_type(size, f32) - 1.0
    is_one = count <= 1
    gaps = ops.Maximum(as_type(count, f32) - 1.0, 1.0)
    step = quotient_of_integer((end - start) * last, gaps)
    middle = (start + end) * 0.5 * last
    first, final = (ops.Select(is_one, middle, corner * last) for corner in (start, end))
    numbers = ops.Unsqueeze(as_type(counted(as_i64(count), count), f32), 0)
    return ops.Select(numbers < gaps, first + numbers * step, final)


def _nearest(position: Value) -> Value:
    """The nearest whole number, of two the larger one. The runtime's Round adds 0.5, which makes 0.49999997 to 1."""
    below = ops.Floor(position)
    return ops.Select(position - below >= 0.5, below + 1.0, below)


def _index(position: Value, size: Value) -> Value:
    """A whole position as an index inside of the image."""
    return ops.Maximum(ops.Minimum(as_i64(position), size - 1), 0)


def _is_inside(position: Value, size: Value) -> Value:
    last = as_type(size, f32) - 1.0
    return (position >= 0.0) & (position <= last)


def _between(a: Any, b: Any, share: Value) -> Any:
    return a + (b - a) * share


# -- pads


@translates("ConvTransposeWithDynamicPads", since=1, domain=MICROSOFT)
def conv_transpose_with_dynamic_pads(
    x: AtLeast3, w: AtLeast3, pads: Vector = None, b: Vector = None,
    *, auto_pad: str = "NOTSET", dilations: Positives | None = None, group: Positive = 1,
    kernel_shape: Positives | None = None,
    output_padding: NotNegatives | None = None, strides: Positives | None = None,
):  # fmt: skip
    """ConvTranspose whose pads are an input: they are cut off the result without pads."""
    if pads is None:
        raise ModelError("ConvTransposeWithDynamicPads needs the input Pads", code="ML227")
    if auto_pad not in ("NOTSET", "", "VALID"):
        raise UnsupportedError(
            f"ConvTransposeWithDynamicPads with auto_pad {auto_pad}", code="ML316", hint="use ConvTranspose instead"
        )
    given = ConvolutionAttributes(dilations=dilations, strides=strides, group=group, kernel_shape=kernel_shape)
    count = given.at(x, w).count
    whole = conv_transpose(x, w, output_padding=output_padding, given=given)
    begin, end = ops.Split(pads, 0, num_splits=2)
    sizes = ops.Slice(ops.ShapeOf(whole), [2], [2 + count], [1], [0])
    axes = list(range(2, 2 + count))
    cut = ops.Slice(whole, begin, sizes - end, [1] * count, axes)
    return biased(cut, b, count)


# -- windows of images whose channels are last


@translates("NhwcMaxPool", since=1, domain=MICROSOFT)
def nhwc_max_pool(
    x, *, ceil_mode: int = 0, kernel_shape: Positives, given: WindowAttributes, node: Context
):
    """MaxPool of integers of 8 bits."""
    y, _ = max_pool(channels_first(x), ceil_mode=ceil_mode, kernel_shape=kernel_shape, given=given, node=node)
    return channels_last(y)
