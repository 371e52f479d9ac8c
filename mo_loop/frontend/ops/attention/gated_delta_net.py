"""GatedDeltaNet: linear attention over tokens of several sequences, one sequence after the other.

Sequences of different lengths are read as [batch, longest]: the tokens past the end of a sequence have a key of zeros
and a decay of 1, which leave the state as it is. States are [batch, heads, V, K].
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention.heads import real, scaled
from mo_loop.frontend.ops.attention.linear_attention import divided, read_by, recurrence, shared
from mo_loop.frontend.ops.shared import counted, first_numbers, ranked, require_choice
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32
from mo_loop.ops.lengths import as_i64, joined
from mo_loop.ops.ranges import Integers, Matrix, NotNegative, Positive, Rank3, Rank4, Vector

EPSILON, EPSILON_OF_SIGMOID = 1e-12, 1e-6
"""The addend of the sum of squares before its root in the kernel: larger with a sigmoid gate."""


@translates("GatedDeltaNet", since=1, domain=MICROSOFT, ignored="chunk_size")
def gated_delta_net(
    query: Matrix | Rank3 | Rank4, key: Rank3 | Rank4 = None, value: Rank3 | Rank4 = None,
    cu_seqlens: Vector | Integers = None, decay=None, beta=None,
    initial_state: Rank4 = None, a_log=None, dt_bias=None, capture_count=None, state_update_active=None, *,
    beta_activation: str = "none", chunk_size: Positive = 64, gate_activation: str = "none",
    gate_lower_bound: float = -5.0, qk_l2_norm: int = 0, scale: float = 0.0, state_update_capacity: NotNegative = 0,
    update_rule: str = "gated_delta", node: Context,
):
    """q, k and v are [tokens, heads, size] or [batch, T, heads, size]; or q has all of them side by side."""
    decay, beta = read_by(update_rule, decay, beta, "GatedDeltaNet")
    dtype = query.dtype
    if key is None or value is None:
        query, key, value = _unpacked(query, initial_state)
    elif query.rank == 2 or query.rank != key.rank or key.rank != value.rank:
        text = f"the query, {query.type}, the keys, {key.type}, and the values, {value.type}, do not fit together"
        raise ModelError(text, code="ML235")
    order = _order(query, cu_seqlens, initial_state)
    q, k, v = (order.apart(each.astype(f32)) for each in (query, key, value))
    if qk_l2_norm:
        epsilon = EPSILON_OF_SIGMOID if gate_activation in ("sigmoid", "kda") else EPSILON
        q, k = _normalised(q, epsilon), _normalised(k, epsilon)
    k, heads = order.zeroed(k), v.size(2)
    if decay is not None:
        decay = order.zeroed(_decay(order, decay, query, (gate_activation, a_log, dt_bias, gate_lower_bound)))
    if beta is not None:
        require_choice("beta_activation", beta_activation, ("none", "sigmoid"))
        rate = beta.astype(f32)
        beta = ops.Unsqueeze(order.apart(rate if beta_activation == "none" else ops.Sigmoid(rate)), [3])
    states = _state(initial_state, order, q, v)
    y, last, added = recurrence(
        ops.Unsqueeze(shared(scaled(q, scale), heads), [3]), shared(k, heads), v, decay, beta, states
    )
    made: list[Any] = [order.together(ops.Squeeze(y, [3]), query).astype(dtype)]
    made.append(ops.Transpose(last, [0, 1, 3, 2]) if node.wants(1) else None)
    if node.wants(2):
        count = _limited(capture_count, state_update_active)
        made.append(_captured(order, [decay, k, ops.Squeeze(added, [3])], count, state_update_capacity))
    return made


def _unpacked(packed: Value, state: Value | None) -> list[Value]:
    """Q, K and V of [.., 2 * heads * K + V heads * V]; the state has the number and the size of the heads."""
    if state is None:
        raise ModelError("GatedDeltaNet with packed queries, keys and values has no input initial_state", code="ML227")
    known = [*state.type.dims[1:], packed.type.dims[-1]]
    if not all(isinstance(each, int) for each in known):
        raise UnsupportedError(
            "the sizes of the packed queries, keys and values are known only at run time", code="ML314",
            hint="declare the shapes of the query and of the initial state",
        )
    heads, width, size, total = (int(str(each)) for each in known)
    part = (total - heads * width) // 2
    axis = ranked(packed, "the query") - 1
    pieces = ops.VariadicSplit(packed, axis, [part, part, heads * width])
    shapes = [[part // size, size], [part // size, size], [heads, width]]
    return [
        ops.Reshape(piece, [0] * axis + shape, special_zero=True) for piece, shape in zip(pieces, shapes, strict=True)
    ]


def _normalised(x: Value, epsilon: float) -> Value:
    """x divided by its length."""
    squares = ops.ReduceSum(x * x, [-1], keep_dims=True)
    return x / ops.Sqrt(squares + epsilon)


def _decay(order: "_Order", decay: Value, query: Value, gate: tuple[str, Value | None, Value | None, float]) -> Value:
    """The logarithms of the decay, [batch, T, heads, K or 1]."""
    raw = decay.astype(f32)
    if raw.rank == ranked(query, "the query") - 1:
        raw = ops.Unsqueeze(raw, -1)
    raw = order.apart(raw)
    kind, a_log, dt_bias, bound = gate
    if kind == "none":
        return raw
    require_choice("gate_activation", kind, ("none", "softplus", "qwen", "sigmoid", "kda"))
    if a_log is None or dt_bias is None:
        raise ModelError(f"GatedDeltaNet with gate_activation {kind} has no a_log or dt_bias", code="ML227")
    rate = ops.Exp(a_log[:, None])
    moved = raw + dt_bias.reshape([raw.size(2), -1])
    if kind in ("softplus", "qwen"):
        return -rate * ops.SoftPlus(moved)
    return ops.Sigmoid(rate * moved) * bound


def _state(given: Value | None, order: "_Order", q: Value, v: Value) -> Value:
    """The states as [batch, heads, K, V]."""
    if given is not None:
        return ops.Transpose(given.astype(f32), [0, 1, 3, 2])
    return ops.Broadcast(np.float32(0), joined([order.batch, v.size(2), q.size(3), v.size(3)], q))


@dataclass
class _Order:
    """Sequences of one length: their number, None if the tensors have an axis for them."""

    batch: Any
    is_apart: bool

    def apart(self, x: Value) -> Value:
        """[tokens, ..] as [batch, T, ..]."""
        if self.is_apart:
            return x
        if self.batch == 1:
            return x[None]
        rest = [x.size(axis) for axis in range(1, len(x.type.dims))]
        return x.reshape([self.batch, divided(x.size(0), self.batch), *rest])

    def together(self, x: Value, like: Value) -> Value:
        """[batch, T, heads, V] as the query has its tokens."""
        if self.is_apart:
            return x
        rest = [x.size(axis) for axis in (2, 3)]
        return x.reshape([like.size(0), *rest])

    def zeroed(self, x: Value) -> Value:
        """Zeros in place of the tokens past the end of a sequence."""
        return x

    def lengths(self, x: Value) -> Any:
        """The number of tokens of each sequence, or of all, where `x` is [batch, T, ..]."""
        return x.size(1)


class _Ragged(_Order):
    """Sequences of different lengths."""

    def __init__(self, cumulative: Value) -> None:
        self.starts = cumulative[:-1]
        self.stops = cumulative[1:]
        super().__init__(self.starts.size(0), False)
        self._counts = self.stops - self.starts
        self._longest = ops.ReduceMax(self._counts, [0])
        steps = counted(self._longest, cumulative)[None]
        self._inside = steps < self._counts[:, None]
        self._rows = ops.Select(self._inside, self.starts[:, None] + steps, np.int64(0))

    def apart(self, x: Value) -> Value:
        return ops.Gather(x, self._rows, 0)

    def zeroed(self, x: Value) -> Value:
        return ops.Select(ops.Unsqueeze(self._inside, [2, 3]), x, real(0, x))

    def lengths(self, x: Value) -> Any:
        return self._counts[:, None]

    def together(self, x: Value, like: Value) -> Value:
        tokens = counted(like.size(0), like)
        ended = tokens[:, None] >= self.stops[None]
        sequence = ops.ReduceSum(ops.Select(ended, np.int64(1), np.int64(0)), [1])
        step = tokens - ops.Gather(self.starts, sequence, 0)
        row = sequence * self._longest + step
        return ops.Gather(x.reshape([-1, x.size(2), x.size(3)]), row, 0)


def _order(query: Value, cumulative: Value | None, state: Value | None) -> "_Order":
    if cumulative is not None:
        return _Order(1, False) if cumulative.type.dims[0] == 2 else _Ragged(as_i64(cumulative))
    if ranked(query, "the query") == 4:
        return _Order(query.size(0), True)
    if state is None:
        raise ModelError("GatedDeltaNet has neither cu_seqlens nor initial_state", code="ML227")
    return _Order(state.size(0), False)


def _limited(count: Value | None, active: Value | None) -> Value | None:
    """The number of changes to be captured; none if the capture is switched off."""
    if count is None or active is None:
        return count
    return ops.Select(ops.NotEqual(active, np.int32(0)), count, np.int32(0))


def _captured(order: _Order, tensors: list[Value | None], count: Value | None, capacity: int) -> Value:
    """[batch, ..]: the decays, keys and deltas of the first tokens of each sequence, zeros after their number."""
    decay, keys, deltas = tensors
    assert keys is not None and deltas is not None
    if not capacity or count is None:
        return ops.Broadcast(np.float32(0), joined([order.batch, 0], keys))
    slots = first_numbers(capacity)[None]
    limit = ops.Minimum(as_i64(count)[:, None], order.lengths(keys))
    is_captured = ops.Unsqueeze(ops.Less(slots, limit), [2, 3])
    last = keys.size(1)
    at = np.minimum(slots[0], last - 1) if isinstance(last, int) else ops.Minimum(last - 1, slots[0])
    kept = ops.Exp(decay) if decay is not None else None
    parts = []
    for each in (kept, keys, deltas):
        some = ops.Gather(deltas if each is None else each, at, 1)
        if each is None:  # a decay of 1 for each head
            some = ops.Broadcast(np.float32(1), joined([order.batch, capacity, deltas.size(2), 1], deltas))
        shown = ops.Select(is_captured, some, real(0, keys))
        parts.append(shown.reshape([None, -1]))
    return ops.Concat(*parts, axis=1)
