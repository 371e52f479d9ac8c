"""Random operators, composed of RandomUniform: u and v in [0, 1), in f32.

    RandomUniform    low + (high - low) * u
    RandomNormal     mean + scale * sqrt(-2 log(1 - u)) * cos(2 pi v)        (Box and Muller)
    Bernoulli        u < p
    Multinomial      the number of sums p_0 + ... + p_c that are at most u * (sum of all p)
    Dropout          x / (1 - ratio) where u >= ratio, else 0

Without a seed, every inference and every iteration of a body has new numbers. With a seed, the numbers are the same
each time the model is loaded; they differ from those of other runtimes.
"""

import math
from typing import Any

import numpy as np

from mo_loop.frontend.ops.shared import converted
from mo_loop.frontend.vocabulary import Context, ModelError, Value, ops, translates
from mo_loop.graph.types import ElementType, f32, from_onnx
from mo_loop.ops.lengths import scalar
from mo_loop.ops.ranges import Positive
from mo_loop.target import ERROR, Gap

AVOIDS = {
    "RandomUniform": (
        Gap(
            "random-times-zero", "a fusion refuses `RandomUniform` times 0",
            "the factor is hidden from the fusion", ERROR,
        ),
    ),
}  # fmt: skip
"""Operator -> the errors of the runtime that its translator avoids."""

Ints = tuple[int, ...]


def uniform(shape: Value, seed: float | int | None) -> Value:
    """A tensor of `shape` with f32 numbers in [0, 1)."""
    number = np.float32(0), np.float32(1)
    if seed is None:
        return ops.RandomUniform(shape, *number, output_type=f32)
    # Two seeds of 0 mean no seed, so global_seed is 1 and op_seed has the value.
    bits = int(np.float32(seed).view(np.uint32)) if isinstance(seed, float) else seed % 2**63
    return ops.RandomUniform(shape, *number, output_type=f32, global_seed=1, op_seed=bits)


@translates("RandomUniform", since=1)
def random_uniform(
    *, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None, shape: Ints, node: Context
):
    """The shape is an attribute."""
    return _spread(_dims(node, shape), from_onnx(dtype), low, high, seed)


@translates("RandomUniformLike", since=1)
def random_uniform_like(
    input, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
):
    """The shape is that of a tensor, and so is the type if none is given."""
    return _spread(ops.ShapeOf(input), _type_like(input, dtype), low, high, seed)


@translates("RandomNormal", since=1)
def random_normal(
    *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, shape: Ints, node: Context
):
    """The shape is an attribute."""
    return _normal(_dims(node, shape), from_onnx(dtype), mean, scale, seed)


@translates("RandomNormalLike", since=1)
def random_normal_like(
    input, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
):
    """The shape is that of a tensor, and so is the type if none is given."""
    return _normal(ops.ShapeOf(input), _type_like(input, dtype), mean, scale, seed)


def _dims(node: Context, shape: Ints) -> Value:
    return node.constant(np.array(shape, np.int64))


def _type_like(x: Value, dtype: int | None) -> ElementType:
    return x.dtype if dtype is None else from_onnx(dtype)


def _spread(shape: Value, dtype: ElementType, low: float, high: float, seed: float | None):
    _require_float(dtype)
    low, high = min(low, high), max(low, high)
    if low == high:  # the runtime makes the factor a bound of RandomUniform, and then refuses 0
        return ops.Broadcast(np.array(low, dtype.numpy), shape)
    u = uniform(shape, seed)
    if (low, high) != (0, 1):
        u = u * np.float32(high - low) + np.float32(low)
    return converted(u, dtype)


def _normal(shape: Value, dtype: ElementType, mean: float, scale: float, seed: float | None):
    _require_float(dtype)
    # Two numbers for each, from one generator: two generators of one seed would give the same.
    both = uniform(ops.Concat(np.array([2], np.int64), shape, axis=0), seed)
    u, v = (ops.Gather(both, i, 0) for i in (0, 1))
    radius = ops.Sqrt(ops.Log(np.float32(1) - u) * np.float32(-2))
    z = radius * ops.Cos(v * np.float32(2 * math.pi))
    if (mean, scale) != (0, 1):
        z = z * np.float32(scale) + np.float32(mean)
    return converted(z, dtype)


def _require_float(dtype: ElementType) -> None:
    if not dtype.is_float:
        raise ModelError(f"random numbers of type {dtype}: ONNX defines only floating-point ones", code="ML227")


@translates("Bernoulli", since=15)
def bernoulli(input, *, dtype: int | None = None, seed: float | None = None):
    """1 with the probability given by the input, else 0."""
    hits = uniform(ops.ShapeOf(input), seed) < converted(input, f32)
    return converted(hits, _type_like(input, dtype))


@translates("Multinomial", since=7)
def multinomial(input, *, dtype: int = 6, sample_size: Positive = 1, seed: float | None = None):
    """Samples classes by their log probabilities [batch, classes], which may be unnormalised.

    The operation Multinomial is not used: it overflows for large logarithms, and repeats its samples."""
    if input.rank is not None and input.rank != 2:
        raise ModelError(f"probabilities of rank {input.rank}, not [batch, classes]", code="ML227")
    sums = ops.CumSum(ops.Softmax(converted(input, f32), axis=1), 1)
    last = ops.Gather(sums, [-1], 1)
    shape = ops.Concat(ops.Gather(ops.ShapeOf(input), [0], 0), np.array([sample_size], np.int64), axis=0)
    draws = ops.Unsqueeze(uniform(shape, seed) * last, 2)
    passed = ops.Convert(ops.Unsqueeze(sums, 1) <= draws, destination_type=from_onnx(dtype))
    return ops.ReduceSum(passed, [2], keep_dims=False)


def dropped(x: Value, ratio: Value | None, training_mode: Value, seed: int | None, node: Context) -> list[Any]:
    """Dropout where training may be on: the tensor and the mask of the kept elements."""
    share = node.constant(np.float32(0.5)) if ratio is None else scalar(converted(ratio, f32))
    kept = share <= uniform(ops.ShapeOf(x), seed)
    scale = np.float32(1) / (np.float32(1) - share)
    is_on = scalar(training_mode)
    if is_on.constant is None:
        kept = kept | ~is_on
        scale = ops.Select(is_on, scale, np.float32(1))
    y = x * converted(scale, x.dtype)
    return [ops.Select(kept, y, np.zeros((), x.dtype.numpy)), kept]
