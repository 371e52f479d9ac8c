"""Weights stored in half precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.ops.base import Constant
from mo_loop.tensor import DeferredTensor, Tensor
from mo_loop.types import f16, f32
from transforms.base import FunctionPass

LARGEST = float(np.finfo(np.float16).max)


class CompressConstants(FunctionPass):
    """Constant f32  ->  Convert(Constant f16), marked so that the runtime keeps it compressed

    Constants with a finite value beyond the range of f16 stay as they are; so do scalars, which gain nothing.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for constant in graph.of(Constant):
            tensor: Tensor = constant.tensor
            if tensor.dtype is not f32 or tensor.size < 2 or not _fits(tensor):
                continue
            readers = constant.output.uses
            name = constant.name
            small = Constant(_halved(tensor), graph=graph, name=f"{name}_compressed" if name else "")
            wide = ops.Convert(small.output, destination_type=f32, name=name)
            wide.rt_info["decompression"] = {"version": 0}
            wide.output.names = constant.output.names
            for node, port in readers:
                graph.set_input(node, port, wide.output)
            graph.remove(constant)
            changed = True
        return changed


def _fits(tensor: Tensor) -> bool:
    for block in tensor.blocks():
        values = np.abs(np.frombuffer(block, np.float32))
        if np.any(values[np.isfinite(values)] > LARGEST):
            return False
    return True


def _halved(tensor: Tensor) -> Tensor:
    def blocks() -> Iterator[bytes]:
        for block in tensor.blocks():
            yield np.frombuffer(block, np.float32).astype(np.float16).tobytes()

    return DeferredTensor(f16, tensor.shape, blocks)
