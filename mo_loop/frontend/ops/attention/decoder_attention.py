"""Attention of decoders: DecoderAttention is self attention with keys and values of earlier steps, or attention to
an encoder.

GroupQueryAttention: several heads of queries read one head of keys and values, which lie in a cache.

The sequence b has `seqlens_k[b]` + 1 tokens after this step, of which the last S (or `query_seqlens[b]`) are new. In
the cache the new ones follow those of the past; rows after them are 0. The first step of all, in which S is
`total_sequence_length`, may have shorter sequences, which end with padding.

DecoderMaskedMultiHeadAttention and DecoderMaskedSelfAttention: attention of one new token, over a buffer of keys and
values or those of an encoder.

With beams, the cache indirection [batch, beams, length] names the beam of the batch from which a beam has the key and
the value of a place; the buffer itself stays as it is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention import dot_product_attention as groups
from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.attention.heads import rotated
from mo_loop.frontend.ops.attention.multi_head_attention import projections
from mo_loop.frontend.ops.shared import counted, integers, number
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.ops.lengths import as_i64, joined, length_in, scalar, vector
from mo_loop.ops.ranges import Integers, Matrix, Needed, One, Positive, Rank3, Rank4, Rank5, Vector


@translates("DecoderAttention", since=1, domain=MICROSOFT, ignored="mask_filter_value")
def decoder_attention(
    query: Rank3, key: Rank3, q_weight: Matrix, kv_weight: Matrix, bias: Vector, key_padding_mask: Matrix = None,
    key_cache: Rank4 = None, value_cache: Rank4 = None, static_kv: Needed | One = None, use_past: Needed | One = None,
    has_layer_state: Needed | One = None, has_key_padding_mask: Needed | One = None, *, num_heads: Positive,
    mask_filter_value: float | None = None,
):
    """Tensors of [S, batch, hidden]. Cross attention (`static_kv`) reads `key`, self attention `query`.

    Cross attention takes keys and values of the past as they are, self attention appends to them. `key_padding_mask`
    is true for padding, which has no weight; `mask_filter_value` has no effect in ONNX Runtime either.
    """
    names = ("static_kv", "use_past", "has_layer_state", "has_key_padding_mask")
    given = (static_kv, use_past, has_layer_state, has_key_padding_mask)
    is_cross, reads_past, has_state, is_masked = (_decided(*each) for each in zip(given, names, strict=True))
    of_query, of_rest = ops.VariadicSplit(bias, 0, joined([q_weight.size(1), -1], bias))
    q = _heads_first(query @ q_weight + of_query, num_heads)
    has_past = reads_past and has_state
    if has_past and is_cross:
        k, v = key_cache, value_cache
    else:
        product = (key if is_cross else query) @ kv_weight + of_rest
        k, v = (_heads_first(each, num_heads) for each in ops.Split(product, 2, num_splits=2))
    if has_past and not is_cross:
        k, v = parts.appended(key_cache, k), parts.appended(value_cache, v)
    mask = parts.filled((~key_padding_mask)[:, None, None], parts.LOWEST) if is_masked else None
    y, _ = parts.attend(q, k, v, None, mask)
    return [ops.Transpose(y, [2, 0, 1, 3]).reshape([None, None, query.size(2)]), k, v]


def _decided(flag: Value, name: str) -> bool:
    """The value of a boolean input."""
    known = flag.constant
    if known is None:
        raise UnsupportedError(
            f"the input {name!r} is known only at run time", code="ML314",
            hint="give its tensor a constant value (--input 'NAME->true')",
        )
    return bool(known.reshape(-1)[0])


def _heads_first(x: Value, heads: int) -> Value:
    """[S, batch, heads * size] as [batch, heads, S, size]."""
    return ops.Transpose(parts.rows_of_heads(x, heads), [1, 2, 0, 3])


@translates("GroupQueryAttention", since=1, domain=MICROSOFT, ignored="k_scale v_scale kv_cache_bit_width")
def group_query_attention(
    query: Rank3, key: Rank3 | Rank4 = None, value: Rank3 | Rank4 = None, past_key: Rank4 = None,
    past_value: Rank4 = None, seqlens_k: Needed | Integers = None,
    total_sequence_length: Needed | One | Integers = None, cos_cache: Matrix = None, sin_cache: Matrix = None,
    position_ids=None, attention_bias: Rank4 = None, head_sink=None, k_scale=None, v_scale=None, q_norm_weight=None,
    k_norm_weight=None, query_seqlens=None, *, num_heads: Positive, kv_num_heads: Positive, causal: int = 1,
    do_rotary: int | None = None, k_norm_epsilon: float | None = None, k_quant_type: str = "NONE",
    kv_cache_bit_width: int | None = None, local_window_size: int = -1, q_norm_epsilon: float | None = None,
    qk_norm_epsilon: float = 1e-6, qk_output: int = 0, rotary_interleaved: int | None = None,
    scale: float | None = None, sliding_window_cache: int = 0, smooth_softmax: int = -1, softcap: float | None = None,
    v_quant_type: str = "NONE",
):
    """Q, K and V are inputs of their own, or all in `query`."""
    if sliding_window_cache:
        raise UnsupportedError(
            "sliding_window_cache drops old tokens of the cache: export with a cache of the whole length",
            code="ML316",
        )
    if k_quant_type != "NONE" or v_quant_type != "NONE":
        raise UnsupportedError("a quantised cache: export with a cache of floats", code="ML316")
    q, k, v = groups.separate(query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None:
        q = normalised(q, q_norm_weight, qk_norm_epsilon if q_norm_epsilon is None else q_norm_epsilon)
        k = normalised(k, k_norm_weight, qk_norm_epsilon if k_norm_epsilon is None else k_norm_epsilon)
    rows, total = q.size(2), length_in(total_sequence_length)
    ends = as_i64(vector(seqlens_k)) + 1
    new = rows if query_seqlens is None else as_i64(vector(query_seqlens))
    first = ops.Maximum(ends - new, 0)
    places = first[:, None] + counted(rows, q)
    if do_rotary:
        at = places if position_ids is None else _positions(position_ids, rows, total, query_seqlens is None, q)
        cos, sin = (ops.Gather(each, at, 0)[:, None] for each in (cos_cache, sin_cache))
        q, k = (rotated(each, cos, sin, rotary_interleaved) for each in (q, k))
    present_k, present_v = (_cached(past, each, first, total) for past, each in ((past_key, k), (past_value, v)))
    if past_key is not None:
        k, v = (groups.beginning(each, total) for each in (present_k, present_v))
    window = local_window_size if local_window_size > 0 else 0
    task = groups.Scores(num_heads, kv_num_heads, scale, softcap or 0.0, smooth_softmax == 1)
    keeps = _kept(places, ends, k.size(2), bool(causal), window)
    mask = parts.filled(keeps, parts.LOWEST)
    y, scores, weights = groups.attended(task, [q, k, v], mask, attention_bias, head_sink)
    shown = weights if qk_output == 2 else ops.Select(keeps, scores, np.float32(0))
    return [parts.merge_heads(y), present_k, present_v, shown.astype(q.dtype)]


def normalised(x: Value, weight: Value, epsilon: float) -> Value:
    """x / sqrt(mean of squares of a head), times the weight."""
    mean = ops.ReduceMean(x * x, [3], keep_dims=True)
    return x * (1 / ops.Sqrt(mean + epsilon)) * weight


def _positions(position_ids: Value, rows: Any, total: Any, may_be_first: bool, q: Value) -> Value:
    """[batch, S]; in the first step of all only the first position is read, and the others follow it."""
    if not may_be_first or (isinstance(rows, int) and isinstance(total, int) and rows != total):
        return position_ids
    start = position_ids.reshape([-1])[:1]
    following = (counted(rows, q) + start)[None]
    if isinstance(rows, int) and rows == total:
        return following
    is_first = ops.Equal(total, rows) if isinstance(total, Value) else ops.Equal(rows, total)
    return ops.Select(is_first, following, position_ids)


def _cached(past: Value | None, new: Value, first: Value, total: Any) -> Value:
    """The cache after this step: rows of the past before `first`, then the new ones, then zeros."""
    if past is None:
        return new
    held, rows = past.size(2), new.size(2)
    length = max(held, total) if isinstance(held, int) and isinstance(total, int) else _larger(held, total)
    places = counted(length, new)
    since = places - first[:, None]  # [batch, length], below 0 in the past
    # All rows in one tensor: those of the past, the new ones, and one of zeros.
    joint = ops.Concat(past, ops.Pad(new, [0, 0, 0, 0], [0, 0, 1, 0], number(new, 0)), axis=2)
    fresh_row = ops.Minimum(since, rows) + held
    return groups.chosen(joint, ops.Select(since < 0, places, fresh_row))


def _larger(a: Any, b: Any) -> Value:
    return ops.Maximum(a, b) if isinstance(a, Value) else ops.Maximum(b, a)


def _kept(places: Value, ends: Value, total: Any, causal: bool, window: int) -> Value:
    """[batch, 1, S, T]: which keys a query reads; those within a window, if that is not 0."""
    keys = counted(total, places)
    kept = groups.earlier(keys, places, ends) if causal else parts.within(ends, None, total, places)
    if window:
        kept = kept & (keys > (ops.Unsqueeze(places, [1, 3]) - window))
    return kept


@translates("DecoderMaskedMultiHeadAttention", since=1, domain=MICROSOFT, ignored="output_qk")
def decoder_masked_attention(
    query: Rank3, key: Rank3 | Rank4 = None, value: Rank3 | Rank4 = None, mask_index=None, attention_bias=None,
    past_key: Rank4 = None, past_value: Rank4 = None, past_sequence_length=None, beam_width=None,
    cache_indirection=None, bias: Vector = None, *, mask_filter_value: float | None = None, num_heads: Positive,
    output_qk: int | None = None, past_present_share_buffer: int | None = None, scale: float | None = None,
):
    """The query is [beams, 1, heads * size]; keys without a past are those of an encoder, which include their bias."""
    if (key is None) != (value is None):
        raise ModelError("the node has only one of the key and the value", code="ML227")
    is_cross = key is not None and (key.rank == 4 or past_key is None)
    if key is None:
        query, key, value = ops.Split(query, 2, num_splits=3)
    elif is_cross and key.rank != 4:
        key, value = (parts.split_heads(each, num_heads) for each in (key, value))
    q, k, v = projections(query, key, value, bias, num_heads)
    presents: Sequence[Value] = [k, v]
    if not is_cross:
        pasts = past_key, past_value
        presents, (k, v) = _with_past(pasts, (k, v), past_sequence_length, bool(past_present_share_buffer))
        k, v = _of_beams([k, v], beam_width, cache_indirection)
    y, scores = parts.attend(q, k, v, scale, _mask(mask_index, mask_filter_value, attention_bias))
    return [parts.merge_heads(y), *presents, scores]


@translates("DecoderMaskedSelfAttention", since=1, domain=MICROSOFT)
def decoder_masked_self_attention(
    x: Rank3, weights: Matrix, bias: Vector, mask_index=None, past: Rank5 = None, attention_bias: Rank4 = None,
    past_sequence_length=None, beam_width=None, cache_indirection=None, *, num_heads: Positive,
    do_rotary: int | None = None, mask_filter_value: float | None = None,
    past_present_share_buffer: int | None = None, scale: float | None = None,
):
    """The weights [input size, 3 * D] project the token to Q, K and V."""
    if do_rotary:
        raise UnsupportedError(
            "do_rotary has no CPU kernel to compare with: export RotaryEmbedding and MultiHeadAttention", code="ML316"
        )
    product = x @ weights + bias
    q, k, v = (parts.split_heads(each, num_heads) for each in parts.thirds(product, None))
    past_k, past_v = (ops.Squeeze(each, [0]) for each in ops.Split(past, 0, num_splits=2))
    is_shared = bool(past_present_share_buffer)
    pasts = _in_rows(past_k) if is_shared else past_k, past_v
    (present_k, present_v), (k, v) = _with_past(pasts, (k, v), past_sequence_length, is_shared)
    k, v = _of_beams([k, v], beam_width, cache_indirection)
    y, _ = parts.attend(q, k, v, scale, _mask(mask_index, mask_filter_value, attention_bias))
    return [parts.merge_heads(y), parts.stacked(_in_blocks(present_k) if is_shared else present_k, present_v)]


def _mask(mask_index: Value | None, filter_value: float | None, bias: Value | None) -> Value | None:
    mask = None if mask_index is None else parts.filled(parts.positive(mask_index, [1, 2]), filter_value)
    return parts.with_bias(mask, bias)


def _with_past(
    pasts: Sequence[Value | None], new: Sequence[Value], length: Value | None, is_shared: bool
) -> tuple[Sequence[Value], Sequence[Value]]:
    if is_shared and (length is None or None in pasts):
        raise ModelError(
            "past_present_share_buffer needs a past and past_sequence_length: one of them is missing", code="ML227"
        )
    return parts.with_past(pasts, new, length if is_shared else None)


def _of_beams(caches: Sequence[Value], width: Value | None, indirection: Value | None) -> Sequence[Value]:
    """Keys and values [batch * beams, heads, T, size], each of all places but the last from the beam that has it."""
    known = integers(width)
    if width is None or indirection is None or known == (1,):
        return caches
    like = caches[0]
    total, beams = like.size(2), indirection.size(1)
    own = counted(beams, like)[:, None]
    past = total - 1 if isinstance(total, int) else total - np.int64(1)
    from_other = counted(total, like) < past
    if known is None:
        from_other = from_other & (scalar(as_i64(width)) > np.int64(1))
    given = as_i64(indirection)[:, :, :total]
    first = counted(indirection.size(0), like) * beams
    beam = ops.Select(from_other, given, own) + first[:, None, None]  # [batch, beams, T]
    place = beam.reshape([-1, total]) * total + counted(total, like)
    return [_gathered(each, place) for each in caches]


def _gathered(cache: Value, place: Value) -> Value:
    """The rows `place` [batch * beams, T] of all sequences, one after the other."""
    flat = ops.Transpose(cache, [0, 2, 1, 3]).reshape([-1, cache.size(1), cache.size(3)])
    return ops.Transpose(ops.Gather(flat, place, 0), [0, 2, 1, 3])


def _in_rows(keys: Value) -> Value:
    """A buffer of [batch, heads, size / block, length, block], declared as [batch, heads, length, size], in rows."""
    block = 16 // keys.dtype.numpy.itemsize
    length, size = keys.size(2), keys.size(3)
    blocks = keys.reshape([None, None, -1, length, block])
    return ops.Transpose(blocks, [0, 1, 3, 2, 4]).reshape([None, None, None, size])


def _in_blocks(keys: Value) -> Value:
    """Rows of keys as they lie in a buffer."""
    block = 16 // keys.dtype.numpy.itemsize
    blocks = keys.reshape([None, None, None, -1, block])
    shape: Any = keys.sizes
    return ops.Reshape(ops.Transpose(blocks, [0, 1, 3, 2, 4]), shape)
