"""Inverse matrices, distances, and complex numbers as pairs in the last dimension."""

from mo_loop.frontend.ops.elementwise.arithmetic import as_type, number
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32
from mo_loop.ops.ranges import AtLeast1, AtLeast2, Matrix, Positive


@translates("Inverse", since=1, domain=MICROSOFT)
def inverse(x):
    """The inverses of the last two dimensions."""
    return ops.Inverse(x) if x.dtype is f32 else as_type(ops.Inverse(as_type(x, f32)), x.dtype)


@translates("CDist", since=1, domain=MICROSOFT)
def cdist(a: Matrix, b: Matrix, *, metric: str = "sqeuclidean"):
    """|a|^2 - 2 a b + |b|^2 for each row of a and of b, or its root."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise UnsupportedError(
            f"CDist with the metric {metric!r}", code="ML316",
            hint="ONNX Runtime has sqeuclidean and euclidean; compute another one from elementwise operators",
        )  # fmt: skip
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
    real = first(a * c, b * d)
    imaginary = last(b * c, a * d)
    return ops.Concat(real, imaginary, axis=-1)


@translates("Rfft", since=1, domain=MICROSOFT)
def rfft(x: AtLeast1, *, normalized: int = 0, onesided: int = 1, signal_ndim: Positive = 1):
    """The transform of the last `signal_ndim` dimensions of a real signal: its first half, as pairs."""
    _require_plain(normalized, onesided)
    rank = ranked(x, "Rfft")
    return _at_least_single(x, lambda each: ops.RDFT(each, list(range(rank - signal_ndim, rank))))


@translates("Irfft", since=1, domain=MICROSOFT)
def irfft(x: AtLeast2, *, normalized: int = 0, onesided: int = 1, signal_ndim: Positive):
    """The inverse of Rfft, for signals of even length."""
    _require_plain(normalized, onesided)
    last = ranked(x, "Irfft") - 1
    return _at_least_single(x, lambda each: ops.IRDFT(each, list(range(last - signal_ndim, last))))


def _require_plain(normalized: int, onesided: int) -> None:
    if normalized or not onesided:
        raise ModelError("normalized must be 0 and onesided 1: the operator supports no other values", code="ML227")


def _at_least_single(x: Value, make):
    """`make` of `x` in f32: the runtime has no transforms in f64, and computes those of f16 in f32."""
    return make(x) if x.dtype is f32 else as_type(make(as_type(x, f32)), x.dtype)
