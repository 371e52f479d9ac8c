"""The base class of the passes that take work out of loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mo_loop.graph import Graph, Value
from mo_loop.ops.control import Iteration, Loop, TensorIterator
from mo_loop.transforms.function_pass import FunctionPass, argument
from mo_loop.transforms.loops.blocks import has_no_blocks, in_blocks
from mo_loop.transforms.loops.memory_bound import Bound
from mo_loop.transforms.loops.outer import Draft


class LoopPass(FunctionPass):
    """Rewrites loops, then removes unused nodes and updates types."""

    kinds = (Loop, TensorIterator)

    def run_on_graph(self, graph: Graph) -> bool:
        changed = super().run_on_graph(graph)
        if changed:
            graph.sweep()
            graph.validate()
        return changed


LEAST = 8
"""The least steps of a block: a step that touches so much memory that fewer steps fill a block is not faster in one."""


@dataclass(eq=False)
class AllStepsPass(LoopPass):
    """Computes something for all steps at once; for those of a block, if it takes too much memory.

    Args:
        exact_order: floats are added in the order of the steps.
        memory: the largest tensor of all steps, as a multiple of the size of the inputs and outputs of the loop.
    """

    exact_order: bool = False
    memory: float = argument(4.0, float)

    def rewrite(self, node: Iteration) -> bool:
        return self.rewrite_within(node, Bound.of(node, self.memory), may_split=True)

    def rewrite_within(self, node: Iteration, bound: Bound, *, may_split: bool) -> bool:
        """Rewrite a loop; `may_split` says whether it may become blocks."""
        raise NotImplementedError

    def exceeds(self, draft: Draft, values: Iterable[Value], bound: Bound, *, may_split: bool) -> bool | None:
        """None if the tensors that make `values` are within the bound; else the result of `rewrite`."""
        excess = bound.excess(draft.values_behind(values), draft.steps.usual)
        if excess is None:
            return None
        node = draft.node
        size = excess.steps_of(node.count)
        if not may_split or size < LEAST or has_no_blocks(node):
            return self.refuse(node, str(excess))
        for loop in in_blocks(node, size):
            graph = loop.graph
            self.rewrite_within(loop, bound, may_split=False)
            graph.sweep()
        return self.accept(node, f"in blocks of {size} steps")
