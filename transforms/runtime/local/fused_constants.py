"""What the runtime fuses wrongly into the operation before, such as constants along the wrong axis."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.activation import PReLU, Scaled
from mo_loop.ops.arithmetic import Binary, Unary
from mo_loop.ops.base import Constant
from mo_loop.ops.reduction import Reduction
from transforms.pattern import wrap_type
from transforms.runtime.local.rule import LocalRule, inputs_of, is_one_element

FUSED = (Binary, Unary, PReLU, Scaled, ops.Convert, ops.Swish, ops.FakeQuantize, ops.BatchNormInference)
"""What the runtime computes together with the operation before, if its other inputs are constants."""
OF_WEIGHTS = (
    ops.Convert, ops.Subtract, ops.Multiply, ops.FakeQuantize, ops.Quantize, ops.Dequantize, ops.Reshape, ops.Transpose,
)  # fmt: skip
"""What may stand between a product and its constant weights."""

WHOLE_VECTOR = 16
"""Elements: the kernels of AvgPool for 8 bits, without AVX-512, fuse nothing into fewer."""


class MaximumBehindReduction(LocalRule):
    """ReduceMean(x : [N, C, T], 2) + c : [C, 1]  ->  max(r, r) + c, where r is the reduction, and so for axis 0

    and for every reduction without kept dimensions before a FakeQuantize with a range for each channel. The runtime
    fuses what follows into the reduction. It reads the constants at the place of the batch, also behind their end.
    Nothing is fused past the maximum.
    """

    pattern = wrap_type(Reduction)

    def form(self, node: Reduction) -> Node | None:
        data, axes = inputs_of(node)
        if data.rank is None or axes.type.integers is None:
            return None
        gone = [normalise_axis(each, data.rank) for each in axes.type.integers]
        channel = 0 if not node.keep_dims and gone == [0] else 1
        is_vector = data.rank == 3 and gone in ([0], [2])
        for reader, varying in _constants_behind(node.output):
            if isinstance(reader, ops.FakeQuantize) and not node.keep_dims:
                return _separated(node)
            if is_vector and varying == [channel]:
                return _separated(node)
        return None


class MaximumBehindMatMul(LocalRule):
    """MatMul(x : [B, C, S, K], w) + c : [C, 1, 1]  ->  max(p, p) + c, where p is the product with constant weights

    for four and more dimensions and constants that vary along the second, and for every product of three and more
    before a FakeQuantize with a range for each place along the second. The runtime fuses them into the product as those
    of the columns. Nothing is fused past the maximum.
    """

    pattern = wrap_type(ops.MatMul)

    def form(self, node: ops.MatMul) -> Node | None:
        rank = node.output.rank or 0
        if rank < 3:
            return None
        reads_constants = rank > 3 and any(map(_is_constant, inputs_of(node)))
        for reader, varying in _constants_behind(node.output):
            if varying == [1] and (reads_constants or isinstance(reader, ops.FakeQuantize)):
                return _separated(node)
        return None


class MaximumBehindAverage(LocalRule):
    """FakeQuantize(AvgPool(x : [1, 8, 7, 7]))  ->  FakeQuantize(max(p, p)), where p is the average of each channel

    if p has, or may have, fewer than 16 elements. Where x is quantised the runtime fuses the FakeQuantize into the
    AvgPool, also behind elementwise operations that it merges with it. Nothing is fused past the maximum.
    """

    pattern = wrap_type(ops.AvgPool)

    def form(self, node: ops.AvgPool) -> Node | None:
        known = [each for each in node.output.shape or () if isinstance(each, int)]
        if math.prod(known) >= WHOLE_VECTOR:
            return None
        use = node.output.only_use
        while use is not None and isinstance(use.node, FUSED):
            if isinstance(use.node, ops.FakeQuantize):
                return _separated(node)
            use = use.node.outputs[0].only_use
        return None


def _is_constant(value: Value) -> bool:
    """Whether `value` is a Constant, also a compressed, quantised or rearranged one."""
    node = value.node
    return isinstance(node, Constant) or (isinstance(node, OF_WEIGHTS) and all(map(_is_constant, inputs_of(node))))


def _separated(node: Node) -> Node:
    """The node, whose only reader reads the maximum of its output and itself."""
    use = node.outputs[0].only_use
    assert use is not None
    node.graph.set_input(use.node, use.port, ops.Maximum(node.outputs[0], node.outputs[0]).output)
    return node


def _constants_behind(value: Value) -> Iterator[tuple[Node, list[int]]]:
    """The operations that the runtime may fuse into that of `value`, with the dimensions along which their constants
    vary."""
    use = value.only_use
    while use is not None and isinstance(use.node, FUSED):
        rank = use.node.outputs[0].rank
        others = [each for port, each in enumerate(use.node.inputs) if port != use.port and each is not None]
        if rank is None or not all(isinstance(each.node, Constant) for each in others):
            return
        for each in others:
            if not is_one_element(each):
                yield use.node, _varying(use.node, each, rank)
        use = use.node.outputs[0].only_use


def _varying(node: Node, constant: Value, rank: int) -> list[int]:
    """The dimensions of a tensor of `rank` dimensions along which `constant` varies."""
    dims = constant.type.dims
    if isinstance(node, PReLU | ops.BatchNormInference) and len(dims) == 1 and rank > 1:
        return [1]
    return [axis for axis, size in enumerate(dims, rank - len(dims)) if size != 1]
