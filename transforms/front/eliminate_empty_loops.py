"""Loops that never run."""

from __future__ import annotations

import numpy as np

from mo_loop.graph import Value
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.graph.types import UNKNOWN
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Iteration
from mo_loop.ops.port_map import Concatenated, Final, Merged
from mo_loop.target import CRASH, ERROR, Gap, ReleaseRange, without_avx512
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import replace_output


class EliminateEmptyLoops(FunctionPass):
    """a loop of 0 iterations  ->  its initial values, and empty tensors for its concatenated outputs"""

    instead = "the initial values, and empty constants"
    avoids = (
        Gap(
            "trip-count-of-zero", "a constant trip count of 0 crashes the process, or returns old values",
            severity=CRASH, on=without_avx512(ReleaseRange(until="2026.3.1")),
        ),
        Gap("condition-of-false", "a constant condition that is false does not compile", severity=ERROR),
    )  # fmt: skip

    bodies = "last"

    kinds = (Iteration,)

    def rewrite(self, node: Iteration) -> bool:
        if node.count != 0:
            return self.refuse(node, "it may run at least once")
        if any(output.type is UNKNOWN for output in node.outputs):
            return self.refuse(node, "its body reads an element of an empty sequence")
        initial: dict[object, Value] = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            value = initial.get(entry.result) if isinstance(entry, Final) else None
            if value is None:
                declared = (entry.declared if isinstance(entry, Concatenated) else ()) or (0,) * output.type.rank
                pairs = zip(output.type.dims, declared, strict=True)
                shape = tuple(dim if isinstance(dim, int) else max(size, 0) for dim, size in pairs)
                empty = ArrayTensor(np.zeros(shape, output.dtype.numpy), output.dtype)
                value = Constant(empty, graph=node.graph).output
            replace_output(output, value)
        node.graph.remove(node)
        return self.accept(node)
