"""Weights of a matrix product that the model holds transposed as well."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.tensor import SAMPLE, DeferredTensor, Tensor, same_bytes
from mo_loop.graph.transposed_tensor import TransposedTensor
from mo_loop.ops.base import Constant
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import drop_dead


class ShareTransposedConstants(FunctionPass):
    """MatMul(x, w), Gather(v, i) where v is w transposed  ->  MatMul(x, v) {transpose_b}, Gather(v, i)

    Language models embed tokens and compute their scores with one matrix; exporters write it a second time, transposed.
    The .bin then holds it once. The matrices are of floats, with more than SAMPLE bytes. v may be in another scope.
    """

    bodies = "never"  # all scopes are examined together

    def run_on_graph(self, graph: Graph) -> bool:
        matrices = _Matrices(graph)
        changed = False
        for scope in graph.scopes() if matrices else ():
            for node in self.candidates(scope, ops.MatMul):
                changed = self._share(node, matrices) or changed
        return changed

    def _share(self, node: ops.MatMul, matrices: _Matrices) -> bool:
        weights = None if node.inputs[1] is None else node.inputs[1].node
        if node.transpose_b or not isinstance(weights, Constant) or not _is_large(weights.tensor):
            return self.refuse(node, "its weights are not a large constant matrix, or are transposed already")
        for other in matrices.transposed(weights.tensor):
            if other is not weights and other in other.graph and _is_transposed(weights.tensor, other.tensor):
                node.graph.set_input(node, 1, _in_scope(other, node.graph).output)
                node.transpose_b = True
                drop_dead([weights])
                return self.accept(node)
        return self.refuse(node, "no constant holds its weights transposed")


class _Matrices:
    """The large constant matrices of a graph and its bodies by type, shape, and first and last element."""

    def __init__(self, graph: Graph) -> None:
        self._of_shape: dict[Hashable, list[Constant]] = defaultdict(list)
        self._by_ends: dict[Hashable, dict[bytes, list[Constant]]] = {}
        for scope in graph.scopes():
            for constant in scope.of(Constant):
                if _is_large(constant.tensor):
                    self._of_shape[constant.tensor.dtype, constant.tensor.shape].append(constant)

    def __bool__(self) -> bool:
        return bool(self._of_shape)

    def transposed(self, tensor: Tensor) -> list[Constant]:
        """The tensors that may have the content of `tensor` transposed. Only the ends of these candidates are read."""
        kind = tensor.dtype, tensor.shape[::-1]
        if kind not in self._of_shape:
            return []
        by_ends = self._by_ends.get(kind)
        if by_ends is None:
            by_ends = self._by_ends[kind] = defaultdict(list)
            for each in self._of_shape[kind]:
                by_ends[_ends(each.tensor)].append(each)
        return by_ends.get(_ends(tensor), [])


def _is_large(tensor: Tensor) -> bool:
    shape = tensor.shape
    if len(shape) != 2 or shape[0] * shape[1] * tensor.dtype.bits <= 8 * SAMPLE:  # most constants are small
        return False
    return min(shape) > 1 and tensor.dtype.is_float and not isinstance(tensor, DeferredTensor)


def _ends(tensor: Tensor) -> bytes:
    """The bits of the first and of the last element, which a matrix has in common with the transposed one."""
    sample, size = tensor.sample(), tensor.dtype.size_of(1)
    return sample[:size] + sample[-size:]


def _is_transposed(a: Tensor, b: Tensor) -> bool:
    """Whether two large matrices have the same bits, one of them transposed; samples are compared first."""
    transposed = TransposedTensor(a)
    return transposed.sample() == b.sample() and same_bytes(transposed, b)


def _in_scope(constant: Constant, graph: Graph) -> Constant:
    """The constant, or another one of its tensor in another scope: the .bin holds it once."""
    if constant.graph is graph:
        return constant
    made = Constant(constant.tensor, graph=graph, name=constant.name)
    made.origins = constant.origins
    return made
