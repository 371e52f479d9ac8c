"""LongformerAttention: a token reads those within W places of it, and a few tokens that all read, and that read all.

Local scores are products of chunks of W queries with the 3 W keys around them, not of all pairs:

    queries of chunk c        keys of the chunks c - 1, c, c + 1, those within W places are read

and those of the global tokens are in the same softmax. A global token has weights of its own, for its query and for the
keys and values that it reads.
"""

from typing import Any

import numpy as np

from mo_loop.frontend.arrays import require_room
from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.attention import shared_heads as groups
from mo_loop.frontend.ops.elementwise.arithmetic import as_type
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import MICROSOFT, Value, ops, translates
from mo_loop.graph.types import f32, i32
from mo_loop.ops.lengths import as_i64, dimension, joined
from mo_loop.ops.ranges import Matrix, Positive, Rank3, Vector


@translates("LongformerAttention", since=1, domain=MICROSOFT)
def longformer_attention(
    x: Rank3, weight: Matrix, bias: Vector, mask: Matrix, global_weight: Matrix, global_bias: Vector,
    global_flags: Matrix, *, num_heads: Positive, window: Positive,
):  # fmt: skip
    """`mask` is added to the scores of a key; the result of a token whose mask is below 0 is 0."""
    added = as_type(mask, f32)
    flags = ops.NotEqual(global_flags, 0)
    at, is_used = _places_of(flags)
    y = _local(x, weight, bias, (flags, at, is_used), added, num_heads, window)
    rows = _global(x, global_weight, global_bias, at, added, num_heads)
    y = _replaced(y, at, ops.Select(ops.Unsqueeze(is_used, [2]), rows, _rows(y, at)))
    return ops.Select(ops.Unsqueeze(added < 0, [2]), np.zeros((), y.dtype.numpy), y)


def _places_of(flags: Value) -> tuple[Value, Value]:
    """The places [batch, G] of the flags that hold, and whether they are used: sequences may have fewer than G."""
    numbers = ops.Convert(flags, destination_type=i32)
    most = ops.ReduceMax(ops.ReduceSum(numbers, [1]), [0])
    found = ops.TopK(numbers, ops.Maximum(most, 1), axis=1, mode="max", sort="value")
    return as_i64(found[1]), found[0] > 0


def _rows(x: Value, at: Value) -> Value:
    """The rows of x [batch, S, hidden] at the places [batch, G]."""
    return ops.Squeeze(groups.chosen(ops.Unsqueeze(x, [1]), at), [1])


def _replaced(x: Value, at: Value, rows: Value) -> Value:
    """x [batch, S, hidden] with other rows at the places [batch, G]."""
    shape = joined([dimension(at, 0), dimension(at, 1), 1], x)
    sequences = ops.Broadcast(ops.Unsqueeze(counted(dimension(x, 0), x), [1, 2]), shape)
    return ops.ScatterNDUpdate(x, ops.Concat(sequences, ops.Unsqueeze(at, [2]), axis=2), rows)


def _global(x: Value, weight: Value, bias: Value, at: Value, added: Value, heads: int) -> Value:
    """[batch, G, hidden]: the attention of the tokens at the places to all tokens."""
    hidden = dimension(x, 2)
    sizes = joined([hidden, -1], x)
    of_query, of_rest = ops.VariadicSplit(weight, 1, sizes)
    to_query, to_rest = ops.VariadicSplit(bias, 0, sizes)
    q = _rows(x, at) @ of_query + to_query
    k, v = ops.Split(x @ of_rest + to_rest, 2, num_splits=2)
    q, k, v = (parts.split_heads(each, heads) for each in (q, k, v))
    y, _ = parts.attend(q, k, v, None, ops.Unsqueeze(added, [1, 2]))
    return parts.merge_heads(y)


def _local(x: Value, weight: Value, bias: Value, tokens: Any, added: Value, heads: int, window: int) -> Value:
    """[batch, S, hidden]: the attention of each token to those around it and to the global ones."""
    flags, at, is_used = tokens
    product = x @ weight + bias
    q, k, v = (parts.split_heads(each, heads) for each in parts.thirds(product, None))
    lowest = parts.real(parts.LOWEST, x)
    near = _near(ops.Select(flags, lowest, added), window)
    of_keys = ops.Squeeze(_rows(ops.Unsqueeze(added, [2]), at), [2])
    far = ops.Select(is_used, of_keys, lowest)
    q = parts.scaled(q, None)
    lengths = [dimension(q, axis) for axis in range(4)]
    chunks = [*lengths[:2], lengths[2] // window, window]

    def chunked(y: Value, width: Any) -> Value:
        return ops.Reshape(y, joined([*chunks, width], x))

    def joint(y: Value, width: Any) -> Value:
        return ops.Reshape(y, joined([*lengths[:3], width], x))

    around = ops.MatMul(chunked(q, lengths[3]), _around(k, window), transpose_b=True)
    of_global = ops.MatMul(q, groups.chosen(k, at), transpose_b=True)
    scores = [
        as_type(around, f32) + near,
        chunked(as_type(of_global, f32) + ops.Unsqueeze(far, [1, 2]), dimension(at, 1)),
    ]
    weights = as_type(ops.Softmax(ops.Concat(*scores, axis=4), axis=4), v.dtype)
    for_near, for_global = ops.VariadicSplit(weights, 4, [3 * window, -1])
    y = joint(for_near @ _around(v, window), lengths[3])
    return parts.merge_heads(y + joint(for_global, dimension(at, 1)) @ groups.chosen(v, at))


def _around(x: Value, window: int, outside: float = 0.0) -> Value:
    """[batch, heads, S, size] as [batch, heads, chunks, 3 W, size]: for each chunk the rows of its neighbours too."""
    border = [0, 0, window, 0]
    padded = ops.Pad(x, border, border, np.array(outside, x.dtype.numpy))
    count = dimension(x, 2) // window
    more = count + 2
    blocks = ops.Reshape(padded, joined([dimension(x, 0), dimension(x, 1), more, window, dimension(x, 3)], x))
    ends = (-2, -1, 2**31 - 1)
    return ops.Concat(*(ops.Slice(blocks, [first], [end], [1], [2]) for first, end in enumerate(ends)), axis=3)


def _near(added: Value, window: int) -> Value:
    """[batch, 1, chunks, W, 3 W]: the addend of the score of a query and a key around it."""
    keys = ops.Transpose(_around(ops.Unsqueeze(added, [1, 3]), window, parts.LOWEST), [0, 1, 2, 4, 3])
    require_room((window, 3 * window))
    distances = np.arange(3 * window) - window - np.arange(window)[:, None]
    return ops.Select(np.abs(distances) <= window, keys, np.float32(parts.LOWEST))
