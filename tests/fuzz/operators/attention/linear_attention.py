"""Attention without a softmax: states that each token updates."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node

RULES = ("linear", "gated", "delta", "gated_delta")


def attention(d: Draw) -> Node:
    """Query heads that share a state, or states that share a query head or a key head."""
    rule, base = d.pick(*RULES), d.integer(1, 2)
    times, way = d.integer(1, 3), d.pick("queries", "states", "keys")
    heads, states = (base * times, base) if way == "queries" else (base, base * times)
    keys = base if way == "keys" else states
    heads = states if way == "keys" and d.chance(0.5) else heads
    most = d.pick(6, 6, 40)  # more than one chunk
    batch, length, size, width = d.size(1, 3, 0.01), d.size(1, most, 0.02), d.integer(1, 5), d.integer(1, 5)
    kind = d.dtype("T", "float float16")
    other = np.dtype(np.float32) if d.chance(0.3) else kind
    q, k, v = (d.data([batch, length, each], kind, values) for each, values in
               ((heads * size, "any"), (keys * size, "unit"), (states * width, "any")))
    state = d.optional(d.data([batch, states, size, width], other, constant=0.05), 0.75)
    decay = d.data([batch, length, states * d.pick(1, 1, size)], kind, "unit")
    beta = d.data([batch, length, d.pick(states, states, 1)], kind, "unit")
    is_gated, has_delta = "gated" in rule, "delta" in rule
    return d.node(
        [q, k, v, state, d.optional(decay, 1 if is_gated else 0.2), d.optional(beta, 1 if has_delta else 0.2)], 2,
        q_num_heads=heads, kv_num_heads=states, scale=d.maybe(d.number(0, 1)), chunk_size=d.maybe(16, 0.2),
        update_rule=OMITTED if rule == "gated_delta" and d.chance(0.4) else rule, **_tolerance(kind),
    )


def _tolerance(kind: Any) -> dict[str, Any]:
    return {"rtol": 1e-4, "atol": 1e-4} if kind == np.float32 else {}


def gate(d: Draw) -> Node:
    """Decays, and update rates if they are asked for."""
    shape, kind = d.shape(2, 4), d.dtype("T", "float float16")
    heads = d.integer(1, 4)
    vectors = [d.data([heads], np.float32, constant=0.8, computed=False) for _ in range(2)]
    outputs, b = d.pick(1, 2, 2), d.data([*shape[:-1], heads], kind)
    return d.node([d.data([*shape[:-1], heads], kind), *vectors, b if outputs == 2 else d.optional(b)], outputs)


OPERATORS = {"com.microsoft::LinearAttention": attention, "com.microsoft::LinearAttentionGate": gate}
