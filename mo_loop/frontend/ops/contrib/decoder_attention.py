"""DecoderMaskedMultiHeadAttention: attention of one new token, over a buffer of keys and values or those of an encoder.

With beams, the cache indirection [batch, beams, length] says from which beam of its batch a beam has the key and the
value of a place; the buffer itself stays as it is.
"""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.errors import ModelError
from mo_loop.frontend.contrib_schemas import MICROSOFT
from mo_loop.frontend.ops.contrib import heads as parts
from mo_loop.frontend.ops.contrib.attention import projections
from mo_loop.frontend.ops.shared import dimension, integers, joined, scalar
from mo_loop.frontend.registry import translates
from mo_loop.graph import Value


@translates("DecoderMaskedMultiHeadAttention", since=1, domain=MICROSOFT)
def decoder_masked_attention(
    query, key=None, value=None, mask_index=None, attention_bias=None, past_key=None, past_value=None,
    past_sequence_length=None, beam_width=None, cache_indirection=None, bias=None,
    *, mask_filter_value: float | None = None, num_heads: int, output_qk: int | None = None,
    past_present_share_buffer: int | None = None, scale: float | None = None,
):  # fmt: skip
    """The query is [beams, 1, heads * size]; keys of 4 dimensions are those of an encoder."""
    is_cross = key is not None and key.rank == 4
    if key is None:
        query, key, value = ops.Split(query, 2, num_splits=3).outputs
    q, k, v = projections(query, key, value, bias, num_heads)
    presents: list[Value | None] = [None, None]
    if not is_cross:
        pasts = past_key, past_value
        presents, (k, v) = _with_past(pasts, (k, v), past_sequence_length, bool(past_present_share_buffer))
        k, v = _of_beams([k, v], beam_width, cache_indirection)
    mask = None if mask_index is None else parts.filled(parts.positive(mask_index, [1, 2]), mask_filter_value)
    y, scores = parts.attend(q, k, v, scale, parts.with_bias(mask, attention_bias))
    return [parts.merge_heads(y), *presents, scores]


def _with_past(
    pasts: tuple[Value | None, Value | None], new: tuple[Value, Value], length: Value | None, is_shared: bool
) -> tuple[list[Value | None], list[Value]]:
    """The keys and values that become the past, and those that are read: of a buffer the part in use."""
    if not is_shared:
        every = [parts.appended(past, each) for past, each in zip(pasts, new, strict=True)]
        return [*every], every
    if length is None or None in pasts:
        raise ModelError(
            "DecoderMaskedMultiHeadAttention with past_present_share_buffer has no past_key, past_value or "
            "past_sequence_length", code="ML227",
        )  # fmt: skip
    both = [parts.written(past, each, length) for past, each in zip(pasts, new, strict=True) if past is not None]
    return [buffer for buffer, _ in both], [used for _, used in both]


def _of_beams(caches: list[Value], width: Value | None, indirection: Value | None) -> list[Value]:
    """Keys and values [batch * beams, heads, T, size], each of all places but the last from the beam that has it."""
    known = integers(width)
    if width is None or indirection is None or known == (1,):
        return caches
    like = caches[0]
    total, beams = dimension(like, 2), dimension(indirection, 1)
    own = ops.Unsqueeze(parts.places(beams, like), [1])
    past = total - 1 if isinstance(total, int) else ops.Subtract(total, np.int64(1)).output
    from_other = ops.Less(parts.places(total, like), past)
    if known is None:
        from_other = ops.LogicalAnd(from_other, ops.Greater(scalar(parts.as_i64(width)), np.int64(1)))
    given = ops.Slice(parts.as_i64(indirection), [0], joined([total], like), [1], [2])
    first = ops.Multiply(parts.places(dimension(indirection, 0), like), beams)
    beam = ops.Add(ops.Select(from_other, given, own), ops.Unsqueeze(first, [1, 2]))  # [batch, beams, T]
    rows = ops.Reshape(beam, joined([-1, total], like))
    place = ops.Add(ops.Multiply(rows, total), parts.places(total, like)).output
    return [_gathered(each, place) for each in caches]


def _gathered(cache: Value, place: Value) -> Value:
    """The rows `place` [batch * beams, T] of all sequences, one behind the other."""
    rows = ops.Transpose(cache, [0, 2, 1, 3]).output
    flat = ops.Reshape(rows, joined([-1, dimension(cache, 1), dimension(cache, 3)], cache))
    return ops.Transpose(ops.Gather(flat, place, 0), [0, 2, 1, 3]).output
