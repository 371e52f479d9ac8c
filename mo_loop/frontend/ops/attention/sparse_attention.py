"""SparseAttention: queries read blocks of earlier keys, which a layout names; the cache is a buffer.

The head h has the layout h modulo their number. The query at the place p reads the keys that are not after it, in the
blocks of the row p / block size:

    block_col_indices[layout, j]    for j from block_row_indices[layout, row] up to block_row_indices[layout, row + 1]

The sequence b has `key_total_sequence_lengths[b]` tokens after this step, of which the last S are new. In the first
step of all, in which S is `total_sequence_length`, shorter sequences end with padding.

LongformerAttention: a token reads those within W places of it, and a few tokens that all read, and that read all.

Local scores are products of chunks of W queries with the 3 W keys around them, not of all pairs:

    queries of chunk c        keys of the chunks c - 1, c, c + 1, those within W places are read

and those of the global tokens are in the same softmax. A global token has weights of its own, for its query and for the
keys and values that it reads.

DynamicSparseAttention: queries read the keys that another operator has selected, and those of a window.

The row b * S + s of `selected_indices` belongs to the query s of the sequence b; its first `selected_counts` numbers
are places in the cache (mode selected_only) or in an auxiliary sequence of keys (mode local_plus_selected), in which
the query also reads the last `local_window_size` places of the cache up to its own. The sequence b has `seqlens_k[b]`
+ 1 tokens after this step, of which the last S are new.
"""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention import dot_product_attention as groups
from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.attention.decoder_attention import normalised
from mo_loop.frontend.ops.attention.heads import rotated
from mo_loop.frontend.ops.shared import counted, first_numbers, number, require_room, zeros
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import bf16, f32, i8, i32
from mo_loop.ops.lengths import as_i64, as_value, joined, length_in, vector
from mo_loop.ops.ranges import Integers, Matrix, Needed, One, Positive, Rank3, Rank4, Vector

UNREAD = parts.LOWEST / 2
"""The score of an earlier key in a block that is not read; a finite number in 16 bits too, unlike `LOWEST`."""


@translates("SparseAttention", since=1, domain=MICROSOFT)
def sparse_attention(
    query: Rank3, key: Rank3 = None, value: Rank3 = None, past_key: Needed | Rank4 = None,
    past_value: Needed | Rank4 = None, block_row_indices: Needed | Matrix | Integers = None,
    block_col_indices: Needed | Matrix | Integers = None, total_sequence_length: Needed | One | Integers = None,
    key_total_sequence_lengths: Needed | Vector | Integers = None, cos_cache: Matrix = None, sin_cache: Matrix = None,
    *, num_heads: Positive, kv_num_heads: Positive, sparse_block_size: Positive, do_rotary: int | None = None,
    rotary_interleaved: int | None = None, scale: float | None = None,
):
    """Q, K and V are inputs of their own, or all in `query`."""
    q, k, v = groups.separate(query, key, value, num_heads, kv_num_heads)
    rows, total = q.size(2), length_in(total_sequence_length)
    ends = as_i64(vector(key_total_sequence_lengths))
    places = ops.Maximum(ends - rows, 0)[:, None] + counted(rows, q)
    if do_rotary:
        cos, sin = (ops.Gather(each, places, 0)[:, None] for each in (cos_cache, sin_cache))
        q, k = (rotated(each, cos, sin, rotary_interleaved) for each in (q, k))
    present_k, present_v = (with_rows(past, each, places) for past, each in ((past_key, k), (past_value, v)))
    k, v = (groups.beginning(each, total) for each in (present_k, present_v))
    layouts = _layouts(block_row_indices, block_col_indices)
    count = layouts.size(0)
    if not isinstance(count, int):  # each head has a layout of its own
        layouts = ops.Gather(layouts, first_numbers(num_heads) % count, 0)
    mask = _mask(layouts, places, ends, k.size(2), sparse_block_size)
    y, _, _ = groups.attended(groups.Scores(num_heads, kv_num_heads, scale), [q, k, v], mask, None, None)
    return [parts.merge_heads(y), present_k, present_v]


def with_rows(past: Value, new: Value, places: Value) -> Value:
    """The buffer [batch, kv heads, T, size] with the new rows at the places [batch, S] of each sequence."""
    counts = [new.size(axis) for axis in range(3)]
    shape = joined([*counts, 1], new)
    sequences, heads = (counted(count, new) for count in counts[:2])
    numbers = ops.Unsqueeze(sequences, [1, 2, 3]), ops.Unsqueeze(heads, [0, 2, 3]), ops.Unsqueeze(places, [1, 3])
    return ops.ScatterNDUpdate(past, ops.Concat(*(ops.Broadcast(each, shape) for each in numbers), axis=3), new)


def _layouts(rows: Value, columns: Value) -> Value:
    """[layouts, blocks, blocks]: whether the queries of a block read the keys of a block."""
    starts, numbers = rows.constant, columns.constant
    if starts is None or numbers is None:
        return _computed_layouts(rows, columns)
    if len(starts) != len(numbers) or not starts.shape[1]:
        raise ModelError(f"the rows {rows.type} and the columns {columns.type} of layouts do not fit", code="ML235")
    blocks = starts.shape[1] - 1
    kept = zeros((len(starts), blocks, blocks), np.bool_)
    for layout, row in np.ndindex(len(starts), blocks):
        read = numbers[layout, starts[layout, row] : starts[layout, row + 1]]
        if np.any((read < 0) | (read >= blocks)):
            raise ModelError(f"a layout has a block in a column outside 0 to {blocks - 1}", code="ML235")
        kept[layout, row, read] = True
    return ops.Constant(kept, graph=rows.graph)


def _computed_layouts(rows: Value, columns: Value) -> Value:
    """The same of indices that are known only at run time: whether a row has an entry with the column of a block."""
    places = rows[:, :, None]  # [layouts, blocks + 1, 1]
    starts, ends = places[:, :-1], places[:, 1:]
    entries = counted(columns.size(1), columns).astype(rows.dtype)
    of_row = (entries >= starts) & (entries < ends)
    numbers = counted(rows.size(1) - 1, columns).astype(columns.dtype)
    of_column = ops.Equal(columns[:, :, None], numbers)
    one, other = (each.astype(f32) for each in (of_row, of_column))
    return one @ other > np.float32(0)


def _mask(layouts: Value, places: Value, ends: Value, total: Any, size: int) -> Value:
    """The addend of the scores, [batch, layouts, S, T].

    A row without blocks reads all earlier keys equally, as in ONNX Runtime: later ones have the score of minus
    infinity.
    """
    keys = counted(total, places)
    of_queries = ops.Gather(parts.filled(layouts, UNREAD), places // size, 1)
    of_keys = ops.Gather(ops.Transpose(of_queries, [1, 0, 2, 3]), keys // size, 3)
    return ops.Select(groups.earlier(keys, places, ends), of_keys, np.float32(-np.inf))


@translates("LongformerAttention", since=1, domain=MICROSOFT)
def longformer_attention(
    x: Rank3, weight: Matrix, bias: Vector, mask: Matrix, global_weight: Matrix, global_bias: Vector,
    global_flags: Matrix, *, num_heads: Positive, window: Positive,
):
    """`mask` is added to the scores of a key; the result of a token whose mask is below 0 is 0."""
    added = mask.astype(f32)
    flags = ops.NotEqual(global_flags, 0)
    # The places [batch, G] of the flags that hold, and whether they are used: sequences may have fewer than G.
    numbers = flags.astype(i32)
    most = ops.ReduceMax(ops.ReduceSum(numbers, [1]), [0])
    found = ops.TopK(numbers, ops.Maximum(most, 1), axis=1, mode="max", sort="value")
    at, is_used = as_i64(found[1]), found[0] > 0
    y = _local(x, weight, bias, (flags, at, is_used), added, num_heads, window)
    rows = _global(x, global_weight, global_bias, at, added, num_heads)
    shape = joined([at.size(0), at.size(1), 1], y)
    sequences = ops.Broadcast(counted(y.size(0), y)[:, None, None], shape)
    places = ops.Concat(sequences, at[:, :, None], axis=2)
    y = ops.ScatterNDUpdate(y, places, ops.Select(is_used[:, :, None], rows, _rows(y, at)))
    return ops.Select((added < 0)[:, :, None], number(y, 0), y)


def _rows(x: Value, at: Value) -> Value:
    """The rows of x [batch, S, hidden] at the places [batch, G]."""
    return ops.Squeeze(groups.chosen(x[:, None], at), [1])


def _global(x: Value, weight: Value, bias: Value, at: Value, added: Value, heads: int) -> Value:
    """[batch, G, hidden]: the attention of the tokens at the places to all tokens."""
    sizes = joined([x.size(2), -1], x)
    of_query, of_rest = ops.VariadicSplit(weight, 1, sizes)
    to_query, to_rest = ops.VariadicSplit(bias, 0, sizes)
    q = _rows(x, at) @ of_query + to_query
    k, v = ops.Split(x @ of_rest + to_rest, 2, num_splits=2)
    q, k, v = (parts.split_heads(each, heads) for each in (q, k, v))
    y, _ = parts.attend(q, k, v, None, added[:, None, None])
    return parts.merge_heads(y)


def _local(x: Value, weight: Value, bias: Value, tokens: Any, added: Value, heads: int, window: int) -> Value:
    """[batch, S, hidden]: the attention of each token to those around it and to the global ones."""
    flags, at, is_used = tokens
    product = x @ weight + bias
    q, k, v = (parts.split_heads(each, heads) for each in parts.thirds(product, None))
    lowest = ops.Constant(np.float32(parts.LOWEST), graph=x.graph)
    near = _near(ops.Select(flags, lowest, added), window)
    far = ops.Select(is_used, ops.Squeeze(_rows(added[:, :, None], at), [2]), lowest)
    q = parts.scaled(q, None)
    lengths = [q.size(axis) for axis in range(4)]
    chunks = [*lengths[:2], lengths[2] // window, window]

    def chunked(y: Value, width: Any) -> Value:
        return y.reshape([*chunks, width])

    def joint(y: Value, width: Any) -> Value:
        return y.reshape([*lengths[:3], width])

    around = ops.MatMul(chunked(q, lengths[3]), _around(k, window), transpose_b=True)
    of_global = ops.MatMul(q, groups.chosen(k, at), transpose_b=True)
    scores = [around.astype(f32) + near, chunked(of_global.astype(f32) + far[:, None, None], at.size(1))]
    weights = ops.Softmax(ops.Concat(*scores, axis=4), axis=4).astype(v.dtype)
    for_near, for_global = ops.VariadicSplit(weights, 4, [3 * window, -1])
    y = joint(for_near @ _around(v, window), lengths[3])
    return parts.merge_heads(y + joint(for_global, at.size(1)) @ groups.chosen(v, at))


def _around(x: Value, window: int, outside: float = 0.0) -> Value:
    """[batch, heads, S, size] as [batch, heads, chunks, 3 W, size]: for each chunk the rows of its neighbours too."""
    border = [0, 0, window, 0]
    padded = ops.Pad(x, border, border, np.array(outside, x.dtype.numpy))
    more = x.size(2) // window + 2
    blocks = padded.reshape([x.size(0), x.size(1), more, window, x.size(3)])
    ends = (-2, -1, 2**31 - 1)
    return ops.Concat(*(blocks[:, :, first:end] for first, end in enumerate(ends)), axis=3)


def _near(added: Value, window: int) -> Value:
    """[batch, 1, chunks, W, 3 W]: the addend of the score of a query and a key around it."""
    keys = ops.Transpose(_around(ops.Unsqueeze(added, [1, 3]), window, parts.LOWEST), [0, 1, 2, 4, 3])
    require_room((window, 3 * window))
    distances = np.arange(3 * window) - window - np.arange(window)[:, None]
    return ops.Select(np.abs(distances) <= window, keys, np.float32(parts.LOWEST))


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
):
    """A row without keys and without a sink gives 0. `committed_length` serves validation only."""
    if node.wants(3):
        raise UnsupportedError("validation_status: cut this output off the model (--output)", code="ML316")
    with_auxiliary = _COMBINATIONS.get((attention_mode, selected_kv_source))
    if with_auxiliary is None or not is_causal or (with_auxiliary and local_window_size <= 0):
        raise ModelError(
            f"attention_mode {attention_mode} with selected_kv_source {selected_kv_source}, is_causal {is_causal} and "
            f"local_window_size {local_window_size}: the operator supports selected_only with main, and "
            "local_plus_selected with auxiliary and a window, both with is_causal 1", code="ML227",
        )
    q, k, v = groups.separate(query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None:
        q = normalised(q, q_norm_weight, qk_norm_epsilon)
    if k_norm_weight is not None:
        k = normalised(k, k_norm_weight, qk_norm_epsilon)
    rows, total = q.size(2), length_in(total_sequence_length)
    ends = as_i64(vector(seqlens_k))
    places = (ends + 1 - rows)[:, None] + counted(rows, q)
    if do_rotary:
        at = places if position_ids is None else position_ids
        cos, sin = (ops.Gather(each, at, 0)[:, None] for each in (cos_cache, sin_cache))
        q, k = (_rotated_from(rotary_offset, each, cos, sin, rotary_interleaved) for each in (q, k))
    present_k, k = _cached(past_key, k, places, total, key_scale)
    present_v, v = _cached(past_value, v, places, total, value_scale)
    kept = groups.earlier(counted(k.size(2), k), places, ends + 1)
    selected = [selected_indices, selected_counts, q.size(0), rows]
    if with_auxiliary:
        window = ops.Unsqueeze(places, [1, 3]) - local_window_size
        near = kept & (window < counted(k.size(2), k))
        kept = ops.Concat(near, _selected(selected, auxiliary_key.size(2)), axis=3)
        other = auxiliary_key if auxiliary_value is None and auxiliary_kv_shared else auxiliary_value
        k, v = (ops.Concat(own, far, axis=2) for own, far in ((k, auxiliary_key), (v, other)))
    else:
        kept = kept & _selected(selected, k.size(2))
    task = groups.Scores(num_heads, kv_num_heads, scale, smooth=bool(smooth_softmax))
    y, _, _ = groups.attended(task, [q, k, v], parts.filled(kept, parts.LOWEST), None, head_sink)
    has_keys = ops.ReduceLogicalOr(kept, [3], keep_dims=True)
    y = parts.merge_heads(ops.Select(has_keys, y, number(y, 0)))
    return [y.astype(bf16) if output_bf16 else y, present_k, present_v]


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
        factor = scale.astype(f32).reshape([1, new.size(1), 1, new.size(3)])
        whole = ops.Round(new.astype(f32) / factor, mode="half_to_even")
        rows = ops.Minimum(ops.Maximum(whole, np.float32(-128)), np.float32(127))
        kind = i8
    present = with_rows(_buffer(past, new, total, kind), rows.astype(kind), places)
    read = groups.beginning(present, total).astype(f32 if scale is not None else new.dtype)
    return present, read if scale is None else (read * factor).astype(new.dtype)


def _buffer(past: Value | None, new: Value, total: Any, kind: Any) -> Value:
    """A cache of at least `total` rows: that of the past, followed by zeros."""
    sizes = [new.size(axis) for axis in range(4)]
    if past is None:
        return ops.Broadcast(np.zeros((), kind.numpy), joined([*sizes[:2], total, sizes[3]], new))
    held = past.size(2)
    if isinstance(held, int) and isinstance(total, int) and held >= total:
        return past
    missing = ops.Maximum(total - joined([held], past), 0)
    shape = ops.Concat(joined(sizes[:2], past), missing, joined(sizes[3:], past), axis=0)
    return ops.Concat(past, ops.Broadcast(np.zeros((), kind.numpy), shape), axis=2)


def _selected(selected: list[Any], count: Any) -> Value:
    """[batch, 1, S, count]: which of `count` keys are among the first numbers of their row."""
    indices, counts, batch, rows = selected
    is_given = counted(indices.size(1), indices) < as_i64(vector(counts))[:, None]
    # What is not given goes to a further column; each row has one such number, so that no tensor is empty.
    at = ops.Select(is_given, ops.Minimum(as_i64(indices), count), as_value(count, indices.graph))
    queries = indices.size(0)
    padded = ops.Concat(at, ops.Broadcast(as_value(count, indices.graph), joined([queries, 1], indices)), axis=1)
    more = count + 1
    none = ops.Broadcast(np.float32(0), joined([queries, more], indices))
    marks = ops.ScatterElementsUpdate(none, padded, ops.Broadcast(np.float32(1), padded.sizes), 1)[:, :count]
    return marks.reshape([batch, 1, rows, count]) > np.float32(0)
