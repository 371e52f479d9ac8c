"""DecoderAttention: self attention with keys and values of earlier steps, or attention to an encoder."""

from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.vocabulary import MICROSOFT, UnsupportedError, Value, ops, translates
from mo_loop.ops.lengths import dimension, joined
from mo_loop.ops.ranges import Matrix, Needed, One, Positive, Rank3, Rank4, Vector


@translates("DecoderAttention", since=1, domain=MICROSOFT, ignored="mask_filter_value")
def decoder_attention(
    query: Rank3, key: Rank3, q_weight: Matrix, kv_weight: Matrix, bias: Vector, key_padding_mask: Matrix = None,
    key_cache: Rank4 = None, value_cache: Rank4 = None, static_kv: Needed | One = None, use_past: Needed | One = None,
    has_layer_state: Needed | One = None, has_key_padding_mask: Needed | One = None, *, num_heads: Positive,
    mask_filter_value: float | None = None,
):  # fmt: skip
    """Tensors of [S, batch, hidden]. Cross attention (`static_kv`) reads `key`, self attention `query`.

    Cross attention takes keys and values of the past as they are, self attention appends to them. `key_padding_mask`
    is true for padding, which has no weight; `mask_filter_value` has no effect in ONNX Runtime either.
    """
    names = ("static_kv", "use_past", "has_layer_state", "has_key_padding_mask")
    given = (static_kv, use_past, has_layer_state, has_key_padding_mask)
    is_cross, reads_past, has_state, is_masked = (_decided(*each) for each in zip(given, names, strict=True))
    of_query, of_rest = ops.VariadicSplit(bias, 0, joined([dimension(q_weight, 1), -1], bias))
    q = _heads_first(query @ q_weight + of_query, num_heads)
    has_past = reads_past and has_state
    if has_past and is_cross:
        k, v = key_cache, value_cache
    else:
        product = (key if is_cross else query) @ kv_weight + of_rest
        k, v = (_heads_first(each, num_heads) for each in ops.Split(product, 2, num_splits=2))
    if has_past and not is_cross:
        k, v = parts.appended(key_cache, k), parts.appended(value_cache, v)
    mask = None
    if is_masked:
        mask = parts.filled(ops.Unsqueeze(~key_padding_mask, [1, 2]), parts.LOWEST)
    y, _ = parts.attend(q, k, v, None, mask)
    rows = ops.Transpose(y, [2, 0, 1, 3])
    return [ops.Reshape(rows, joined([0, 0, dimension(query, 2)], query), special_zero=True), k, v]


def _decided(flag: Value, name: str) -> bool:
    """The value of a boolean input."""
    known = flag.constant
    if known is None:
        raise UnsupportedError(
            f"{name} of DecoderAttention is known only at run time: set it with --input, as in 'NAME->true'",
            code="ML314",
        )
    return bool(known.reshape(-1)[0])


def _heads_first(x: Value, heads: int) -> Value:
    """[S, batch, heads * size] as [batch, heads, S, size]."""
    return ops.Transpose(parts.rows_of_heads(x, heads), [1, 2, 0, 3])
