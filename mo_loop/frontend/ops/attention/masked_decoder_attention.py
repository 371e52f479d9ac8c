"""DecoderMaskedMultiHeadAttention and DecoderMaskedSelfAttention: attention of one new token, over a buffer of keys and
values or those of an encoder.

With beams, the cache indirection [batch, beams, length] names the beam of the batch from which a beam has the key and
the value of a place; the buffer itself stays as it is.
"""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.attention.multi_head_attention import projections
from mo_loop.frontend.ops.shared import counted, integers
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.ops.lengths import as_i64, dimension, joined, scalar
from mo_loop.ops.ranges import Matrix, Positive, Rank3, Rank4, Rank5, Vector


@translates("DecoderMaskedMultiHeadAttention", since=1, domain=MICROSOFT, ignored="output_qk")
def decoder_masked_attention(
    query: Rank3, key: Rank3 | Rank4 = None, value: Rank3 | Rank4 = None, mask_index=None, attention_bias=None,
    past_key: Rank4 = None, past_value: Rank4 = None, past_sequence_length=None, beam_width=None,
    cache_indirection=None, bias: Vector = None, *, mask_filter_value: float | None = None, num_heads: Positive,
    output_qk: int | None = None, past_present_share_buffer: int | None = None, scale: float | None = None,
):  # fmt: skip
    """The query is [beams, 1, heads * size]; keys without a past are those of an encoder, which include their bias."""
    if (key is None) != (value is None):
        raise ModelError("keys without values, or values without keys", code="ML227")
    is_cross = key is not None and (key.rank == 4 or past_key is None)
    if key is None:
        query, key, value = ops.Split(query, 2, num_splits=3)
    elif is_cross and key.rank != 4:
        key, value = (parts.split_heads(each, num_heads) for each in (key, value))
    q, k, v = projections(query, key, value, bias, num_heads)
    presents: list[Any] = [k, v]
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
):  # fmt: skip
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
    pasts: tuple[Value | None, Value | None], new: tuple[Value, Value], length: Value | None, is_shared: bool
) -> tuple[list[Any], list[Value]]:
    """The keys and values that become the past, and those that are read: of a buffer the part in use."""
    if not is_shared:
        every = [parts.appended(past, each) for past, each in zip(pasts, new, strict=True)]
        return [*every], every
    if length is None or None in pasts:
        raise ModelError(
            "past_present_share_buffer needs a past and past_sequence_length: one of them is missing", code="ML227"
        )
    both = [parts.written(past, each, length) for past, each in zip(pasts, new, strict=True) if past is not None]
    return [buffer for buffer, _ in both], [used for _, used in both]


def _of_beams(caches: list[Value], width: Value | None, indirection: Value | None) -> list[Value]:
    """Keys and values [batch * beams, heads, T, size], each of all places but the last from the beam that has it."""
    known = integers(width)
    if width is None or indirection is None or known == (1,):
        return caches
    like = caches[0]
    total, beams = dimension(like, 2), dimension(indirection, 1)
    own = ops.Unsqueeze(counted(beams, like), [1])
    past = total - 1 if isinstance(total, int) else total - np.int64(1)
    from_other = counted(total, like) < past
    if known is None:
        from_other = from_other & (scalar(as_i64(width)) > np.int64(1))
    given = ops.Slice(as_i64(indirection), [0], joined([total], like), [1], [2])
    first = counted(dimension(indirection, 0), like) * beams
    beam = ops.Select(from_other, given, own) + ops.Unsqueeze(first, [1, 2])  # [batch, beams, T]
    rows = ops.Reshape(beam, joined([-1, total], like))
    place = rows * total + counted(total, like)
    return [_gathered(each, place) for each in caches]


def _gathered(cache: Value, place: Value) -> Value:
    """The rows `place` [batch * beams, T] of all sequences, one after the other."""
    rows = ops.Transpose(cache, [0, 2, 1, 3])
    flat = ops.Reshape(rows, joined([-1, dimension(cache, 1), dimension(cache, 3)], cache))
    return ops.Transpose(ops.Gather(flat, place, 0), [0, 2, 1, 3])


# -- buffers of DecoderMaskedSelfAttention


def _block(keys: Value) -> int:
    """The numbers of a key that are adjacent in a buffer: 16 bytes."""
    return 16 // keys.dtype.numpy.itemsize


def _in_rows(keys: Value) -> Value:
    """A buffer of [batch, heads, size / block, length, block], declared as [batch, heads, length, size], in rows."""
    block = _block(keys)
    length, size = dimension(keys, 2), dimension(keys, 3)
    blocks = ops.Reshape(keys, joined([0, 0, -1, length, block], keys), special_zero=True)
    return ops.Reshape(ops.Transpose(blocks, [0, 1, 3, 2, 4]), joined([0, 0, 0, size], keys), special_zero=True)


def _in_blocks(keys: Value) -> Value:
    """Rows of keys as they lie in a buffer."""
    block = _block(keys)
    blocks = ops.Reshape(keys, [0, 0, 0, -1, block], special_zero=True)
    shape: Any = ops.ShapeOf(keys)
    return ops.Reshape(ops.Transpose(blocks, [0, 1, 3, 2, 4]), shape)
