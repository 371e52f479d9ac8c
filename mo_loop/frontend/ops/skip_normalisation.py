"""Normalisations that ONNX Runtime fuses with their neighbours: a sum before, embeddings, a gate after, and operators
of residual streams: C rows of width H, as [..., C, H] or, flattened, as [..., C * H].
"""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.normalisation import affine, along_channels, grouped, layer_statistics, rms_normal
from mo_loop.frontend.ops.quantization.quantized_operators import numbers_of
from mo_loop.frontend.ops.shared import divided, ranked, require_choice
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, Value, ops, translates
from mo_loop.graph.types import f32, i32
from mo_loop.ops.lengths import quotient
from mo_loop.ops.ranges import AtLeast2, Integers, Matrix, Needed, NotNegative, One, Positive, Rank4, Vector

_EPSILON = float(np.float32(1e-12))


@translates("SkipLayerNormalization", since=1, domain=MICROSOFT)
def skip_layer_normalization(
    x: AtLeast2, skip: AtLeast2, gamma: Vector, beta: Vector = None, bias: Vector = None, *,
    epsilon: float = _EPSILON, node: Context,
):
    """The layer normalisation of x + skip + bias, the statistics, and the sum."""
    total = _sum(x, skip, bias)
    normal = ops.MVN(total, [-1], eps=epsilon, eps_mode="INSIDE_SQRT")
    statistics: list[Any] = [None, None]
    if node.wants(1) or node.wants(2):
        mean, _, inverse = layer_statistics(total.astype(f32), [-1], epsilon)
        statistics = [mean, inverse]
    return [affine(normal, gamma, beta), *statistics, total]


@translates("SkipSimplifiedLayerNormalization", since=1, domain=MICROSOFT)
def skip_simplified_layer_normalization(
    x: AtLeast2, skip: AtLeast2, gamma: Vector, bias: Vector = None, *, epsilon: float = _EPSILON,
):
    """The RMS normalisation of x + skip + bias, a mean of 0, 1 / deviation, and the sum."""
    total = _sum(x, skip, bias)
    y, inverse = rms_normal(total, [-1], epsilon)
    mean = ops.Broadcast(np.float32(0), inverse.sizes)
    return [y * gamma.astype(y.dtype), mean, inverse.astype(f32), total]


def _sum(x: Value, skip: Value, bias: Value | None) -> Value:
    """Numpy's rules broadcast a skip of one sample, or without a batch, to x."""
    total = x + skip
    return total if bias is None else total + bias


@translates("EmbedLayerNormalization", since=1, domain=MICROSOFT, ignored="mask_index_type")
def embed_layer_normalization(
    input_ids: Matrix | Integers, segment_ids=None, word_embedding: Needed | Matrix = None,
    position_embedding: Needed | Matrix = None, segment_embedding: Matrix = None, gamma: Needed | Vector = None,
    beta: Needed | Vector = None, mask=None, position_ids=None, *, epsilon: float = _EPSILON,
    mask_index_type: int | None = None,
):
    """The layer normalisation of the sum of embeddings, the number of words of each sample, and the sum.

    Without position_ids, positions count from 0. A mask has 1 for each word, and one per sample counts them;
    With `mask_index_type` 0 nothing reads this number. Required inputs follow optional ones in the schema."""
    words, table = ops.Gather(word_embedding, input_ids, 0), position_embedding
    total = words + (_first_rows(table, input_ids) if position_ids is None else ops.Gather(table, position_ids, 0))
    if segment_ids is not None and segment_embedding is not None:
        total = total + ops.Gather(segment_embedding, segment_ids, 0)
    normal = ops.MVN(total, [-1], eps=epsilon, eps_mode="INSIDE_SQRT")
    return [affine(normal, gamma, beta), _words(input_ids, mask), total]


@translates("QEmbedLayerNormalization", since=1, domain=MICROSOFT)
def q_embed_layer_normalization(
    input_ids: Matrix | Integers, segment_ids=None, word_embedding: Needed | Matrix = None,
    position_embedding: Needed | Matrix = None, segment_embedding: Matrix = None, gamma: Needed | Vector = None,
    beta: Needed | Vector = None, mask=None, word_scale: Needed | One = None, position_scale: Needed | One = None,
    segment_scale: One = None, gamma_scale: Needed | One = None, beta_scale: Needed | One = None,
    word_zero: One = None, position_zero: One = None, segment_zero: One = None, gamma_zero: One = None,
    beta_zero: One = None, *, epsilon: float = _EPSILON,
):
    """EmbedLayerNormalization of integers of 8 bits: each tensor has one scale and one zero point."""
    words = numbers_of(ops.Gather(word_embedding, input_ids, 0), word_scale, word_zero)
    positions = numbers_of(_first_rows(position_embedding, input_ids), position_scale, position_zero)
    total = words + positions
    if segment_ids is not None and segment_embedding is not None:
        if segment_scale is None:
            raise ModelError("QEmbedLayerNormalization lacks the input segment_embedding_scale", code="ML227")
        segments = ops.Gather(segment_embedding, segment_ids, 0)
        total = total + numbers_of(segments, segment_scale, segment_zero)
    normal = ops.MVN(total, [-1], eps=epsilon, eps_mode="INSIDE_SQRT")
    y = affine(normal, numbers_of(gamma, gamma_scale, gamma_zero), numbers_of(beta, beta_scale, beta_zero))
    return [y, _words(input_ids, mask)]


def _first_rows(table: Value, input_ids: Value) -> Value:
    """A row of the table for each place of a sample."""
    return table[:input_ids.sizes[1:2]]


def _words(input_ids: Value, mask: Value | None):
    if mask is None:
        return ops.Broadcast(np.int32(0), input_ids.sizes[:1])
    return ops.ReduceSum(ops.Equal(mask, 1).astype(i32), [1], keep_dims=False)


@translates("GroupNorm", since=1, domain=MICROSOFT)
def group_norm(
    x: Rank4, gamma: Vector, beta: Vector, *, activation: int, channels_last: int = 1, epsilon: float = 1e-5,
    groups: Positive,
):
    """Statistics for each sample and group of channels; activation 1 is x * sigmoid(x)."""
    return _group_norm(x, gamma, beta, activation, channels_last, epsilon, groups)


@translates("SkipGroupNorm", since=1, domain=MICROSOFT)
def skip_group_norm(
    x: Rank4, gamma: Vector, beta: Vector, skip, bias=None,
    *, activation: int, channels_last: int = 1, epsilon: float = 1e-5, groups: Positive,
):
    """GroupNorm of x + skip + bias, and the sum. A skip of two dimensions has one number for each channel."""
    rank = ranked(x)
    if ranked(skip) == 2:
        skip = ops.Unsqueeze(skip, list(range(1, rank - 1) if channels_last else range(2, rank)))
    if bias is not None and not channels_last:
        bias = along_channels(bias, rank)
    total = _sum(x, skip, bias)
    return [_group_norm(total, gamma, beta, activation, channels_last, epsilon, groups), total]


def _group_norm(
    x: Value, gamma: Value, beta: Value, activation: int, channels_last: int, epsilon: float, groups: int
) -> Value:
    require_choice("activation", activation, (0, 1))  # none, SiLU
    rank = ranked(x)
    front = ops.Transpose(x, [0, rank - 1, *range(1, rank - 1)]) if channels_last else x
    normal = ops.Reshape(grouped(front, groups, epsilon), front.sizes)
    y = affine(normal, along_channels(gamma, rank), along_channels(beta, rank))
    y = ops.Swish(y) if activation else y
    return ops.Transpose(y, [0, *range(2, rank), 1]) if channels_last else y


@translates("BranchwiseRMSNorm", since=1, domain=MICROSOFT)
def branchwise_rms_norm(x, scale=None, *, epsilon: float = 1e-5, num_branches: NotNegative = 0):
    """Each branch, a row of [..., branches, size], is normalised in f32. `num_branches` divides a last dimension that
    holds all branches."""
    branches = divided(x, num_branches, quotient(x.size(-1), num_branches)) if num_branches else x
    y, _ = rms_normal(branches.astype(f32), [-1], epsilon)
    if scale is not None:
        scale = scale.astype(f32)
        if ranked(scale) == 1:
            # One number for each element of a branch, or of all branches.
            size = y.size(-1)
            rows = quotient(scale.size(0), size)
            at_least_one = max(rows, 1) if isinstance(rows, int) else ops.Maximum(rows, 1)
            scale = scale.reshape([at_least_one, size])
        y = y * scale
    y = y.astype(x.dtype)
    return ops.Reshape(y, x.sizes) if num_branches else y


@translates("GatedRMSNorm", since=1, domain=MICROSOFT)
def gated_rms_norm(x, scale, gate, *, activation: str = "silu", epsilon: float = 1e-5):
    """Rows of the length of the scale are normalised in f32, and multiplied by an activation of the gate."""
    require_choice("activation", activation, ("silu", "swish", "sigmoid"))
    ranked(x)
    size = scale.size(0)
    y, _ = rms_normal(divided(x, quotient(x.size(-1), size), size).astype(f32), [-1], epsilon)
    y = ops.Reshape(y * scale.astype(f32), x.sizes)
    wide = gate.astype(f32)
    factor = ops.Sigmoid(wide) if activation == "sigmoid" else ops.Swish(wide)
    return (y * factor).astype(x.dtype)


@translates("EngramGate", since=1, domain=MICROSOFT)
def engram_gate(
    key, query, value, key_norm_scale, query_norm_scale, conv_norm_scale=None, *, epsilon: float = 1e-5, node
):
    """value * sigmoid(sign(d) * sqrt(max(|d|, 1e-6))), where d is the product of the normalised key and query divided
    by sqrt(H); and the same normalised again."""
    dtype = key.dtype
    keys = _normalised(key, key_norm_scale, epsilon)
    queries = _normalised(query, query_norm_scale, epsilon)
    size = key.sizes[-1:].astype(f32)
    dot = ops.ReduceSum(keys * queries, [-1], keep_dims=True) / ops.Sqrt(size)
    gate = ops.Sigmoid(ops.Sign(dot) * ops.Sqrt(ops.Maximum(ops.Abs(dot), np.float32(1e-6))))
    gated = gate * ops.Unsqueeze(value.astype(f32), 2)
    if not node.wants(1):
        return gated.astype(dtype)
    if conv_norm_scale is None:
        raise ModelError("the second output needs the input conv_norm_scale", code="ML227")
    return [gated.astype(dtype), _normalised(gated, conv_norm_scale, epsilon).astype(dtype)]


def _normalised(x: Value, scale: Value, epsilon: float) -> Value:
    y, _ = rms_normal(x.astype(f32), [-1], epsilon)
    return y * scale.astype(f32)


@translates("HyperConnectionPreMix", since=1, domain=MICROSOFT)
def hyper_connection_pre_mix(streams, pre_mix, *, num_branches: NotNegative = 0, reduction_scale: float = 1.0):
    """The sum of all rows times their gates; a row has one gate, or one for each element."""
    rows = _rows(streams, num_branches)
    total = ops.ReduceSum(rows * _gates(pre_mix, rows, num_branches), [-2])
    return (total * np.float32(reduction_scale)).astype(streams.dtype)


@translates("HyperConnectionPostMix", since=1, domain=MICROSOFT)
def hyper_connection_post_mix(streams, block_output, post_mix, stream_mix=None, *, num_branches: NotNegative = 0):
    """The rows, mixed by the transposed matrix `stream_mix`, plus `block_output` times the gate of each row."""
    rows = _rows(streams, num_branches)
    if stream_mix is not None:
        rows = ops.MatMul(stream_mix.astype(f32), rows, transpose_a=True)
    added = _gates(post_mix, rows, num_branches) * ops.Unsqueeze(block_output.astype(f32), -2)
    y = (rows + added).astype(streams.dtype)
    return ops.Reshape(y, streams.sizes) if num_branches else y


def _rows(streams: Value, count: int) -> Value:
    """The rows [..., C, H] in f32."""
    x = streams.astype(f32)
    ranked(x, "the streams")
    return divided(x, count, quotient(x.size(-1), count)) if count else x


def _gates(mix: Value, rows: Value, count: int) -> Value:
    """Gates [..., C], [..., C, 1], [..., C, H] or [..., C * H] in f32 as [..., C, 1] or [..., C, H]."""
    gates = mix.astype(f32)
    if ranked(gates, "the gates") == rows.rank:
        return gates
    return divided(gates, count, quotient(gates.size(-1), count)) if count else ops.Unsqueeze(gates, -1)


@translates("HyperConnectionLowRankMix", since=1, domain=MICROSOFT)
def hyper_connection_low_rank_mix(
    streams, norm_scale, down_weight, up_weight, inject_weight, prev_block_output=None, prev_post_gate=None,
    *, epsilon: float = 1e-5, gate_div: float = 1.0, gate_mul: float = 1.0, num_branches: NotNegative,
    reduction_scale: float = 1.0, silu_alpha: float = 1.0,
):
    """The input of the next block, the gates after it, and the streams after the previous block is added to them.

    Steps are computed in f32 and rounded to the type of the streams at the end, not each."""
    dtype = streams.dtype
    if (prev_block_output is None) != (prev_post_gate is None):
        raise ModelError("prev_block_output and prev_post_gate must be given together", code="ML227")
    rows = _rows(streams, num_branches)
    flat_shape = streams.sizes
    if prev_block_output is not None:
        gates = _gates(prev_post_gate, rows, num_branches)
        rows = rows + (gates * ops.Unsqueeze(prev_block_output.astype(f32), -2))
    normal, _ = rms_normal(rows, [-1], epsilon)
    flat = ops.Reshape(normal, flat_shape) * norm_scale.astype(f32)
    down = flat @ down_weight.astype(f32) * np.float32(silu_alpha)
    gates = ops.Sigmoid(ops.Swish(down) @ up_weight.astype(f32))
    products = _gates(flat * gates, rows, num_branches)
    pre_output = ops.ReduceSum(products, [-2]) * np.float32(reduction_scale)
    inject = flat @ inject_weight.astype(f32) / np.float32(gate_div)
    post_gate = ops.Sigmoid(inject) * np.float32(gate_mul)
    summed = ops.Reshape(rows, flat_shape)
    return [each.astype(dtype) for each in (pre_output, post_gate, summed)]
