"""SparseAttention: queries read blocks of earlier keys, which a layout names; the cache is a buffer.

The head h has the layout h modulo their number. The query at the place p reads the keys that are not after it, in the
blocks of the row p / block size:

    block_col_indices[layout, j]    for j from block_row_indices[layout, row] up to block_row_indices[layout, row + 1]

The sequence b has `key_total_sequence_lengths[b]` tokens after this step, of which the last S are new. In the first
step of all, in which S is `total_sequence_length`, shorter sequences end with padding.
"""

from typing import Any

import numpy as np

from mo_loop.frontend.arrays import first_numbers, zeros
from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.attention import shared_heads as groups
from mo_loop.frontend.ops.attention.rotary_embedding import rotated
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, Value, ops, translates
from mo_loop.graph.types import f32
from mo_loop.ops.lengths import as_i64, dimension, joined, length_in, vector
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
):  # fmt: skip
    """Q, K and V are inputs of their own, or all in `query`."""
    q, k, v = groups.separate(query, key, value, num_heads, kv_num_heads)
    rows, total = dimension(q, 2), length_in(total_sequence_length)
    ends = as_i64(vector(key_total_sequence_lengths))
    first = ops.Maximum(ends - rows, 0)
    places = ops.Unsqueeze(first, [1]) + counted(rows, q)
    if do_rotary:
        cos, sin = (ops.Unsqueeze(ops.Gather(each, places, 0), [1]) for each in (cos_cache, sin_cache))
        q, k = (rotated(each, cos, sin, rotary_interleaved) for each in (q, k))
    present_k, present_v = (with_rows(past, each, places) for past, each in ((past_key, k), (past_value, v)))
    k, v = (groups.beginning(each, total) for each in (present_k, present_v))
    layouts = _layouts(block_row_indices, block_col_indices)
    mask = _mask(_of_heads(layouts, num_heads), places, ends, dimension(k, 2), sparse_block_size)
    y, _, _ = groups.attended(groups.Scores(num_heads, kv_num_heads, scale), [q, k, v], mask, None, None)
    return [parts.merge_heads(y), present_k, present_v]


def with_rows(past: Value, new: Value, places: Value) -> Value:
    """The buffer [batch, kv heads, T, size] with the new rows at the places [batch, S] of each sequence."""
    counts = [dimension(new, axis) for axis in range(3)]
    shape = joined([*counts, 1], new)
    sequences, heads = (counted(count, new) for count in counts[:2])
    numbers = ops.Unsqueeze(sequences, [1, 2, 3]), ops.Unsqueeze(heads, [0, 2, 3]), ops.Unsqueeze(places, [1, 3])
    at = ops.Concat(*(ops.Broadcast(each, shape) for each in numbers), axis=3)
    return ops.ScatterNDUpdate(past, at, new)


# -- layouts


def _layouts(rows: Value, columns: Value) -> Value:
    """[layouts, blocks, blocks]: whether the queries of a block read the keys of a block."""
    starts, numbers = rows.constant, columns.constant
    if starts is None or numbers is None:
        return _computed_layouts(rows, columns)
    if len(starts) != len(numbers) or not starts.shape[1]:
        raise ModelError(f"rows are {rows.type} and columns {columns.type} of layouts", code="ML235")
    blocks = starts.shape[1] - 1
    kept = zeros((len(starts), blocks, blocks), np.bool_)
    for layout, row in np.ndindex(len(starts), blocks):
        read = numbers[layout, starts[layout, row] : starts[layout, row + 1]]
        if np.any((read < 0) | (read >= blocks)):
            raise ModelError(f"the column of a block is not one of {blocks}", code="ML235")
        kept[layout, row, read] = True
    return ops.Constant(kept, graph=rows.graph)


def _computed_layouts(rows: Value, columns: Value) -> Value:
    """The same of indices that are known only at run time: whether a row has an entry with the column of a block."""
    places = ops.Unsqueeze(rows, [2])  # [layouts, blocks + 1, 1]
    starts, ends = ops.Slice(places, [0], [-1], [1], [1]), ops.Slice(places, [1], [2**31 - 1], [1], [1])
    entries = ops.Convert(counted(dimension(columns, 1), columns), destination_type=rows.dtype)
    of_row = (entries >= starts) & (entries < ends)
    blocks = dimension(rows, 1) - 1
    numbers = ops.Convert(counted(blocks, columns), destination_type=columns.dtype)
    of_column = ops.Equal(ops.Unsqueeze(columns, [2]), numbers)
    one, other = (ops.Convert(each, destination_type=f32) for each in (of_row, of_column))
    return one @ other > np.float32(0)


def _of_heads(layouts: Value, heads: int) -> Value:
    """[heads, blocks, blocks], unless the number of layouts is known."""
    count = dimension(layouts, 0)
    if isinstance(count, int):
        return layouts
    return ops.Gather(layouts, first_numbers(heads) % count, 0)


def _mask(layouts: Value, places: Value, ends: Value, total: Any, size: int) -> Value:
    """The addend of the scores, [batch, layouts, S, T].

    A row without blocks reads all earlier keys equally, as in ONNX Runtime: later ones have the score of minus
    infinity.
    """
    keys = counted(total, places)
    of_queries = ops.Gather(parts.filled(layouts, UNREAD), places // size, 1)
    of_keys = ops.Gather(ops.Transpose(of_queries, [1, 0, 2, 3]), keys // size, 3)
    return ops.Select(groups.earlier(keys, places, ends), of_keys, parts.real(-np.inf, keys))
