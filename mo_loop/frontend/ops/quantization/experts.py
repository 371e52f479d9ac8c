"""Mixtures of experts: each token goes through the k experts that a router chooses, and their results are added.

All experts compute all tokens, and the weights of those that are not chosen are 0. Each layer is one product with a
matrix of two dimensions, which the runtime computes with compressed weights.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.ops.linear import rearranged, reshaped
from mo_loop.frontend.ops.quantization.packed_weights import middle, require_bits, unpacked
from mo_loop.frontend.ops.shared import constant_like, first_numbers, known_size
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.ops.ranges import Matrix, Needed, Positive, Rank3

Activation = Callable[[Value, "Value | None"], Value]


@translates("MoE", since=1, domain=MICROSOFT)
def moe(
    x: Matrix | Rank3, router_probs: Matrix, fc1: Rank3, fc1_bias: Matrix = None, fc2: Needed | Rank3 = None,
    fc2_bias: Matrix = None, fc3: Rank3 = None, fc3_bias: Matrix = None, *, activation_alpha: float = 1.0,
    activation_beta: float = 0.0, activation_type: str = "relu", k: Positive = 1, normalize_routing_weights: int = 0,
    swiglu_fusion: int = 0, swiglu_limit: float | None = None, swiglu_limit_after_activation: int = 0,
    use_sparse_mixer: int = 0,
):
    """The logits `router_probs` choose k experts; with `normalize_routing_weights` their weights add up to 1."""
    _refuse_sparse(use_sparse_mixer)
    activated = _activation(
        activation_type, swiglu_fusion, activation_alpha, activation_beta, swiglu_limit,
        bool(swiglu_limit_after_activation), fc3 is not None,
    )
    layers = [
        None if each[0] is None else _Plain(*each) for each in ((fc1, fc1_bias), (fc2, fc2_bias), (fc3, fc3_bias))
    ]
    gates = _gates(router_probs, None, k, _static(fc1)[0], bool(normalize_routing_weights))
    return _mixed(x, layers, gates, activated)


@translates(
    "QMoE", since=1, domain=MICROSOFT, ignored="fc1_global_scale fc2_global_scale fc1_act_scale fc2_act_scale "
    "fc1_act_block_scale fc2_act_block_scale accuracy_level",
)
def q_moe(
    x: Matrix | Rank3, router_probs: Matrix, fc1: Rank3, fc1_scales: Needed | Matrix | Rank3 = None,
    fc1_bias: Matrix = None, fc2: Needed | Rank3 = None, fc2_scales: Needed | Matrix | Rank3 = None,
    fc2_bias: Matrix = None, fc3: Rank3 = None, fc3_scales: Matrix | Rank3 = None, fc3_bias: Matrix = None,
    fc1_zero_points=None, fc2_zero_points=None, fc3_zero_points=None, router_weights=None, fc1_global_scale=None,
    fc2_global_scale=None, fc1_act_scale=None, fc2_act_scale=None, fc1_act_block_scale=None, fc2_act_block_scale=None,
    *, accuracy_level: int = 0, activation_alpha: float = 1.0, activation_beta: float = 0.0,
    activation_type: str = "relu", block_size: Positive | None = None, expert_weight_bits: int = 4,
    fc1_expert_weight_bits: int | None = None, fc2_expert_weight_bits: int | None = None,
    fc3_expert_weight_bits: int | None = None, k: Positive = 1, normalize_routing_weights: int = 0,
    quant_type: str = "int", swiglu_fusion: int = 0, swiglu_limit: float | None = None,
    swiglu_limit_after_activation: int = 0, use_sparse_mixer: int = 0, weights_prepacked: int = -1,
):
    """MoE with packed integers as weights. `router_weights` are the weights of the experts that the logits choose;
    without them the kernel always lets the weights add up to 1."""
    _refuse_sparse(use_sparse_mixer)
    if quant_type != "int" or weights_prepacked > 0:
        raise UnsupportedError(
            f"QMoE with weights of the type {quant_type!r}, or in the layout of one device", code="ML316",
            hint="export the model with quant_type int and weights_prepacked 0",
        )
    activated = _activation(
        activation_type, swiglu_fusion, activation_alpha, activation_beta, swiglu_limit,
        bool(swiglu_limit_after_activation), fc3 is not None,
    )
    given = (
        (fc1, fc1_scales, fc1_zero_points, fc1_bias, fc1_expert_weight_bits),
        (fc2, fc2_scales, fc2_zero_points, fc2_bias, fc2_expert_weight_bits),
        (fc3, fc3_scales, fc3_zero_points, fc3_bias, fc3_expert_weight_bits),
    )
    layers = [
        None if each[0] is None else _Packed(*each[:4], each[4] or expert_weight_bits, block_size or 0)
        for each in given
    ]
    normalised = router_weights is None or bool(normalize_routing_weights)
    gates = _gates(router_probs, router_weights, k, _static(fc1)[0], normalised)
    return _mixed(x, layers, gates, activated)


def _mixed(x: Value, layers: Sequence["_Plain | None"], gates: Value, activated: Activation):
    """The sum of the results of the experts for the tokens, times their weights.

    All experts are one matrix: [experts * rows, length] in the first layer, [rows, experts * length] in the second.
    """
    first, second, third = layers
    assert first is not None and second is not None
    tokens = x if x.rank == 2 else x.reshape([-1, first.length])
    up = None if third is None else third.apart(tokens)
    hidden = activated(first.apart(tokens), up) * gates[:, :, None]
    total = ops.MatMul(hidden.reshape([-1, second.count * second.length]), second.side_by_side(x), transpose_b=True)
    if second.bias is not None:
        total = total + gates @ second.bias
    return ops.Reshape(total, x.sizes)


class _Plain:
    """The weights [experts, rows, length] of a layer."""

    def __init__(self, weights: Value, bias: Value | None) -> None:
        self.count, self.rows, self.length = _static(weights)
        self.weights, self.bias = weights, bias

    def apart(self, x: Value) -> Value:
        """The products of x with the weights of each expert, [tokens, experts, rows]."""
        y = ops.MatMul(x, self.stacked(x), transpose_b=True)
        if self.bias is not None:
            y = y + reshaped(self.bias, [self.count * self.rows])
        return y.reshape([-1, self.count, self.rows])

    def stacked(self, x: Value) -> Value:
        """The weights as [experts * rows, length], of the type of x."""
        return reshaped(self.weights, [self.count * self.rows, self.length])

    def side_by_side(self, x: Value) -> Value:
        """The weights as [rows, experts * length], of the type of x."""
        return _side_by_side(self.weights)


class _Packed(_Plain):
    """Integers with a scale for each row, or for each block of one."""

    def __init__(
        self, packed: Value, scales: Value | None, zero: Value | None, bias: Value | None, bits: int, block_size: int
    ) -> None:
        require_bits(bits)
        if scales is None:
            raise ModelError("QMoE needs the scales of its weights", code="ML227")
        count, rows, width = _static(packed)
        length = width * 8 // bits
        super().__init__(unpacked(packed, bits, (count, rows, length)), bias)
        self.block_size = block_size if scales.rank == 3 else length
        blocks = -(-length // self.block_size)
        self.scales = reshaped(scales, [count, rows, blocks])
        cells = (count, rows, blocks) if scales.rank == 3 else (count, rows)
        self.zero = middle(self.weights, bits) if zero is None else unpacked(zero, bits, cells)
        if zero is not None:
            self.zero = reshaped(self.zero, [count, rows, blocks])

    def stacked(self, x: Value) -> Value:
        every = self.count * self.rows
        weights, scales, zero = (
            each if each.rank == 0 else reshaped(each, [every, -1]) for each in (self.weights, self.scales, self.zero)
        )
        return self._dequantised(x, weights, scales, zero)

    def side_by_side(self, x: Value) -> Value:
        weights, scales, zero = (
            each if each.rank == 0 else _side_by_side(each) for each in (self.weights, self.scales, self.zero)
        )
        if self.block_size % 16:  # the runtime computes such blocks wrongly
            scales, zero = (each if each.rank == 0 else self._spread(each) for each in (scales, zero))
            return ops.Dequantize(weights, scales, zero, to=x.dtype, axis=1)
        return self._dequantised(x, weights, scales, zero)

    def _spread(self, parameter: Value) -> Value:
        """A number for each element instead of one for each block."""
        made = rearranged(parameter, lambda array: np.repeat(array, self.block_size, 1))
        if made is not None:
            return made
        return ops.Gather(parameter, first_numbers(self.count * self.length) // self.block_size, 1)

    def _dequantised(self, x: Value, weights: Value, scales: Value, zero: Value) -> Value:
        return ops.Dequantize(weights, scales, zero, to=x.dtype, axis=1, block_size=self.block_size)


def _side_by_side(x: Value) -> Value:
    """[experts, rows, length] as [rows, experts * length]; a constant stays one."""
    count, rows, length = _static(x)
    made = rearranged(x, lambda array: array.transpose(1, 0, 2).reshape(rows, count * length))
    return made if made is not None else ops.Transpose(x, [1, 0, 2]).reshape([rows, count * length])


def _static(weights: Value) -> tuple[int, int, int]:
    shape = [dim for dim in weights.type.dims if isinstance(dim, int)]
    if len(shape) != 3:
        raise UnsupportedError("the number or the size of the experts is known only at run time", code="ML314")
    return shape[0], shape[1], shape[2]


def _refuse_sparse(use_sparse_mixer: int) -> None:
    if use_sparse_mixer:
        raise UnsupportedError(
            "a mixture of experts with use_sparse_mixer, which ONNX Runtime ignores on CPUs", code="ML316",
            hint="export the model with use_sparse_mixer 0",
        )


def _gates(logits: Value, weights: Value | None, k: int, experts: int, normalised: bool) -> Value:
    """The weights of all experts, [tokens, experts]; those that are not among the k largest logits have 0.

    Without `weights` they are the Softmax of the logits. A sum of 0 is not normalised.
    """
    chosen = _chosen(logits, k, experts)
    if weights is None and normalised:
        return ops.Softmax(ops.Select(chosen, logits, constant_like(logits, -np.inf)), axis=1)
    none = constant_like(logits, 0)
    kept = ops.Select(chosen, ops.Softmax(logits, axis=1) if weights is None else weights, none)
    if not normalised:
        return kept
    total = ops.ReduceSum(kept, [1], keep_dims=True)
    return ops.Select(ops.Equal(total, none), none, kept / total)


def _chosen(logits: Value, k: int, count: int) -> Value:
    """Whether each of `count` logits is among the k largest. ONNX Runtime takes the last of equal ones."""
    if k > count:
        raise ModelError(f"k is {k}, but there are {count} experts", code="ML227")
    backwards = ops.Gather(logits, first_numbers(count)[::-1].copy(), 1)
    places = ops.TopK11(backwards, k, axis=1, mode="max", sort="value", stable=True)[1]
    marks = ops.OneHot(count - 1 - places, count, constant_like(logits, 1), constant_like(logits, 0))
    return ops.ReduceSum(marks, [1], keep_dims=False) > constant_like(logits, 0)


def _activation(
    name: str, fusion: int, alpha: float, beta: float, limit: float | None, limits_result: bool, has_up: bool
) -> Activation:
    """The function of the results of the first layer and, if there is one, of the third."""
    plain: dict[str, Callable[[Value], Any]] = {
        "relu": ops.ReLU, "silu": ops.Swish, "identity": lambda x: x, "relu2": lambda x: (y := ops.ReLU(x)) * y,
        "gelu": lambda x: ops.Gelu(x, approximation_mode="TANH"),
    }
    gated: dict[str, Callable[[Value, Value], Any]] = {
        "geglu": lambda gate, up: ops.Gelu(gate, approximation_mode="TANH") * up,
        "swiglu": lambda gate, up: _swiglu(gate, up, alpha, beta, limit, limits_result),
    }
    if name in plain and not has_up:
        return lambda x, _: plain[name](x)
    if name in gated and has_up != (fusion in (1, 2)):
        return lambda x, up: gated[name](*(_parts(x, fusion) if up is None else (x, up)))
    raise UnsupportedError(
        f"experts with the activation {name!r}, swiglu_fusion {fusion} and {'' if has_up else 'no '}third layer",
        code="ML316", hint="use relu, gelu, silu, identity without a third layer, or swiglu",
    )


def _parts(x: Value, fusion: int) -> tuple[Value, Value]:
    """The gate and the other factor: each second number with `fusion` 1, else the first and the second half."""
    axis = x.type.known_rank - 1
    size = known_size(x.type.dims[-1], "the size of the experts")
    if fusion == 1:
        return ops.Slice(x, [0], [size], [2], [axis]), ops.Slice(x, [1], [size], [2], [axis])
    half = size // 2
    return x.cut(axis, 0, half), x.cut(axis, half, size)


def _swiglu(gate: Value, up: Value, alpha: float, beta: float, limit: float | None, limits_result: bool) -> Value:
    """gate * sigmoid(alpha * gate) * (up + beta), with limited factors."""
    if limit is not None:
        up = ops.Clamp(up, min=-limit, max=limit)
        gate = gate if limits_result else ops.Minimum(gate, np.asarray(limit, gate.dtype.numpy))
    y = gate * ops.Sigmoid(gate * alpha)
    if limit is not None and limits_result:
        y = ops.Minimum(y, np.asarray(limit, y.dtype.numpy))
    return y * (up if beta == 0 else up + beta)
