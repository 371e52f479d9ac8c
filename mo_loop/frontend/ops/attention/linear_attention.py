"""LinearAttention: attention with a state instead of keys and values of the past, and its gate.

Each token changes a state [K, V] of each head, which its query reads:

    retrieved = (S * e^g)^T k                        with the delta rule, else 0
    u = beta * (v - retrieved)                       with the delta rule, else v
    S = S * e^g + k u^T
    y = S^T q = (S before * e^g)^T q + (q . k) u

Only products with the state depend on it. The loop computes one for each token, of the key and all queries that read
this state, and returns it; everything else is computed for all tokens at once:

    [retrieved, read] = ([beta * k, q] * e^g) S before        u = beta * v - retrieved        y = read + (q . k) u

If the decay is one number for each head, the loop runs over chunks of tokens. Inside a chunk, from the state S before
it, with e(i, j) = exp (sum of g from j + 1 to i) for j <= i, else 0:

    u + L u = beta * (v - e(i, start) S^T k)        L(i, j) = beta_i e(i, j) (k_i . k_j) for j < i
    y_i = e(i, start) S^T q_i + sum over j of e(i, j) (q_i . k_j) u_j
    S = e(end, start) S + sum over j of e(end, j) k_j u_j^T

Only products with S depend on the chunk before: the loop computes one for each chunk. Sums of g are sums, not
differences of sums, and I + L is inverted by halves: the numbers are as exact as those of one token after the other. A
NaN or an infinity of one token reaches all tokens of its chunk.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention.heads import scaled
from mo_loop.frontend.ops.shared import counted, first_numbers, number, require_choice
from mo_loop.frontend.vocabulary import MICROSOFT, Context, Graph, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import TensorType, f32
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.lengths import Length, joined
from mo_loop.ops.linear import inverse_of_lower
from mo_loop.ops.port_map import Concatenated, Final, Merged, Sliced
from mo_loop.ops.ranges import NotNegative, Positive, Rank3, Rank4

CHUNK = 16
"""The number of tokens of a chunk; all tokens if there are fewer."""

LEAST_TOKENS = 3
"""Products of at least so many rows need no further zeros (the gap `product-of-two-columns`)."""

LOWER = np.tril(np.ones((CHUNK, CHUNK)))

LEAST = np.float32(-120)
"""A decay of e^-120 is 0 in f32; an infinity would make NaN of the sums."""


def chunked_recurrence(
    queries: Value, keys: Value, values: Value, decay: Value | None, beta: Value | None, state: Value
) -> tuple[Value, Value, Value]:
    """As `delta_rule.recurrence`, of the same tensors."""
    chunks = _Chunks.of(keys)
    k, added, q = chunks.apart(keys), chunks.apart(values), chunks.apart(queries)
    times = int(str(queries.type.dims[3]))
    lower, of_queries = chunks.square(LOWER), chunks.square(LOWER, times)
    g = None if decay is None else ops.Maximum(chunks.apart(decay), LEAST)
    before = None if g is None else g * chunks.square(np.tril(LOWER, -1))
    readers, ends, factor = _since(q, of_queries, g), k, None
    if g is not None:
        ends = _since(k, chunks.square(np.triu(LOWER.T, 1)), g)
        factor = ops.Exp(ops.ReduceSum(g, [2], keep_dims=True))
    if beta is not None:
        if beta.type.dims[2] != keys.type.dims[2]:  # one number for all heads
            beta = ops.Broadcast(beta, joined([1, 1, keys.size(2), 1], keys), mode="bidirectional")
        rates = chunks.apart(beta)
        mixed = ops.MatMul(k, k, transpose_b=True) * _between(lower, before)
        inverse = inverse_of_lower(mixed * rates, chunks.longest, chunks.square)
        retrieving = inverse @ (_since(k, lower, g) * rates)
        added = inverse @ (added * rates)
        readers = ops.Concat(retrieving, readers, axis=2)
    given = [each for each in (readers, ends, added, factor) if each is not None]
    joint = state.reshape([chunks.heads, state.size(2), state.size(3)])  # [batch * heads, K, V]
    if chunks.count == 1:
        read, after = _step(given, joint[:, None], beta is not None)
        last = ops.Squeeze(after, [1])
    else:
        read, last = scanned("chunk", joint, given, lambda now, held: _step(now, held, beta is not None))
    if beta is not None:
        retrieved, read = ops.VariadicSplit(read, 2, joined([chunks.size, -1], k))
        added = added - retrieved
    y = read + (ops.MatMul(q, k, transpose_b=True) * _between(of_queries, before)) @ added
    changes = chunks.together(added, ops.Unsqueeze(keys, [3]))
    return chunks.together(y, queries), last.reshape([state.size(axis) for axis in range(4)]), changes


def _since(x: Value, sums: Value, g: Value | None) -> Value:
    """Each row of `x` times e to the sum of the logarithms that `sums` counts."""
    return x if g is None else x * ops.Exp(sums @ g)


def _between(rows: Value, before: Value | None) -> Value:
    """e(i, j): the decay from token j to that of row i, 0 for a later token; `before` has g below the diagonal."""
    return rows if before is None else ops.Exp(rows @ before) * rows


def scanned(
    name: str, state: Value, tensors: Sequence[Value], step: Callable[[list[Value], Value], tuple[Value, Value]]
) -> tuple[Value, Value]:
    """`read, state = step(elements, state)` for the elements of all tensors along axis 1: all that is read, and the
    last state."""
    body = Graph(name)
    held = Parameter(graph=body, type=state.type)
    slices = (TensorType(each.dtype, (each.type.dims[0], *each.type.dims[2:])) for each in tensors)
    now = [Parameter(graph=body, type=each) for each in slices]
    read, after = step([each.output for each in now], held.output)
    final, every = Result(after), Result(read)
    last, whole = ops.Scan(
        state, *tensors, graph=state.graph, body=body,
        input_map=(Merged(held, final), *(Sliced(each, 1) for each in now)),
        output_map=(Final(final), Concatenated(every, 1)),
    )
    return whole, last


def _step(tensors: list[Value], state: Value, has_retrieval: bool) -> tuple[Value, Value]:
    """The values that one chunk reads, and the state after it."""
    readers, ends, added, *factor = tensors
    read = readers @ state
    if has_retrieval:
        size = joined([ends.size(-2)], ends)
        added = added - read[..., :size, :]
    kept = state * factor[0] if factor else state
    return read, kept + ops.MatMul(ends, added, transpose_a=True)


@dataclass(frozen=True)
class _Chunks:
    """Tokens [batch, T, heads, ..] in chunks [batch * heads, chunks, size, ..]; zeros fill the last one."""

    size: Length
    count: Length
    tokens: Length
    heads: Length
    keys: Value

    @classmethod
    def of(cls, keys: Value) -> "_Chunks":
        tokens = keys.size(1)
        heads = keys.size(0) * keys.size(2)
        if isinstance(tokens, int):
            size = min(CHUNK, tokens)
            return cls(size, -(-tokens // size), tokens, heads, keys)
        least = ops.Maximum(tokens, np.int64(LEAST_TOKENS))  # zeros change no state
        size = ops.Minimum(least, np.int64(CHUNK))
        return cls(size, (least + (size - np.int64(1))) // size, tokens, heads, keys)

    @property
    def longest(self) -> int:
        """The largest size that is possible."""
        return self.size if isinstance(self.size, int) else CHUNK

    def square(self, array: np.ndarray[Any, Any], times: int = 1) -> Value:
        """The first rows and columns of [CHUNK, CHUNK], as many as tokens of a chunk, each row repeated."""
        repeated = np.repeat(array.astype(np.float32), times, axis=0)
        if isinstance(self.size, int):
            return ops.Constant(repeated[: self.size * times, : self.size], graph=self.keys.graph)
        ends = joined([self.size * times, self.size], self.keys)
        return ops.Slice(ops.Constant(repeated, graph=self.keys.graph), [0, 0], ends, [1, 1], [0, 1])

    def apart(self, x: Value) -> Value:
        """Chunks of [batch, T, heads, X], or of [batch, T, heads, R, X], whose rows have R for each token."""
        rank = len(x.type.dims)
        padding = self._padding(x)
        if padding is not None:
            ends = joined([padding if axis == 1 else 0 for axis in range(rank)], x)
            x = ops.Pad(x, [0] * rank, ends, np.float32(0))
        moved = ops.Transpose(x, [0, 2, 1, *range(3, rank)])
        rows = self.size * int(str(x.type.dims[3])) if rank == 5 else self.size
        return moved.reshape([self.heads, self.count, rows, x.size(-1)])

    def _padding(self, x: Value) -> Any:
        padding = self.count * self.size - self.tokens
        return padding if isinstance(padding, Value) else padding or None

    def together(self, y: Value, like: Value) -> Value:
        """[batch, T, heads, R, V] of chunks [.., size * R, V], where `like` is [batch, T, heads, R, ..]."""
        batch, heads = like.size(0), like.size(2)
        every = y.reshape([batch, heads, self.count * self.size, like.type.dims[3], y.size(3)])
        every = ops.Transpose(every, [0, 2, 1, 3, 4])
        return every if self._padding(like) is None else every[:, : self.tokens]


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
    _, tokens, _, count, _ = queries.type.dims
    if tokens != 0 and isinstance(count, int) and (decay is None or decay.type.dims[3] == 1):
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
    return read + ops.ReduceSum(queries * rows, [4], keep_dims=True) * added, last, added


def _scanned(
    readers: Value, keys: Value, added: Value, factors: Value | None, state: Value, has_retrieval: bool
) -> tuple[Value, Value]:
    """The products of the readers with the state before each token, and the last state."""

    def step(now: list[Value], held: Value) -> tuple[Value, Value]:
        reader, key, new, *factor = now
        product = reader @ held
        if has_retrieval:
            new = new - product[:, :, :1]
        return product, (held * factor[0] if factor else held) + key * new

    tokens = [each for each in (readers, keys, added, factors) if each is not None]
    read, last = scanned("token", state, tokens, step)
    if isinstance(readers.type.dims[1], int):
        return read, last
    # After 0 tokens, a Scan returns 0 for every dimension that is known only at run time.
    return read.reshape([*(readers.size(axis) for axis in range(4)), added.size(4)]), last


def shared(x: Value, heads: Any) -> Value:
    """[batch, T, N, size] as [batch, T, heads, size]: each of the N heads as often as several that follow share it."""
    count = x.size(2)
    if count == heads:
        return x
    if isinstance(count, int) and isinstance(heads, int):
        return ops.Gather(x, first_numbers(heads) * count // heads, 2)
    return ops.Gather(x, counted(heads, x) * count // heads, 2)


RULES = {"linear": "", "gated": "decay", "delta": "beta", "gated_delta": "decay beta"}
"""The rules of the state -> the inputs that they read."""


@translates("LinearAttention", since=1, domain=MICROSOFT, ignored="chunk_size")
def linear_attention(
    query: Rank3, key: Rank3, value: Rank3, past_state: Rank4 = None, decay: Rank3 = None, beta: Rank3 = None,
    *, chunk_size: Positive = 64, kv_num_heads: Positive, q_num_heads: Positive, scale: float = 0.0,
    state_window: NotNegative = 0, update_rule: str = "gated_delta",
):
    """Heads lie in the last dimension; query heads share a state, or states and keys share a query head."""
    if state_window:
        raise UnsupportedError(
            "LinearAttention with a window of states", code="ML316",
            hint="the CPU kernel of ONNX Runtime does not have it: export the model with state_window 0",
        )
    decay, beta = read_by(update_rule, decay, beta, "LinearAttention")
    if max(q_num_heads, kv_num_heads) % min(q_num_heads, kv_num_heads):
        raise ModelError(f"{q_num_heads} query heads do not share {kv_num_heads} states", code="ML227")
    wide = [each.astype(f32) for each in (query, key, value)]
    q, v = _apart(wide[0], q_num_heads), _apart(wide[2], kv_num_heads)
    size = q.size(3)
    k = shared(_apart(wide[1], divided(key.size(2), size), size), kv_num_heads)
    q = scaled(q, scale)
    if q_num_heads <= kv_num_heads:
        q = ops.Unsqueeze(shared(q, kv_num_heads), [3])
    else:
        q = q.reshape([None, None, kv_num_heads, q_num_heads // kv_num_heads, size])
    if decay is not None:
        decay = _apart(decay.astype(f32), kv_num_heads)
    if beta is not None:
        beta = ops.Unsqueeze(beta.astype(f32), [3])
    state = past_state
    if state is None:
        state = ops.Broadcast(number(query, 0), joined([query.size(0), kv_num_heads, size, v.size(3)], query))
    y, last, _ = recurrence(q, k, v, decay, beta, state.astype(f32))
    flat = y.reshape([None, None, v.size(3) * max(q_num_heads, kv_num_heads)])
    return [flat.astype(query.dtype), last.astype(state.dtype)]


def read_by(rule: str, decay: Value | None, beta: Value | None, op: str) -> list[Value | None]:
    """The decay and the update rate that the rule reads."""
    require_choice("update_rule", rule, RULES)
    kept = []
    for name, each in (("decay", decay), ("beta", beta)):
        if name in RULES[rule] and each is None:
            raise ModelError(f"{op} with the update_rule {rule} has no input {name}", code="ML227")
        kept.append(each if name in RULES[rule] else None)
    return kept


def _apart(x: Value, heads: Any, size: Any = None) -> Value:
    """[batch, T, heads * size] as [batch, T, heads, size]; no -1, which a batch or T of 0 leaves open."""
    size = divided(x.size(2), heads) if size is None else size
    return x.reshape([None, None, heads, size])


def divided(a: Any, b: Any) -> Any:
    """The whole quotient of two lengths, ints or scalars."""
    return a // (max(b, 1) if isinstance(b, int) else b)


@translates("LinearAttentionGate", since=1, domain=MICROSOFT)
def linear_attention_gate(a, dt_bias, decay_scale, b=None, *, node: Context):
    """decay_scale * softplus(a + dt_bias) in f32, and sigmoid(b); the vectors have one number for each head."""
    decay = ops.SoftPlus(a.astype(f32) + dt_bias) * decay_scale
    if not node.wants(1):
        return decay.astype(a.dtype)
    if b is None:
        raise ModelError("LinearAttentionGate has the output beta without the input b", code="ML227")
    return [decay.astype(a.dtype), ops.Sigmoid(b)]
