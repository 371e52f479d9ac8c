"""Attention of one new token, with its caches."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import Draw, Node


def masked(d: Draw) -> Node:
    """Over a buffer, with beams or without, over the keys and values of an encoder, or over its own."""
    way = d.pick("buffer", "buffer", "buffer", "encoder", "own")
    is_cross = way != "buffer"
    beams, batch, heads, size = d.pick(1, 1, 2, 3), d.size(1, 2, 0), d.integer(1, 3), d.integer(1, 5)
    kind, rows, hidden = np.dtype(d.dtype("T", "float float16")), beams * batch, heads * size
    past, spare = d.size(0, 4, 0.05), d.size(0, 3, 0)
    total = 1 if way == "own" else past + 1
    buffer = [rows, heads, total + spare, size]
    shape = [rows, heads, total, size] if way == "encoder" else [rows, 1, hidden]
    q, k, v = d.data([rows, 1, hidden], kind), *(d.data(shape, kind, constant=0.05) for _ in range(2))
    pasts: list[Any] = [d.data(buffer, kind, constant=0) for _ in range(2)]
    has_beams = beams > 1 or d.chance(0.3)
    kept = d.values.integers(0, 2, (rows, total)).astype(np.int32)
    kept[:, -1] = 1
    mask = d.given(kept, 0.1 if d.dims == "static" else 0)
    added = d.data([1 if has_beams else d.pick(rows, 1), d.pick(heads, 1), 1, total], kind, constant=0.1)
    length = d.given(np.array(past, np.int32).reshape(d.pick((), (1,))), 0.15 if d.dims == "static" else 0, fixed=True)
    width = d.given(np.array([beams], np.int32), 0.7, fixed=True)
    indirection = d.values.integers(0, beams, (batch, beams, total + spare)).astype(np.int32)
    way = d.given(indirection, 0.1 if d.dims == "static" else 0)
    bias = d.optional(d.data([3 * hidden], kind, constant=0.8, computed=False), 0.4)
    mask, added = d.optional(mask, 0.5), d.optional(added, 0.3)
    caches = [None, None, None] if is_cross else [*pasts, length]
    return d.node(
        [q, k, v, mask, None if is_cross else added, *caches, *([width, way] if has_beams else [None, None]), bias],
        1 if is_cross else 3, num_heads=heads,
        past_present_share_buffer=d.maybe(0) if is_cross else 1, output_qk=d.maybe(0, 0.2),
        scale=d.maybe(d.number(0.1, 1), 0.3), mask_filter_value=d.maybe(float(d.pick(-10000.0, -50.0)), 0.4),
        rtol=1e-4 if kind == np.float32 else None,
    )


OPERATORS = {"com.microsoft::DecoderMaskedMultiHeadAttention": masked}
