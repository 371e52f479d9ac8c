"""DecoderAttention and DecoderMaskedSelfAttention: the attention of decoders, with keys and values of earlier steps."""

from __future__ import annotations

from typing import Any

from mo_loop import ops
from mo_loop.errors import UnsupportedError
from mo_loop.frontend.contrib_schemas import MICROSOFT
from mo_loop.frontend.ops.contrib import heads as parts
from mo_loop.frontend.ops.shared import dimension, joined
from mo_loop.frontend.registry import translates
from mo_loop.graph import Value

# -- DecoderAttention


@translates("DecoderAttention", since=1, domain=MICROSOFT)
def decoder_attention(
    query, key, q_weight, kv_weight, bias, key_padding_mask=None, key_cache=None, value_cache=None, static_kv=None,
    use_past=None, has_layer_state=None, has_key_padding_mask=None,
    *, num_heads: int, mask_filter_value: float | None = None,
):  # fmt: skip
    """Tensors of [S, batch, hidden]. Cross attention (`static_kv`) reads `key`, self attention `query`.

    Cross attention takes keys and values of the past as they are, self attention appends to them. `key_padding_mask`
    is true for padding, which has no weight; `mask_filter_value` has no effect in ONNX Runtime either.
    """
    names = ("static_kv", "use_past", "has_layer_state", "has_key_padding_mask")
    given = (static_kv, use_past, has_layer_state, has_key_padding_mask)
    is_cross, reads_past, has_state, is_masked = (_decided(*each) for each in zip(given, names, strict=True))
    of_query, of_rest = ops.VariadicSplit(bias, 0, joined([dimension(q_weight, 1), -1], bias)).outputs
    q = _heads_first(ops.Add(ops.MatMul(query, q_weight), of_query).output, num_heads)
    has_past = reads_past and has_state
    if has_past and is_cross:
        k, v = key_cache, value_cache
    else:
        product = ops.Add(ops.MatMul(key if is_cross else query, kv_weight), of_rest)
        k, v = (_heads_first(each, num_heads) for each in ops.Split(product, 2, num_splits=2).outputs)
    if has_past and not is_cross:
        k, v = parts.appended(key_cache, k), parts.appended(value_cache, v)
    mask = None
    if is_masked:
        mask = parts.filled(ops.Unsqueeze(ops.LogicalNot(key_padding_mask), [1, 2]).output, parts.LOWEST)
    y, _ = parts.attend(q, k, v, None, mask)
    rows = ops.Transpose(y, [2, 0, 1, 3])
    return [ops.Reshape(rows, joined([0, 0, dimension(query, 2)], query), special_zero=True), k, v]


def _decided(flag: Value, name: str) -> bool:
    """The value of a boolean input."""
    known = flag.constant
    if known is None:
        raise UnsupportedError(
            f"{name} of DecoderAttention is known only at run time: set it with --input, as in 'NAME->true'",
            code="ML314",
        )
    return bool(known.reshape(-1)[0])


def _heads_first(x: Value, heads: int) -> Value:
    """[S, batch, heads * size] as [batch, heads, S, size]."""
    return ops.Transpose(parts.rows_of_heads(x, heads), [1, 2, 0, 3]).output


# -- DecoderMaskedSelfAttention


@translates("DecoderMaskedSelfAttention", since=1, domain=MICROSOFT)
def decoder_masked_self_attention(
    x, weights, bias, mask_index=None, past=None, attention_bias=None, past_sequence_length=None, beam_width=None,
    cache_indirection=None,
    *, num_heads: int, do_rotary: int | None = None, mask_filter_value: float | None = None,
    past_present_share_buffer: int | None = None, scale: float | None = None,
):  # fmt: skip
    """Attention of one token to those of the past, which other beams may have written (`cache_indirection`)."""
    if do_rotary:
        raise UnsupportedError(
            "do_rotary has no CPU kernel to compare with: export RotaryEmbedding and MultiHeadAttention", code="ML314"
        )
    product = ops.Add(ops.MatMul(x, weights), bias).output
    q, k, v = (parts.split_heads(each, num_heads) for each in parts.thirds(product, None))
    past_k, past_v = (ops.Squeeze(each, [0]).output for each in ops.Split(past, 0, num_splits=2).outputs)
    if past_present_share_buffer:
        past_k = _in_rows(past_k)
        present_k, _ = parts.written(past_k, k, past_sequence_length)
        present_v, _ = parts.written(past_v, v, past_sequence_length)
        present = parts.stacked(_in_blocks(present_k), present_v)
        end = joined([parts.known_length(past_sequence_length)], x)
        past_k, past_v = (ops.Slice(each, [0], end, [1], [2]).output for each in (past_k, past_v))
    else:
        present = parts.stacked(parts.appended(past_k, k), parts.appended(past_v, v))
    if cache_indirection is not None:
        past_k, past_v = (_of_beams(each, cache_indirection) for each in (past_k, past_v))
    mask = None
    if mask_index is not None:
        mask = parts.filled(parts.positive(mask_index, [1, 2]), mask_filter_value)
    mask = parts.with_bias(mask, attention_bias)
    y, _ = parts.attend(q, parts.appended(past_k, k), parts.appended(past_v, v), scale, mask)
    return [parts.merge_heads(y), present]


def _block(keys: Value) -> int:
    """How many numbers of a key are neighbours in a buffer: 16 bytes."""
    return 16 // keys.dtype.numpy.itemsize


def _in_rows(keys: Value) -> Value:
    """A buffer of [batch, heads, size / block, length, block], declared as [batch, heads, length, size], in rows."""
    block = _block(keys)
    length, size = dimension(keys, 2), dimension(keys, 3)
    blocks = ops.Reshape(keys, joined([0, 0, -1, length, block], keys), special_zero=True)
    return ops.Reshape(ops.Transpose(blocks, [0, 1, 3, 2, 4]), joined([0, 0, 0, size], keys), special_zero=True).output


def _in_blocks(keys: Value) -> Value:
    """Rows of keys as they lie in a buffer."""
    block = _block(keys)
    blocks = ops.Reshape(keys, [0, 0, 0, -1, block], special_zero=True)
    shape: Any = ops.ShapeOf(keys)
    return ops.Reshape(ops.Transpose(blocks, [0, 1, 3, 2, 4]), shape).output


def _of_beams(past: Value, beams: Value) -> Value:
    """The past [batch * beams, heads, T, size] of each beam; `beams` [batch, beams, length] says which beam wrote."""
    length = dimension(past, 2)
    width = dimension(beams, 1)
    apart = ops.Reshape(past, joined([-1, width, *(dimension(past, axis) for axis in (1, 2, 3))], past)).output
    used = ops.Slice(beams, [0], joined([length], beams), [1], [2])
    wanted = ops.Broadcast(ops.Unsqueeze(used, [2, 4]), ops.ShapeOf(apart))
    return ops.Reshape(ops.GatherElements(apart, wanted, axis=1), ops.ShapeOf(past)).output
