"""Attention and MultiHeadAttention: softmax(scale * Q K^T + mask) V for each head.

A mask of integers marks the keys that are padding; `mask_filter_value` is added to their scores. Of 1-D masks the first
`batch` numbers are the ends of the sequences; in Attention, 2 * batch numbers are the ends followed by the starts.

PackedAttention, PackedMultiHeadAttention, RemovePadding, RestorePadding: sequences in a row, without padding.

    a batch of 3 sequences            0  *  *  *     token_offset                  0 4 5 8 9 10 11, then 1 2 3 6 7
    with padding (*) on the right     4  5  *  *     cumulative_sequence_length    0 1 3 7
                                      8  9 10 11

Packed tensors hold the tokens 0 4 5 8 9 10 11. Attention is computed with the padding restored: the scores of [batch,
S, S] pairs are fewer than those of all pairs of tokens. A position bias are numbers that attention adds to its scores,
from the distance between a query and a key.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.context import as_values
from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.quantization.quantization import mat_mul_integer
from mo_loop.frontend.ops.shared import counted, counted_up, number, ranked
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import i64
from mo_loop.ops.lengths import as_i64, joined, length_in, vector
from mo_loop.ops.ranges import Integers, Matrix, Needed, NotNegative, One, Positive, Rank3, Rank4, Rank5, Vector


@translates("MultiHeadAttention", since=1, domain=MICROSOFT)
def multi_head_attention(
    query: Rank3 | Rank5, key: Rank3 | Rank4 | Rank5 = None, value: Rank3 | Rank4 = None, bias: Vector = None,
    key_padding_mask=None, attention_bias: Rank4 = None, past_key: Rank4 = None, past_value: Rank4 = None,
    past_sequence_length=None, cache_indirection=None, *, num_heads: Positive, mask_filter_value: float | None = None,
    scale: float | None = None, unidirectional: int = 0,
):
    """Q, K and V are inputs of their own, or packed as [batch, S, heads, 3 or 2, size]."""
    if cache_indirection is not None:
        raise UnsupportedError("cache_indirection is an input of DecoderMaskedMultiHeadAttention only", code="ML316")
    q, k, v = projections(query, key, value, bias, num_heads)
    new, same = k.size(2), q.type.dims[2] == k.type.dims[2]
    length = None if past_key is None else past_sequence_length
    past = parts.count_before(past_key, length)
    presents, (k, v) = parts.with_past((past_key, past_value), (k, v), length)
    total = past + new
    mask = None
    if key_padding_mask is not None:
        mask = parts.filled(_padding(key_padding_mask, q, total, with_starts=False), mask_filter_value)
    if unidirectional:
        mask = _and_causal(mask, q, past, total, same)
    y, scores = parts.attend(q, k, v, scale, parts.with_bias(mask, attention_bias))
    return [parts.merge_heads(y), *presents, scores]


def projections(query: Value, key: Value | None, value: Value | None, bias: Value | None, heads: int) -> list[Value]:
    """Q, K and V as [batch, heads, S or T, size], with their parts of the bias added."""
    if key is None:
        if ranked(query) != 5:
            raise UnsupportedError(
                "a packed query of 3 dimensions: export it with 5 dimensions, [batch, S, heads, 3, size]", code="ML316"
            )
        return parts.all_split(parts.split_packed(query, 3), bias, heads)
    if ranked(key, "the key") == 5:
        return parts.all_split([query, *parts.split_packed(key, 2)], bias, heads)
    if value is None:
        raise ModelError("MultiHeadAttention has a key without a value", code="ML227")
    if key.rank == 4:  # keys and values of the past, as cross attention has them, include their bias
        return [*parts.all_split([query], bias, heads), key, value]
    return parts.all_split([query, key, value], bias, heads)


@translates("Attention", since=1, domain=MICROSOFT, ignored="rotary_embedding_dim")
def attention(
    x: Rank3, weights: Matrix, bias: Vector = None, mask_index=None, past: Rank5 = None, attention_bias: Rank4 = None,
    past_sequence_length=None, *, num_heads: Positive, do_rotary: int | None = None,
    mask_filter_value: float | None = None, past_present_share_buffer: int | None = None,
    qkv_hidden_sizes: tuple[int, ...] | None = None, rotary_embedding_dim: NotNegative | None = None,
    scale: float | None = None, unidirectional: int = 0,
):
    """The weights [input size, D + D + D_v] project the input to Q, K and V."""
    if do_rotary:
        raise UnsupportedError(
            "do_rotary has no CPU kernel to compare with: export RotaryEmbedding and MultiHeadAttention", code="ML316"
        )
    product = x @ weights
    if bias is not None:
        product = product + bias
    length = past_sequence_length if past_present_share_buffer else None
    inputs = [mask_index, past, attention_bias, length]
    return _attention_of(product, inputs, num_heads, qkv_hidden_sizes, scale, mask_filter_value, bool(unidirectional))


@translates("QAttention", since=1, domain=MICROSOFT)
def quantised_attention(
    x: Rank3, weight: Matrix, bias: Vector, input_scale: One, weight_scale, mask_index=None, input_zero_point=None,
    weight_zero_point=None, past: Rank5 = None, *, num_heads: Positive, do_rotary: int | None = None,
    mask_filter_value: float | None = None, past_present_share_buffer: int | None = None, scale: float | None = None,
    unidirectional: int = 0,
):
    """Attention whose projection is an exact product of integers; the rest is computed with floats."""
    if do_rotary or past_present_share_buffer:
        raise UnsupportedError(
            "do_rotary and past_present_share_buffer of QAttention have no CPU kernel to compare with: export without",
            code="ML316",
        )
    whole = as_values(mat_mul_integer(x, weight, input_zero_point, weight_zero_point))[0]
    factor = input_scale * weight_scale
    product = whole.astype(bias.dtype) * factor + bias
    inputs = [mask_index, past, None, None]
    return _attention_of(product, inputs, num_heads, None, scale, mask_filter_value, bool(unidirectional))


def _attention_of(
    product: Value, inputs: Sequence[Value | None], heads: int, sizes: tuple[int, ...] | None, scale: float | None,
    filter_value: float | None, unidirectional: bool,
) -> list[Any]:
    """The outputs for Q, K and V side by side; `inputs` are the mask, the past, a bias and the length in a buffer."""
    mask_input, past, bias, length = inputs
    q, k, v = (parts.split_heads(each, heads) for each in parts.thirds(product, sizes))
    new = k.size(2)
    pasts: Sequence[Value | None] = (None, None)
    if past is not None:
        pasts = [ops.Squeeze(each, [0]) for each in ops.Split(past, 0, num_splits=2)]
    length = None if past is None else length
    before = parts.count_before(pasts[0], length)
    presents, (k, v) = parts.with_past(pasts, (k, v), length)
    present = parts.stacked(*presents)
    total = before + new
    mask = None
    # One number for each sequence is the same for all of its keys.
    if mask_input is not None and (mask_input.rank != 2 or mask_input.type.dims[1] != 1):
        mask = parts.filled(_padding(mask_input, q, total, with_starts=True), filter_value)
    if unidirectional:
        mask = _and_causal(mask, q, before, total, True)
    y, _ = parts.attend(q, k, v, scale, parts.with_bias(mask, bias))
    return [parts.merge_heads(y), present]


def _padding(mask: Value, q: Value, total: Any, *, with_starts: bool) -> Value:
    """The mask of the keys that are kept, to be broadcast to [batch, heads, S, T].

    The mask is [batch], [2 * batch], [3 * batch + 2], [batch, T], [batch, S, T] or [batch, 1, M, M].
    """
    rank = ranked(mask, "the mask")
    if rank == 1:
        return _ends_and_starts(mask, q, total, with_starts)
    if rank == 2:
        kept = parts.positive(mask, [1, 2])
        if with_starts and not isinstance(mask.type.dims[1], int):  # one number for each sequence keeps all keys
            kept = ops.LogicalOr(kept, ops.Equal(mask.size(1), 1))
        return kept
    if rank == 3:
        return parts.positive(mask, [1])
    end = joined([total], mask)
    rows = mask[:, :, end - joined([q.size(2)], mask) : end]  # of the queries
    return parts.positive(rows[:, :, :, :end], [])


def _ends_and_starts(mask: Value, q: Value, total: Any, with_starts: bool) -> Value:
    length, batch = mask.type.dims[0], q.type.dims[0]
    if length == batch:
        return parts.within(mask, None, total, q)
    count = joined([q.size(0)], q)
    ends = mask[:count]
    if not with_starts:
        return parts.within(ends, None, total, q)
    twice = count * 2
    starts = mask[count:twice]
    if isinstance(length, int) and length == 2 * batch:
        return parts.within(ends, starts, total, q)
    if isinstance(length, int) and isinstance(batch, int):
        return parts.within(ends, None, total, q)
    has = ops.Equal(joined([mask.size(0)], mask), twice)
    none = ends * number(mask, 0)
    read = ops.Concat(mask, none, axis=0)[count:twice]
    return parts.within(ends, ops.Select(has, read, none), total, q)


def _and_causal(mask: Value | None, q: Value, past: Any, total: Any, same: bool) -> Value:
    """The mask with the score of every key after its query replaced by the smallest number."""
    return parts.filled(parts.causal(past, q.size(2), total, q, same), parts.LOWEST, mask)


@translates("RemovePadding", since=1, domain=MICROSOFT)
def remove_padding(x: Rank3, sequence_token_count: Vector | Integers):
    """The tokens of [batch, S, hidden]; the offsets of tokens, then of padding; the lengths so far; the largest."""
    counts = as_i64(vector(sequence_token_count))
    kept = counted(x.size(1), x) < counts[:, None]
    tokens, padding = (ops.NonZero(each.reshape([-1]), output_type=i64).reshape([-1]) for each in (kept, ~kept))
    rows = x.reshape([-1, x.size(2)])
    offsets = ops.Concat(tokens, padding, axis=0).reshape([x.size(0), x.size(1)])
    lengths = ops.Concat(np.zeros(1, np.int64), ops.CumSum(counts, 0), axis=0)
    numbers = [offsets, lengths, ops.ReduceMax(counts, [0], keep_dims=True)]
    return [ops.Gather(rows, tokens, 0), *(each.astype(sequence_token_count.dtype) for each in numbers)]


@translates("RestorePadding", since=1, domain=MICROSOFT)
def restore_padding(x: Matrix, token_offset: Matrix | Integers):
    """[batch, S, hidden]: the tokens at their offsets, and zeros between them."""
    return restored(x, token_offset, token_offsets(token_offset, x))


@translates("PackedAttention", since=1, domain=MICROSOFT)
def packed_attention(
    x: Matrix, weights: Matrix, bias: Vector, token_offset: Matrix | Integers,
    cumulative_sequence_length: Vector | Integers, attention_bias: Rank4 = None, *, num_heads: Positive,
    qkv_hidden_sizes: tuple[int, ...] | None = None, scale: float | None = None,
):
    """The weights [input size, D + D + D_v] project the tokens to Q, K and V."""
    used = token_offsets(token_offset, x)
    product = restored(x @ weights + bias, token_offset, used)
    tensors = [parts.split_heads(each, num_heads) for each in parts.thirds(product, qkv_hidden_sizes)]
    return _attended(tensors, cumulative_sequence_length, attention_bias, scale, used)


@translates("PackedMultiHeadAttention", since=1, domain=MICROSOFT, ignored="mask_filter_value")
def packed_multi_head_attention(
    query: Matrix | Rank4, key: Matrix = None, value: Matrix = None, bias: Vector = None,
    token_offset: Needed | Matrix | Integers = None, cumulative_sequence_length: Needed | Vector | Integers = None,
    attention_bias: Rank4 = None, *, num_heads: Positive, mask_filter_value: float | None = None,
    scale: float | None = None,
):
    """Q, K and V are inputs of their own, or packed as [tokens, heads, 3, size].

    `mask_filter_value` has no effect: the keys of padding do not exist.
    """
    used = token_offsets(token_offset, query)
    if key is not None and value is not None:
        tensors = [restored(each, token_offset, used) for each in (query, key, value)]
    elif ranked(query, "the query") == 4:
        tensors = parts.split_packed(restored(query, token_offset, used), 3)
    else:
        raise ModelError(
            "PackedMultiHeadAttention has neither a key and a value, nor a query of [tokens, heads, 3, size]",
            code="ML227",
        )
    return _attended(parts.all_split(tensors, bias, num_heads), cumulative_sequence_length, attention_bias, scale, used)


def token_offsets(token_offset: Value, x: Value) -> Value:
    """The offsets of the tokens [tokens, ..], which precede those of padding."""
    return token_offset.reshape([-1])[: x.size(0)]


def restored(x: Value, token_offset: Value, used: Value) -> Value:
    """[tokens, ..] as [batch, S, ..]."""
    rest = [x.size(axis) for axis in range(1, ranked(x, "a packed tensor"))]
    count = token_offset.reshape([-1]).size(0)
    filled = ops.ScatterUpdate(ops.Broadcast(number(x, 0), joined([count, *rest], x)), used, x, 0)
    return filled.reshape([token_offset.size(0), token_offset.size(1), *rest])


def _attended(tensors: list[Value], ends: Value, bias: Value | None, scale: float | None, used: Value) -> Value:
    """The result for the tokens, from Q, K and V of [batch, heads, S, size]."""
    q, k, v = tensors
    mask = parts.filled(parts.within(ends[1:] - ends[:-1], None, k.size(2), q), parts.LOWEST)
    y, _ = parts.attend(q, k, v, scale, parts.with_bias(mask, bias))
    rows = parts.merge_heads(y)
    return ops.Gather(rows.reshape([-1, rows.size(2)]), used, 0)


@translates("RelativePositionBias", since=1, domain=MICROSOFT)
def relative_position_bias(
    bias_table: Matrix, query_length: One | Integers, key_length: One | Integers, *, is_bidirectional: int = 0,
    max_distance: int,
):
    """[1, heads, S, T] as in T5: near distances have a bucket each, far ones share buckets of growing width.

    The elements of the table lie in memory as [heads, buckets], although its shape is [buckets, heads]. All
    distances from `max_distance` on are in one bucket, so a table of the distances up to there is computed here.
    """
    buckets, heads = (bias_table.shape or (None, None))[:2]
    if not isinstance(buckets, int) or not isinstance(heads, int):
        raise UnsupportedError(
            "the shape of bias_table is unknown", code="ML314", hint="make it a constant, or declare it (--input)"
        )
    at = _buckets(buckets, max_distance, bool(is_bidirectional))
    of_distance = ops.Gather(bias_table.reshape([heads, buckets]), at, 1)
    queries, keys = (counted(length_in(each), bias_table) for each in (query_length, key_length))
    distance = keys - queries[:, None]
    row = ops.Minimum(ops.Maximum(distance, -max_distance), max_distance) + max_distance
    return ops.Gather(of_distance, row, 1)[None]


def _buckets(count: int, largest: int, both: bool) -> Any:
    """The buckets of the distances (key - query) from -largest to largest.

    Logarithms of distances are computed in f32, and that of `max_distance` in f64, as by the models that were trained
    with these buckets: some are just at the border of two.
    """
    distances = counted_up(-largest, largest + 1)
    half = count // 2 if both else count
    exact = half // 2
    if not 0 < exact < largest:
        raise ModelError(
            f"{count} buckets and a max_distance of {largest}: the distances below {exact} have buckets of their own, "
            "and max_distance must be larger",
            code="ML227",
        )
    far = np.abs(distances) if both else np.maximum(-distances, 0)
    ratio = np.maximum(far, exact).astype(np.float32) / np.float32(exact)
    scaled = np.log(ratio) / np.float32(math.log(largest / exact)) * np.float32(half - exact)
    bucket = np.where(far < exact, far, np.minimum(exact + scaled.astype(np.int64), half - 1))
    return bucket + half * (distances > 0) if both else bucket


@translates("GatedRelativePositionBias", since=1, domain=MICROSOFT)
def gated_relative_position_bias(
    query_layer: Matrix | Rank3, query_bias: Vector, rel_pos: Rank4, weight: Matrix, bias: Vector, eco_a,
    token_offset: Matrix = None, *, num_heads: Positive,
):
    """[batch, heads, S, T]: rel_pos * (u * (r * eco_a - 1) + 2), where u and r are the sigmoids of two sums of the
    projected query. Queries without padding are [tokens, hidden], and `token_offset` [batch, S] has their places.
    """
    query = query_layer
    if token_offset is not None:
        query = restored(query, token_offset, token_offsets(token_offset, query))
    if ranked(query, "query_layer") != 3:
        raise ModelError("a query_layer of [tokens, hidden] needs the input token_offset", code="ML227")
    projected = parts.split_heads(query + query_bias, num_heads) @ weight + bias
    halves = ops.Split(projected, 3, num_splits=2)
    u, r = (ops.Sigmoid(ops.ReduceSum(each, [3], keep_dims=True)) for each in halves)
    return (u * (r * eco_a - 1) + 2) * rel_pos
