"""The recurrence of linear attention: each token changes a state [K, V] of each head, which its query reads.

    retrieved = (S * e^g)^T k                        with the delta rule, else 0
    u = beta * (v - retrieved)                       with the delta rule, else v
    S = S * e^g + k u^T
    y = S^T q = (S before * e^g)^T q + (q . k) u

Only products with the state depend on it. The loop computes one for each token, of the key and all queries that read
this state, and returns it; everything else is computed for all tokens at once:

    [retrieved, read] = ([beta * k, q] * e^g) S before        u = beta * v - retrieved        y = read + (q . k) u
"""

from __future__ import annotations

from typing import Any

from mo_loop import ops
from mo_loop.errors import ModelError
from mo_loop.frontend.arrays import first_numbers
from mo_loop.frontend.ops.attention.chunked_rule import chunked_recurrence, is_chunkable
from mo_loop.frontend.ops.attention.heads import places
from mo_loop.frontend.ops.shared import dimension, joined
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Concatenated, Final, Merged, Sliced


def recurrence(
    queries: Value, keys: Value, values: Value, decay: Value | None, beta: Value | None, state: Value
) -> tuple[Value, Value, Value]:
    """What the queries read, [batch, T, heads, R, V], the last state, [batch, heads, K, V], and u, [batch, T, heads,
    1, V]; all in f32.

    Queries are [batch, T, heads, R, K]: R of them read one state. Keys are [batch, T, heads, K], values [batch, T,
    heads, V], logarithms of the decay [batch, T, heads, K or 1]; beta, [batch, T, heads or 1, 1], is that of the delta
    rule. Keys and decays become rows and columns by Unsqueeze: the runtime moves a Transpose to other operations.
    """
    if decay is not None and decay.rank != 4:
        raise ModelError(f"the decay is {decay.type}, not one number or one row for each head", code="ML235")
    if is_chunkable(queries, decay):
        return chunked_recurrence(queries, keys, values, decay, beta, state)
    kept = None if decay is None else ops.Exp(decay).output
    rows, added = ops.Unsqueeze(keys, [3]).output, ops.Unsqueeze(values, [3]).output
    readers = queries
    if beta is not None:
        rates = ops.Unsqueeze(beta, [3])
        readers = ops.Concat(ops.Multiply(rows, rates), queries, axis=3).output
        added = ops.Multiply(added, rates).output
    if kept is not None:
        readers = ops.Multiply(readers, ops.Unsqueeze(kept, [3])).output
    columns = ops.Unsqueeze(keys, [4]).output
    factors = None if kept is None else ops.Unsqueeze(kept, [4]).output
    read, last = _scanned(readers, columns, added, factors, state, beta is not None)
    if beta is not None:
        retrieved, read = ops.VariadicSplit(read, 3, [1, -1]).outputs
        added = ops.Subtract(added, retrieved).output
    overlap = ops.ReduceSum(ops.Multiply(queries, rows), [4], keep_dims=True)
    return ops.Add(read, ops.Multiply(overlap, added)).output, last, added


def _scanned(
    readers: Value, keys: Value, added: Value, factors: Value | None, state: Value, has_retrieval: bool
) -> tuple[Value, Value]:
    """The products of the readers with the state before each token, and the last state."""
    body = Graph("token")
    held = Parameter(graph=body, type=state.type)
    tokens = [each for each in (readers, keys, added, factors) if each is not None]
    now = [_element(body, each) for each in tokens]
    reader, key, new = (each.output for each in now[:3])
    product = ops.MatMul(reader, held.output).output
    if has_retrieval:
        new = ops.Subtract(new, ops.Slice(product, [0], [1], [1], [2])).output
    before: Any = held.output if factors is None else ops.Multiply(held, now[3]).output
    after = Result(ops.Add(before, ops.Multiply(key, new)))
    every = Result(product)
    scan = ops.Scan(
        state, *tokens, graph=state.graph, body=body,
        input_map=(Merged(held, after), *(Sliced(each, 1) for each in now)),
        output_map=(Final(after), Concatenated(every, 1)),
    )  # fmt: skip
    last, read = scan.outputs
    if isinstance(readers.type.dims[1], int):
        return read, last
    # After 0 tokens, a Scan returns 0 for every dimension that is known only at run time.
    shape = joined([*(dimension(readers, axis) for axis in range(4)), dimension(added, 4)], readers)
    return ops.Reshape(read, shape).output, last


def _element(body: Graph, outer: Value) -> Parameter:
    """A Parameter for one token of [batch, T, ..]."""
    batch, _, *rest = outer.type.dims
    return Parameter(graph=body, type=TensorType(outer.dtype, (batch, *rest)))


def shared(x: Value, heads: Any) -> Value:
    """[batch, T, N, size] as [batch, T, heads, size]: each of the N heads as often as several that follow share it."""
    count = dimension(x, 2)
    if count == heads:
        return x
    if isinstance(count, int) and isinstance(heads, int):
        return ops.Gather(x, first_numbers(heads) * count // heads, 2).output
    return ops.Gather(x, ops.Divide(ops.Multiply(places(heads, x), count), heads), 2).output
