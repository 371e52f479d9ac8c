"""Weights of a matrix product that the graph holds transposed as well."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.tensor import SAMPLE, DeferredTensor, Tensor
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.replace import drop_dead


class ShareTransposedConstants(FunctionPass):
    """MatMul(x, w), Gather(v, i) where v is w transposed  ->  MatMul(x, v) {transpose_b}, Gather(v, i)

    Language models embed tokens and compute their scores with one matrix; exporters write it a second time, transposed.
    The .bin then holds it once. Only matrices of floats that are not square and have more than SAMPLE bytes.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        places: dict[Hashable, list[Constant]] = defaultdict(list)
        for constant in graph.of(Constant):
            if _is_large(constant.tensor):
                places[constant.tensor.dtype, constant.tensor.shape].append(constant)
        changed = False
        for node in self.candidates(graph, ops.MatMul):
            changed = self._share(node, places) or changed
        return changed

    def _share(self, node: ops.MatMul, places: dict[Hashable, list[Constant]]) -> bool:
        weights = None if node.inputs[1] is None else node.inputs[1].node
        if node.transpose_b or not isinstance(weights, Constant) or not _is_large(weights.tensor):
            return self.refuse(node, "its weights are not a large constant matrix, or are transposed already")
        tensor = weights.tensor
        for other in places.get((tensor.dtype, tensor.shape[::-1]), ()):
            if other in node.graph and _is_transposed(tensor, other.tensor):
                node.graph.set_input(node, 1, other.output)
                node.transpose_b = True
                drop_dead([weights])
                return self.accept(node)
        return self.refuse(node, "no constant holds its weights transposed")


def _is_large(tensor: Tensor) -> bool:
    is_matrix = len(tensor.shape) == 2 and tensor.shape[0] != tensor.shape[1]
    return is_matrix and tensor.dtype.is_float and tensor.nbytes > SAMPLE and not isinstance(tensor, DeferredTensor)


def _is_transposed(a: Tensor, b: Tensor) -> bool:
    """Whether two large matrices have the same bits, one of them transposed; their ends are compared first."""
    size = a.dtype.size_of(1)
    first, second = a.sample(), b.sample()
    if first[:size] != second[:size] or first[-size:] != second[-size:]:
        return False
    bits = np.dtype(f"u{size}")
    return np.array_equal(a.array().view(bits), b.array().view(bits).T)
