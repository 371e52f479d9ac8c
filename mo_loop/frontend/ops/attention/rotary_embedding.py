"""Rotary embeddings: pairs of numbers of a head are turned by an angle that grows with the position.

    first' = first * cos - second * sin        second' = second * cos + first * sin

The pairs are the halves of the turned part, or neighbours (`interleaved`). Halves are taken by VariadicSplit: the CPU
plugin makes one RoPE node of this form.
"""

from typing import Any

from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.elementwise.arithmetic import as_type
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f16
from mo_loop.ops.lengths import dimension, joined, scalar
from mo_loop.ops.ranges import Fews, Integers, Matrix, NotNegative, Rank3, Rank4, Scalar, Vector


@translates("RotaryEmbedding", since=1, domain=MICROSOFT, ignored="is_packed_batching scale")
def rotary_embedding(
    x: Rank3 | Rank4, position_ids: Scalar | Vector | Matrix | Integers, cos_cache: Matrix, sin_cache: Matrix,
    *, interleaved: int | None = None, is_packed_batching: int | None = None, num_heads: NotNegative | None = None,
    rotary_embedding_dim: NotNegative | None = None, scale: float | None = None,
):  # fmt: skip
    """`scale` and `is_packed_batching` do not change the numbers of ONNX Runtime's CPU kernel."""
    is_split = ranked(x, "RotaryEmbedding") == 4
    rows = dimension(x, 2 if is_split else 1)
    places = position_ids
    if ranked(position_ids, "the position_ids of RotaryEmbedding") < 2:
        places = ops.Unsqueeze(counted(rows, x) + scalar(position_ids), [0])
    return _embedded(x, _at(cos_cache, places), _at(sin_cache, places), num_heads, rotary_embedding_dim, interleaved)


@translates("MRotaryEmbedding", since=1, domain=MICROSOFT, ignored="is_packed_batching scale")
def multimodal_rotary_embedding(
    x: Rank3 | Rank4, position_ids, cos_cache: Matrix, sin_cache: Matrix,
    *, interleaved: int | None = None, is_packed_batching: int | None = None, mrope_layout: int | None = None,
    mrope_section: Fews, num_heads: NotNegative | None = None,
    rotary_embedding_dim: NotNegative | None = None,
    scale: float | None = None,
):  # fmt: skip
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
    runs: list[list[int]] = []
    for column, stream in enumerate(streams):
        if runs and runs[-1][0] == stream:
            runs[-1][2] = column + 1
        else:
            runs.append([stream, column, column + 1])
    pieces = [ops.Slice(split[stream], [first], [end], [1], [2]) for stream, first, end in runs]
    return ops.Concat(*pieces, axis=2)


@translates("GemmaRotaryEmbedding", since=1, domain=MICROSOFT)
def gemma_rotary_embedding(emb, q, q_rot, k, k_rot):
    """q * cos(emb) + q_rot * sin(emb), and k likewise; cos and sin are rounded to f16."""
    cos, sin = (ops.Unsqueeze(as_type(each(emb), f16), [1]) for each in (ops.Cos, ops.Sin))
    return [x * cos + turned * sin for x, turned in ((q, q_rot), (k, k_rot))]


def _at(cache: Value, places: Value) -> Value:
    return ops.Gather(cache, places, 0)


def _embedded(x: Value, cos: Value, sin: Value, heads: int | None, size: int | None, interleaved: int | None):
    """x [batch, S, hidden] or [batch, heads, S, size], with cos and sin [batch, S, columns]."""
    if x.rank == 4:
        cos, sin = (ops.Unsqueeze(each, [1]) for each in (cos, sin))
        return rotated(x, cos, sin, interleaved)
    cos, sin = (ops.Unsqueeze(each, [2]) for each in (cos, sin))
    return ops.Reshape(rotated(_rows(x, cos, heads, size), cos, sin, interleaved), ops.ShapeOf(x))


def _rows(x: Value, cos: Value, heads: int | None, size: int | None) -> Value:
    """[batch, S, heads, size]; without `size`, a head is turned as a whole."""
    if size and heads:
        return parts.rows_of_heads(x, heads)
    columns = cos.type.dims[3]
    if not isinstance(columns, int) and heads:
        return parts.rows_of_heads(x, heads)
    if not isinstance(columns, int):
        raise UnsupportedError(
            "the size of a head is not known: declare the shape of cos_cache (--input), or set num_heads", code="ML314"
        )
    return ops.Reshape(x, [0, 0, -1, columns * 2], special_zero=True)


def rotated(x: Value, cos: Value, sin: Value, interleaved: int | None) -> Value:
    """The first 2 * columns numbers of each head turned; the tensors have rank 4, cos and sin `columns` columns."""
    columns, size = cos.type.dims[3], x.type.dims[3]
    if isinstance(columns, int) and columns * 2 == size:
        return _neighbours(x, cos, sin) if interleaved else _halves(x, cos, sin)
    if isinstance(columns, int):
        turned, rest = ops.VariadicSplit(x, 3, [2 * columns, -1])
    else:
        width = joined([dimension(cos, 3) * 2, -1], x)
        turned, rest = ops.VariadicSplit(x, 3, width)
    moved = _neighbours(turned, cos, sin) if interleaved else _halves(turned, cos, sin)
    return ops.Concat(moved, rest, axis=3)


def _halves(x: Value, cos: Value, sin: Value) -> Value:
    columns = dimension(cos, 3)
    lengths: Any = [columns, columns] if isinstance(columns, int) else joined([columns, columns], x)
    first, second = ops.VariadicSplit(x, 3, lengths)
    return ops.Concat(*_turned(first, second, cos, sin), axis=3)


def _neighbours(x: Value, cos: Value, sin: Value) -> Value:
    columns = cos.type.dims[3]
    count = columns if isinstance(columns, int) else -1
    pairs = ops.Reshape(x, [0, 0, 0, count, 2], special_zero=True)
    first, second = (ops.Squeeze(each, [4]) for each in ops.Split(pairs, 4, num_splits=2))
    turned = [ops.Unsqueeze(each, [4]) for each in _turned(first, second, cos, sin)]
    return ops.Reshape(ops.Concat(*turned, axis=4), ops.ShapeOf(x))


def _turned(first: Value, second: Value, cos: Value, sin: Value) -> list[Value]:
    return [
        first * cos - second * sin,
        second * cos + first * sin,
    ]
