"""GroupQueryAttention: several heads of queries read one head of keys and values, which lie in a cache.

The sequence b has `seqlens_k[b]` + 1 tokens after this step, of which the last S (or `query_seqlens[b]`) are new. In
the cache the new ones follow those of the past; rows after them are 0. The first step of all, in which S is
`total_sequence_length`, may have shorter sequences, which end with padding.
"""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.attention import shared_heads as groups
from mo_loop.frontend.ops.attention.rotary_embedding import rotated
from mo_loop.frontend.ops.elementwise.arithmetic import as_type
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import MICROSOFT, UnsupportedError, Value, ops, translates
from mo_loop.ops.lengths import as_i64, dimension, length_in, vector
from mo_loop.ops.ranges import Integers, Matrix, Needed, One, Positive, Rank3, Rank4


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
):  # fmt: skip
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
    rows, total = dimension(q, 2), length_in(total_sequence_length)
    ends = as_i64(vector(seqlens_k)) + 1
    new = rows if query_seqlens is None else as_i64(vector(query_seqlens))
    first = ops.Maximum(ends - new, 0)
    places = ops.Unsqueeze(first, [1]) + counted(rows, q)
    if do_rotary:
        at = places if position_ids is None else _positions(position_ids, rows, total, query_seqlens is None, q)
        cos, sin = (ops.Unsqueeze(ops.Gather(each, at, 0), [1]) for each in (cos_cache, sin_cache))
        q, k = (rotated(each, cos, sin, rotary_interleaved) for each in (q, k))
    present_k, present_v = (_cached(past, each, first, total) for past, each in ((past_key, k), (past_value, v)))
    if past_key is not None:
        k, v = (groups.beginning(each, total) for each in (present_k, present_v))
    window = local_window_size if local_window_size > 0 else 0
    task = groups.Scores(num_heads, kv_num_heads, scale, softcap or 0.0, smooth_softmax == 1)
    keeps = _kept(places, ends, dimension(k, 2), bool(causal), window)
    mask = parts.filled(keeps, parts.LOWEST)
    y, scores, weights = groups.attended(task, [q, k, v], mask, attention_bias, head_sink)
    shown = weights if qk_output == 2 else ops.Select(keeps, scores, np.float32(0))
    return [parts.merge_heads(y), present_k, present_v, as_type(shown, q.dtype)]


def normalised(x: Value, weight: Value, epsilon: float) -> Value:
    """x / sqrt(mean of squares of a head), times the weight."""
    mean = ops.ReduceMean(x * x, [3], keep_dims=True)
    return x * (1 / ops.Sqrt(mean + epsilon)) * weight


def _positions(position_ids: Value, rows: Any, total: Any, may_be_first: bool, q: Value) -> Value:
    """[batch, S]; in the first step of all only the first position is read, and the others follow it."""
    if not may_be_first or (isinstance(rows, int) and isinstance(total, int) and rows != total):
        return position_ids
    start = ops.Slice(ops.Reshape(position_ids, [-1]), [0], [1], [1], [0])
    following = ops.Unsqueeze(counted(rows, q) + start, [0])
    if isinstance(rows, int) and rows == total:
        return following
    is_first = ops.Equal(total, rows) if isinstance(total, Value) else ops.Equal(rows, total)
    return ops.Select(is_first, following, position_ids)


def _cached(past: Value | None, new: Value, first: Value, total: Any) -> Value:
    """The cache after this step: rows of the past before `first`, then the new ones, then zeros."""
    if past is None:
        return new
    held, rows = dimension(past, 2), dimension(new, 2)
    length = max(held, total) if isinstance(held, int) and isinstance(total, int) else _larger(held, total)
    places = counted(length, new)
    behind = places - ops.Unsqueeze(first, [1])  # [batch, length], below 0 in the past
    # All rows in one tensor: those of the past, the new ones, and one of zeros.
    joint = ops.Concat(past, ops.Pad(new, [0, 0, 0, 0], [0, 0, 1, 0], np.zeros((), new.dtype.numpy)), axis=2)
    fresh_row = ops.Minimum(behind, rows) + held
    row = ops.Select(behind < 0, places, fresh_row)
    return groups.chosen(joint, row)


def _larger(a: Any, b: Any) -> Value:
    return ops.Maximum(a, b) if isinstance(a, Value) else ops.Maximum(b, a)


def _kept(places: Value, ends: Value, total: Any, causal: bool, window: int) -> Value:
    """[batch, 1, S, T]: which keys a query reads; those within a window, if that is not 0."""
    keys = counted(total, places)
    kept = groups.earlier(keys, places, ends) if causal else parts.within(ends, None, total, places)
    if window:
        first = ops.Unsqueeze(places, [1, 3]) - window
        kept = kept & (keys > first)
    return kept
