"""Constants of one element that the runtime makes scalars for all their readers."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.arithmetic import Binary
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass


class MakeConstantsScalar(FunctionPass):
    """x + [c]  ->  x + c, if [c] has other readers    PReLU(scalar, [c])  ->  PReLU(scalar, c)

    The runtime moves an elementwise operation with a constant of one element before a Reshape, Squeeze or Unsqueeze and
    makes the constant a scalar there. Before 2026.3 it replaces the constant for all its readers: the bounds of a Slice
    or a part of a shape lose their dimension, and the model does not compile. It does not compile a PReLU of a scalar
    with a slope of one dimension either.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        found = [self.rewrite_each(graph, kind, self._rewrite) for kind in (Binary, ops.PReLU)]
        return any(found)

    def _rewrite(self, node: Binary | ops.PReLU) -> bool:
        ports = [port for port in range(2) if _is_reshaped(node, port)]
        for port in ports:
            constant = node.inputs[port]
            assert constant is not None and isinstance(constant.node, Constant)
            value = constant.node.tensor.array().reshape(())
            node.graph.set_input(node, port, Constant(value, graph=node.graph, dtype=constant.dtype).output)
        return self.accept(node) if ports else self.refuse(node, "no shared constant of one element is reshaped")


def _is_reshaped(node: Binary | ops.PReLU, port: int) -> bool:
    constant, other = node.inputs[port], node.inputs[1 - port]
    if constant is None or other is None or not _is_one_element(constant):
        return False
    if isinstance(node, ops.PReLU):
        return port == 1 and other.rank == 0
    if node.auto_broadcast != "numpy" or constant.only_use is not None:
        return False
    return (other.rank or 0) >= constant.type.rank


def _is_one_element(value: Value) -> bool:
    return isinstance(value.node, Constant) and bool(value.rank) and set(value.type.dims) == {1}
