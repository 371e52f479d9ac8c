"""A Transpose of weights as an attribute of the matrix product that reads them."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.ops.base import Constant
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import drop_dead


class TransposeMatMul(FunctionPass):
    """MatMul(x, Transpose(w))  ->  MatMul(x, w) {transpose_b}, where w is constant and its last two axes change places

    The .bin holds the weights as the model has them, and the runtime does not transpose them while it compiles. w may
    be converted, dequantised or reshaped.
    """

    kinds = (ops.Transpose,)

    def rewrite(self, node: ops.Transpose) -> bool:
        weights, order = node.inputs
        assert weights is not None
        if not _is_constant(weights):
            return self.refuse(node, "its input is not constant")
        axes = None if order is None else order.type.integers
        rank = weights.rank
        if axes is None or rank is None or tuple(axes) != (*range(rank - 2), rank - 1, rank - 2):
            return self.refuse(node, "it does not exchange the last two axes")
        products = [use.node for use in node.output.uses if use.port == 1 and isinstance(use.node, ops.MatMul)]
        if not products:
            return self.refuse(node, "no MatMul has it as second input")
        for product in products:
            product.graph.set_input(product, 1, weights)
            product.transpose_b = not product.transpose_b
        drop_dead([node])
        return self.accept(node)


def _is_constant(value: Value) -> bool:
    """Whether a value is a constant, or one that is converted, dequantised or reshaped."""
    node = value.node
    while isinstance(node, ops.SameElements | ops.Convert) and node.inputs[0] is not None:
        node = node.inputs[0].node
    parts = node.inputs if isinstance(node, ops.Dequantize) else (node.outputs[0],)
    return all(each is None or isinstance(each.node, Constant) for each in parts)
