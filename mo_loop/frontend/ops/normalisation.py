"""Normalisation operators, and Dropout, which copies its input at inference.

The forms are compositions of operations that run inside bodies as well (GroupNormalization-12 does not).
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.ops.shared import number, ranked, require_choice
from mo_loop.frontend.ops.tensors import dropped
from mo_loop.frontend.vocabulary import Context, Value, ops, translates
from mo_loop.graph import bf16, boolean, f32, is_static, normalise_axis
from mo_loop.ops.ranges import AtLeast2, Few, Positive, Vector
from mo_loop.target import Gap

AVOIDS = (
    Gap("lrn-bias", "`LRN` truncates its bias to an integer", "composed", rule="translator of LRN"),
)
"""The errors of the runtime that these translators avoid."""


def along_channels(values: Value, rank: int) -> Value:
    """A vector of one number for each channel, reshaped to broadcast along dimension 1 of a tensor of `rank`."""
    return values if rank <= 2 else ops.Unsqueeze(values, list(range(1, rank - 1)))


@translates("BatchNormalization", since=1)
@translates("BatchNormalization", since=7, without="is_test")
@translates("BatchNormalization", since=9, without="is_test spatial")
def batch_normalization_1(
    x, scale, bias, mean, variance,
    *, epsilon: float = 1e-5, momentum: float = 0.9, spatial: int = 1, is_test: int = 0, node: Context,
):
    """Training if `is_test` is 0 and there is more than one output, else inference."""
    if is_test or not any(node.wants(index) for index in range(1, 5)):
        y = _batch_inference(x, scale, bias, mean, variance, epsilon, bool(spatial))
        return [y, mean, variance, mean, variance]
    return _batch_training(x, scale, bias, mean, variance, epsilon, momentum, bool(spatial))


@translates("BatchNormalization", since=14, one_rank="x")
def batch_normalization_14(
    x, scale, bias, mean, variance, *, epsilon: float = 1e-5, momentum: float = 0.9, training_mode: int = 0
):
    """`training_mode` selects training or inference; the statistics may have another type than x."""
    if training_mode:
        return _batch_training(x, scale, bias, mean, variance, epsilon, momentum, True)[:3]
    return [_batch_inference(x, scale, bias, mean, variance, epsilon, True), mean, variance]


def _batch_inference(x: Value, scale: Value, bias: Value, mean: Value, variance: Value, epsilon: float, spatial: bool):
    if not spatial:
        deviation = ops.Sqrt(variance + epsilon)
        return (x - mean) / deviation * scale + bias
    if scale.shape == (0,):  # the runtime does not read the operation
        return x
    scale, bias, mean, variance = (each.astype(x.dtype) for each in (scale, bias, mean, variance))
    if x.rank == 1:  # a batch of one channel
        column = ops.BatchNormInference(ops.Unsqueeze(x, 1), scale, bias, mean, variance, epsilon=epsilon)
        return ops.Squeeze(column, 1)
    return ops.BatchNormInference(x, scale, bias, mean, variance, epsilon=epsilon)


def _batch_training(
    x: Value, scale: Value, bias: Value, mean: Value, variance: Value, epsilon: float, momentum: float, spatial: bool
) -> list[Any]:
    """x normalised by the statistics of the batch; the running statistics are updated with them.

    The runtime does not recognise this order of operations, of which it would compute the statistics once more. Places
    of unknown sizes are one dimension: it starts its kernel for each row of the last one."""
    rank = ranked(x)
    if spatial and rank > 3 and not is_static(x.shape):
        rows = x.reshape([None, None, -1])
        y, *others = _batch_training(rows, scale, bias, mean, variance, epsilon, momentum, spatial)
        return [ops.Reshape(y, x.sizes), *others]
    axes = [0, *range(2, rank)] if spatial else [0]
    own_mean = ops.ReduceMean(x, axes, keep_dims=True)
    centred = x - own_mean
    own_variance = ops.ReduceMean(centred * centred, axes, keep_dims=True)
    if spatial:
        scale, bias = (along_channels(each.astype(x.dtype), rank) for each in (scale, bias))
    y = centred * (scale / ops.Sqrt(own_variance + epsilon)) + bias
    flat_mean, flat_variance = (ops.Squeeze(each, axes) for each in (own_mean, own_variance))
    running = [
        old * momentum + new.astype(old.dtype) * (1 - momentum)
        for old, new in ((mean, flat_mean), (variance, flat_variance))
    ]
    return [y, *running, flat_mean, flat_variance]


@translates("InstanceNormalization", since=1, one_rank="x")
def instance_normalization(x: AtLeast2, scale: Vector, bias: Vector, *, epsilon: float = 1e-5):
    """Normalises each channel of each sample."""
    rank = ranked(x)
    normal = ops.MVN(x, list(range(2, rank)), eps=epsilon, eps_mode="INSIDE_SQRT")
    return normal * along_channels(scale, rank) + along_channels(bias, rank)


@translates("LayerNormalization", since=1)
@translates("LayerNormalization", since=17, one_rank="x")
def layer_normalization(
    x, scale, bias=None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1, node: Context
):
    """Normalises all dimensions from `axis` on; the statistics have the type `stash_type`."""
    rank = ranked(x)
    axes = list(range(normalise_axis(axis, rank), rank))
    if not node.wants(1) and not node.wants(2):
        return affine(ops.MVN(x, axes, eps=epsilon, eps_mode="INSIDE_SQRT"), scale, bias)
    stash = bf16 if stash_type == bf16.onnx else f32
    mean, centred, inverse = layer_statistics(x.astype(stash), axes, epsilon)
    return [affine((centred * inverse).astype(x.dtype), scale, bias), mean, inverse]


def layer_statistics(x: Value, axes: Sequence[int], epsilon: float) -> tuple[Value, Value, Value]:
    """The mean, x less the mean, and 1 / deviation."""
    mean = ops.ReduceMean(x, list(axes), keep_dims=True)
    centred = x - mean
    variance = ops.ReduceMean(centred * centred, list(axes), keep_dims=True)
    return mean, centred, 1 / ops.Sqrt(variance + epsilon)


def affine(x: Value, scale: Value, bias: Value | None) -> Value:
    """x * scale + bias in the element type of x."""
    product = x * scale.astype(x.dtype)
    return product if bias is None else product + bias.astype(x.dtype)


@translates("GroupNormalization", since=18)
def group_normalization_18(x, scale, bias, *, epsilon: float = 1e-5, num_groups: Positive):
    """One scale and bias for each group."""
    groups = grouped(x, num_groups, epsilon)
    return ops.Reshape(affine(groups, ops.Unsqueeze(scale, 1), ops.Unsqueeze(bias, 1)), x.sizes)


@translates("GroupNormalization", since=21, ignored="stash_type", one_rank="x")
def group_normalization_21(x, scale, bias, *, epsilon: float = 1e-5, num_groups: Positive, stash_type: int = 1):
    """One scale and bias for each channel; `stash_type` is ignored: the runtime computes statistics in f32."""
    rank = ranked(x)
    normal = ops.Reshape(grouped(x, num_groups, epsilon), x.sizes)
    return affine(normal, along_channels(scale, rank), along_channels(bias, rank))


def grouped(x: Value, num_groups: int, epsilon: float) -> Value:
    """[N, groups, elements of a group], each group normalised."""
    return ops.MVN(x.reshape([None, num_groups, -1]), [2], eps=epsilon, eps_mode="INSIDE_SQRT")


@translates("RMSNormalization", since=23, ignored="stash_type")
def rms_normalization(x, scale, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1):
    """x / sqrt(mean of squares) over all dimensions from `axis` on."""
    rank = ranked(x)
    y, _ = rms_normal(x, list(range(normalise_axis(axis, rank), rank)), epsilon)
    return y * scale.astype(x.dtype)


@translates("SimplifiedLayerNormalization", since=1, ignored="stash_type")
def simplified_layer_normalization(
    x, scale, *, axis: int = -1, epsilon: float = float(np.float32(1e-5)), stash_type: int = 1
):
    """RMSNormalization, and 1 / deviation. The product with the scale has the type of the scale."""
    rank = ranked(x)
    y, inverse = rms_normal(x, list(range(normalise_axis(axis, rank), rank)), epsilon)
    return [y.astype(scale.dtype) * scale, inverse.astype(f32)]


def rms_normal(x: Value, axes: Sequence[int], epsilon: float) -> tuple[Value, Value]:
    """x / sqrt(mean of squares) in the type of x, and 1 / sqrt(mean of squares); both are computed in at least f32."""
    y = x.astype(f32) if x.dtype.bits < 32 else x
    deviation = ops.Sqrt(ops.ReduceMean(y * y, list(axes), keep_dims=True) + epsilon)
    inverse = 1 / deviation
    return (y * inverse).astype(x.dtype), inverse


@translates("LpNormalization", since=1, one_rank="x")
def lp_normalization(x, *, axis: int = -1, p: int = 2):
    """x / norm along one axis; where the norm is 0, so is the result."""
    require_choice("p", p, (1, 2))
    norm = (ops.ReduceL1 if p == 1 else ops.ReduceL2)(x, axis, keep_dims=True)
    return x / ops.Select(ops.Equal(norm, 0), number(x, 1), norm)


@translates("LRN", since=1, one_rank="x")
def lrn(x: AtLeast2, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: Few):
    """Normalises over a window of channels; a window of even size has one more channel after than before the centre.

    LRN-1 has no such window. The runtime also truncates the bias, and fails if the number of channels is dynamic."""
    channels = None if x.rank is None or x.rank < 2 else x.type.dims[1]
    if size % 2 and float(bias).is_integer() and isinstance(channels, int):
        return ops.LRN(x, [1], alpha=alpha, beta=beta, bias=bias, size=size)
    rank = ranked(x)
    before, after = np.zeros((2, rank), np.int64)
    before[1], after[1] = (size - 1) // 2, size // 2
    padded = ops.Pad(x * x, before, after, number(x, 0))
    windows = [padded.cut(1, i, i + 1 - size or 2**30) for i in range(size)]
    scale = reduce(lambda a, b: a + b, windows) * (alpha / size) + bias
    if beta == 0.75:
        root = ops.Sqrt(scale)
        return x / (root * ops.Sqrt(root))
    # The runtime computes a Power of a dynamic shape one element at a time, and ten times slower than both of these.
    return x * ops.Exp(ops.Log(scale) * -beta) if beta > 0 else x / ops.Power(scale, number(x, beta))


@translates("MeanVarianceNormalization", since=1)
def mean_variance_normalization_1(x, *, across_channels: int = 0, normalize_variance: int = 1):
    """Over the batch and the spatial dimensions, and with `across_channels` over all dimensions."""
    axes = [axis for axis in range(ranked(x)) if axis != 1 or across_channels]
    if normalize_variance:
        return ops.MVN(x, axes, eps=1e-9, eps_mode="OUTSIDE_SQRT")
    return x - ops.ReduceMean(x, axes, keep_dims=True)


@translates("MeanVarianceNormalization", since=9, one_rank="x")
def mean_variance_normalization(x, *, axes: tuple[int, ...] = (0, 2, 3)):
    """(x - mean) / (deviation + 1e-9)."""
    places = axes if x.rank is None else [normalise_axis(axis, x.rank) for axis in axes]
    return ops.MVN(x, sorted(places), eps=1e-9, eps_mode="OUTSIDE_SQRT")


@translates("Dropout", since=1, elementwise=True)
@translates("Dropout", since=7, without="is_test", ignored="is_test ratio", elementwise=True)
@translates("Dropout", since=10, without="is_test", ignored="is_test ratio", elementwise=True)
def dropout_1(x, *, is_test: int = 0, ratio: float = 0.5, node: Context):
    """A copy; the mask is of the type of x, and boolean from opset 10 on."""
    return _kept(x, node, x.dtype if node.opset < 10 else boolean)


@translates("Dropout", since=12, elementwise=True, one_rank="x")
def dropout_12(x, ratio=None, training_mode=None, *, seed: int | None = None, node: Context):
    """A copy, unless `training_mode` may be on and something may be dropped."""
    if training_mode is not None and not _is_zero(training_mode) and (ratio is None or not _is_zero(ratio)):
        return dropped(x, ratio, training_mode, seed, node)
    return _kept(x, node, boolean)


def _is_zero(value: Value) -> bool:
    array = value.constant
    return array is not None and not np.any(array)


def _kept(x: Value, node: Context, mask_type) -> list[Any]:
    return [x, ops.Broadcast(np.ones((), mask_type.numpy), x.sizes)] if node.wants(1) else [x]
