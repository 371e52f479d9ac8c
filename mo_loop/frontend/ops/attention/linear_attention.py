"""LinearAttention: attention with a state instead of keys and values of the past, and its gate."""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention.delta_rule import recurrence, shared
from mo_loop.frontend.ops.attention.heads import scaled
from mo_loop.frontend.ops.elementwise.arithmetic import as_type
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32
from mo_loop.ops.lengths import dimension, joined
from mo_loop.ops.ranges import NotNegative, Positive, Rank3, Rank4

RULES = {"linear": "", "gated": "decay", "delta": "beta", "gated_delta": "decay beta"}
"""The rules of the state -> the inputs that they read."""


@translates("LinearAttention", since=1, domain=MICROSOFT, ignored="chunk_size")
def linear_attention(
    query: Rank3, key: Rank3, value: Rank3, past_state: Rank4 = None, decay: Rank3 = None, beta: Rank3 = None,
    *, chunk_size: Positive = 64, kv_num_heads: Positive, q_num_heads: Positive, scale: float = 0.0,
    state_window: NotNegative = 0,
    update_rule: str = "gated_delta",
):  # fmt: skip
    """Heads lie in the last dimension; query heads share a state, or states and keys share a query head."""
    if state_window:
        raise UnsupportedError(
            "LinearAttention with a window of states", code="ML316",
            hint="the CPU kernel of ONNX Runtime does not have it: export the model with state_window 0",
        )  # fmt: skip
    decay, beta = read_by(update_rule, decay, beta, "LinearAttention")
    if max(q_num_heads, kv_num_heads) % min(q_num_heads, kv_num_heads):
        raise ModelError(f"{q_num_heads} query heads do not share {kv_num_heads} states", code="ML227")
    wide = [as_type(each, f32) for each in (query, key, value)]
    q, v = _apart(wide[0], q_num_heads), _apart(wide[2], kv_num_heads)
    size = dimension(q, 3)
    k = shared(_apart(wide[1], divided(dimension(key, 2), size), size), kv_num_heads)
    q = grouped_queries(scaled(q, scale), q_num_heads, kv_num_heads)
    if decay is not None:
        decay = _apart(as_type(decay, f32), kv_num_heads)
    if beta is not None:
        beta = ops.Unsqueeze(as_type(beta, f32), [3])
    state = past_state
    if state is None:
        state = _zeros([dimension(query, 0), kv_num_heads, size, dimension(v, 3)], query)
    y, last, _ = recurrence(q, k, v, decay, beta, as_type(state, f32))
    hidden = dimension(v, 3) * max(q_num_heads, kv_num_heads)
    flat = ops.Reshape(y, joined([0, 0, hidden], y), special_zero=True)
    return [as_type(flat, query.dtype), as_type(last, state.dtype)]


def read_by(rule: str, decay: Value | None, beta: Value | None, op: str) -> list[Value | None]:
    """The decay and the update rate that the rule reads."""
    if rule not in RULES:
        raise ModelError(f"{op} has the update_rule {rule!r}, not one of {', '.join(RULES)}", code="ML227")
    kept = []
    for name, each in (("decay", decay), ("beta", beta)):
        if name in RULES[rule] and each is None:
            raise ModelError(f"{op} with the update_rule {rule} has no input {name}", code="ML227")
        kept.append(each if name in RULES[rule] else None)
    return kept


def _apart(x: Value, heads: Any, size: Any = None) -> Value:
    """[batch, T, heads * size] as [batch, T, heads, size]; no -1, which a batch or T of 0 leaves open."""
    size = divided(dimension(x, 2), heads) if size is None else size
    return ops.Reshape(x, joined([0, 0, heads, size], x), special_zero=True)


def divided(a: Any, b: Any) -> Any:
    """The whole quotient of two lengths, ints or scalars."""
    return a // (max(b, 1) if isinstance(b, int) else b)


def grouped_queries(q: Value, heads: int, states: int) -> Value:
    """[batch, T, heads, K] as [batch, T, states, R, K], the R queries of one state together."""
    if heads <= states:
        return ops.Unsqueeze(shared(q, states), [3])
    pattern = joined([0, 0, states, heads // states, dimension(q, 3)], q)
    return ops.Reshape(q, pattern, special_zero=True)


def _zeros(dims: list[Any], like: Value) -> Value:
    return ops.Broadcast(np.zeros((), like.dtype.numpy), joined(dims, like))


@translates("LinearAttentionGate", since=1, domain=MICROSOFT)
def linear_attention_gate(a, dt_bias, decay_scale, b=None, *, node: Context):
    """decay_scale * softplus(a + dt_bias) in f32, and sigmoid(b); the vectors have one number for each head."""
    decay = ops.SoftPlus(as_type(a, f32) + dt_bias) * decay_scale
    if not node.wants(1):
        return as_type(decay, a.dtype)
    if b is None:
        raise ModelError("LinearAttentionGate has the output beta without the input b", code="ML227")
    return [as_type(decay, a.dtype), ops.Sigmoid(b)]
