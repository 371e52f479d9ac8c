"""Matrix products whose weights are packed integers, one scale for each block of them."""

from typing import Any

import numpy as np

from mo_loop.frontend.arrays import counted_up, first_numbers
from mo_loop.frontend.ops.quantization.packed_integers import is_empty, middle, require_bits, unpacked
from mo_loop.frontend.ops.weight_layout import array_of, reshaped
from mo_loop.frontend.vocabulary import MICROSOFT, UnsupportedError, Value, ops, translates
from mo_loop.ops.lengths import dimension, joined
from mo_loop.ops.ranges import AtLeast1, AtLeast2, Positive


@translates("MatMulNBits", since=1, domain=MICROSOFT, ignored="accuracy_level")
def mat_mul_n_bits(
    a: AtLeast1, b: AtLeast2, scales, zero_points=None, g_idx=None, bias=None, *, K: Positive, N: Positive,
    accuracy_level: int = 0, bits: int = 4, block_size: Positive, weight_prepacked: int = 0,
):  # fmt: skip
    """a * W + bias, with W^T of [N, K] in blocks of elements along K. Without zero points they are 2^(bits - 1).

    `accuracy_level` allows a runtime to round a; the property DYNAMIC_QUANTIZATION_GROUP_SIZE does it for OpenVINO.
    """
    require_bits(bits)
    if weight_prepacked:
        raise UnsupportedError(
            "MatMulNBits with weights in the layout of one GPU", code="ML316",
            hint="export the model with weight_prepacked 0",
        )  # fmt: skip
    y = _nothing(a, N) if is_empty(b) else _product(a, b, scales, zero_points, g_idx, (N, K), bits, block_size)
    return y if bias is None else y + bias


def _nothing(a: Value, columns: int) -> Value:
    """Zeros: the weights of the product are absent."""
    zero = ops.Constant(np.zeros((), a.dtype.numpy), graph=a.graph, dtype=a.dtype)
    shape = joined([*(dimension(a, axis) for axis in range(a.type.known_rank - 1)), columns], a)
    return ops.Broadcast(zero, shape)


def _product(
    a: Value, b: Value, scales: Value, zero_points: Value | None, g_idx: Value | None, shape: tuple[int, int],
    bits: int, block_size: int,
) -> Value:  # fmt: skip
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
    if a.rank is None:
        raise UnsupportedError("a matrix product of a tensor of unknown rank", code="ML314")
    none = [0] * (a.type.known_rank - 1)
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
    weights = ops.Dequantize(integers, scales, zero, to=a.dtype, axis=1)
    return ops.MatMul(a, weights, transpose_b=True)


def _taken(x: Value, places: Any, axis: int) -> Value:
    """Elements along an axis; those of a constant are taken now."""
    constant, numbers = array_of(x), array_of(places) if isinstance(places, Value) else places
    if numbers is None or constant is None:
        return ops.Gather(x, places, axis)
    return ops.Constant(np.take(constant, numbers, axis), graph=x.graph, dtype=x.dtype)
