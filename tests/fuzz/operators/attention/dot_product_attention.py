"""Attention of ONNX: its heads, masks, windows, caches and scores."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node, Port

MASKS_OF_ALL_KEYS = 25
"""Below this version ONNX Runtime has a kernel, which refuses masks of fewer columns than keys, and vectors."""


def attention(d: Draw) -> Node:
    """Without a cache, with one in past_key and past_value, or with one in K and V that nonpad_kv_seqlen bounds."""
    way = d.pick("none", "none", "past", "past", "padded" if d.since >= 24 else "none")
    batch, kv_heads, size, is_flat = d.size(1, 3, 0), d.integer(1, 2), d.integer(1, 5), d.chance(0.4)
    heads, v_size = kv_heads * d.pick(1, 1, 2, 3), d.integer(1, 5)
    queries, keys = d.size(1, 4, 0), d.size(1, 5, 0)
    keys = queries if d.chance(0.4) else keys
    kind = np.dtype(d.dtype("T1"))
    ends = d.given(d.values.integers(1, keys + 1, batch), 0)
    q, k, v = (d.data([batch, rows, count * each] if is_flat else [batch, count, rows, each], kind, constant=0)
               for rows, count, each in ((queries, heads, size), (keys, kv_heads, size), (keys, kv_heads, v_size)))
    past = d.size(1, 4, 0)
    pasts: list[Any] = [d.data([batch, kv_heads, past, each], kind, constant=0) for each in (size, v_size)]
    total = past + keys if way == "past" else keys
    mask = _mask(d, batch, heads, queries, total, kind)
    if way != "past":
        pasts = [None, None]
    outputs = d.pick(1, 3, 4) if way == "none" else 3 + d.integer(0, 1) if way == "past" else 1
    softcap = d.maybe(d.number(1, 5), 0.3)
    mode = d.maybe(d.integer(0, 3), 0.7) if softcap is OMITTED else d.integer(1, 3)
    windows = {name: d.maybe(d.integer(-1, 3), 0.4) for name in ("left_window_size", "right_window_size")}
    return d.node(
        [q, k, v, mask, *pasts, ends if way == "padded" else None], outputs, is_causal=d.maybe(d.pick(0, 1), 0.6),
        q_num_heads=heads if is_flat else OMITTED, kv_num_heads=kv_heads if is_flat else OMITTED,
        scale=d.maybe(d.number(0.1, 1), 0.3), softcap=softcap,
        qk_matmul_output_mode=mode, softmax_precision=d.maybe(1, 0.2), **windows,
        rtol=1e-4 if kind == np.float32 else None, atol=0.03 if kind == np.float16 else None,
    )


def _mask(d: Draw, batch: int, heads: int, queries: int, total: int, kind: np.dtype) -> Port | None:
    """Booleans or numbers, of some of the dimensions [batch, heads, S, T]."""
    is_boolean, is_shorter = d.chance(0.5), d.chance(0.2) and d.since >= MASKS_OF_ALL_KEYS
    most = 4 if d.since >= MASKS_OF_ALL_KEYS else 3
    start, ones = d.integer(0, most - 1), [d.chance(0.4), d.chance(0.4)]
    columns = max(total - 1, 1) if is_shorter else total
    shape = [1 if ones[0] else batch, 1 if ones[1] else heads, queries, columns][start:]
    if is_boolean:
        return d.optional(d.given(d.values.random(shape) < 0.7, 0.15), 0.55)
    numbers = d.values.standard_normal(shape)
    hidden = np.where(d.values.random(shape) < 0.3, -np.inf, numbers) if d.chance(0.4) else numbers
    return d.optional(d.given(hidden.astype(kind), 0.15), 0.55)


OPERATORS = {"Attention": attention}
