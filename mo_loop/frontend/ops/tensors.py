"""Constants, conversions, the shape and size of tensors, and random tensors.

Random operators are composed of RandomUniform: u and v in [0, 1), in f32.

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

from mo_loop.frontend.ops.shared import number
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.tensor import ArrayTensor, Tensor
from mo_loop.graph.types import (
    ElementType,
    boolean,
    f4e2m1,
    f8e4m3,
    f8e5m2,
    f8e8m0,
    f32,
    from_onnx,
    i4,
    i32,
    i64,
    string,
    u4,
)
from mo_loop.ops.lengths import scalar
from mo_loop.ops.ranges import Ints, Positive
from mo_loop.target import ERROR, Gap

AVOIDS = (
    Gap(
        "boolean-of-split", "`Convert` to boolean of an output of `VariadicSplit` does not compile", "`NotEqual` to 0",
        ERROR, rule="translator of Cast",
    ),
    Gap(
        "float8-overflow", "`Convert` to float8 does not saturate", "values are limited first, NaN is kept",
        rule="translator of Cast",
    ),
    Gap(
        "four-bits", "i4 and u4 are stored in 8 bits inside a graph, and do not wrap around",
        "the lowest four bits, computed in i32", rule="translator of Cast",
    ),
    Gap(
        "random-times-zero", "a fusion refuses `RandomUniform` times 0", "the factor is hidden from the fusion", ERROR,
        rule="translator of RandomUniform",
    ),
)
"""The errors of the runtime that these translators avoid."""


@translates("Constant", since=1)
def constant(
    *, value: Any = None, sparse_value: Any = None, value_float: float | None = None,
    value_floats: tuple[float, ...] | None = None, value_int: int | None = None,
    value_ints: tuple[int, ...] | None = None, value_string: str | None = None,
    value_strings: tuple[str, ...] | None = None, node: Context,
):
    """Exactly one of the attributes is present."""
    tensor: Tensor | None = value if value is not None else sparse_value
    if tensor is None:
        tensor = _from_scalars(
            (value_float, f32), (value_floats, f32), (value_int, i64), (value_ints, i64),
            (value_string, string), (value_strings, string),
        )
    return ops.Constant(tensor, graph=node.graph)


def _from_scalars(*candidates: tuple[Any, ElementType]) -> Tensor:
    for given, dtype in candidates:
        if given is not None:
            return ArrayTensor(np.array(given, dtype.numpy), dtype)
    raise ModelError("it has no value", code="ML227")


@translates("ConstantOfShape", since=9)
def constant_of_shape(shape, *, value: Any = None):
    """The value broadcast to the shape."""
    filler = value.reshaped(()) if value is not None else ArrayTensor(np.zeros((), np.float32), f32)
    return ops.Broadcast(filler, shape)


@translates("SampleOp", since=1, domain=MICROSOFT)
@translates("Identity", since=1, elementwise=True)
def identity(x, *, node: Context):
    """The value itself with one more name; an Identity only if the result is a model output."""
    return ops.Identity(x) if node.makes_model_output() else x


@translates("Cast", since=1, elementwise=True)
def cast_by_name(x, *, to: str):
    """In opset 1 the type is a name."""
    return _cast(x, _named_type(to))


@translates("Cast", since=6, without="round_mode", fixed={"saturate": 0}, elementwise=True)
@translates("Cast", since=19, without="round_mode", elementwise=True)
@translates("Cast", since=24, ignored="round_mode", elementwise=True)
def cast(x, *, to: int, saturate: int = 1, round_mode: str = "up"):
    """Only float8 types use `saturate`, only float8e8m0 uses `round_mode`."""
    return _cast(x, from_onnx(to), bool(saturate))


@translates("CastLike", since=15, without="round_mode", fixed={"saturate": 0}, elementwise=True)
@translates("CastLike", since=19, without="round_mode", elementwise=True)
@translates("CastLike", since=24, ignored="round_mode", elementwise=True)
def cast_like(x, target_type, *, saturate: int = 1, round_mode: str = "up"):
    """To the element type of another tensor."""
    return _cast(x, target_type.dtype, bool(saturate))


def _named_type(name: str) -> ElementType:
    import onnx

    try:
        return from_onnx(onnx.TensorProto.DataType.Value(name.upper()))
    except ValueError:
        raise ModelError(f"the attribute 'to' is {name!r}, which is not an element type", code="ML227") from None


_LARGEST = {f8e4m3: 448.0, f8e5m2: 57344.0}


def _cast(x: Value, to: ElementType, saturate: bool = False):
    if x.dtype is to:
        return x
    if to in (f4e2m1, f8e8m0):
        raise UnsupportedError(f"a cast to {to}: the runtime rounds differently from ONNX", code="ML317")
    if saturate and to in _LARGEST and x.dtype.is_float and _LARGEST.get(x.dtype, np.inf) > _LARGEST[to]:
        if x.dtype in _LARGEST:  # the runtime does not compute in these types
            x = x.astype(f32)
        limit = np.array(_LARGEST[to], x.dtype.numpy)
        x = ops.Select(ops.IsNaN(x), x, ops.Minimum(limit, ops.Maximum(-limit, x)))
    if string in (x.dtype, to):
        raise UnsupportedError(f"a cast from {x.dtype} to {to}: the IR cannot convert strings", code="ML303")
    if to is boolean:
        # Convert truncates first, so that 0.5 becomes false, and does not compile after a VariadicSplit.
        return ops.NotEqual(x, 0)
    if to in (i4, u4) and x.dtype.is_integer:
        # The lowest four bits in i32: the runtime computes 4-bit types in 8 bits.
        offset = 8 if to is i4 else 0
        x = ops.BitwiseAnd(x.astype(i32) + offset, 15) - offset
    return x.astype(to)


@translates("Shape", since=1, without="start end")
@translates("Shape", since=15)
def shape(x, *, start: int = 0, end: int | None = None):
    """The dimensions from `start` to `end`, both clamped."""
    dims = x.sizes
    return dims if start == 0 and end is None else dims[start : (np.iinfo(np.int32).max if end is None else end)]


@translates("Size", since=1)
def size(x):
    """The number of elements, a scalar."""
    return ops.ReduceProd(x.sizes, [0], keep_dims=False)


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
    return _spread(node.constant(np.array(shape, np.int64)), from_onnx(dtype), low, high, seed)


@translates("RandomUniformLike", since=1)
def random_uniform_like(
    input, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0, seed: float | None = None
):
    """The shape is that of a tensor, and so is the type if none is given."""
    return _spread(input.sizes, _type_like(input, dtype), low, high, seed)


@translates("RandomNormal", since=1)
def random_normal(
    *, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, shape: Ints, node: Context
):
    """The shape is an attribute."""
    return _normal(node.constant(np.array(shape, np.int64)), from_onnx(dtype), mean, scale, seed)


@translates("RandomNormalLike", since=1)
def random_normal_like(
    input, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
):
    """The shape is that of a tensor, and so is the type if none is given."""
    return _normal(input.sizes, _type_like(input, dtype), mean, scale, seed)


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
    return u.astype(dtype)


def _normal(shape: Value, dtype: ElementType, mean: float, scale: float, seed: float | None):
    _require_float(dtype)
    # Two numbers for each, from one generator: two generators of one seed would give the same.
    both = uniform(ops.Concat(np.array([2], np.int64), shape, axis=0), seed)
    u, v = (ops.Gather(both, i, 0) for i in (0, 1))
    radius = ops.Sqrt(ops.Log(np.float32(1) - u) * np.float32(-2))
    z = radius * ops.Cos(v * np.float32(2 * math.pi))
    if (mean, scale) != (0, 1):
        z = z * np.float32(scale) + np.float32(mean)
    return z.astype(dtype)


def _require_float(dtype: ElementType) -> None:
    if not dtype.is_float:
        raise ModelError(f"random numbers of type {dtype}: ONNX defines only floating-point ones", code="ML227")


@translates("Bernoulli", since=15)
def bernoulli(input, *, dtype: int | None = None, seed: float | None = None):
    """1 with the probability given by the input, else 0."""
    return (uniform(input.sizes, seed) < input.astype(f32)).astype(_type_like(input, dtype))


@translates("Multinomial", since=7)
def multinomial(input, *, dtype: int = 6, sample_size: Positive = 1, seed: float | None = None):
    """Samples classes by their log probabilities [batch, classes], which may be unnormalised.

    The operation Multinomial is not used: it overflows for large logarithms, and repeats its samples."""
    if input.rank is not None and input.rank != 2:
        raise ModelError(f"the probabilities have rank {input.rank}, and must be [batch, classes]", code="ML227")
    sums = ops.CumSum(ops.Softmax(input.astype(f32), axis=1), 1)
    last = ops.Gather(sums, [-1], 1)
    shape = ops.Concat(ops.Gather(input.sizes, [0], 0), np.array([sample_size], np.int64), axis=0)
    draws = ops.Unsqueeze(uniform(shape, seed) * last, 2)
    return ops.ReduceSum((ops.Unsqueeze(sums, 1) <= draws).astype(from_onnx(dtype)), [2], keep_dims=False)


def dropped(x: Value, ratio: Value | None, training_mode: Value, seed: int | None, node: Context) -> list[Any]:
    """Dropout where training may be on: the tensor and the mask of the kept elements."""
    share = node.constant(np.float32(0.5)) if ratio is None else scalar(ratio.astype(f32))
    kept = share <= uniform(x.sizes, seed)
    scale = np.float32(1) / (np.float32(1) - share)
    is_on = scalar(training_mode)
    if is_on.constant is None:
        kept = kept | ~is_on
        scale = ops.Select(is_on, scale, np.float32(1))
    return [ops.Select(kept, x * scale.astype(x.dtype), number(x, 0)), kept]
