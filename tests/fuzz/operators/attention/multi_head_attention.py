"""Attention with projections of its own or of others, its masks and its caches."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import Draw, Node, Port


def multi_head(d: Draw) -> Node:
    """Queries, keys and values of their own lengths, or keys and values that were projected before."""
    batch, heads, size = d.size(1, 3, 0), d.integer(1, 3), d.integer(1, 5)
    kind, way = np.dtype(d.dtype("T")), d.pick("apart", "apart", "apart", "past", "past", "projected")
    v_size = d.integer(1, 5) if way == "apart" and d.chance(0.4) else size
    own, queries = d.chance(0.5), d.size(1, 4, 0)
    keys = d.size(1, 5, 0)
    keys = queries if own else keys
    q = d.data([batch, queries, heads * size], kind)
    shapes = [[batch, keys, heads * each] for each in (size, v_size)]
    if way == "projected":
        shapes = [[batch, heads, keys, size]] * 2
    k, v = (d.data(each, kind, constant=0.05) for each in shapes)
    bias = d.optional(d.data([heads * (2 * size + v_size)], kind, constant=0.8, computed=False), 0.4)
    length = d.size(1, 4, 0)
    pasts: list[Any] = [d.data([batch, heads, length, size], kind, constant=0) for _ in range(2)]
    if way != "past":
        pasts, length = [], 0
    total = length + keys
    mask = _mask(d, batch, queries, total, ("ends", "ends and more", "keys", "pairs"))
    added = _added(d, batch, heads, queries, total, kind, 0.3)
    outputs = 3 if pasts else d.pick(1, 1, 3)
    return d.node([q, k, v, bias, mask, added, *pasts], outputs, num_heads=heads, scale=d.maybe(d.number(0.1, 1), 0.3),
                  unidirectional=d.maybe(d.pick(0, 1), 0.5), mask_filter_value=d.maybe(_filter(d), 0.4),
                  rtol=_rtol(kind))


def attention(d: Draw) -> Node:
    """One input that is projected to queries, keys and values."""
    batch, heads, size = d.size(1, 3, 0), d.integer(1, 3), d.integer(1, 5)
    has_past = d.chance(0.3)
    v_size = d.integer(1, 5) if d.chance(0.25) and not has_past else size
    queries, width = d.size(1, 5, 0), d.integer(1, 6)
    kind = np.dtype(d.dtype("T"))
    x = d.data([batch, queries, width], kind)
    columns = heads * (2 * size + v_size)
    weights = d.data([width, columns], kind, "small", constant=0.85, computed=False)
    bias = d.optional(d.data([columns], kind, constant=0.85, computed=False), 0.8)
    past_length = d.size(1, 4, 0) if has_past else 0
    past = d.data([2, batch, heads, past_length, size], kind, constant=0) if has_past else None
    total = past_length + queries
    mask = _mask(d, batch, queries, total, ("ends", "ends and starts", "ends and more", "keys", "pairs", "nothing"))
    added = _added(d, batch, heads, queries, total, kind, 0 if has_past else 0.3)
    sizes = [heads * size, heads * size, heads * v_size]
    return d.node([x, weights, bias, mask, past, added], 2 if has_past or (v_size == size and d.chance(0.3)) else 1,
                  num_heads=heads, qkv_hidden_sizes=d.maybe(sizes, 0.3) if v_size == size else sizes,
                  scale=d.maybe(d.number(0.1, 1), 0.3), unidirectional=d.maybe(d.pick(0, 1), 0.6),
                  mask_filter_value=d.maybe(_filter(d), 0.4), rtol=_rtol(kind))


def quantised(d: Draw) -> Node:
    """Integers that are projected to queries, keys and values."""
    batch, heads, size = d.size(1, 3, 0), d.integer(1, 3), d.integer(1, 5)
    has_past = d.chance(0.3)
    queries, width, columns = d.size(1, 5, 0), d.integer(1, 6), 3 * heads * size
    kinds = np.dtype(d.dtype("T1")), np.dtype(d.dtype("T2"))
    x = d.data([batch, queries, width], kinds[0])
    weight = d.data([width, columns], kinds[1], constant=0.85, computed=False)
    bias = d.data([columns], np.float32, constant=0.85, computed=False)
    by_column = d.chance(0.3)
    shape = (columns,) if by_column else ()
    scales = [d.given(np.float32(0.01) + np.zeros((), np.float32), 0.8, fixed=True)]
    scales.append(d.given(d.values.uniform(0.01, 0.1, shape).astype(np.float32), 0.8, fixed=True))
    points = [d.given(d.values.integers(0, 9, each).astype(kind), 0.8, fixed=True)
              for each, kind in zip(((), shape), kinds, strict=True)]
    length = d.size(1, 4, 0) if has_past else 0
    past = d.data([2, batch, heads, length, size], np.float32, constant=0) if has_past else None
    forms = ("ends", "ends and starts", "ends and more", "keys", "pairs")
    mask = _mask(d, batch, queries, length + queries, forms)
    return d.node(
        [x, weight, bias, *scales, mask, d.optional(points[0]), d.optional(points[1]), past],
        2 if has_past or d.chance(0.3) else 1, num_heads=heads, unidirectional=d.maybe(d.pick(0, 1), 0.6),
        scale=d.maybe(d.number(0.1, 1), 0.3), mask_filter_value=d.maybe(_filter(d), 0.4), rtol=1e-4, atol=1e-4,
    )


def _filter(d: Draw) -> float:
    return float(d.pick(-10000.0, -3.4028234663852886e38, -50.0))


def _rtol(kind: Any) -> float | None:
    return 1e-4 if kind == np.float32 else None


def _mask(d: Draw, batch: int, queries: int, total: int, forms: tuple[str, ...]) -> Port | None:
    """Integers that mark the keys that are padding."""
    form, present = d.pick(*forms), d.chance(0.6)
    ends = d.values.integers(1, total + 1, batch)
    arrays = {
        "ends": ends,
        "ends and starts": np.concatenate([ends, d.values.integers(0, 3, batch)]),
        "ends and more": np.concatenate([ends, np.arange(2 * batch + 2)]),
        "keys": d.values.integers(0, 2, (batch, total)),
        "pairs": d.values.integers(0, 2, (batch, queries, total)),
        "nothing": np.zeros((batch, 1), np.int64),
    }
    port = d.given(arrays[form].astype(np.int32), 0.1, fixed=False)
    return port if present else None


def _added(d: Draw, batch: int, heads: int, queries: int, total: int, kind: Any, share: float) -> Port | None:
    """Numbers added to the scores, for all sequences or heads, or for each."""
    rows, columns = d.pick(batch, 1), d.pick(heads, 1)
    return d.optional(d.data([rows, columns, queries, total], kind, constant=0.1), share)


OPERATORS = {"com.microsoft::MultiHeadAttention": multi_head, "com.microsoft::Attention": attention,
             "com.microsoft::QAttention": quantised}
