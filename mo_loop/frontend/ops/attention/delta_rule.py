"""The recurrence of linear attention: each token changes a state [K, V] of each head, which its query reads.

    retrieved = (S * e^g)^T k                        with the delta rule, else 0
    u = beta * (v - retrieved)                       with the delta rule, else v
    S = S * e^g + k u^T
    y = S^T q = (S before * e^g)^T q + (q . k) u

Only products with the state depend on it. The loop computes one for each token, of the key and all queries that read
this state, and returns it; everything else is computed for all tokens at once:

    [retrieved, read] = ([beta * k, q] * e^g) S before        u = beta * v - retrieved        y = read + (q . k) u
"""

from typing import Any

from mo_loop.frontend.arrays import first_numbers
from mo_loop.frontend.ops.attention.chunked_rule import chunked_recurrence, is_chunkable, scanned
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import ModelError, Value, ops
from mo_loop.ops.lengths import dimension, joined


def recurrence(
    queries: Value, keys: Value, values: Value, decay: Value | None, beta: Value | None, state: Value
) -> tuple[Value, Value, Value]:
    """The results of the queries, [batch, T, heads, R, V], the last state, [batch, heads, K, V], and u, [batch, T,
    heads, 1, V]; all in f32.

    Queries are [batch, T, heads, R, K]: R of them read one state. Keys are [batch, T, heads, K], values [batch, T,
    heads, V], logarithms of the decay [batch, T, heads, K or 1]; beta, [batch, T, heads or 1, 1], is that of the delta
    rule. Keys and decays become rows and columns by Unsqueeze: the runtime moves a Transpose to other operations.
    """
    if decay is not None and decay.rank != 4:
        raise ModelError(f"the decay is {decay.type}, not one number or one row for each head", code="ML235")
    if is_chunkable(queries, decay):
        return chunked_recurrence(queries, keys, values, decay, beta, state)
    kept = None if decay is None else ops.Exp(decay)
    rows, added = ops.Unsqueeze(keys, [3]), ops.Unsqueeze(values, [3])
    readers = queries
    if beta is not None:
        rates = ops.Unsqueeze(beta, [3])
        readers = ops.Concat(rows * rates, queries, axis=3)
        added = added * rates
    if kept is not None:
        readers = readers * ops.Unsqueeze(kept, [3])
    columns = ops.Unsqueeze(keys, [4])
    factors = None if kept is None else ops.Unsqueeze(kept, [4])
    read, last = _scanned(readers, columns, added, factors, state, beta is not None)
    if beta is not None:
        retrieved, read = ops.VariadicSplit(read, 3, [1, -1])
        added = added - retrieved
    overlap = ops.ReduceSum(queries * rows, [4], keep_dims=True)
    return read + overlap * added, last, added


def _scanned(
    readers: Value, keys: Value, added: Value, factors: Value | None, state: Value, has_retrieval: bool
) -> tuple[Value, Value]:
    """The products of the readers with the state before each token, and the last state."""

    def step(now: list[Value], held: Value) -> tuple[Value, Value]:
        reader, key, new, *factor = now
        product = reader @ held
        if has_retrieval:
            new = new - ops.Slice(product, [0], [1], [1], [2])
        return product, (held * factor[0] if factor else held) + key * new

    tokens = [each for each in (readers, keys, added, factors) if each is not None]
    read, last = scanned("token", state, tokens, step)
    if isinstance(readers.type.dims[1], int):
        return read, last
    # After 0 tokens, a Scan returns 0 for every dimension that is known only at run time.
    shape = joined([*(dimension(readers, axis) for axis in range(4)), dimension(added, 4)], readers)
    return ops.Reshape(read, shape), last


def shared(x: Value, heads: Any) -> Value:
    """[batch, T, N, size] as [batch, T, heads, size]: each of the N heads as often as several that follow share it."""
    count = dimension(x, 2)
    if count == heads:
        return x
    if isinstance(count, int) and isinstance(heads, int):
        return ops.Gather(x, first_numbers(heads) * count // heads, 2)
    return ops.Gather(x, counted(heads, x) * count // heads, 2)
