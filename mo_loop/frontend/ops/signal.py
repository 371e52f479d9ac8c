"""Discrete Fourier transforms: DFT, STFT, and MelWeightMatrix, which maps their results to the mel scale.

The runtime's transforms do not pad all signals correctly, so signals are sliced and padded first.
A real signal has a last dimension of 1, a complex one of 2.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.ops.linear import array_of
from mo_loop.frontend.ops.shared import counted, first_numbers, number, one_integer, ranked
from mo_loop.frontend.vocabulary import Context, ModelError, Value, ops, translates
from mo_loop.graph.shape import assume_fixed, assume_least, normalise_axis, require_computable
from mo_loop.graph.types import ElementType, f32, f64, from_onnx, i32, i64
from mo_loop.ops.lengths import as_value, joined, scalar
from mo_loop.ops.ranges import AtLeast2, Integers, One, Vector
from mo_loop.target import ERROR, Gap

AVOIDS = (
    Gap(
        "long-dft", "`DFT` and `IDFT` of lengths that are not powers of two lose digits (3e-3 at 16,000)",
        "composed of `RDFT`, which does not lose any", rule="translator of DFT",
    ),
    Gap(
        "long-rdft", "`RDFT` of a length above that of its input is refused, or reads outside the input",
        "padded first", rule="translator of DFT",
    ),
    Gap(
        "long-irdft", "`IRDFT` of a length above that of its input reads outside the input", "padded first",
        rule="translator of DFT",
    ),
    Gap("rdft-f64", "`RDFT` and `IRDFT` refuse f64", "computed in f32", ERROR, rule="translator of DFT"),
)
"""The errors of the runtime that these translators avoid."""


@translates("DFT", since=17)
def dft_17(x: AtLeast2, dft_length: One | Integers = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0):
    """The axis is an attribute."""
    return _transformed(x, axis, dft_length, bool(inverse), bool(onesided))


@translates("DFT", since=20)
def dft_20(x: AtLeast2, dft_length: One | Integers = None, axis: One = None, *, inverse: int = 0, onesided: int = 0):
    """The axis is an input, -2 if it is absent; one known only at run time is transposed to the front and back."""
    known = -2 if axis is None else one_integer(axis)
    if known is not None:
        return _transformed(x, known, dft_length, bool(inverse), bool(onesided))
    rank = ranked(x)
    assume_fixed(x.type.dims[-1:])
    place = (scalar(axis) + rank) % rank
    others = ops.NotEqual(np.arange(rank), place).astype(i32)
    _, order = ops.TopK11(others, rank, axis=0, mode="min", stable=True)
    _, back = ops.TopK11(order, rank, axis=0, mode="min")
    x = x if x.type.dims[-1] == 1 else _complex(x)
    # Only this is known about the order: the last dimension stays the last.
    moved = ops.Gather(ops.Transpose(x, order), first_numbers(x.type.dims[-1]), rank - 1)
    return ops.Transpose(_transformed(moved, 0, dft_length, bool(inverse), bool(onesided)), back)


def _transformed(x: Value, axis: int, length: Value | None, inverse: bool, onesided: bool):
    if x.dtype is f64:  # the runtime has no transforms in f64, and computes everything else of f64 in f32
        return _transformed(x.astype(f32), axis, length, inverse, onesided).astype(f64)
    rank = ranked(x)
    assume_fixed(x.type.dims[-1:])  # it says whether numbers are complex
    at = normalise_axis(axis, rank)
    if at == rank - 1:
        raise ModelError(f"axis {axis} is the axis of the real and imaginary parts", code="ML227")
    size = None if length is None else _length(length)
    if inverse and onesided:
        return _half_inverted(_complex(x), at, size)
    if size is not None:
        x = _of_length(x, at, size)
    if onesided:
        whole = ops.Gather(x, 0, rank - 1)  # only real signals have onesided transforms
        return ops.RDFT(whole, [at])
    return _inverted(_complex(x), at) if inverse else _whole(x if x.type.dims[-1] == 1 else _complex(x), at)


def _whole(x: Value, at: int) -> Value:
    """The full transform, composed from the onesided transforms of the real and the imaginary part.

    The runtime's complex transform has only three exact digits if the length is large and not a power of two."""
    size = x.size(at)
    parts = x.type.dims[-1]
    if parts == 2 and isinstance(size, int) and size.bit_count() == 1:
        return ops.DFT(x, [at])
    rank = len(x.type.dims)
    halves = ops.RDFT(x, [at])  # [..., parts, 2]
    tails = ops.Slice(halves, joined([(size + -1) // 2], x), [0], [-1], [at])
    pieces = [ops.Gather(each, 0, rank - 1) for each in (halves, tails)]
    signs = np.array([1, -1], x.dtype.numpy)
    pieces[1] = pieces[1] * signs
    if parts == 2:  # i (c + d i) = -d + c i
        turned = [ops.Gather(ops.Gather(each, 1, rank - 1), [1, 0], -1) for each in (halves, tails)]
        pieces = [
            piece + turn * factors
            for piece, turn, factors in zip(pieces, turned, (-signs, np.ones(2, x.dtype.numpy)), strict=True)
        ]
    return ops.Concat(*pieces, axis=at)


def _inverted(x: Value, at: int) -> Value:
    """The conjugate of the transform of the conjugate, divided by the length."""
    size = x.size(at)
    if isinstance(size, int) and size.bit_count() == 1:
        return ops.IDFT(x, [at])
    signs = np.array([1, -1], x.dtype.numpy)
    whole = _whole(x * signs, at)
    count = number(x, size) if isinstance(size, int) else size.astype(x.dtype)
    return whole * signs / count


def _half_inverted(x: Value, at: int, size):
    """A real signal from its onesided transform."""
    if size is None:
        assume_least([(x.type.dims[at], 2)])  # the runtime reads outside a transform of no elements
        size = (x.size(at) + -1) * 2
    return ops.Unsqueeze(ops.IRDFT(_of_length(x, at, size // 2 + 1), [at], joined([size], x)), -1)


def _complex(x: Value) -> Value:
    """A complex signal; the imaginary parts of a real one are 0."""
    last = x.type.dims[-1]
    if last == 2:
        return x
    rank = len(x.type.dims)
    padded = ops.Pad(x, [0] * rank, [0] * (rank - 1) + [1], number(x, 0))
    return padded if last == 1 else ops.Gather(padded, [0, 1], rank - 1)


def _of_length(x: Value, at: int, size) -> Value:
    """Sliced or padded with zeros along an axis."""
    have = x.size(at)
    if isinstance(have, int) and isinstance(size, int) and have == size:
        return x
    rank = len(x.type.dims)
    x = x.cut(at, 0, size)
    if isinstance(have, int) and isinstance(size, int):
        missing: Any = max(size - have, 0)
    else:
        missing = ops.Maximum(size + have * -1, 0)
    end = joined([missing if axis == at else 0 for axis in range(rank)], x)
    return ops.Pad(x, np.zeros(rank, np.int64), end, number(x, 0))


def _length(value: Value):
    """An int if the number is known, else a scalar Value."""
    known = one_integer(value)
    return known if known is not None else scalar(value.astype(i64))


@translates("STFT", since=17)
def stft(
    signal: AtLeast2, frame_step: One | Integers, window: Vector = None, frame_length: One | Integers = None, *,
    onesided: int = 1,
):
    """[batch, frames, bins, 2]: the transforms of the frames, multiplied by the window."""
    rank = ranked(signal)
    if rank not in (2, 3):
        raise ModelError(f"the signal has rank {rank}, and must be [batch, length, 1 or 2]", code="ML227")
    if rank == 2:
        signal = ops.Unsqueeze(signal, 2)
    assume_fixed(signal.type.dims[-1:])
    total, step = signal.size(1), _length(frame_step)
    if isinstance(step, int) and step < 1:
        raise ModelError(f"frame_step is {step}, and must be 1 or more", code="ML235")
    if frame_length is not None:
        length = _length(frame_length)
    else:
        length = total if window is None else window.size(0)
    places = ops.Unsqueeze(_numbers(signal, (total + length * -1) // step + 1) * step, 1) + _numbers(signal, length)
    frames = ops.Gather(signal, places, 1)  # [batch, frames, length, 1 or 2]
    if window is not None:
        frames = frames * ops.Unsqueeze(window.astype(signal.dtype), 1)
    return _transformed(frames, 2, None, False, bool(onesided))


def _numbers(x: Value, count) -> Value:
    """0, 1, ... count - 1; empty if `count` is negative."""
    if isinstance(count, int):
        return counted(count, x)
    zero, one = (as_value(each, x.graph) for each in (0, 1))
    return ops.Range(zero, ops.Maximum(count, 0), one, output_type=i64)


@translates("MelWeightMatrix", since=17)
def mel_weight_matrix(
    num_mel_bins: One | Integers, dft_length: One | Integers, sample_rate: One | Integers, lower_edge_hertz: One,
    upper_edge_hertz: One, *, output_datatype: int = 1, node: Context,
):
    """[dft_length / 2 + 1, num_mel_bins]: triangles whose corners are evenly spaced on the mel scale."""
    to = from_onnx(output_datatype)
    given = (num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz)
    known = [array_of(each) for each in given]
    if all(each is not None for each in known):
        numbers = [each.item() for each in known if each is not None]
        return node.constant(_mel_weights(*numbers).astype(to.numpy), to)
    return _mel_composed([scalar(each) for each in given], to)


_MEL = 2595 / math.log(10)


def _mel_weights(bins: int, length: int, rate: int, lower: float, upper: float):
    """The matrix for constant inputs, computed in f64."""
    if bins < 1 or length < 0 or rate < 1 or not (0 <= lower <= upper):
        raise ModelError(
            f"{bins} bins of {length} samples at a rate of {rate}, from {lower} to {upper} Hz: no such bins exist",
            code="ML227",
        )
    low, high = (_MEL * math.log1p(edge / 700) for edge in (lower, upper))
    require_computable(bins + 2, length)
    mels = low + first_numbers(bins + 2) * ((high - low) / (bins + 2))
    corners = np.floor((length + 1) * (700 * np.expm1(mels / _MEL)) / rate)
    left, centre, right = corners[:-2], corners[1:-1], corners[2:]
    row = first_numbers(length // 2 + 1)[:, None]
    rising = (row - left) / np.where(centre > left, centre - left, 1)
    falling = (right - row) / np.where(right > centre, right - centre, 1)
    weights = np.where((row >= left) & (row <= centre), np.where(centre > left, rising, 1), 0)
    return np.where((row >= centre) & (row < right), falling, weights)


def _mel_composed(given: Sequence[Value], to: ElementType):
    """The matrix for inputs known only at run time."""
    bins, length, rate, lower, upper = given
    count = bins.astype(i64)
    low, high = (ops.Log(e.astype(f32) / 700 + 1) * _MEL for e in (lower, upper))
    corners = count + 2
    step = (high - low) / corners.astype(f32)
    hertz = (ops.Exp((_floats(corners) * step + low) / _MEL) - 1) * 700
    places = ops.Floor(hertz * (length + 1).astype(f32) / rate.astype(f32))
    left, centre, right = (places.cut(0, i, i - 2 or 2**30) for i in range(3))
    rows = ops.Unsqueeze(_floats(length.astype(i64) // 2 + 1), 1)
    one, zero = (np.float32(each) for each in (1, 0))
    rise, fall = (ops.Maximum(b - a, one) for a, b in ((left, centre), (centre, right)))
    rising = ops.Select(left < centre, (rows - left) / rise, one)
    is_left = (left <= rows) & (rows <= centre)
    is_right = (centre <= rows) & (rows < right)
    falling = (right - rows) / fall
    return ops.Select(is_right, falling, ops.Select(is_left, rising, zero)).astype(to)


def _floats(count: Value) -> Value:
    return _numbers(count, count).astype(f32)
