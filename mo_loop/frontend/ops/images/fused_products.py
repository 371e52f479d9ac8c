"""Convolutions and matrix products with the operators that ONNX Runtime fuses into them: transpositions, sums,
activations."""

from collections.abc import Sequence

from mo_loop.frontend.ops.elementwise.activation_names import Activation
from mo_loop.frontend.ops.images.convolution import ConvolutionAttributes, conv
from mo_loop.frontend.ops.linear import general_product, matmul, scaled
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, Value, ops, translates
from mo_loop.graph.shape import element_count
from mo_loop.ops.ranges import AtLeast2, AtLeast3, Vector

Ints = tuple[int, ...]
Floats = tuple[float, ...]


# -- convolutions


@translates("FusedConv", since=1, domain=MICROSOFT)
def fused_conv(
    x: AtLeast2, w: AtLeast2, b: Vector = None, z=None,
    *, activation: str | None = None, activation_params: Floats | None = None, given: ConvolutionAttributes,
):  # fmt: skip
    """activation(Conv + z)."""
    y = conv(x, w, b, given=given)
    return _activation(activation, activation_params).of(y if z is None else y + z)


@translates("NhwcConv", since=1, domain=MICROSOFT)
def nhwc_conv(x: AtLeast3, w: AtLeast3, b: Vector = None, *, given: ConvolutionAttributes):
    """Conv with channels last, also in the filters [M, K..., C / group], as the transformers tool writes them."""
    return _channels_last(conv(_channels_first(x), _channels_first(w), b, given=given))


@translates("NhwcFusedConv", since=1, domain=MICROSOFT)
def nhwc_fused_conv(
    x: AtLeast3, w: AtLeast3, b: Vector = None, z=None,
    *, activation: str | None = None, activation_params: Floats | None = None, given: ConvolutionAttributes,
):  # fmt: skip
    """activation(Conv + z) with channels last, but the filters of Conv."""
    y = conv(_channels_first(x), w, b, given=given)
    y = y if z is None else y + _channels_first(z)
    return _channels_last(_activation(activation, activation_params).of(y))


def _activation(name: str | None, parameters: Sequence[float] | None) -> Activation:
    given = [*(parameters or ()), None, None]
    if len(given) > 4:
        raise ModelError(f"{len(given) - 2} activation_params: an activation has at most two", code="ML227")
    return Activation(name, given[0], given[1])


def _channels_first(x: Value) -> Value:
    rank = ranked(x, "a convolution with channels last")
    return ops.Transpose(x, [0, rank - 1, *range(1, rank - 1)])


def _channels_last(y: Value) -> Value:
    return ops.Transpose(y, [0, *range(2, ranked(y, "a convolution")), 1])


# -- matrix products


@translates("FusedGemm", since=1, domain=MICROSOFT)
def fused_gemm(
    a, b, c=None,
    *, activation: str | None = None, activation_alpha: float | None = None, activation_beta: float | None = None,
    activation_gamma: float | None = None, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0,
):  # fmt: skip
    """activation(alpha * A * B + beta * C)."""
    product = general_product(a, b, c, alpha, beta, transA, transB)
    return Activation(activation, activation_alpha, activation_beta, activation_gamma).of(product)


@translates("TransposeMatMul", since=1, domain=MICROSOFT, without="transBatchA transBatchB")
@translates("FusedMatMul", since=1, domain=MICROSOFT)
def fused_matmul(
    a, b, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0, transBatchB: int = 0
):
    """alpha * A * B. transA transposes the last two dimensions; transBatchA moves the first one before them first."""
    return _product(a, b, alpha, transA, transB, transBatchA, transBatchB)


@translates("FusedMatMulActivation", since=1, domain=MICROSOFT)
def fused_matmul_activation(
    a, b,
    *, activation: str, activation_alpha: float | None = None, activation_axis: int | None = None,
    activation_beta: float | None = None, activation_gamma: float | None = None, alpha: float = 1.0, transA: int = 0,
    transB: int = 0, transBatchA: int = 0, transBatchB: int = 0,
):  # fmt: skip
    """activation(FusedMatMul)."""
    y = _product(a, b, alpha, transA, transB, transBatchA, transBatchB)
    return Activation(activation, activation_alpha, activation_beta, activation_gamma, activation_axis).of(y)


def _product(a: Value, b: Value, alpha: float, transpose_a: int, transpose_b: int, batch_a: int, batch_b: int) -> Value:
    a, b = _first_moved(a) if batch_a else a, _first_moved(b) if batch_b else b
    # A vector has nothing to transpose.
    left, right = bool(transpose_a) and a.rank != 1, bool(transpose_b) and b.rank != 1
    if element_count(b.shape) == 0 or (b.rank == 3 and b.constant is not None):
        # `matmul` avoids the errors of the runtime for it.
        a, b = _transposed(a) if left else a, _transposed(b) if right else b
        left = right = False
    product = ops.MatMul(a, b, transpose_a=left, transpose_b=right) if left or right else matmul(a, b)
    return scaled(product, alpha)


def _transposed(x: Value) -> Value:
    rank = ranked(x, "transA or transB")
    return ops.Transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _first_moved(x: Value) -> Value:
    """Dimension 0 moved before the last one."""
    rank = ranked(x, "transBatchA or transBatchB")
    if rank < 3:
        raise ModelError(f"transBatchA or transBatchB of a tensor of rank {rank}: it needs at least 3", code="ML227")
    return ops.Transpose(x, [*range(1, rank - 1), 0, rank - 1])


@translates("GemmFastGelu", since=1, domain=MICROSOFT)
def gemm_fast_gelu(x, w, bias=None):
    """The Gelu by tanh of x * w + bias."""
    product = matmul(x, w)
    return ops.Gelu(product if bias is None else product + bias, approximation_mode="TANH")
