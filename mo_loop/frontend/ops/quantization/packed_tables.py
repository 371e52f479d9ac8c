"""Packed weights that are gathered, and weights that are numbers of a table."""

from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.frontend.arrays import zeros
from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.ops.quantization.packed_integers import middle, require_bits, unpacked
from mo_loop.frontend.ops.weight_layout import array_of
from mo_loop.frontend.vocabulary import MICROSOFT, UnsupportedError, Value, ops, translates
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import i32, u4, u8
from mo_loop.ops.lengths import dimension
from mo_loop.ops.ranges import AtLeast1, Integers, Positive

FP4 = (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
"""The numbers of the type FP4 of bitsandbytes without sign; the ninth and the following ones are their negatives."""

NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
"""The numbers of the type NF4 of bitsandbytes: quantiles of the normal distribution."""

TABLES = {0: (*FP4, *(-each for each in FP4)), 1: NF4}


@translates("GatherBlockQuantized", since=1, domain=MICROSOFT)
def gather_block_quantized(
    data: AtLeast1, indices, scales: AtLeast1, zero_points=None, *, bits: int = 4, block_size: Positive = 128,
    gather_axis: int = 0, quantize_axis: int = 1,
):  # fmt: skip
    """Slices of quantised data. Data of u8 are packed along the last axis, and so are their zero points.

    Without zero points they are 0, or 2^(bits - 1) for data of u8. An index outside the data gives zeros.
    """
    zero = zero_points
    if data.dtype is u8:
        require_bits(bits)
        *rows, packed = _static(data)
        data = unpacked(data, bits, (*rows, packed * 8 // bits))
        zero = middle(data, bits) if zero is None else unpacked(zero, bits, _static(scales))
    weights = ops.Dequantize(data, scales, zero, to=scales.dtype, axis=quantize_axis, block_size=block_size)
    return _slices(weights, indices, gather_axis)


def _slices(x: Value, indices: Value, axis: int) -> Value:
    """The slices of x, and zeros for indices outside: for these the runtime reads beyond compressed weights."""
    rank, known = x.type.rank, array_of(indices)
    axis = normalise_axis(axis, rank)
    size = x.type.dims[axis]
    if known is not None and isinstance(size, int) and np.all((known >= -size) & (known < size)):
        return ops.Gather(x, indices, axis)
    count: Any = size if isinstance(size, int) else ops.Convert(dimension(x, axis), destination_type=indices.dtype)
    inside = (indices + count >= 0) & (indices < count)
    taken = ops.Gather(x, ops.Select(inside, indices, number(indices, 0)), axis)
    mask = ops.Convert(inside, destination_type=x.dtype)
    behind = list(range(axis + 1 - rank, 0))
    return taken * (ops.Unsqueeze(mask, behind) if behind else mask)


def _static(x: Value) -> tuple[int, ...]:
    dims = tuple(each for each in x.shape or (None,) if isinstance(each, int))
    if x.shape is None or len(dims) < len(x.shape):
        raise UnsupportedError("packed data of a shape that is known only at run time", code="ML314")
    return dims


@translates("MatMulBnb4", since=1, domain=MICROSOFT, ignored="training_mode")
def mat_mul_bnb4(
    a: AtLeast1, b: Integers, absmax, *, K: Positive, N: Positive, block_size: Positive, quant_type: int,
    training_mode: int = 0, transB: int = 1,
):  # fmt: skip
    """a * W^T, where W is [N, K]: 4 bits are the place of a number in a table, and blocks of W have one scale each."""
    if quant_type not in TABLES:
        raise TypeError_(f"the attribute quant_type is {quant_type}, and its range is 0 (FP4) to 1 (NF4)", code="ML236")
    if not transB:
        raise UnsupportedError(
            "MatMulBnb4 with transB 0, which is for training: ONNX Runtime does not compute what it documents",
            code="ML316", hint="transpose the weights and set transB to 1",
        )  # fmt: skip
    blocks = -(-N * K // block_size)
    table = ops.Constant(np.array(TABLES[quant_type], a.dtype.numpy), graph=a.graph, dtype=a.dtype)
    numbers = ops.Gather(table, ops.Convert(_places(b, blocks * block_size), destination_type=i32), 0)
    scaled = ops.Reshape(numbers, [blocks, block_size]) * ops.Reshape(absmax, [blocks, 1])
    if blocks * block_size > N * K:
        scaled = ops.Slice(ops.Reshape(scaled, [-1]), [0], [N * K], [1], [0])
    return ops.MatMul(a, ops.Reshape(scaled, [N, K]), transpose_b=True)


def _places(packed: Value, count: int) -> Value:
    """The first of two places is in the high bits of a byte; 0 after the last byte."""
    array = array_of(packed)
    if array is None:
        bytes_of = _static(packed)[-1]
        pairs = unpacked(packed, 4, (bytes_of, 2))
        flat = ops.Reshape(ops.Gather(pairs, [1, 0], 1), [-1])
        return ops.Pad(flat, [0], [count - 2 * bytes_of], 0) if count > 2 * bytes_of else flat
    places = np.stack([array >> 4, array & 15], -1).reshape(-1)[:count]
    whole = np.concatenate([places, zeros([count - len(places)], np.uint8)])
    return ops.Constant(whole.astype(u4.numpy), graph=packed.graph, dtype=u4)
