"""Loops that provably never run."""

from __future__ import annotations

import numpy as np

from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Final, Iteration, Merged
from mo_loop.tensor import ArrayTensor
from transforms.base import FunctionPass
from transforms.replace import replace_output


class EmptyLoops(FunctionPass):
    """Loop, count 0  ->  the initial values; empty tensors for what it would have concatenated"""

    bodies = "last"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in graph.of(Iteration):
            if node.count == 0:
                self._dissolve(node)
                graph.remove(node)
                changed = True
        return changed

    def _dissolve(self, node: Iteration) -> None:
        initial: dict[object, Value] = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            value = initial.get(entry.result) if isinstance(entry, Final) else None
            if value is None:
                shape = tuple(dim if isinstance(dim, int) else 0 for dim in output.type.dims)
                empty = ArrayTensor(np.zeros(shape, output.dtype.numpy), output.dtype)
                value = Constant(empty, graph=node.graph).output
            replace_output(output, value)
