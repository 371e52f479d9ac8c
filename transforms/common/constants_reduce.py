"""Constants that hold what another one holds already."""

from __future__ import annotations

from collections.abc import Hashable

from mo_loop.graph import Graph
from mo_loop.graph.tensor import SAMPLE, FileTensor, Tensor
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.merging import absorb


class ConstantsReduce(FunctionPass):
    """a = Constant 1.0, b = Constant 1.0  ->  a, which is read for b too

    The .bin holds equal content once in any case; this makes the inputs of equal nodes equal, for SharedOpOptimization,
    and the graph smaller. Equal are two constants of one graph, type and shape with the same bytes (-0.0 is not 0.0).
    Beyond SAMPLE bytes nothing is read: there they are equal when they are the same tensor or span of a file.

    The oldest stays and takes over tensor names and rt_info; friendly names of the others are lost. A constant that a
    Result returns stays by itself, for it bears the output's name.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        returned = {result.value for result in graph.results}
        first: dict[Hashable, Constant] = {}
        changed = False
        for constant in graph.of(Constant):
            if constant.output in returned:
                continue
            survivor = first.setdefault(_key(constant.tensor), constant)
            if survivor is constant or self.leaves(constant):
                continue
            self.accept(constant)
            absorb(survivor, constant)
            changed = True
        self.at = None
        return changed


def _key(tensor: Tensor) -> Hashable:
    return tensor.dtype, tensor.shape, _content(tensor)


def _content(tensor: Tensor) -> Hashable:
    if tensor.nbytes <= SAMPLE:
        return tensor.sample()
    if isinstance(tensor, FileTensor):
        return tensor.path, tensor.offset
    return tensor
