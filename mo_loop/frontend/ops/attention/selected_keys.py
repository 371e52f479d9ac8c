"""DynamicSparseAttention: queries read the keys that another operator has selected, and those of a window.

The row b * S + s of `selected_indices` belongs to the query s of the sequence b; its first `selected_counts` numbers
are places in the cache (mode selected_only) or in an auxiliary sequence of keys (mode local_plus_selected), in which
the query also reads the last `local_window_size` places of the cache up to its own. The sequence b has `seqlens_k[b]`
+ 1 tokens after this step, of which the last S are new.
"""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.attention import shared_heads as groups
from mo_loop.frontend.ops.attention.grouped_query_attention import normalised
from mo_loop.frontend.ops.attention.rotary_embedding import rotated
from mo_loop.frontend.ops.attention.sparse_attention import with_rows
from mo_loop.frontend.ops.elementwise.arithmetic import as_type
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import bf16, f32, i8
from mo_loop.ops.lengths import as_i64, as_value, dimension, joined, length_in, vector
from mo_loop.ops.ranges import Integers, Matrix, Needed, One, Positive, Rank3, Rank4

_COMBINATIONS = {("selected_only", "main"): False, ("local_plus_selected", "auxiliary"): True}
"""attention_mode and selected_kv_source -> whether the auxiliary sequence is read."""


@translates("DynamicSparseAttention", since=1, domain=MICROSOFT, ignored="committed_length")
def dynamic_sparse_attention(
    query: Rank3, key: Rank3 = None, value: Rank3 = None, past_key: Rank4 = None, past_value: Rank4 = None,
    auxiliary_key=None, auxiliary_value=None, selected_indices: Needed | Integers = None,
    selected_counts: Needed | Integers = None, seqlens_k: Needed | Integers = None,
    total_sequence_length: Needed | One | Integers = None, cos_cache: Matrix = None, sin_cache: Matrix = None,
    position_ids=None, q_norm_weight=None, k_norm_weight=None, head_sink=None, committed_length=None, key_scale=None,
    value_scale=None, *, attention_mode: str = "selected_only", auxiliary_kv_shared: int = 0, do_rotary: int = 0,
    is_causal: int = 1, kv_num_heads: Positive, local_window_size: int = -1, num_heads: Positive,
    output_bf16: int = 0, qk_norm_epsilon: float = 1e-6, rotary_interleaved: int = 0, rotary_offset: int = 0,
    scale: float | None = None, selected_kv_source: str = "main", smooth_softmax: int = 0, node: Context,
):  # fmt: skip
    """A row without keys and without a sink gives 0. `committed_length` serves validation only."""
    if node.wants(3):
        raise UnsupportedError("validation_status: cut this output off the model (--output)", code="ML316")
    with_auxiliary = _COMBINATIONS.get((attention_mode, selected_kv_source))
    if with_auxiliary is None or not is_causal or (with_auxiliary and local_window_size <= 0):
        raise ModelError(
            f"attention_mode {attention_mode} with selected_kv_source {selected_kv_source}, is_causal {is_causal} and "
            f"local_window_size {local_window_size}: the operator supports selected_only with main, and "
            "local_plus_selected with auxiliary and a window, both with is_causal 1", code="ML227",
        )  # fmt: skip
    q, k, v = groups.separate(query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None:
        q = normalised(q, q_norm_weight, qk_norm_epsilon)
    if k_norm_weight is not None:
        k = normalised(k, k_norm_weight, qk_norm_epsilon)
    rows, total = dimension(q, 2), length_in(total_sequence_length)
    ends = as_i64(vector(seqlens_k))
    first = ends + 1 - rows
    places = ops.Unsqueeze(first, [1]) + counted(rows, q)
    if do_rotary:
        at = places if position_ids is None else position_ids
        cos, sin = (ops.Unsqueeze(ops.Gather(each, at, 0), [1]) for each in (cos_cache, sin_cache))
        q, k = (_rotated_from(rotary_offset, each, cos, sin, rotary_interleaved) for each in (q, k))
    present_k, k = _cached(past_key, k, places, total, key_scale)
    present_v, v = _cached(past_value, v, places, total, value_scale)
    kept = groups.earlier(counted(dimension(k, 2), k), places, ends + 1)
    selected = [selected_indices, selected_counts, dimension(q, 0), rows]
    if with_auxiliary:
        window = ops.Unsqueeze(places, [1, 3]) - local_window_size
        near = kept & (window < counted(dimension(k, 2), k))
        kept = ops.Concat(near, _selected(selected, dimension(auxiliary_key, 2)), axis=3)
        other = auxiliary_key if auxiliary_value is None and auxiliary_kv_shared else auxiliary_value
        k, v = (ops.Concat(own, far, axis=2) for own, far in ((k, auxiliary_key), (v, other)))
    else:
        kept = kept & _selected(selected, dimension(k, 2))
    task = groups.Scores(num_heads, kv_num_heads, scale, smooth=bool(smooth_softmax))
    y, _, _ = groups.attended(task, [q, k, v], parts.filled(kept, parts.LOWEST), None, head_sink)
    has_keys = ops.ReduceLogicalOr(kept, [3], keep_dims=True)
    y = parts.merge_heads(ops.Select(has_keys, y, np.zeros((), y.dtype.numpy)))
    return [as_type(y, bf16) if output_bf16 else y, present_k, present_v]


def _rotated_from(offset: int, x: Value, cos: Value, sin: Value, interleaved: int) -> Value:
    """The rotary embedding of the numbers of a head from `offset` on."""
    if not offset:
        return rotated(x, cos, sin, interleaved)
    before, turned = ops.VariadicSplit(x, 3, [offset, -1])
    return ops.Concat(before, rotated(turned, cos, sin, interleaved), axis=3)


def _cached(past: Value | None, new: Value, places: Value, total: Any, scale: Value | None) -> tuple[Value, Value]:
    """The cache with the new rows at their places, and its first `total` rows as numbers of the type of the query.

    A cache of i8 holds numbers divided by the scale of their channel."""
    kind = new.dtype if past is None else past.dtype
    rows = new
    if scale is not None:
        factor = ops.Reshape(as_type(scale, f32), joined([1, dimension(new, 1), 1, dimension(new, 3)], new))
        whole = ops.Round(as_type(new, f32) / factor, mode="half_to_even")
        rows = ops.Minimum(ops.Maximum(whole, np.float32(-128)), np.float32(127))
        kind = i8
    present = with_rows(_buffer(past, new, total, kind), as_type(rows, kind), places)
    read = as_type(groups.beginning(present, total), f32 if scale is not None else new.dtype)
    return present, read if scale is None else as_type(read * factor, new.dtype)


def _buffer(past: Value | None, new: Value, total: Any, kind: Any) -> Value:
    """A cache of at least `total` rows: that of the past, followed by zeros."""
    sizes = [dimension(new, axis) for axis in range(4)]
    if past is None:
        return ops.Broadcast(np.zeros((), kind.numpy), joined([*sizes[:2], total, sizes[3]], new))
    held = dimension(past, 2)
    if isinstance(held, int) and isinstance(total, int) and held >= total:
        return past
    missing = ops.Maximum(total - joined([held], past), 0)
    shape = ops.Concat(joined(sizes[:2], past), missing, joined(sizes[3:], past), axis=0)
    return ops.Concat(past, ops.Broadcast(np.zeros((), kind.numpy), shape), axis=2)


def _selected(selected: list[Any], count: Any) -> Value:
    """[batch, 1, S, count]: which of `count` keys are among the first numbers of their row."""
    indices, counts, batch, rows = selected
    given = dimension(indices, 1)
    is_given = counted(given, indices) < ops.Unsqueeze(as_i64(vector(counts)), [1])
    # What is not given goes to a further column; each row has one such number, so that no tensor is empty.
    at = ops.Select(is_given, ops.Minimum(as_i64(indices), count), as_value(count, indices.graph))
    queries = dimension(indices, 0)
    padded = ops.Concat(at, ops.Broadcast(as_value(count, indices.graph), joined([queries, 1], indices)), axis=1)
    more = count + 1
    none = ops.Broadcast(np.float32(0), joined([queries, more], indices))
    ones = ops.Broadcast(np.float32(1), ops.ShapeOf(padded))
    marks = ops.Slice(ops.ScatterElementsUpdate(none, padded, ones, 1), [0], joined([count], indices), [1], [1])
    apart = ops.Reshape(marks, joined([batch, 1, rows, count], indices))
    return apart > np.float32(0)
