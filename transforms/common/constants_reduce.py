"""Constants with equal contents."""

from __future__ import annotations

from collections.abc import Hashable

from mo_loop.graph import Graph
from mo_loop.graph.tensor import SAMPLE, FileTensor, Tensor
from mo_loop.ops.base import Constant
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import absorb


class ConstantsReduce(FunctionPass):
    """a = Constant 1.0, b = Constant 1.0  ->  a = Constant 1.0, and the readers of b read a

    Two constants of one graph are equal if type, shape and bytes are equal (-0.0 differs from 0.0). Constants of more
    than SAMPLE bytes are not read: they are equal if they are the same tensor or the same span of a file. The .bin file
    holds equal contents once in any case; this pass makes the inputs of equal nodes equal, for SharedOpOptimization.

    The oldest constant stays and takes over tensor names and rt_info; the friendly names of the others are lost. A
    constant that a Result returns is not merged, because it has the name of the output.
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
