"""The parts that the attention operators share: heads, masks, caches, and the products.

    scores = scale * Q K^T + mask          y = softmax(scores) V

Q is [batch, heads, S, size], K and V are [batch, heads, T, size]. The form is MatMul, Softmax and MatMul with Q scaled
first: the CPU plugin makes one kernel of it, and ScaledDotProductAttention was measured to be slower or as fast.

Rotary embeddings turn pairs of numbers of a head by an angle that grows with the position.

    first' = first * cos - second * sin        second' = second * cos + first * sin

The pairs are the halves of the turned part, or neighbours (`interleaved`). Halves are taken by VariadicSplit: the CPU
plugin makes one RoPE node of this form.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from mo_loop.frontend.ops.shared import counted, number, ranked
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f16, f32
from mo_loop.ops.lengths import as_i64, joined, length_in, scalar
from mo_loop.ops.ranges import Fews, Integers, Matrix, NotNegative, Rank3, Rank4, Scalar, Vector

LOWEST = float(np.finfo(np.float32).min)
"""The addend of ONNX Runtime for the score of a key that comes after its query."""

FILTERED = -10000.0
"""The addend for the score of a padding key, if the model does not specify one."""


def split_heads(x: Value, heads: int) -> Value:
    """[batch, S, heads * size] as [batch, heads, S, size]."""
    return ops.Transpose(rows_of_heads(x, heads), [0, 2, 1, 3])


def rows_of_heads(x: Value, heads: int) -> Value:
    """[batch, S, heads * size] as [batch, S, heads, size]."""
    hidden = x.size(2) if x.shape is not None else None
    size = hidden // heads if isinstance(hidden, int) else -1
    return x.reshape([None, None, heads, size])


def merge_heads(x: Value) -> Value:
    """[batch, heads, S, size] as [batch, S, heads * size]."""
    heads, size = x.type.dims[1], x.type.dims[3]
    hidden = heads * size if isinstance(heads, int) and isinstance(size, int) else -1
    return ops.Transpose(x, [0, 2, 1, 3]).reshape([None, None, hidden])


def split_packed(x: Value, count: int) -> list[Value]:
    """[batch, S, heads, count, size] as `count` tensors [batch, S, heads * size]."""
    heads, size = x.type.dims[2], x.type.dims[4]
    hidden = heads * size if isinstance(heads, int) and isinstance(size, int) else -1
    flat = [ops.Squeeze(each, [3]) for each in ops.Split(x, 3, num_splits=count)]
    return [each.reshape([None, None, hidden]) for each in flat]


def all_split(tensors: list[Value], bias: Value | None, heads: int) -> list[Value]:
    """Tensors [batch, S, heads * size], each plus its part of the bias, with the heads apart."""
    if bias is not None:
        lengths = [each.size(2) for each in tensors]
        rest = lengths if len(tensors) == 1 else lengths[:-1]
        vectors = ops.VariadicSplit(bias, 0, joined([*rest, -1], bias))
        tensors = [tensor + vector for tensor, vector in zip(tensors, vectors, strict=False)]
    return [split_heads(each, heads) for each in tensors]


def thirds(product: Value, sizes: tuple[int, ...] | None) -> list[Value]:
    """Q, K and V as [batch, S, D]."""
    if sizes is None:
        return list(ops.Split(product, 2, num_splits=3))
    if len(sizes) != 3:
        raise ModelError(f"qkv_hidden_sizes has {len(sizes)} numbers, not 3", code="ML227")
    return list(ops.VariadicSplit(product, 2, list(sizes)))


def scaled(q: Value, scale: float | None) -> Value:
    """Q times `scale`; without one, times 1 / sqrt(size of a head)."""
    size = q.size(-1)
    if scale:
        return q * scale
    return q * float(1 / np.sqrt(np.float32(size))) if isinstance(size, int) else q / ops.Sqrt(size.astype(q.dtype))


def attend(q: Value, k: Value, v: Value, scale: float | None, mask: Value | None) -> tuple[Value, Value]:
    """softmax(scale * Q K^T + mask) V, as [batch, heads, S, size], and the scores before the softmax.

    Masks and scores are f32, as in ONNX Runtime: they have numbers that smaller types do not have.
    """
    scores = ops.MatMul(scaled(q, scale), k, transpose_b=True).astype(f32)
    if mask is not None:
        scores = scores + mask
    return ops.Softmax(scores, axis=3).astype(v.dtype) @ v, scores.astype(q.dtype)


def capped(scores: Value, cap: float) -> Value:
    """The scores between -cap and cap; as they are if `cap` is 0."""
    return ops.Tanh(scores / cap) * cap if cap > 0 else scores


def grouped_product(a: Value, b: Value, heads: Any, kv_heads: Any, *, transpose_b: bool = False) -> Value:
    """a [batch, heads, S, X] times b [batch, kv heads, ..], each shared by several heads."""
    if heads == kv_heads:
        return ops.MatMul(a, b, transpose_b=transpose_b)
    width = a.size(3)
    # The heads of one group are rows of one matrix.
    product = ops.MatMul(a.reshape([a.size(0), kv_heads, -1, width]), b, transpose_b=transpose_b)
    return ops.Reshape(product, joined([a.size(0), heads, a.size(2), -1], a))


def filled(keeps: Value, filter_value: float | None, then: Value | None = None) -> Value:
    """`then`, which is 0 if absent, where a key is kept, else `filter_value`."""
    out = FILTERED if filter_value is None else filter_value
    return ops.Select(keeps, np.float32(0) if then is None else then, np.float32(out))


def within(ends: Value, starts: Value | None, total: Any, q: Value) -> Value:
    """[batch, 1, 1, T]: whether a key lies before the end, and not before the start, of its sequence."""
    keys = counted(total, q)
    inside = keys < ops.Unsqueeze(as_i64(ends), [1, 2, 3])
    return inside if starts is None else inside & (keys >= ops.Unsqueeze(as_i64(starts), [1, 2, 3]))


def positive(mask: Value, axes: list[int]) -> Value:
    """An integer mask as booleans (above 0), with dimensions of 1 inserted."""
    kept = mask > number(mask, 0)
    return ops.Unsqueeze(kept, axes) if axes else kept


def causal(past: Any, queries: Any, total: Any, q: Value, same: bool) -> Value:
    """[S, T]: whether the key is not after the query; `past` keys precede the first query.

    The last query reads every key, as in ONNX Runtime; that matters unless there are `past` + S keys (`same`).
    """
    rows = counted(queries, q)[:, None]
    before = counted(total, q) <= moved(rows, past)
    return before if same else before | ops.Equal(rows, queries - 1)


def moved(places: Value, distance: Any) -> Value:
    """Places that much later."""
    return places if isinstance(distance, int) and distance == 0 else places + distance


def with_bias(mask: Value | None, bias: Value | None) -> Value | None:
    """The sum of a mask and of numbers for each score; either may be absent."""
    if bias is None:
        return mask
    added = bias.astype(f32)
    return added if mask is None else added + mask


def appended(past: Value | None, new: Value) -> Value:
    """The keys or values of the past and the new ones, along T."""
    return new if past is None else ops.Concat(past, new, axis=2)


Pair = Sequence[Value]


def with_past(pasts: Sequence[Value | None], new: Pair, length: Value | None) -> tuple[Pair, Pair]:
    """The keys and values that become the past, and those that are read. With a `length` the past is a buffer, of which
    the part in use is read."""
    if length is None:
        every = [appended(past, each) for past, each in zip(pasts, new, strict=True)]
        return every, every
    both = [written(past, each, length) for past, each in zip(pasts, new, strict=True) if past is not None]
    return [buffer for buffer, _ in both], [used for _, used in both]


def count_before(past: Value | None, length: Value | None) -> Any:
    """The number of keys in the past."""
    return 0 if past is None else past.size(2) if length is None else length_in(length)


def stacked(k: Value, v: Value) -> Value:
    """[2, batch, heads, T, size]; only keys and values of one size have it."""
    if isinstance(k.type.dims[3], int) and isinstance(v.type.dims[3], int) and k.type.dims[3] != v.type.dims[3]:
        return k
    return ops.Concat(k[None], v[None], axis=0)


def written(buffer: Value, new: Value, start: Value) -> tuple[Value, Value]:
    """The buffer with the rows from `start` on replaced by the new ones, and its part up to their end."""
    first = as_i64(start).reshape([1])
    rows = new.size(2)
    whole = ops.ScatterUpdate(buffer, first + counted(rows, new), new, 2)
    return whole, whole[:, :, : first + joined([rows], new)]


@translates("RotaryEmbedding", since=1, domain=MICROSOFT, ignored="is_packed_batching scale")
def rotary_embedding(
    x: Rank3 | Rank4, position_ids: Scalar | Vector | Matrix | Integers, cos_cache: Matrix, sin_cache: Matrix,
    *, interleaved: int | None = None, is_packed_batching: int | None = None, num_heads: NotNegative | None = None,
    rotary_embedding_dim: NotNegative | None = None, scale: float | None = None,
):
    """`scale` and `is_packed_batching` do not change the numbers of ONNX Runtime's CPU kernel."""
    is_split = ranked(x) == 4
    rows = x.size(2 if is_split else 1)
    places = position_ids
    if ranked(position_ids, "position_ids") < 2:
        places = (counted(rows, x) + scalar(position_ids))[None]
    cos, sin = (ops.Gather(each, places, 0) for each in (cos_cache, sin_cache))
    return _embedded(x, cos, sin, num_heads, rotary_embedding_dim, interleaved)


@translates("MRotaryEmbedding", since=1, domain=MICROSOFT, ignored="is_packed_batching scale")
def multimodal_rotary_embedding(
    x: Rank3 | Rank4, position_ids, cos_cache: Matrix, sin_cache: Matrix,
    *, interleaved: int | None = None, is_packed_batching: int | None = None, mrope_layout: int | None = None,
    mrope_section: Fews, num_heads: NotNegative | None = None, rotary_embedding_dim: NotNegative | None = None,
    scale: float | None = None,
):
    """Three positions for each token; `mrope_section` has the number of columns of the caches for each position."""
    if len(mrope_section) != 3:
        raise ModelError(f"MRotaryEmbedding has {len(mrope_section)} mrope_section, not 3", code="ML227")
    streams = _streams(list(mrope_section), mrope_layout)
    cos, sin = (_mixed(cache, position_ids, streams) for cache in (cos_cache, sin_cache))
    return _embedded(x, cos, sin, num_heads, rotary_embedding_dim, interleaved)


def _streams(sections: list[int], layout: int | None) -> list[int]:
    """The position at which each column of the caches is read."""
    width = sum(sections)
    if not layout:
        return [stream for stream, count in enumerate(sections) for _ in range(count)]
    found = [0] * width
    for stream in (1, 2):
        for column in range(stream, min(sections[stream] * 3, width), 3):
            found[column] = stream
    return found


def _mixed(cache: Value, position_ids: Value, streams: list[int]) -> Value:
    """[batch, S, columns]: each column at the position of its stream."""
    rows = ops.Gather(cache, position_ids, 0)  # [3, batch, S, columns]
    if len(set(streams)) == 1:
        return ops.Gather(rows, streams[0], 0)
    split = [ops.Squeeze(each, [0]) for each in ops.Split(rows, 0, num_splits=3)]
    runs = [[column for column, _ in run] for _, run in groupby(enumerate(streams), itemgetter(1))]
    return ops.Concat(*(split[streams[run[0]]][:, :, run[0] : run[-1] + 1] for run in runs), axis=2)


@translates("GemmaRotaryEmbedding", since=1, domain=MICROSOFT)
def gemma_rotary_embedding(emb, q, q_rot, k, k_rot):
    """q * cos(emb) + q_rot * sin(emb), and k likewise; cos and sin are rounded to f16."""
    cos, sin = (each(emb).astype(f16)[:, None] for each in (ops.Cos, ops.Sin))
    return [x * cos + turned * sin for x, turned in ((q, q_rot), (k, k_rot))]


def _embedded(x: Value, cos: Value, sin: Value, heads: int | None, size: int | None, interleaved: int | None):
    """x [batch, S, hidden] or [batch, heads, S, size], with cos and sin [batch, S, columns]."""
    if x.rank == 4:
        cos, sin = (each[:, None] for each in (cos, sin))
        return rotated(x, cos, sin, interleaved)
    cos, sin = (each[:, :, None] for each in (cos, sin))
    return ops.Reshape(rotated(_rows(x, cos, heads, size), cos, sin, interleaved), x.sizes)


def _rows(x: Value, cos: Value, heads: int | None, size: int | None) -> Value:
    """[batch, S, heads, size]; without `size`, a head is turned as a whole."""
    columns = cos.type.dims[3]
    if heads and (size or not isinstance(columns, int)):
        return rows_of_heads(x, heads)
    if not isinstance(columns, int):
        raise UnsupportedError(
            "the size of a head is unknown", code="ML314", hint="declare cos_cache (--input), or set num_heads"
        )
    return x.reshape([None, None, -1, columns * 2])


def rotated(x: Value, cos: Value, sin: Value, interleaved: int | None) -> Value:
    """The first 2 * columns numbers of each head turned; the tensors have rank 4, cos and sin `columns` columns."""
    columns, turn = cos.size(3), _neighbours if interleaved else _halves
    if isinstance(columns, int) and columns * 2 == x.type.dims[3]:
        return turn(x, cos, sin)
    lengths: Any = [columns * 2, -1]
    turned, rest = ops.VariadicSplit(x, 3, lengths if isinstance(columns, int) else joined(lengths, x))
    return ops.Concat(turn(turned, cos, sin), rest, axis=3)


def _halves(x: Value, cos: Value, sin: Value) -> Value:
    columns = cos.size(3)
    lengths: Any = [columns, columns] if isinstance(columns, int) else joined([columns, columns], x)
    first, second = ops.VariadicSplit(x, 3, lengths)
    return ops.Concat(*_turned(first, second, cos, sin), axis=3)


def _neighbours(x: Value, cos: Value, sin: Value) -> Value:
    columns = cos.type.dims[3]
    count = columns if isinstance(columns, int) else -1
    pairs = x.reshape([None, None, None, count, 2])
    first, second = (ops.Squeeze(each, [4]) for each in ops.Split(pairs, 4, num_splits=2))
    turned = [ops.Unsqueeze(each, [4]) for each in _turned(first, second, cos, sin)]
    return ops.Reshape(ops.Concat(*turned, axis=4), x.sizes)


def _turned(first: Value, second: Value, cos: Value, sin: Value) -> list[Value]:
    return [first * cos - second * sin, second * cos + first * sin]
