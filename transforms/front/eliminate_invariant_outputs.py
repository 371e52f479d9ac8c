"""Final values that are invariant inputs."""

from __future__ import annotations

from mo_loop.graph.dimension import low
from mo_loop.ops.control import Iteration
from mo_loop.ops.port_map import Final
from mo_loop.target import ERROR, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import invariant_behind
from mo_loop.transforms.replace import replace_output


class EliminateInvariantOutputs(FunctionPass):
    """the final value of an invariant input, at least one iteration  ->  the outer tensor itself

    The runtime does the same and rebuilds the loop for it. That fails if an output is concatenated in reverse.
    """

    instead = "the tensor itself, outside"
    avoids = (Gap(
        "invariant-result-reversed",
        "a final value that is a captured tensor fails if another output is concatenated in reverse",
        severity=ERROR,
    ),)  # fmt: skip

    kinds = (Iteration,)

    def rewrite(self, node: Iteration) -> bool:
        if low(node.count) < 1:
            return self.refuse(node, "it may run zero times")
        changed = False
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            value = invariant_behind(node, entry) if isinstance(entry, Final) and output.is_used else None
            if value is not None:
                replace_output(output, value)
                changed = True
        return self.accept(node) if changed else self.refuse(node, "no final value is an invariant input")
