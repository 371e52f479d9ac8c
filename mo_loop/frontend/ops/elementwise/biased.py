"""Sums and gates: a bias before an activation, Softmax or Dropout, and products with gates after them."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.frontend.context import Context
from mo_loop.frontend.contrib_schemas import MICROSOFT
from mo_loop.frontend.ops.elementwise.activation import clipped, flattened, softmax
from mo_loop.frontend.ops.elementwise.arithmetic import as_type, number
from mo_loop.frontend.ops.normalisation import dropout_12
from mo_loop.frontend.registry import translates
from mo_loop.graph import Value
from mo_loop.graph.types import f32


@translates("BiasAdd", since=1, domain=MICROSOFT)
def bias_add(x, bias, skip):
    """x + bias + skip."""
    return ops.Add(ops.Add(x, bias), skip)


@translates("BiasSplitGelu", since=1, domain=MICROSOFT)
def bias_split_gelu(x, bias):
    """The left half of x + bias, times the Gelu of the right half."""
    left, right = ops.Split(ops.Add(x, bias), -1, num_splits=2).outputs
    return ops.Multiply(left, ops.Gelu(right, approximation_mode="ERF"))


@translates("BiasSoftmax", since=1, domain=MICROSOFT)
def bias_softmax(data, bias, *, axis: int = 1, is_inner_broadcast: int):
    """Softmax of data + bias over all dimensions from `axis` on.

    Numpy's rules broadcast both kinds of bias: an inner one has dimensions of 1, an outer one lacks the first ones."""
    return flattened(ops.Add(data, bias).output, axis, softmax)


@translates("BiasDropout", since=1, domain=MICROSOFT)
def bias_dropout(data, bias, residual=None, ratio=None, training_mode=None, *, seed: int | None = None, node: Context):
    """Dropout(data + bias) + residual, and the mask."""
    y, *mask = dropout_12(ops.Add(data, bias).output, ratio, training_mode, seed=seed, node=node)
    return [y if residual is None else ops.Add(y, residual), *mask]


@translates("SwiGLU", since=1, domain=MICROSOFT)
def swiglu(
    gate, up=None,
    *, activation_alpha: float = 1.0, activation_beta: float = 0.0, limit: float = 0.0, round_activation: int = 0,
):  # fmt: skip
    """gate * sigmoid(alpha * gate) * (up + beta), computed in f32; without up, the gate holds both halves.

    A positive limit bounds the gate from above, and the other half on both sides."""
    dtype = gate.dtype
    left, right = ops.Split(gate, -1, num_splits=2).outputs if up is None else (gate, up)
    left, right = as_type(left, f32), as_type(right, f32)
    if limit > 0:
        left, right = ops.Minimum(limit, left).output, _value(clipped(right, -limit, limit))
    active = (ops.Swish(left) if activation_alpha == 1 else ops.Swish(left, activation_alpha)).output
    if round_activation:
        active = as_type(as_type(active, dtype), f32)
    if activation_beta:
        right = ops.Add(right, activation_beta).output
    return as_type(ops.Multiply(active, right).output, dtype)


def _value(made) -> Value:
    return made if isinstance(made, Value) else made.output


@translates("ScaledSiLU", since=1, domain=MICROSOFT)
def scaled_silu(x, scale=None, *, alpha: float = 1.0):
    """z * sigmoid(z) of z = scale * x, where `alpha` replaces an absent scale; each step has the type of x."""
    wide = as_type(x, f32)
    factor = number(wide, alpha) if scale is None else as_type(scale, f32)
    z = as_type(ops.Multiply(wide, factor).output, x.dtype)
    return ops.Multiply(z, ops.Sigmoid(z))


@translates("GatedAdd", since=1, domain=MICROSOFT)
def gated_add(x, y, gate, gate_weight=None):
    """x + y * gate; with a weight, the gate is sigmoid(gate * weight)."""
    if gate_weight is not None:
        gate = ops.Sigmoid(ops.MatMul(gate, gate_weight)).output
    return ops.Add(x, ops.Multiply(y, gate))
