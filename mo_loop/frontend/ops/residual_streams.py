"""Operators of residual streams: C rows of width H, as [..., C, H] or, flattened, as [..., C * H]."""

import numpy as np

from mo_loop.frontend.ops.elementwise.arithmetic import as_type
from mo_loop.frontend.ops.normalisation import ranked, rms_normal
from mo_loop.frontend.ops.shared import divided
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, Value, ops, translates
from mo_loop.graph.types import f32
from mo_loop.ops.lengths import dimension, quotient
from mo_loop.ops.ranges import NotNegative


@translates("EngramGate", since=1, domain=MICROSOFT)
def engram_gate(
    key, query, value, key_norm_scale, query_norm_scale, conv_norm_scale=None, *, epsilon: float = 1e-5, node
):
    """value * sigmoid(sign(d) * sqrt(max(|d|, 1e-6))), where d is the product of the normalised key and query divided
    by sqrt(H); and the same normalised again."""
    dtype = key.dtype
    keys = _normalised(key, key_norm_scale, epsilon)
    queries = _normalised(query, query_norm_scale, epsilon)
    size = ops.Convert(ops.Slice(ops.ShapeOf(key), [-1], [2**31 - 1], [1], [0]), destination_type=f32)
    dot = ops.ReduceSum(keys * queries, [-1], keep_dims=True) / ops.Sqrt(size)
    gate = ops.Sigmoid(ops.Sign(dot) * ops.Sqrt(ops.Maximum(ops.Abs(dot), np.float32(1e-6))))
    gated = gate * ops.Unsqueeze(as_type(value, f32), 2)
    if not node.wants(1):
        return as_type(gated, dtype)
    if conv_norm_scale is None:
        raise ModelError("the second output needs the input conv_norm_scale", code="ML227")
    return [as_type(gated, dtype), as_type(_normalised(gated, conv_norm_scale, epsilon), dtype)]


def _normalised(x: Value, scale: Value, epsilon: float) -> Value:
    y, _ = rms_normal(as_type(x, f32), [-1], epsilon)
    return y * as_type(scale, f32)


@translates("HyperConnectionPreMix", since=1, domain=MICROSOFT)
def hyper_connection_pre_mix(streams, pre_mix, *, num_branches: NotNegative = 0, reduction_scale: float = 1.0):
    """The sum of all rows times their gates; a row has one gate, or one for each element."""
    rows = _rows(streams, num_branches)
    gates = _gates(pre_mix, rows, num_branches)
    total = ops.ReduceSum(rows * gates, [-2])
    return as_type(total * np.float32(reduction_scale), streams.dtype)


@translates("HyperConnectionPostMix", since=1, domain=MICROSOFT)
def hyper_connection_post_mix(streams, block_output, post_mix, stream_mix=None, *, num_branches: NotNegative = 0):
    """The rows, mixed by the transposed matrix `stream_mix`, plus `block_output` times the gate of each row."""
    rows = _rows(streams, num_branches)
    if stream_mix is not None:
        rows = ops.MatMul(as_type(stream_mix, f32), rows, transpose_a=True)
    added = _gates(post_mix, rows, num_branches) * ops.Unsqueeze(as_type(block_output, f32), -2)
    y = as_type(rows + added, streams.dtype)
    return ops.Reshape(y, ops.ShapeOf(streams)) if num_branches else y


def _rows(streams: Value, count: int) -> Value:
    """The rows [..., C, H] in f32."""
    x = as_type(streams, f32)
    ranked(x, "the streams of an operator")
    return divided(x, count, quotient(dimension(x, -1), count)) if count else x


def _gates(mix: Value, rows: Value, count: int) -> Value:
    """Gates [..., C], [..., C, 1], [..., C, H] or [..., C * H] in f32 as [..., C, 1] or [..., C, H]."""
    gates = as_type(mix, f32)
    if ranked(gates, "the gates of streams") == rows.rank:
        return gates
    return divided(gates, count, quotient(dimension(gates, -1), count)) if count else ops.Unsqueeze(gates, -1)


@translates("HyperConnectionLowRankMix", since=1, domain=MICROSOFT)
def hyper_connection_low_rank_mix(
    streams, norm_scale, down_weight, up_weight, inject_weight, prev_block_output=None, prev_post_gate=None,
    *, epsilon: float = 1e-5, gate_div: float = 1.0, gate_mul: float = 1.0, num_branches: NotNegative,
    reduction_scale: float = 1.0, silu_alpha: float = 1.0,
):  # fmt: skip
    """The input of the next block, the gates after it, and the streams after the previous block is added to them.

    Steps are computed in f32 and rounded to the type of the streams at the end, not each."""
    dtype = streams.dtype
    if (prev_block_output is None) != (prev_post_gate is None):
        raise ModelError("prev_block_output and prev_post_gate must be given together", code="ML227")
    rows = _rows(streams, num_branches)
    flat_shape = ops.ShapeOf(streams)
    if prev_block_output is not None:
        gates = _gates(prev_post_gate, rows, num_branches)
        added = gates * ops.Unsqueeze(as_type(prev_block_output, f32), -2)
        rows = rows + added
    normal, _ = rms_normal(rows, [-1], epsilon)
    flat = ops.Reshape(normal, flat_shape) * as_type(norm_scale, f32)
    down = flat @ as_type(down_weight, f32) * np.float32(silu_alpha)
    gates = ops.Sigmoid(ops.Swish(down) @ as_type(up_weight, f32))
    products = _gates(flat * gates, rows, num_branches)
    pre_output = ops.ReduceSum(products, [-2]) * np.float32(reduction_scale)
    inject = flat @ as_type(inject_weight, f32) / np.float32(gate_div)
    post_gate = ops.Sigmoid(inject) * np.float32(gate_mul)
    summed = ops.Reshape(rows, flat_shape)
    return [as_type(each, dtype) for each in (pre_output, post_gate, summed)]
