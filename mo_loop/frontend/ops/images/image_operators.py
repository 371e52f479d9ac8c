"""Operators on images: regions resized to one size, transposed convolutions whose pads are an input, windows,
and convolutions and matrix products with what ONNX Runtime fuses into them: transpositions, sums, activations.

MaxpoolWithMask: the largest elements of windows, whose rows end at their first masked element.

x       3  1  4  1  5        kernel 3: y = 3  1  5        (a mask of 0 ends the rows of the first two windows)
mask    1  1  0  1  1
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.ops.activation import Activation
from mo_loop.frontend.ops.images.convolution import (
    ConvolutionAttributes,
    Window,
    WindowAttributes,
    biased,
    channels_first,
    channels_last,
    conv,
    conv_transpose,
)
from mo_loop.frontend.ops.images.pooling import max_pool
from mo_loop.frontend.ops.linear import gemm, matmul, scaled
from mo_loop.frontend.ops.shared import counted, number, ranked, require_choice
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph import element_count, f32, i64
from mo_loop.ops.exact import quotient_of_integer
from mo_loop.ops.lengths import FAR, as_i64, as_value, joined
from mo_loop.ops.ranges import (
    AtLeast2,
    AtLeast3,
    Fews,
    Floats,
    Integers,
    Matrix,
    NotNegatives,
    Positive,
    Positives,
    Rank4,
    Vector,
)


@translates("CropAndResize", since=1, domain=MICROSOFT)
def crop_and_resize(
    x: Rank4, rois: Matrix, batch_indices: Vector | Integers, crop_size: Vector | Integers, *,
    extrapolation_value: float = 0.0, mode: str = "bilinear",
):
    """Each region [y1, x1, y2, x2], where 1 is the last row or column, read at evenly spaced positions from one corner
    to the other; a single position lies in the middle. Positions outside of the image have `extrapolation_value`."""
    require_choice("mode", mode, ("bilinear", "nearest"))
    height, width = (as_value(x.size(axis), x.graph) for axis in (2, 3))
    rows = _positions(rois, 0, height, ops.Gather(crop_size, 0, 0))
    columns = _positions(rois, 1, width, ops.Gather(crop_size, 1, 0))
    table = ops.Transpose(x, [0, 2, 3, 1]).reshape([-1, x.size(1)])
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
        down = ops.Unsqueeze(rows - above, [2, 3]).astype(x.dtype)
        across = ops.Unsqueeze(columns - left, [1, 3]).astype(x.dtype)
        top, bottom = (_between(read(line, left), read(line, right), across) for line in (above, below))
        y = _between(top, bottom, down)
    is_inside = ops.Unsqueeze(_is_inside(rows, height), [2, 3]) & ops.Unsqueeze(_is_inside(columns, width), [1, 3])
    return ops.Transpose(ops.Select(is_inside, y, number(x, extrapolation_value)), [0, 3, 1, 2])


def _positions(rois: Value, column: int, size: Value, count: Value) -> Value:
    """Positions [R, count] along one dimension of `size` elements, in f32, rounded as ONNX Runtime does: the last bit
    decides whether a position is inside, and which element is the nearest. The last one is that of the end."""
    start, end = (ops.Gather(rois, [at], 1).astype(f32) for at in (column, column + 2))  # [R, 1]
    last = size.astype(f32) - 1.0
    is_one = count <= 1
    gaps = ops.Maximum(count.astype(f32) - 1.0, 1.0)
    step = quotient_of_integer((end - start) * last, gaps)
    middle = (start + end) * 0.5 * last
    first, final = (ops.Select(is_one, middle, corner * last) for corner in (start, end))
    numbers = ops.Unsqueeze(counted(as_i64(count), count).astype(f32), 0)
    return ops.Select(numbers < gaps, first + numbers * step, final)


def _nearest(position: Value) -> Value:
    """The nearest whole number, of two the larger one. The runtime's Round adds 0.5, which makes 0.49999997 to 1."""
    below = ops.Floor(position)
    return ops.Select(position - below >= 0.5, below + 1.0, below)


def _index(position: Value, size: Value) -> Value:
    """A whole position as an index inside of the image."""
    return ops.Maximum(ops.Minimum(as_i64(position), size - 1), 0)


def _is_inside(position: Value, size: Value) -> Value:
    last = size.astype(f32) - 1.0
    return (position >= 0.0) & (position <= last)


def _between(a: Any, b: Any, share: Value) -> Any:
    return a + (b - a) * share


@translates("ConvTransposeWithDynamicPads", since=1, domain=MICROSOFT)
def conv_transpose_with_dynamic_pads(
    x: AtLeast3, w: AtLeast3, pads: Vector = None, b: Vector = None,
    *, auto_pad: str = "NOTSET", dilations: Positives | None = None, group: Positive = 1,
    kernel_shape: Positives | None = None, output_padding: NotNegatives | None = None, strides: Positives | None = None,
):
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
    sizes = whole.sizes[2 : 2 + count]
    axes = list(range(2, 2 + count))
    return biased(ops.Slice(whole, begin, sizes - end, [1] * count, axes), b, count)


@translates("NhwcMaxPool", since=1, domain=MICROSOFT)
def nhwc_max_pool(x, *, ceil_mode: int = 0, kernel_shape: Positives, given: WindowAttributes, node: Context):
    """MaxPool of integers of 8 bits."""
    y, _ = max_pool(channels_first(x), ceil_mode=ceil_mode, kernel_shape=kernel_shape, given=given, node=node)
    return channels_last(y)


@translates("FusedConv", since=1, domain=MICROSOFT)
def fused_conv(
    x: AtLeast2, w: AtLeast2, b: Vector = None, z=None,
    *, activation: str | None = None, activation_params: Floats | None = None, given: ConvolutionAttributes,
):
    """activation(Conv + z)."""
    y = conv(x, w, b, given=given)
    return _activation(activation, activation_params).of(y if z is None else y + z)


@translates("NhwcConv", since=1, domain=MICROSOFT)
def nhwc_conv(x: AtLeast3, w: AtLeast3, b: Vector = None, *, given: ConvolutionAttributes):
    """Conv with channels last, also in the filters [M, K..., C / group], as the transformers tool writes them."""
    return channels_last(conv(channels_first(x), channels_first(w), b, given=given))


@translates("NhwcFusedConv", since=1, domain=MICROSOFT)
def nhwc_fused_conv(
    x: AtLeast3, w: AtLeast3, b: Vector = None, z=None,
    *, activation: str | None = None, activation_params: Floats | None = None, given: ConvolutionAttributes,
):
    """activation(Conv + z) with channels last, but the filters of Conv."""
    y = conv(channels_first(x), w, b, given=given)
    y = y if z is None else y + channels_first(z)
    return channels_last(_activation(activation, activation_params).of(y))


def _activation(name: str | None, parameters: Sequence[float] | None) -> Activation:
    given = [*(parameters or ()), None, None]
    if len(given) > 4:
        raise ModelError(f"{len(given) - 2} activation_params are given, and two are the most", code="ML227")
    return Activation(name, given[0], given[1])


@translates("FusedGemm", since=1, domain=MICROSOFT)
def fused_gemm(
    a, b, c=None,
    *, activation: str | None = None, activation_alpha: float | None = None, activation_beta: float | None = None,
    activation_gamma: float | None = None, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
):
    """activation(alpha * A * B + beta * C)."""
    product = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return Activation(activation, activation_alpha, activation_beta, activation_gamma).of(product)


@translates("TransposeMatMul", since=1, domain=MICROSOFT, without="transBatchA transBatchB")
@translates("FusedMatMul", since=1, domain=MICROSOFT)
def fused_matmul(
    a, b, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0, transBatchB: int = 0
):
    """alpha * A * B. transA transposes the last two dimensions; transBatchA moves the first one before them first."""
    a, b = _first_moved(a) if transBatchA else a, _first_moved(b) if transBatchB else b
    # A vector has nothing to transpose.
    left, right = bool(transA) and a.rank != 1, bool(transB) and b.rank != 1
    if element_count(b.shape) == 0 or (b.rank == 3 and b.constant is not None):
        # `matmul` avoids the errors of the runtime for it.
        a, b = _transposed(a) if left else a, _transposed(b) if right else b
        left = right = False
    return scaled(ops.MatMul(a, b, transpose_a=left, transpose_b=right) if left or right else matmul(a, b), alpha)


@translates("FusedMatMulActivation", since=1, domain=MICROSOFT)
def fused_matmul_activation(
    a, b, *, activation: str, activation_alpha: float | None = None, activation_axis: int | None = None,
    activation_beta: float | None = None, activation_gamma: float | None = None, alpha: float = 1.0, transA: int = 0,
    transB: int = 0, transBatchA: int = 0, transBatchB: int = 0,
):
    """activation(FusedMatMul)."""
    y = fused_matmul(a, b, alpha=alpha, transA=transA, transB=transB, transBatchA=transBatchA, transBatchB=transBatchB)
    return Activation(activation, activation_alpha, activation_beta, activation_gamma, activation_axis).of(y)


def _transposed(x: Value) -> Value:
    rank = ranked(x)
    return ops.Transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _first_moved(x: Value) -> Value:
    """Dimension 0 moved before the last one."""
    rank = ranked(x)
    if rank < 3:
        raise ModelError(f"transBatchA and transBatchB need a tensor of rank 3 or more, not {rank}", code="ML227")
    return ops.Transpose(x, [*range(1, rank - 1), 0, rank - 1])


@translates("GemmFastGelu", since=1, domain=MICROSOFT)
def gemm_fast_gelu(x, w, bias=None):
    """The Gelu by tanh of x * w + bias."""
    product = matmul(x, w)
    return ops.Gelu(product if bias is None else product + bias, approximation_mode="TANH")


_LOWEST = np.finfo(np.float32).min


@translates("MaxpoolWithMask", since=1, domain=MICROSOFT, without="dilations", ignored="storage_order")
def max_pool_with_mask(
    x: AtLeast3, mask: AtLeast3, *, kernel_shape: Fews | None = None, storage_order: int = 0, given: WindowAttributes
):
    """A window without elements gives the lowest number; NaN is never the largest."""
    if kernel_shape is None:
        raise ModelError("MaxpoolWithMask needs the attribute kernel_shape", code="ML227")
    rank = ranked(x)
    if len(kernel_shape) != rank - 2 or 0 in kernel_shape:
        raise ModelError(f"the kernel {list(kernel_shape)} does not fit a tensor of rank {rank}", code="ML227")
    at = given.over(len(kernel_shape))
    kept = ops.NotEqual(_of_channels(mask, x), 0)
    if rank > 3:  # the kernel of ONNX Runtime ignores the mask of the first element
        spatial = x.sizes[2:]
        kept = kept | ops.Equal(ops.Reshape(ops.Range(0, _count(x, 2, FAR), 1, output_type=i64), spatial), 0)
    numbers = ops.Select(ops.Less(_LOWEST, x), x, _LOWEST)
    row = _largest_of_rows(numbers, kept, kernel_shape[-1], at)
    if rank == 3:
        return row
    return ops.MaxPool(
        row, kernel=(*kernel_shape[:-1], 1), strides=(*at.strides[:-1], 1), pads_begin=(*at.begin[:-1], 0),
        pads_end=(*at.end[:-1], 0), auto_pad=at.auto_pad,
    )


def _count(x: Value, first: int, end: int) -> Value:
    """The number of elements in some of the dimensions, at least 1."""
    return ops.Maximum(ops.ReduceProd(x.sizes[first:end], [0]), 1)


def _of_channels(mask: Value, x: Value) -> Value:
    """The mask that each channel of x reads: one for all, or elements from (channel * its size) modulo the number of
    masks on, as the kernel of ONNX Runtime counts."""
    if mask.type.dims[:2] == (1, 1):
        return mask
    masks, size = _count(mask, 0, 2), _count(x, 2, FAR)
    # The remainder is taken first: the runtime computes it in f32.
    first = ops.Range(0, _count(x, 0, 2), 1, output_type=i64) * (size % masks) % masks
    at = first[:, None] + ops.Range(0, size, 1, output_type=i64)
    return ops.Reshape(ops.Gather(mask.reshape([-1]), at, 0), x.sizes)


def _pads(x: Value, length: int, at: Window) -> tuple[Any, Any]:
    """The number of elements before and after a row."""
    if at.auto_pad == "explicit":
        return at.begin[-1], at.end[-1]
    size = ops.Gather(x.sizes, -1, 0)
    # The last of ceil(size / stride) windows starts `rest` elements before the end.
    total = ops.Maximum(length - ((size - 1) % at.strides[-1] + 1), 0)
    less = total / 2
    more = total - less
    return (less, more) if at.auto_pad == "same_upper" else (more, less)


def _largest_of_rows(x: Value, kept: Value, length: int, at: Window) -> Value:
    """The largest element of each window along the last dimension, before its first element that is not kept."""
    axis, stride = ranked(x) - 1, at.strides[-1]
    begin, end = (joined([*[0] * axis, pad], x) for pad in _pads(x, length, at))
    x = ops.Pad(x, begin, end, _LOWEST)
    kept = ops.Pad(kept.astype(f32), begin, end, np.float32(1))
    alive: Any = None
    shown: list[Value] = []
    for first in range(length):
        last = first - length + 1
        elements, flags = (ops.Slice(each, [first], [last or FAR], [stride], [axis]) for each in (x, kept))
        alive = flags if alive is None else ops.Minimum(alive, flags)
        shown.append(ops.Select(alive > 0, elements, _LOWEST))
    return reduce(lambda a, b: ops.Maximum(a, b), shown)
