"""Operators that ONNX has as well, in the form that ONNX Runtime had before, and small operators on tensors:
inverse matrices, distances, complex numbers as pairs in the last dimension, n-grams of tokens, a bias before an
activation, Softmax or Dropout, and products with gates after them.
"""

from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.ops.activation import clipped, flattened, softmax
from mo_loop.frontend.ops.filling import pad_11
from mo_loop.frontend.ops.indexing import unique_elements
from mo_loop.frontend.ops.normalisation import dropout_12
from mo_loop.frontend.ops.shared import counted_up, first_numbers, integers, number, ranked
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph import f32, i64, normalise_axis
from mo_loop.ops.lengths import FAR, as_i64, scalar, vector
from mo_loop.ops.ranges import AtLeast1, AtLeast2, Few, Integers, Matrix, Positive


@translates("Pad", since=1, domain=MICROSOFT)
def contrib_pad(data, pads, value=None, *, mode: str = "constant"):
    """Pad of ONNX; the pads may be a matrix of one row."""
    return pad_11(data, vector(pads), value, mode=mode)


@translates("Unique", since=1, domain=MICROSOFT)
def contrib_unique(x):
    """Unique values in the order of their first occurrences, the inverse indices, and the counts."""
    values, _, back, times = unique_elements(x, in_order=False)
    return [values, back, times]


@translates("ExpandDims", since=1, domain=MICROSOFT)
def expand_dims(x, axis):
    """One more dimension of 1, at an axis of the result."""
    known = integers(axis)
    if known is not None:
        return ops.Unsqueeze(x, list(known))
    rank = ranked(x)
    place = vector(as_i64(scalar(axis)) % (rank + 1))
    shape = x.sizes
    before, after = shape[:place], shape[place:rank]
    return ops.Reshape(x, ops.Concat(before, np.array([1]), after, axis=0))


@translates("UnfoldTensor", since=1, domain=MICROSOFT)
def unfold_tensor(x: AtLeast1, *, dim: int = -1, size: Positive, step: Positive = 1):
    """All windows of `size` elements along a dimension, as a new last dimension."""
    rank = ranked(x)
    at = normalise_axis(dim, rank)
    length = x.size(at)
    if isinstance(length, int) and size > length:
        raise ModelError(f"a window of {size} elements does not fit into {length} elements", code="ML227")
    if isinstance(length, int):
        starts = ops.Constant(counted_up(0, length - size + 1, step), graph=x.graph)
    else:
        starts = ops.Range(0, length + (1 - size), step, output_type=i64)
    windows = ops.Gather(x, ops.Unsqueeze(starts, 1) + first_numbers(size), at)
    return ops.Transpose(windows, [*range(at + 1), *range(at + 2, rank + 1), at + 1])


@translates("TorchEmbedding", since=1, domain=MICROSOFT, ignored="padding_idx scale_grad_by_freq")
def torch_embedding(weight, indices, padding_idx=None, scale_grad_by_freq=None):
    """Rows of a table; the other inputs concern gradients."""
    return ops.Gather(weight, indices, 0)


@translates("IsAllFinite", since=1, domain=MICROSOFT)
def is_all_finite(*tensors, isinf_only: int = 0, isnan_only: int = 0):
    """Whether no element is infinite or NaN, or of one kind only."""
    if isinf_only and isnan_only:
        raise ModelError("isinf_only and isnan_only exclude each other", code="ML227")
    found = [each for x in tensors for each in _not_finite(vector(x), not isinf_only, not isnan_only)]
    return ~reduce(lambda a, b: a | b, found)


def _not_finite(x: Value, nan: bool, infinite: bool) -> list[Value]:
    """Scalars: whether an element is NaN, whether one is infinite."""
    kinds = ([ops.IsNaN(x)] if nan else []) + ([ops.IsInf(x)] if infinite else [])
    return [ops.ReduceLogicalOr(each, [0]) for each in kinds]


@translates("NGramRepeatBlock", since=1, domain=MICROSOFT)
def ngram_repeat_block(input_ids: Matrix | Integers, scores: Matrix, *, ngram_size: Few):
    """A token is banned if it follows the last `ngram_size` - 1 tokens anywhere in its row of `input_ids`."""
    before = ngram_size - 1
    tokens = input_ids[:, before:FAR]
    if tokens.type.dims[1] == 0:
        return scores
    same = [_is_tail(input_ids, place, before) for place in range(before)]
    words: Any = scores.size(1)
    if same:
        banned = reduce(lambda a, b: a & b, same)
        tokens = ops.Select(banned, tokens, words if isinstance(words, Value) else np.int64(words))
    # Tokens that are not banned write to one more column, which is dropped.
    wide = ops.Pad(scores, [0, 0], [0, 1], np.float32(0))
    lowest = ops.Broadcast(np.full((), -np.inf, np.float32), tokens.sizes)
    return ops.ScatterElementsUpdate(wide, tokens, lowest, 1)[:, :-1]


def _is_tail(ids: Value, place: int, before: int) -> Value:
    """[batch, windows]: whether token `place` of a window is that of the last `before` tokens."""
    left = place - before
    return ops.Equal(ids[:, place:left], ids[:, left : (left + 1 or FAR)])


@translates("Inverse", since=1, domain=MICROSOFT)
def inverse(x):
    """The inverses of the last two dimensions."""
    return ops.Inverse(x) if x.dtype is f32 else ops.Inverse(x.astype(f32)).astype(x.dtype)


@translates("CDist", since=1, domain=MICROSOFT)
def cdist(a: Matrix, b: Matrix, *, metric: str = "sqeuclidean"):
    """|a|^2 - 2 a b + |b|^2 for each row of a and of b, or its root."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise UnsupportedError(
            f"the metric is {metric!r}, which is not translated", code="ML316",
            hint="use sqeuclidean or euclidean, or compute the distance from elementwise operators",
        )
    left = ops.Unsqueeze(ops.ReduceSum(a * a, [1]), 1)
    right = ops.Unsqueeze(ops.ReduceSum(b * b, [1]), 0)
    product = ops.MatMul(a, b, transpose_b=True) * number(a, -2)
    squares = ops.Maximum(product + left + right, number(a, 0))
    return squares if metric == "sqeuclidean" else ops.Sqrt(squares)


@translates("ComplexMul", since=1, domain=MICROSOFT)
def complex_mul(a, b):
    """(a + b i) * (c + d i)."""
    return _product(a, b, 1)


@translates("ComplexMulConj", since=1, domain=MICROSOFT)
def complex_mul_conj(a, b):
    """(a + b i) * (c - d i)."""
    return _product(a, b, -1)


def _product(x: Value, y: Value, sign: int):
    """The imaginary part of `y` is multiplied by `sign`."""
    (a, b), (c, d) = (ops.Split(each, -1, num_splits=2) for each in (x, y))
    first, last = (ops.Subtract, ops.Add) if sign > 0 else (ops.Add, ops.Subtract)
    return ops.Concat(first(a * c, b * d), last(b * c, a * d), axis=-1)


@translates("Rfft", since=1, domain=MICROSOFT)
def rfft(x: AtLeast1, *, normalized: int = 0, onesided: int = 1, signal_ndim: Positive = 1):
    """The transform of the last `signal_ndim` dimensions of a real signal: its first half, as pairs."""
    _require_plain(normalized, onesided)
    rank = ranked(x)
    return _at_least_single(x, lambda each: ops.RDFT(each, list(range(rank - signal_ndim, rank))))


@translates("Irfft", since=1, domain=MICROSOFT)
def irfft(x: AtLeast2, *, normalized: int = 0, onesided: int = 1, signal_ndim: Positive):
    """The inverse of Rfft, for signals of even length."""
    _require_plain(normalized, onesided)
    last = ranked(x) - 1
    return _at_least_single(x, lambda each: ops.IRDFT(each, list(range(last - signal_ndim, last))))


def _require_plain(normalized: int, onesided: int) -> None:
    if normalized or not onesided:
        raise ModelError("normalized must be 0 and onesided 1: the operator supports no other values", code="ML227")


def _at_least_single(x: Value, make):
    """`make` of `x` in f32: the runtime has no transforms in f64, and computes those of f16 in f32."""
    return make(x) if x.dtype is f32 else make(x.astype(f32)).astype(x.dtype)


@translates("BiasAdd", since=1, domain=MICROSOFT)
def bias_add(x, bias, skip):
    """x + bias + skip."""
    return x + bias + skip


@translates("BiasSplitGelu", since=1, domain=MICROSOFT)
def bias_split_gelu(x, bias):
    """The left half of x + bias, times the Gelu of the right half."""
    left, right = ops.Split(x + bias, -1, num_splits=2)
    return left * ops.Gelu(right, approximation_mode="ERF")


@translates("BiasSoftmax", since=1, domain=MICROSOFT, ignored="is_inner_broadcast")
def bias_softmax(data, bias, *, axis: int = 1, is_inner_broadcast: int):
    """Softmax of data + bias over all dimensions from `axis` on.

    Numpy's rules broadcast both kinds of bias: an inner one has dimensions of 1, an outer one lacks the first ones."""
    return flattened(data + bias, axis, softmax)


@translates("BiasDropout", since=1, domain=MICROSOFT)
def bias_dropout(data, bias, residual=None, ratio=None, training_mode=None, *, seed: int | None = None, node: Context):
    """Dropout(data + bias) + residual, and the mask."""
    y, *mask = dropout_12(data + bias, ratio, training_mode, seed=seed, node=node)
    return [y if residual is None else y + residual, *mask]


@translates("SwiGLU", since=1, domain=MICROSOFT)
def swiglu(
    gate, up=None,
    *, activation_alpha: float = 1.0, activation_beta: float = 0.0, limit: float = 0.0, round_activation: int = 0,
):
    """gate * sigmoid(alpha * gate) * (up + beta), computed in f32; without up, the gate holds both halves.

    A positive limit bounds the gate from above, and the other half on both sides."""
    dtype = gate.dtype
    left, right = ops.Split(gate, -1, num_splits=2) if up is None else (gate, up)
    left, right = left.astype(f32), right.astype(f32)
    if limit > 0:
        left, right = ops.Minimum(limit, left), clipped(right, -limit, limit)
    active = ops.Swish(left) if activation_alpha == 1 else ops.Swish(left, activation_alpha)
    if round_activation:
        active = active.astype(dtype).astype(f32)
    if activation_beta:
        right = right + activation_beta
    return (active * right).astype(dtype)


@translates("ScaledSiLU", since=1, domain=MICROSOFT)
def scaled_silu(x, scale=None, *, alpha: float = 1.0):
    """z * sigmoid(z) of z = scale * x, where `alpha` replaces an absent scale; each step has the type of x."""
    wide = x.astype(f32)
    factor = number(wide, alpha) if scale is None else scale.astype(f32)
    z = (wide * factor).astype(x.dtype)
    return z * ops.Sigmoid(z)


@translates("GatedAdd", since=1, domain=MICROSOFT)
def gated_add(x, y, gate, gate_weight=None):
    """x + y * gate; with a weight, the gate is sigmoid(gate * weight)."""
    if gate_weight is not None:
        gate = ops.Sigmoid(gate @ gate_weight)
    return x + y * gate
