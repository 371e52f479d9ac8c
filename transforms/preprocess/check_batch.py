"""Shapes that contain the batch size with which the model was exported; --batch cannot change them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from mo_loop import ops
from mo_loop.errors import ConversionWarning
from mo_loop.graph import Graph
from mo_loop.graph.dimension import now
from mo_loop.ops.base import Constant
from mo_loop.transforms.function_pass import FunctionPass


@dataclass(eq=False)
class CheckBatch(FunctionPass):
    """Warns of reshape(x [N,...], [1,...]): with the batch size N the samples are merged into another dimension

    Only if inference finds no error: the Reshape may be intended, as in a grouped convolution.
    """

    batch: int

    def run_on_graph(self, graph: Graph) -> bool:
        for node in self.candidates(graph, ops.Reshape):
            if self.batch > 1 and _holds_one(node, self.batch):
                text = f"{node.operands[0].type} becomes {node.output.type}: {self.batch} samples are joined into one"
                warnings.warn(ConversionWarning(text, where=node.origin, code="ML514"), stacklevel=2)
        return False


def _holds_one(node: ops.Reshape, batch: int) -> bool:
    x, pattern = node.operands
    if not isinstance(pattern.node, Constant) or not x.shape or now(x.shape[0]) != batch:
        return False
    wanted = pattern.type.integers
    return bool(wanted) and wanted[0] == 1
