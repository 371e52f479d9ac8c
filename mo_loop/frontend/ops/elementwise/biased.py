"""Sums and gates: a bias before an activation, Softmax or Dropout, and products with gates after them."""

from mo_loop.frontend.ops.elementwise.activation import clipped, flattened, softmax
from mo_loop.frontend.ops.elementwise.arithmetic import as_type, number
from mo_loop.frontend.ops.normalisation import dropout_12
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ops, translates
from mo_loop.graph.types import f32


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
):  # fmt: skip
    """gate * sigmoid(alpha * gate) * (up + beta), computed in f32; without up, the gate holds both halves.

    A positive limit bounds the gate from above, and the other half on both sides."""
    dtype = gate.dtype
    left, right = ops.Split(gate, -1, num_splits=2) if up is None else (gate, up)
    left, right = as_type(left, f32), as_type(right, f32)
    if limit > 0:
        left, right = ops.Minimum(limit, left), clipped(right, -limit, limit)
    active = ops.Swish(left) if activation_alpha == 1 else ops.Swish(left, activation_alpha)
    if round_activation:
        active = as_type(as_type(active, dtype), f32)
    if activation_beta:
        right = right + activation_beta
    return as_type(active * right, dtype)


@translates("ScaledSiLU", since=1, domain=MICROSOFT)
def scaled_silu(x, scale=None, *, alpha: float = 1.0):
    """z * sigmoid(z) of z = scale * x, where `alpha` replaces an absent scale; each step has the type of x."""
    wide = as_type(x, f32)
    factor = number(wide, alpha) if scale is None else as_type(scale, f32)
    z = as_type(wide * factor, x.dtype)
    return z * ops.Sigmoid(z)


@translates("GatedAdd", since=1, domain=MICROSOFT)
def gated_add(x, y, gate, gate_weight=None):
    """x + y * gate; with a weight, the gate is sigmoid(gate * weight)."""
    if gate_weight is not None:
        gate = ops.Sigmoid(gate @ gate_weight)
    return x + y * gate
