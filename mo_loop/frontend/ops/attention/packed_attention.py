"""PackedAttention, PackedMultiHeadAttention, RemovePadding, RestorePadding: sequences in a row, without padding.

    a batch of 3 sequences            0  *  *  *     token_offset                  0 4 5 8 9 10 11, then 1 2 3 6 7
    with padding (*) on the right     4  5  *  *     cumulative_sequence_length    0 1 3 7
                                      8  9 10 11

Packed tensors hold the tokens 0 4 5 8 9 10 11. Attention is computed with the padding restored: the scores of [batch,
S, S] pairs are fewer than those of all pairs of tokens.
"""

import numpy as np

from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.ops.shared import converted, counted
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, Value, ops, translates
from mo_loop.graph.types import i64
from mo_loop.ops.lengths import as_i64, dimension, joined, vector
from mo_loop.ops.ranges import Integers, Matrix, Needed, Positive, Rank3, Rank4, Vector


@translates("RemovePadding", since=1, domain=MICROSOFT)
def remove_padding(x: Rank3, sequence_token_count: Vector | Integers):
    """The tokens of [batch, S, hidden]; the offsets of tokens, then of padding; the lengths so far; the largest."""
    counts = as_i64(vector(sequence_token_count))
    kept = counted(dimension(x, 1), x) < ops.Unsqueeze(counts, [1])
    tokens, padding = (_where(each) for each in (kept, ~kept))
    rows = ops.Reshape(x, joined([-1, dimension(x, 2)], x))
    offsets = ops.Reshape(ops.Concat(tokens, padding, axis=0), joined([dimension(x, 0), dimension(x, 1)], x))
    lengths = ops.Concat(np.zeros(1, np.int64), ops.CumSum(counts, 0), axis=0)
    numbers = [offsets, lengths, ops.ReduceMax(counts, [0], keep_dims=True)]
    return [ops.Gather(rows, tokens, 0), *(converted(each, sequence_token_count.dtype) for each in numbers)]


def _where(flags: Value) -> Value:
    """The places of those that hold, counted through all of them."""
    return ops.Reshape(ops.NonZero(ops.Reshape(flags, [-1]), output_type=i64), [-1])


@translates("RestorePadding", since=1, domain=MICROSOFT)
def restore_padding(x: Matrix, token_offset: Matrix | Integers):
    """[batch, S, hidden]: the tokens at their offsets, and zeros between them."""
    return restored(x, token_offset, token_offsets(token_offset, x))


@translates("PackedAttention", since=1, domain=MICROSOFT)
def packed_attention(
    x: Matrix, weights: Matrix, bias: Vector, token_offset: Matrix | Integers,
    cumulative_sequence_length: Vector | Integers, attention_bias: Rank4 = None, *, num_heads: Positive,
    qkv_hidden_sizes: tuple[int, ...] | None = None, scale: float | None = None,
):  # fmt: skip
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
):  # fmt: skip
    """Q, K and V are inputs of their own, or packed as [tokens, heads, 3, size].

    `mask_filter_value` has no effect: the keys of padding do not exist.
    """
    used = token_offsets(token_offset, query)
    if key is not None and value is not None:
        tensors = [restored(each, token_offset, used) for each in (query, key, value)]
    elif ranked(query, "PackedMultiHeadAttention") == 4:
        tensors = parts.split_packed(restored(query, token_offset, used), 3)
    else:
        raise ModelError(
            "PackedMultiHeadAttention has neither a key and a value, nor a query of [tokens, heads, 3, size]",
            code="ML227",
        )
    return _attended(parts.all_split(tensors, bias, num_heads), cumulative_sequence_length, attention_bias, scale, used)


def token_offsets(token_offset: Value, x: Value) -> Value:
    """The offsets of the tokens [tokens, ..], which precede those of padding."""
    return ops.Slice(ops.Reshape(token_offset, [-1]), [0], joined([dimension(x, 0)], x), [1], [0])


def restored(x: Value, token_offset: Value, used: Value) -> Value:
    """[tokens, ..] as [batch, S, ..]."""
    rest = [dimension(x, axis) for axis in range(1, ranked(x, "a packed tensor"))]
    count = dimension(ops.Reshape(token_offset, [-1]), 0)
    zeros = ops.Broadcast(np.zeros((), x.dtype.numpy), joined([count, *rest], x))
    filled = ops.ScatterUpdate(zeros, used, x, 0)
    return ops.Reshape(filled, joined([dimension(token_offset, 0), dimension(token_offset, 1), *rest], x))


def _attended(tensors: list[Value], ends: Value, bias: Value | None, scale: float | None, used: Value) -> Value:
    """The result for the tokens, from Q, K and V of [batch, heads, S, size]."""
    q, k, v = tensors
    lengths = ops.Slice(ends, [1], [2**31 - 1], [1], [0]) - ops.Slice(ends, [0], [-1], [1], [0])
    mask = parts.filled(parts.within(lengths, None, dimension(k, 2), q), parts.LOWEST)
    y, _ = parts.attend(q, k, v, scale, parts.with_bias(mask, bias))
    rows = parts.merge_heads(y)
    return ops.Gather(ops.Reshape(rows, joined([-1, dimension(rows, 2)], rows)), used, 0)
