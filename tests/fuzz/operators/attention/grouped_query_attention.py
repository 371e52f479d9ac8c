"""Attention with heads of keys and values that several heads of queries read, and with caches."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node


def grouped(d: Draw) -> Node:
    """The first step, of several tokens, or a later one: of one token, or of some of one sequence."""
    step = d.pick("first", "first", "one", "one", "some")
    batch, kv_heads = 1 if step == "some" else d.size(1, 3, 0), d.integer(1, 2)
    heads, does_rotate = kv_heads * d.integer(1, 3), d.chance(0.5)
    size = 16 * d.integer(1, 2) if does_rotate else 8 * d.integer(1, 2)
    rows = 1 if step == "one" else d.size(2, 4, 0)
    kind = np.dtype(d.dtype("T", "float float16"))
    past = 0 if step == "first" else d.size(1, 4, 0)
    total, spare = past + rows, d.size(1, 3, 0)
    has_spare, has_buffer = d.chance(0.4), d.chance(0.4)
    held = total + spare if has_spare or step == "first" else past
    is_cached = step != "first" or has_buffer
    cache = [d.data([batch, kv_heads, held, size], kind, constant=0) for _ in range(2)]
    shorter = d.values.integers(past if step == "one" else 0, total, batch)
    window = d.maybe(d.pick(-1, 1, 2, 3), 0.4)
    # The keys of rows of padding are not defined: with a window they are others.
    is_ragged = d.chance(0.4) and (step == "one" or (step == "first" and window in (OMITTED, -1)))
    ends = (shorter if is_ragged else np.full(batch, total - 1)).astype(np.int32)
    widths = [heads, kv_heads, kv_heads]
    apart = [d.data([batch, rows, each * size], kind, constant=0.03) for each in widths]
    packed = [d.data([batch, rows, sum(widths) * size], kind, constant=0.03), None, None]
    columns = 8 * d.integer(1, size // 16) if does_rotate else 0
    length = d.integer(12, 14)
    caches = [d.data([length, columns], kind, "unit", constant=0.85, computed=False) for _ in range(2)]
    places = d.given(d.values.integers(0, 8, (batch, rows)), 0.1)
    bias = d.data([d.pick(batch, 1), d.pick(heads, 1), rows, total], kind, constant=0.1)
    sink = d.data([heads], kind, constant=0.6, computed=False)
    given: list[Any] = [*(packed if d.chance(0.35) else apart), *(cache if is_cached else (None, None)),
                        d.given(ends, 0.1 if d.dims == "static" else 0),
                        d.given(np.array(total, np.int32), 0.15 if d.dims == "static" else 0, fixed=True),
                        *(caches if does_rotate else (None, None)), d.optional(places, 0.3) if does_rotate else None,
                        d.optional(bias, 0.25), d.optional(sink, 0.2)]
    return d.node(given, 3, num_heads=heads, kv_num_heads=kv_heads, do_rotary=1 if does_rotate else d.maybe(0, 0.2),
                  rotary_interleaved=d.maybe(d.pick(0, 1), 0.5) if does_rotate else OMITTED,
                  scale=d.maybe(d.number(0.1, 1), 0.3), softcap=d.maybe(d.number(1, 5), 0.25),
                  local_window_size=window, smooth_softmax=d.maybe(d.pick(-1, 0, 1), 0.25),
                  rtol=1e-4 if kind == np.float32 else None)


OPERATORS = {"com.microsoft::GroupQueryAttention": grouped}
