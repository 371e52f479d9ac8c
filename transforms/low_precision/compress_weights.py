"""Quantised constants: in the bodies that read them, in the form that the runtime decompresses where it needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mo_loop.ops.control import Control
from mo_loop.transforms.low_precision.saturation import (
    PRODUCTS,
    has_quantised_activations,
    multiplies_activations,
    saturates,
)
from mo_loop.transforms.low_precision.weights import StoredWeights, is_weights
from mo_loop.transforms.port_maps import push_inputs
from mo_loop.transforms.replace import drop_dead, insert_before, move_readers, replace_output
from mo_loop.transforms.vocabulary import FunctionPass, Graph, Node, Parameter, Result, Use, Value, node_pass, ops


@node_pass((Control,), bodies="last")
def PushWeightsToSubgraph(node: Control) -> str:
    """an invariant input that is Dequantize(Constant)  ->  the same nodes in the body

    The runtime recognises compressed weights only in the graph that reads them; outside they would be expanded.
    """
    if not push_inputs(node, is_weights, _dequantise_inside):
        return "no invariant input is a dequantised constant"
    return ""


def _dequantise_inside(parameter: Parameter, value: Value) -> None:
    copies: dict[Value, Value] = {}
    constants = [each.node for each in value.node.operands]
    parameter.graph.adopt(value.graph, [*constants, value.node], copies)
    parameter.output.replace_with(copies[value])


@dataclass(eq=False)
class CompressWeights(FunctionPass):
    """Dequantize(Constant)  ->  Constant -> Convert -> Subtract -> Multiply -> Reshape

    The constant keeps its type of at most 8 bits. A constant of blocks of B elements along an axis of K is
    [.., K / B, B, ..], and its scales [.., K / B, 1, ..].

    The runtime reads such weights in matrix products and Gather without expanding them. It assumes that the scales and
    the zero points vary along the axis that is not summed, or with the blocks along the axis that is. Where they vary
    otherwise, it computes wrong numbers or crashes, so the numbers and the scales are negated there: the result is the
    same, and the runtime does not recognise the form. Filters that a Reshape divides into groups have this shape
    from the beginning: the runtime computes a convolution with integers only if no Reshape is between.
    Weights that are `expanded` have the negated form everywhere.
    It limits filters of ConvolutionBackpropData to i8 after it subtracts their zero points, so these are negated, too.

    With `portable`, weights of products that saturate on some processors (saturation.py) are negated as well, and the
    runtime computes the products in f32. Of two quantised activations the second becomes Barrier(x, memory).
    """

    portable: bool = field(default=False, kw_only=True)

    def run_on_graph(self, graph: Graph) -> bool:
        changed = self.portable and self.rewrite_each(graph, ops.MatMul, self._hide)
        return self.rewrite_each(graph, ops.Dequantize, self._compress) or changed

    def _hide(self, node: ops.MatMul) -> bool:
        if not multiplies_activations(node):
            return self.refuse(node, "it does not multiply two quantised activations")
        insert_before(node, 1, lambda value: ops.Barrier(value, hides="memory"))
        return self.accept(node)

    def _compress(self, node: ops.Dequantize) -> bool:
        if not is_weights(node.output):
            return self.refuse(node, "its inputs are not constants, or not of at most 8 bits")
        weights = StoredWeights(node).centred()
        for use in node.output.uses:
            groups = _groups(use, weights)
            if groups is not None:
                made = use.node.outputs[0]
                fits = all(self._keeps(each, set(), weights) for each in made.uses)
                replace_output(made, weights.grouped(groups).decompressed(1 if fits else -1))
                drop_dead([use.node])
        if node not in node.graph:
            return self.accept(node)
        readers = node.output.uses
        fitting = [use for use in readers if self._keeps(use, weights.axes, weights)]
        others = [use for use in readers if use not in fitting]
        for each, sign in ((fitting, 1), (others, -1)):
            if each:
                move_readers(node.output, weights.decompressed(sign), each)
        drop_dead([node])
        return self.accept(node)

    def _keeps(self, use: Use, axes: set[int], weights: StoredWeights) -> bool:
        """Whether a reader gets weights that the runtime recognises."""
        if weights.node.expanded or not _fits(use, axes, weights.block_axis, weights.has_zero_points):
            return False
        return not self.portable or not any(
            has_quantised_activations(each) and saturates(each, weights.tensor.array()) for each in _products(use)
        )


def _products(use: Use) -> Iterator[Node]:
    """The products whose second operand is the value that is read, or has its elements."""
    if isinstance(use.node, PRODUCTS):
        yield from [use.node] if use.port == 1 else []
    elif isinstance(use.node, ops.View | ops.Transpose | ops.Convert):
        for each in use.node.output.uses:
            yield from _products(each)


def _groups(use: Use, weights: StoredWeights) -> int | None:
    """The number of groups of the filters [O, C, K...] that become [G, O / G, C, K...], for a convolution alone."""
    node = use.node
    shape = node.outputs[0].shape if isinstance(node, ops.Reshape | ops.Unsqueeze) and use.port == 0 else None
    if shape is None or weights.block_axis is not None or not weights.axes <= {0}:
        return None
    if shape[2:] != weights.shape[1:] or not isinstance(shape[0], int) or not node.outputs[0].is_used:
        return None
    return shape[0] if all(isinstance(each.node, ops.Filtered) for each in node.outputs[0].uses) else None


def _fits(use: Use, axes: set[int], block_axis: int | None, has_zero_points: bool) -> bool:
    """Whether the runtime computes a reader of the form rightly."""
    node, port = use
    value = node.operands[port]
    rank = value.type.rank
    if isinstance(node, ops.Transpose) and node.integers("order") is not None:
        order = node.axis_map(0)
        block = None if block_axis is None else order.index(block_axis)
        moved = {order.index(axis) for axis in axes}
        return all(_fits(each, moved, block, has_zero_points) for each in node.output.uses)
    if isinstance(node, ops.View | ops.Convert):
        return not axes and all(_fits(each, set(), None, has_zero_points) for each in node.output.uses)
    if isinstance(node, ops.MatMul):
        if rank < 2:
            return not axes
        is_last = node.transpose_b if port else not node.transpose_a
        summed = rank - 1 if is_last else rank - 2
        return block_axis == summed if block_axis is not None else summed not in axes
    if isinstance(node, ops.Gather) and port == 0:
        return rank == 2 and (block_axis == 1 or (block_axis is None and 1 not in axes))
    if isinstance(node, ops.ConvolutionBackpropData):
        return not has_zero_points
    return not isinstance(node, ops.Gather | Result)
