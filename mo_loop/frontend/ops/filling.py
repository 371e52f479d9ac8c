"""Operators that enlarge, crop or create tensors: Expand, Tile, Pad, CenterCropPad, Range, EyeLike, Trilu."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.frontend.ops.shared import counted_up, integers, near, number, one_integer, ranked, require_choice
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph import boolean, from_onnx, i64, normalise_axis
from mo_loop.ops.infer import vector_length
from mo_loop.ops.lengths import joined, scalar
from mo_loop.ops.ranges import AtLeast2, Indices, Integers, One, Vector
from mo_loop.target import Gap

AVOIDS = (
    Gap(
        "tile-of-two-axes", "`Tile` with several repeats known at run time gives wrong values", "one `Tile` per axis",
        rule="translator of Tile",
    ),
    Gap(
        "computed-pad-value", "`Pad` ignores a pad value that is computed", "pad with 0, then `Select`",
        rule="translator of Pad",
    ),
    Gap(
        "backward-range", "`Range` whose limit is on the wrong side does not stop", "the limit is clamped first",
        rule="translator of Range",
    ),
)
"""The errors of the runtime that these translators avoid."""


@translates("Expand", since=8)
def expand(input, shape):
    """Bidirectional broadcast."""
    if shape.type.shape == (0,):
        return input
    known = integers(shape)
    return ops.Broadcast(input, shape if known is None else list(known), mode="bidirectional")


@translates("Tile", since=1)
def tile_1(input, tiles, axis):
    """One axis; its number and the repeats are given in the type of the data."""
    ranked(input)
    places = axis.astype(i64).reshape([1])
    times = tiles.astype(i64).reshape([1])
    return ops.Tile(input, ops.ScatterUpdate(np.ones(input.rank, np.int64), places, times, 0))


@translates("Tile", since=6, one_rank="input")
def tile_6(input, repeats):
    """Repeats of all dimensions."""
    known = integers(repeats)
    return ops.Tile(input, list(known)) if known is not None else _tiled(input, repeats)


def _tiled(x: Value, repeats: Value):
    """For computed repeats the runtime gives wrong values if more than one is not 1: each of them has its own Tile."""
    count = vector_length(repeats.type)
    if count is None:
        message = "the number of repeats is known only at run time"
        raise UnsupportedError(message, code="ML314", hint="make the repeats a constant")
    times = [None] * count if repeats.known is None else list(repeats.known)
    for axis, time in enumerate(times):
        if time == 1:
            continue
        value = time if isinstance(time, int) else ops.Gather(repeats, axis, 0)
        x = ops.Tile(x, joined([*[1] * axis, value, *[1] * (count - axis - 1)], x))
    return x


@translates("Pad", since=1)
def pad_1(data, *, paddings: tuple[int, ...], mode: str = "constant", value: float = 0.0):
    """The pads are all begins, then all ends."""
    return _pad(data, *_halves(paddings), mode, np.array(value, data.dtype.numpy))


@translates("Pad", since=2)
def pad_2(data, *, pads: Indices, mode: str = "constant", value: float = 0.0):
    """The attribute has another name."""
    return _pad(data, *_halves(pads), mode, np.array(value, data.dtype.numpy))


@translates("Pad", since=11)
def pad_11(data, pads, constant_value=None, *, mode: str = "constant"):
    """Pads and value are inputs."""
    known = integers(pads)
    begin, end = _halves(known) if known is not None else ops.Split(pads, 0, num_splits=2)
    return _pad(data, begin, end, mode, constant_value)


@translates("Pad", since=18, one_rank="data")
def pad_18(data, pads, constant_value=None, axes=None, *, mode: str = "constant"):
    """The pads may be for some of the axes."""
    if axes is None:
        return pad_11(data, pads, constant_value, mode=mode)
    ranked(data)
    known, places = integers(pads), integers(axes)
    if known is not None and places is not None:
        begin, end = (_spread(half, places, data.rank) for half in _halves(known))
        return _pad(data, begin, end, mode, constant_value)
    position = axes.astype(i64) % data.rank
    zeros = np.zeros(data.rank, np.int64)
    halves = ops.Split(pads, 0, num_splits=2)
    before, after = (ops.ScatterUpdate(zeros, position, half, 0) for half in halves)
    return _pad(data, before, after, mode, constant_value)


def _halves(pads: Sequence[int]) -> tuple[list[int], list[int]]:
    if len(pads) % 2:
        raise ModelError(f"there are {len(pads)} pads, an odd number: each axis has two", code="ML227")
    count = len(pads) // 2
    return near(pads[:count]), near(pads[count:])


def _spread(widths: Sequence[int], axes: Sequence[int], rank: int) -> list[int]:
    if len(axes) != len(widths):
        raise ModelError(f"there are {2 * len(widths)} pads for {len(axes)} axes", code="ML227")
    whole = [0] * rank
    for axis, width in zip(axes, widths, strict=True):
        whole[normalise_axis(axis, rank)] = width
    return whole


def _pad(x: Value, begin, end, mode: str, value):
    for each in (begin, end):
        if isinstance(each, list) and x.rank is not None and len(each) != x.rank:
            raise ModelError(f"there are {2 * len(each)} pads for {x.type}", code="ML227")
    if mode == "wrap":
        return _wrapped(x, begin, end)
    require_choice("mode", mode, ("constant", "edge", "reflect", "wrap"))
    plain = isinstance(begin, list) and isinstance(end, list) and min([*begin, *end], default=0) >= 0
    cls = ops.Pad if plain else ops.Pad12
    if mode != "constant":
        return cls(x, begin, end, pad_mode=mode)
    if value is None:
        value = number(x, 0)
    if not isinstance(value, Value):
        return cls(x, begin, end, value, pad_mode=mode)
    if isinstance(value.node, operations.Constant):
        return cls(x, begin, end, scalar(value), pad_mode=mode)
    # The runtime ignores a computed value if the pads are, or become, constant: it is selected afterwards.
    inside = ops.Broadcast(np.array(True), x.sizes)
    padded = cls(x, begin, end, number(x, 0), pad_mode=mode)
    return ops.Select(cls(inside, begin, end, np.array(False), pad_mode=mode), padded, scalar(value))


def _wrapped(x: Value, begin, end):
    """Along each axis out[i] = x[(i - begin) mod length]."""
    for axis in range(ranked(x)):
        before, after = (w[axis] if isinstance(w, list) else ops.Gather(w, axis, 0) for w in (begin, end))
        if isinstance(before, int) and isinstance(after, int) and before == after == 0:
            continue
        length = x.size(axis)
        if all(isinstance(each, int) for each in (before, after, length)):
            x = ops.Gather(x, counted_up(-before, length + after) % length, axis)
            continue
        steps = ops.Range(-before, length + after, 1, graph=x.graph, output_type=i64)
        x = ops.Gather(x, steps % length, axis)
    return x


@translates("CenterCropPad", since=18)
def center_crop_pad(input_data, shape: Vector | Integers, *, axes: tuple[int, ...] | None = None):
    """Each axis is sliced or padded with zeros to a length, evenly on both sides; an odd element is at the end."""
    ranked(input_data)
    places = [normalise_axis(axis, input_data.rank) for axis in (range(input_data.rank) if axes is None else axes)]
    known = integers(shape)
    if known is not None and len(known) != len(places):
        raise ModelError(f"the input 'shape' has {len(known)} lengths for {len(places)} axes", code="ML227")
    lengths = [input_data.size(axis) for axis in places]
    if known is not None and all(isinstance(length, int) for length in lengths):
        return _cropped_and_padded(input_data, places, lengths, known)
    wanted = shape.astype(i64) if known is None else np.array(known, np.int64)
    have = joined(lengths, input_data)
    surplus = have - wanted
    start = ops.Maximum(surplus, 0) // 2
    cut = ops.Slice(input_data, start, start + ops.Minimum(have, wanted), [1] * len(places), places)
    missing = ops.Maximum(-surplus, 0)
    before = missing // 2
    zeros = np.zeros(input_data.rank, np.int64)
    begin, end = (ops.ScatterUpdate(zeros, places, each, 0) for each in (before, missing - before))
    return _pad(cut, begin, end, "constant", None)


def _cropped_and_padded(x: Value, axes: list[int], lengths: Sequence[Any], wanted: Sequence[int]):
    begin, end = [0] * x.rank if x.rank else [], [0] * x.rank if x.rank else []
    start, stop = [], []
    for axis, have, want in zip(axes, lengths, wanted, strict=True):
        start.append(max(have - want, 0) // 2)
        stop.append(start[-1] + min(have, want))
        begin[axis] = max(want - have, 0) // 2
        end[axis] = max(want - have, 0) - begin[axis]
    cut = ops.Slice(x, start, stop, [1] * len(axes), axes) if axes else x
    return _pad(cut, begin, end, "constant", None) if any(begin) or any(end) else cut


@translates("Range", since=1, domain=MICROSOFT)
@translates("Range", since=11, required="delta")
def range_11(start, limit, delta=None):
    """Steps of `delta`, which is 1 if it is absent, from `start` to before `limit`."""
    step = ops.Constant(number(start, 1), graph=start.graph) if delta is None else scalar(delta)
    return _range(scalar(start), scalar(limit), step)


@translates("Range", since=27)
def range_27(start, limit, delta, *, stash_type: int = 1):
    """16-bit floats are computed in `stash_type`."""
    if not start.dtype.is_float or start.dtype.bits > 16:
        return range_11(start, limit, delta)
    bounds = [scalar(each.astype(from_onnx(stash_type))) for each in (start, limit, delta)]
    return _range(*bounds).astype(start.dtype)


def _range(start: Value, limit: Value, delta: Value):
    """The runtime counts |limit - start| / |delta| steps: a limit on the wrong side of the start becomes the start."""
    step = one_integer(delta)
    if start.known is not None and limit.known is not None and step is not None:
        first, last = start.known.item(), limit.known.item()
        way = last - first if step > 0 else first - last
        if (way if isinstance(way, int) else way.lo) >= 0:
            return ops.Range(start, limit, delta, output_type=start.dtype)
    if step is None:
        limit = ops.Select(delta > 0, ops.Maximum(start, limit), ops.Minimum(start, limit))
    else:
        limit = (ops.Maximum if step > 0 else ops.Minimum)(start, limit)
    return ops.Range(start, limit, delta, output_type=start.dtype)


@translates("EyeLike", since=9)
def eye_like(input, *, dtype: int | None = None, k: int = 0):
    """A matrix of the input's shape with 1 on the k-th diagonal."""
    if input.rank is not None and input.rank != 2:
        raise ModelError(f"the input has rank {input.rank}, and must be a matrix", code="ML227")
    wanted = input.dtype if dtype is None else from_onnx(dtype)
    rows, columns = (ops.Gather(input.sizes, axis, 0) for axis in (0, 1))
    return ops.Eye(rows, columns, *near([k]), output_type=wanted)


@translates("Trilu", since=1, domain=MICROSOFT)
@translates("Trilu", since=14, one_rank="input")
def trilu(input: AtLeast2, k: One | Integers = None, *, upper: int = 1):
    """The triangle above or below the k-th diagonal; the rest becomes 0."""
    ranked(input)
    known = 0 if k is None else one_integer(k)
    rows, columns = (input.size(axis) for axis in (-2, -1))
    diagonal = near([known])[0] if known is not None else scalar(k)
    row = ops.Unsqueeze(ops.Range(0, rows, 1, graph=input.graph, output_type=i64), 1)
    column = ops.Range(0, columns, 1, graph=input.graph, output_type=i64)
    edge = row + diagonal
    kept = column >= edge if upper else column <= edge
    return input & kept if input.dtype is boolean else ops.Select(kept, input, number(input, 0))
