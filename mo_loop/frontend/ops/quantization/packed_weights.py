"""Matrix products whose weights are packed integers, one scale for each block of them, packed weights that are
gathered, and weights that are numbers of a table. Integers of 2 and 4 bits are stored in bytes, the first of them in
the lowest bits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.frontend.ops.linear import array_of, reshaped
from mo_loop.frontend.ops.shared import constant_like, counted_up, first_numbers, number, ranked, zeros
from mo_loop.frontend.vocabulary import MICROSOFT, UnsupportedError, Value, ops, translates
from mo_loop.graph import f32, i32, normalise_axis, u2, u4, u8
from mo_loop.graph.tensor import viewed
from mo_loop.ops.base import Constant, Identity
from mo_loop.ops.lengths import joined
from mo_loop.ops.ranges import AtLeast1, AtLeast2, Integers, Positive

KINDS = {2: u2, 4: u4, 8: u8}
"""Bits -> the element type of constants."""


def require_bits(bits: int) -> None:
    """UnsupportedError unless the IR has such integers."""
    if bits not in KINDS:
        raise UnsupportedError(
            f"weights of {bits} bits: the IR has integers of 2, 4 and 8 bits", code="ML316",
            hint="quantise the weights to 4 or 8 bits",
        )


def unpacked(packed: Value, bits: int, shape: Sequence[int]) -> Value:
    """The integers in bytes, in a shape; a constant keeps its bytes, anything else is computed in u8.

    Each row of the last axis begins with a new byte, and bits after it in the last byte are unused.
    """
    constant, per_byte = constant_of(packed), 8 // bits
    length = shape[-1]
    full = (*shape[:-1], -(-length // per_byte) * per_byte)
    if constant is None:
        made = _computed(packed, bits, full)
        return made if full[-1] == length else made.cut(len(full) - 1, 0, length)
    whole = ops.Constant(viewed(constant.tensor, KINDS[bits], full), graph=packed.graph, name=constant.name)
    if full == tuple(shape):
        return whole
    cut = np.ascontiguousarray(whole.constant[..., :length])
    return ops.Constant(cut, graph=packed.graph, dtype=KINDS[bits], name=constant.name)


def constant_of(value: Value | None) -> Constant | None:
    """The constant that a value is, or None."""
    while value is not None and isinstance(value.node, Identity):
        value = value.node.inputs[0]
    return value.node if value is not None and isinstance(value.node, Constant) else None


def _computed(packed: Value, bits: int, shape: Sequence[int]) -> Value:
    """The parts of each byte by divisions in f32, which has all integers of 8 bits."""
    if bits == 8:
        return ops.Reshape(packed, list(shape))
    rest: Any = packed.reshape([*shape[:-1], -1, 1]).astype(f32)
    parts = []
    for _ in range(8 // bits - 1):
        higher = ops.Floor(rest * (1 / (1 << bits)))
        parts.append(rest - higher * (1 << bits))
        rest = higher
    return ops.Reshape(ops.Concat(*parts, rest, axis=len(shape)), list(shape)).astype(u8)


def middle(like: Value, bits: int) -> Value:
    """2 ^ (bits - 1), the zero point of symmetric weights, of the type of `like`."""
    return constant_like(like, 1 << (bits - 1))


@translates("MatMulNBits", since=1, domain=MICROSOFT, ignored="accuracy_level")
def mat_mul_n_bits(
    a: AtLeast1, b: AtLeast2, scales, zero_points=None, g_idx=None, bias=None, *, K: Positive, N: Positive,
    accuracy_level: int = 0, bits: int = 4, block_size: Positive, weight_prepacked: int = 0,
):
    """a * W + bias, with W^T of [N, K] in blocks of elements along K. Without zero points they are 2^(bits - 1).

    `accuracy_level` allows a runtime to round a; the property DYNAMIC_QUANTIZATION_GROUP_SIZE does it for OpenVINO.
    """
    require_bits(bits)
    if weight_prepacked:
        raise UnsupportedError(
            "MatMulNBits with weights in the layout of one GPU", code="ML316",
            hint="export the model with weight_prepacked 0",
        )
    if 0 in (b.shape or ()):
        zero = constant_like(a, 0)
        y = ops.Broadcast(zero, joined([*(a.size(axis) for axis in range(a.type.known_rank - 1)), N], a))
    else:
        y = _product(a, b, scales, zero_points, g_idx, (N, K), bits, block_size)
    return y if bias is None else y + bias


def _product(
    a: Value, b: Value, scales: Value, zero_points: Value | None, g_idx: Value | None, shape: tuple[int, int],
    bits: int, block_size: int,
) -> Value:
    rows, length = shape
    blocks = -(-length // block_size)
    integers = unpacked(b, bits, (rows, blocks * block_size))
    scales = reshaped(scales, [rows, blocks])
    zero = _zero_points(zero_points, integers, bits, (rows, blocks))
    if g_idx is not None:
        groups = array_of(g_idx)
        order = None if groups is None else _sorting(groups[:length], block_size)
        if order is None:
            return _of_any_groups(a, integers, scales, zero, g_idx, length)
        a = _taken(a, order, -1)
        integers = _taken(integers, np.append(order, counted_up(length, blocks * block_size)), -1)
    weights = ops.Dequantize(integers, scales, zero, to=a.dtype, axis=1, block_size=block_size)
    return ops.MatMul(_with_zeros(a, blocks * block_size - length), weights, transpose_b=True)


def _zero_points(given: Value | None, integers: Value, bits: int, shape: tuple[int, int]) -> Value:
    """Packed integers, floating-point numbers, or the middle of the range."""
    if given is None:
        return middle(integers, bits)
    return reshaped(given, shape) if given.dtype.is_float else unpacked(given, bits, shape)


def _with_zeros(a: Value, count: int) -> Value:
    """Zeros after the last axis: they meet the rest of the last block, which has `count` elements too many."""
    if not count:
        return a
    none = [0] * (ranked(a, "A") - 1)
    return ops.Pad(a, [*none, 0], [*none, count], 0)


def _sorting(groups: np.ndarray[Any, Any], block_size: int) -> np.ndarray[Any, Any] | None:
    """The order in which the elements of each group are a block; None if the groups are not blocks."""
    order = np.argsort(groups, kind="stable")
    return order if np.array_equal(groups[order], np.arange(len(groups)) // block_size) else None


def _of_any_groups(a: Value, integers: Value, scales: Value, zero: Value, g_idx: Value, length: int) -> Value:
    """Each element along K has the scale and the zero point of its group."""
    first = first_numbers(length)
    integers, g_idx = _taken(integers, first, 1), _taken(g_idx, first, 0)
    scales, zero = (each if each.rank == 0 else _taken(each, g_idx, 1) for each in (scales, zero))
    return ops.MatMul(a, ops.Dequantize(integers, scales, zero, to=a.dtype, axis=1), transpose_b=True)


def _taken(x: Value, places: Any, axis: int) -> Value:
    """Elements along an axis; those of a constant are taken now."""
    constant, numbers = array_of(x), array_of(places) if isinstance(places, Value) else places
    if numbers is None or constant is None:
        return ops.Gather(x, places, axis)
    return ops.Constant(np.take(constant, numbers, axis), graph=x.graph, dtype=x.dtype)


FP4 = (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
"""The numbers of the type FP4 of bitsandbytes without sign; the ninth and the following ones are their negatives."""

NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)
"""The numbers of the type NF4 of bitsandbytes: quantiles of the normal distribution."""

TABLES = {0: (*FP4, *(-each for each in FP4)), 1: NF4}


@translates("GatherBlockQuantized", since=1, domain=MICROSOFT)
def gather_block_quantized(
    data: AtLeast1, indices, scales: AtLeast1, zero_points=None, *, bits: int = 4, block_size: Positive = 128,
    gather_axis: int = 0, quantize_axis: int = 1,
):
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
    count: Any = size if isinstance(size, int) else x.size(axis).astype(indices.dtype)
    inside = (indices + count >= 0) & (indices < count)
    taken = ops.Gather(x, ops.Select(inside, indices, number(indices, 0)), axis)
    mask = inside.astype(x.dtype)
    later = list(range(axis + 1 - rank, 0))
    return taken * (ops.Unsqueeze(mask, later) if later else mask)


def _static(x: Value) -> tuple[int, ...]:
    dims = tuple(each for each in x.shape or (None,) if isinstance(each, int))
    if x.shape is None or len(dims) < len(x.shape):
        raise UnsupportedError("the shape of packed weights is known only at run time", code="ML314")
    return dims


@translates("MatMulBnb4", since=1, domain=MICROSOFT, ignored="training_mode")
def mat_mul_bnb4(
    a: AtLeast1, b: Integers, absmax, *, K: Positive, N: Positive, block_size: Positive, quant_type: int,
    training_mode: int = 0, transB: int = 1,
):
    """a * W^T, where W is [N, K]: 4 bits are the place of a number in a table, and blocks of W have one scale each."""
    if quant_type not in TABLES:
        raise TypeError_(f"the attribute quant_type is {quant_type}, and its range is 0 (FP4) to 1 (NF4)", code="ML236")
    if not transB:
        raise UnsupportedError(
            "MatMulBnb4 with transB 0, which is for training: ONNX Runtime does not compute what it documents",
            code="ML316", hint="transpose the weights and set transB to 1",
        )
    blocks = -(-N * K // block_size)
    table = ops.Constant(np.array(TABLES[quant_type], a.dtype.numpy), graph=a.graph, dtype=a.dtype)
    numbers = ops.Gather(table, _places(b, blocks * block_size).astype(i32), 0)
    scaled = numbers.reshape([blocks, block_size]) * absmax.reshape([blocks, 1])
    if blocks * block_size > N * K:
        scaled = scaled.reshape([-1])[: N * K]
    return ops.MatMul(a, scaled.reshape([N, K]), transpose_b=True)


def _places(packed: Value, count: int) -> Value:
    """The first of two places is in the high bits of a byte; 0 after the last byte."""
    array = array_of(packed)
    if array is None:
        bytes_of = _static(packed)[-1]
        flat = ops.Gather(unpacked(packed, 4, (bytes_of, 2)), [1, 0], 1).reshape([-1])
        return ops.Pad(flat, [0], [count - 2 * bytes_of], 0) if count > 2 * bytes_of else flat
    places = np.stack([array >> 4, array & 15], -1).reshape(-1)[:count]
    whole = np.concatenate([places, zeros([count - len(places)], np.uint8)])
    return ops.Constant(whole.astype(u4.numpy), graph=packed.graph, dtype=u4)
