"""Attention to blocks of earlier keys, with buffers as caches."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node


def sparse(d: Draw) -> Node:
    """The first step, or a later one, of one token or some.

    All sequences have the same length: the weights of shorter ones lie elsewhere than ONNX Runtime's kernel reads them.
    """
    step = d.pick("first", "first", "one", "some")
    batch, kv_heads = d.size(1, 3, 0), d.integer(1, 2)
    heads, does_rotate = kv_heads * d.integer(1, 3), d.chance(0.4)
    size = 16 * d.integer(1, 2) if does_rotate else 8 * d.integer(1, 2)
    block, blocks = d.pick(2, 3, 4, 16), d.integer(4, 6)
    rows = 1 if step == "one" else d.size(2, 4, 0)
    past = 0 if step == "first" else d.size(1, 4, 0)
    total, spare = past + rows, d.size(1, 4, 0) - 1
    kind = np.dtype(d.dtype("T", "float float16"))
    widths = [heads, kv_heads, kv_heads]
    apart = [d.data([batch, rows, each * size], kind, constant=0.03) for each in widths]
    packed = [d.data([batch, rows, sum(widths) * size], kind, constant=0.03), None, None]
    cache = [d.data([batch, kv_heads, total + spare, size], kind, constant=0, computed=False) for _ in range(2)]
    columns, length = (8 * d.integer(1, size // 16) if does_rotate else 0), d.integer(30, 34)
    turns = [d.data([length, columns], kind, "unit", constant=0.85, computed=False) for _ in range(2)]
    layouts = _layouts(d, d.pick(*(each for each in range(1, heads + 1) if heads % each == 0)), blocks)
    starts, numbers = _compressed(layouts)
    share = d.pick(0.0, 1.0, 1.0)
    given: list[Any] = [*(packed if d.chance(0.35) else apart), *cache, d.given(starts, share, fixed=True),
                        d.given(numbers, share, fixed=True),
                        d.given(np.array(total, np.int32), 0.15 if d.dims == "static" else 0, fixed=True),
                        d.given(np.full(batch, total, np.int32), 0.1 if d.dims == "static" else 0),
                        *(turns if does_rotate else ())]
    return d.node(
        given, 3, num_heads=heads, kv_num_heads=kv_heads, sparse_block_size=block,
        do_rotary=1 if does_rotate else d.maybe(0, 0.2),
        rotary_interleaved=d.maybe(d.pick(0, 1), 0.5) if does_rotate else OMITTED, scale=d.maybe(d.number(0.1, 1), 0.3),
        rtol=1e-4 if kind == np.float32 else None,
    )


def _layouts(d: Draw, count: int, blocks: int) -> np.ndarray[Any, Any]:
    """Which blocks before its own each block reads; rarely it does not read its own."""
    share = d.pick(0.3, 0.6, 1)
    kept = np.array([d.chance(share) for _ in range(count * blocks * blocks)]).reshape(count, blocks, blocks)
    if d.chance(0.85):
        kept |= np.eye(blocks, dtype=np.bool_)
    return np.tril(kept)


def _compressed(layouts: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The starts of the rows, and the columns, which end with -1 where a layout has fewer than another."""
    counts = layouts.sum(2)
    starts = np.concatenate([np.zeros((len(layouts), 1)), np.cumsum(counts, 1)], 1).astype(np.int32)
    numbers = np.full((len(layouts), max(int(starts[:, -1].max()), 1)), -1, np.int32)
    for layout, kept in enumerate(layouts):
        numbers[layout, : starts[layout, -1]] = np.nonzero(kept)[1]
    return starts, numbers


OPERATORS = {"com.microsoft::SparseAttention": sparse}
