"""Attention of ONNX: y = softmax(cap(scale * Q K^T) + bias) V for each head.

The bias is -inf for each key that a query does not see, and the number of a mask of floats for the others. A query that
sees no key gives zeros. With n keys before the first query, the query i is at the place p = n + i. It sees the key j if

    j <= p                      is_causal
    p - left <= j <= p + right  windows
    j < nonpad_kv_seqlen        padding; n is nonpad_kv_seqlen - S then, and otherwise the length of the past

and a mask of booleans keeps it. The scores are in the element type of Q, as ONNX has them.

Several heads of queries may share the heads of keys and values and their caches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.shared import counted, ranked
from mo_loop.frontend.vocabulary import Context, ModelError, Value, ops, translates
from mo_loop.graph import ElementType, assume_equal, assume_fixed, bf16, boolean, f16, f32, f64, from_onnx, now
from mo_loop.ops.lengths import as_i64, joined, larger
from mo_loop.ops.ranges import AtLeast1, Integers, NotNegativeOrNone, Positive, Rank3, Rank4, Vector

WINDOWS = "left_window_size right_window_size"
PADS_MASKS = 24
"""The first version in which a mask may have fewer columns than there are keys."""


@dataclass(frozen=True)
class Keys:
    """The bounds of the keys that a query sees, besides a mask; None means no bound."""

    past: Value | None
    ends: Value | None
    """The number of keys of each sequence that are not padding."""
    left: int | None
    right: int | None


@translates("Attention", since=23, without=f"nonpad_kv_seqlen {WINDOWS}")
@translates("Attention", since=24, without=WINDOWS)
@translates("Attention", since=25)
def attention(
    q: Rank3 | Rank4, k: Rank3 | Rank4, v: Rank3 | Rank4, attn_mask: AtLeast1 = None, past_key: Rank4 = None,
    past_value: Rank4 = None, nonpad_kv_seqlen: Vector | Integers = None, *, is_causal: int = 0,
    kv_num_heads: Positive | None = None, left_window_size: NotNegativeOrNone = -1, q_num_heads: Positive | None = None,
    qk_matmul_output_mode: int = 0, right_window_size: NotNegativeOrNone = -1, scale: float | None = None,
    softcap: float = 0.0, softmax_precision: int | None = None, node: Context,
):
    """Q, K and V are [batch, heads, S, size], or [batch, S, heads * size] with the numbers of heads as attributes."""
    if (past_key is None) != (past_value is None):
        raise ModelError("it has one of past_key and past_value: give both, or none", code="ML227")
    if past_key is not None and nonpad_kv_seqlen is not None:
        raise ModelError("it has both a past and nonpad_kv_seqlen: a node may have one of them", code="ML227")
    rank, precision = ranked(q, "Q"), q.dtype if softmax_precision is None else from_onnx(softmax_precision)
    if softmax_precision is not None and precision not in (f32, f16, f64, bf16):
        raise TypeError_(f"the softmax_precision is {precision}, which is not a type of floats", code="ML236")
    if qk_matmul_output_mode not in range(4):
        raise TypeError_(f"qk_matmul_output_mode is {qk_matmul_output_mode}, and its range is 0 to 3", code="ML236")
    if rank == 3:
        if q_num_heads is None or kv_num_heads is None:
            raise ModelError("inputs of 3 dimensions need the attributes q_num_heads and kv_num_heads", code="ML227")
        q, k, v = separate(q, k, v, q_num_heads, kv_num_heads)
    is_square = q.type.dims[2] == k.type.dims[2]
    present_k, present_v = k, v = parts.appended(past_key, k), parts.appended(past_value, v)
    assume_equal(k.type.dims[2:3], v.type.dims[2:3])
    heads, kv_heads = _counts(q, k)
    right = 0 if is_causal else (None if right_window_size < 0 else right_window_size)
    keys = Keys(past_key, nonpad_kv_seqlen, None if left_window_size < 0 else left_window_size, right)
    bias, sees = _bias(keys, q, k, attn_mask, is_square, node.opset >= PADS_MASKS)
    raw = parts.grouped_product(q * 0.0 if scale == 0 else parts.scaled(q, scale), k, heads, kv_heads, transpose_b=True)
    capped = parts.capped(raw, softcap)
    scores = capped if bias is None else capped + bias
    weights = ops.Softmax(scores.astype(precision), axis=3).astype(q.dtype)
    y = _or_zero(parts.grouped_product(weights, v.astype(q.dtype), heads, kv_heads), sees)
    shown = _or_zero(weights, sees) if qk_matmul_output_mode == 3 else (raw, capped, scores)[qk_matmul_output_mode]
    return [parts.merge_heads(y) if rank == 3 else y, present_k, present_v, shown]


def _counts(q: Value, k: Value) -> tuple[Any, Any]:
    """The numbers of heads of Q, and of K and V: the same object if they are equal."""
    if now(q.type.dims[1]) == now(k.type.dims[1]):
        assume_equal(q.type.dims[1:2], k.type.dims[1:2])
    else:
        assume_fixed((q.type.dims[1], k.type.dims[1]))
    heads = q.size(1)
    if q.type.dims[1] == k.type.dims[1]:
        return heads, heads
    kv_heads = k.size(1)
    if isinstance(heads, int) and isinstance(kv_heads, int) and (kv_heads == 0 or heads % kv_heads):
        raise TypeError_(f"{heads} heads of queries cannot share {kv_heads} heads of keys", code="ML235")
    return heads, kv_heads


def _or_zero(x: Value, sees: Value | None) -> Value:
    """The rows of queries that see a key, and zeros for the others.

    After the product, because the CPU plugin makes one kernel of MatMul, Softmax and MatMul. That kernel cannot hold
    one scalar for two purposes, so the zero is not a scalar, as that of the bias is.
    """
    return x if sees is None else ops.Select(sees, x, np.zeros((1, 1, 1, 1), x.dtype.numpy))


def _bias(
    keys: Keys, q: Value, k: Value, mask: Value | None, is_square: bool, may_pad: bool
) -> tuple[Value | None, Value | None]:
    """The addend of the scores, and whether each query sees a key [.., S, 1]: None if all do."""
    seen = _seen(keys, q, k)
    # The runtime computes f64 in f32, but replaces infinities of f64 by the largest number.
    kind = f32 if q.dtype is f64 else q.dtype
    added: Any = np.zeros((), kind.numpy)
    if mask is not None and mask.dtype is boolean:
        kept = _padded(mask, k, kind, may_pad)
        seen = kept if seen is None else seen & kept
    elif mask is not None:
        added = _padded(mask, k, kind, may_pad)
    elif seen is None:
        return None, None
    bias = added if seen is None else ops.Select(seen, added, _lowest(kind, q))
    sees = _sees(bias, seen, mask) if _may_see_none(keys, k, mask, is_square) else None
    return bias.astype(q.dtype), sees


def _sees(bias: Value, seen: Value | None, mask: Value | None) -> Value:
    """[.., S, 1]; not by the largest bias, because the runtime returns the lowest finite number for -inf."""
    if seen is None or (mask is not None and mask.dtype is not boolean):
        seen = ops.NotEqual(bias, np.array([-np.inf]).astype(bias.dtype.numpy))
    return ops.ReduceLogicalOr(seen, [-1], keep_dims=True)


def _may_see_none(keys: Keys, k: Value, mask: Value | None, is_square: bool) -> bool:
    """Whether a query may see no key. Without a mask and padding it sees that at its own place, if there is one."""
    if mask is None:
        return keys.ends is not None or (keys.left is not None and not is_square)
    known = mask.constant
    if known is None or keys != Keys(keys.past, None, None, None) or known.shape[-1] != k.type.dims[2]:
        return True
    return not bool(np.all(np.any(known if known.dtype == np.bool_ else known != -np.inf, axis=-1)))


def _lowest(kind: ElementType, like: Value) -> Value:
    return ops.Constant(np.array(-np.inf).astype(kind.numpy), graph=like.graph)


def _padded(mask: Value, k: Value, kind: ElementType, may_pad: bool) -> Value:
    """A mask of booleans or of floats, with as many columns as there are keys: those that are added hide theirs.

    By a Concat: the runtime gives the result of a Pad another layout, which takes as long as the products.
    """
    mask = mask if mask.dtype is boolean else mask.astype(kind)
    rank, length, total = ranked(mask, "the mask"), mask.type.dims[-1], k.type.dims[2]
    is_known = isinstance(length, int) and isinstance(total, int)
    if length == total or not (may_pad or (is_known and length != 1)):
        return mask
    # Not below 0, because the runtime computes with bounds of lengths when it compiles.
    missing = larger(k.size(2) - mask.size(-1), 0)
    out: Any = np.False_ if mask.dtype is boolean else _lowest(kind, mask)
    shape = joined([*(mask.size(axis) for axis in range(rank - 1)), missing], mask)
    return ops.Concat(mask, ops.Broadcast(out, shape), axis=-1)


def _seen(keys: Keys, q: Value, k: Value) -> Value | None:
    """[S, T] or [batch, 1, S, T], or None: whether a query sees a key by its place, without the mask."""
    columns = counted(k.size(2), q)
    ends = None if keys.ends is None else ops.Unsqueeze(as_i64(keys.ends), [1, 2, 3])
    found: list[Value] = []
    if keys.left is not None or keys.right is not None:
        places = _places(keys, ends, q)
        if keys.right is not None:
            found.append(columns <= parts.moved(places, keys.right))
        if keys.left is not None:
            found.append(columns >= parts.moved(places, -keys.left))
    if ends is not None and keys.right != 0:  # no place is past the end
        found.append(columns < ends)
    return reduce(lambda a, b: a & b, found) if found else None


def _places(keys: Keys, ends: Value | None, q: Value) -> Value:
    """[S, 1] or [batch, 1, S, 1]: the place of each query among the keys."""
    rows = q.size(2)
    places = counted(rows, q)[:, None]
    if ends is not None:
        return places + (ends - rows)
    return places if keys.past is None else parts.moved(places, keys.past.size(2))


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
    return list(ops.VariadicSplit(parts.split_heads(query, heads + 2 * kv_heads), 1, [heads, kv_heads, kv_heads]))


def chosen(rows: Value, at: Value) -> Value:
    """The rows `at` [batch, R] of rows [batch, kv heads, T, size]."""
    return ops.Gather(rows, at, 2, batch_dims=1)


def beginning(cache: Value, total: Any) -> Value:
    """The first `total` rows of a cache."""
    return cache if cache.type.dims[2] == total else cache[:, :, :total]


def earlier(keys: Value, places: Value, ends: Value) -> Value:
    """[batch, 1, S, T]: whether a key is not after the query at its place [batch, S], nor past the end [batch]."""
    return keys <= ops.Unsqueeze(ops.Minimum(places, ends[:, None] - 1), [1, 3])


def _masked(scores: Value, mask: Value, task: Scores) -> Value:
    """The scores plus a mask; heads have one mask, or masks in turn, or masks of their own."""
    count = mask.type.dims[1]
    if count in (1, task.heads) or not isinstance(count, int):
        return scores + mask
    batch, rows = scores.size(0), scores.size(2)
    added = scores.reshape([batch, task.heads // count, count, rows, -1]) + mask[:, None]
    return added.reshape([batch, task.heads, rows, -1])


def attended(
    task: Scores, tensors: Sequence[Value], mask: Value, bias: Value | None, sink: Value | None
) -> tuple[Value, Value, Value]:
    """The result [batch, heads, S, size], the scores before the softmax, and the weights after it."""
    q, k, v = tensors
    counts = (task.heads, task.kv_heads)
    scores = parts.grouped_product(parts.scaled(q, task.scale), k, *counts, transpose_b=True).astype(f32)
    scores = parts.capped(scores, task.softcap)
    if bias is not None:
        scores = scores + bias.astype(f32)
    weights = _softmax(_masked(scores, mask, task), sink, task)
    return parts.grouped_product(weights.astype(v.dtype), v, *counts), scores, weights


def _softmax(scores: Value, sink: Value | None, task: Scores) -> Value:
    """The softmax; a sink is one more score for each head, of no key; `smooth` is a sink of 0."""
    if sink is None and not task.smooth:
        return ops.Softmax(scores, axis=3)
    none = scores[:, :, :, :1] * np.float32(0)
    extra = none if sink is None else none + sink.astype(f32).reshape([1, task.heads, 1, 1])
    return ops.Softmax(ops.Concat(scores, extra, axis=3), axis=3)[:, :, :, :-1]
