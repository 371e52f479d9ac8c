"""Heads of keys and values that several heads of queries share, and their caches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.elementwise.arithmetic import as_type
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.graph.types import f32
from mo_loop.ops.lengths import dimension, joined


@dataclass(frozen=True)
class Scores:
    """The attributes that scores depend on."""

    heads: int
    kv_heads: int
    scale: float | None
    softcap: float = 0.0
    smooth: bool = False


def separate(query: Value, key: Value | None, value: Value | None, heads: int, kv_heads: int) -> Sequence[Value]:
    """Q, K and V as [batch, heads, S, size]."""
    if key is not None and value is not None:
        counts = (heads, kv_heads, kv_heads)
        return [parts.split_heads(x, count) for x, count in zip((query, key, value), counts, strict=True)]
    every = parts.split_heads(query, heads + 2 * kv_heads)
    return parts.pieces(every, 1, [heads, kv_heads, kv_heads])


# -- caches


def chosen(rows: Value, at: Value) -> Value:
    """The rows `at` [batch, R] of rows [batch, kv heads, T, size]."""
    return ops.Gather(rows, at, 2, batch_dims=1)


def beginning(cache: Value, total: Any) -> Value:
    """The first `total` rows of a cache."""
    if cache.type.dims[2] == total:
        return cache
    return ops.Slice(cache, [0], joined([total], cache), [1], [2])


# -- masks


def earlier(keys: Value, places: Value, ends: Value) -> Value:
    """[batch, 1, S, T]: whether a key is not after the query at its place [batch, S], nor past the end [batch]."""
    last = ops.Minimum(places, ops.Unsqueeze(ends, [1]) - 1)
    return keys <= ops.Unsqueeze(last, [1, 3])


def _masked(scores: Value, mask: Value, task: Scores) -> Value:
    """The scores plus a mask; heads have one mask, or masks in turn, or masks of their own."""
    count = mask.type.dims[1]
    if count in (1, task.heads) or not isinstance(count, int):
        return scores + mask
    batch, rows = dimension(scores, 0), dimension(scores, 2)
    apart = ops.Reshape(scores, joined([batch, task.heads // count, count, rows, -1], scores))
    added = apart + ops.Unsqueeze(mask, [1])
    return ops.Reshape(added, joined([batch, task.heads, rows, -1], scores))


# -- products


def attended(
    task: Scores, tensors: Sequence[Value], mask: Value, bias: Value | None, sink: Value | None
) -> tuple[Value, Value, Value]:
    """The result [batch, heads, S, size], the scores before the softmax, and the weights after it."""
    q, k, v = tensors
    counts = (task.heads, task.kv_heads)
    scores = as_type(parts.grouped_product(parts.scaled(q, task.scale), k, *counts, transpose_b=True), f32)
    scores = parts.capped(scores, task.softcap)
    if bias is not None:
        scores = scores + as_type(bias, f32)
    weights = _softmax(_masked(scores, mask, task), sink, task)
    return parts.grouped_product(as_type(weights, v.dtype), v, *counts), scores, weights


def _softmax(scores: Value, sink: Value | None, task: Scores) -> Value:
    """The softmax; a sink is one more score for each head, of no key; `smooth` is a sink of 0."""
    if sink is None and not task.smooth:
        return ops.Softmax(scores, axis=3)
    column = ops.Slice(scores, [0], [1], [1], [3])
    none = column * np.float32(0)
    extra = none if sink is None else none + ops.Reshape(as_type(sink, f32), [1, task.heads, 1, 1])
    every = ops.Softmax(ops.Concat(scores, extra, axis=3), axis=3)
    return ops.Slice(every, [0], [-1], [1], [3])
