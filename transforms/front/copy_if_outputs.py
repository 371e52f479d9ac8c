"""Outputs of If whose memory the runtime gives away too early."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import f32, i32, i64, string
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import If
from transforms.function_pass import FunctionPass
from transforms.run_time_slices import TO_THE_END, has_run_time_end, read_through_slice
from transforms.unfoldable import without_bounds

UNCONVERTED = (f32, i32)
"""Element types that leave the model as the runtime computes them."""


class CopyIfOutputs(FunctionPass):
    """y = If(c)  ->  Slice(y, 0, Select(c, end, end - 1)), the whole of y

    A node whose output shape depends on values ends a section: the runtime sizes the outputs of all nodes of a
    section before it runs the first of them. It keeps apart what two sections share, but overlooks what an If
    returns: a node further down the next section, of dynamic shape too, may get the same memory, and its sizing
    destroys the contents before a consumer has read them. A Slice with an end known at run time alone ends a section,
    and what it returns is kept; were the end within bounds, the whole of y would have them too (`RemoveSliceBounds`).
    An output that a Result reads has memory of its own, unless its type is converted on the way out of the model; where
    all nodes of dynamic shape that do not lead to the If are such, nothing can take its memory.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        if not graph.of(If):
            return False
        places = {node: place for place, node in enumerate(graph.ordered())}
        takers = [node for node in places if not _has_own_memory(node)]
        changed = False
        for node in self.candidates(graph, If):
            # What this pass puts in takes memory, too; and the runtime need not run nodes in the order they have here.
            may_lose = changed or (takers and places[takers[-1]] > places[node]) or _has_rivals(node, takers)
            changed = self._copy(node, bool(may_lose)) or changed
        return changed

    def _copy(self, node: If, may_lose_memory: bool) -> bool:
        exposed = [output for output in node.outputs if _is_exposed(output)]
        if not may_lose_memory:  # but what converts a type on the way out takes some
            exposed = [output for output in exposed if output.dtype not in UNCONVERTED]
        if not exposed:
            return self.refuse(node, "no output shares its memory with later nodes")
        end = _end(node)
        for output in exposed:
            read_through_slice(output, lambda axis: end)
        return self.accept(node)


def _is_exposed(output: Value) -> bool:
    if output.rank is None or is_static(output.shape) or output.dtype is string:
        return False
    if all(has_run_time_end(use.node) for use in output.uses):
        return False
    is_returned = any(isinstance(use.node, Result) for use in output.uses)
    return not is_returned or (output.graph.owner is None and output.dtype not in UNCONVERTED)


def _has_rivals(node: Node, takers: list[Node]) -> bool:
    """Whether one of `takers` is not certain to be run before `node`."""
    return not node.graph.ancestors([node]).issuperset(takers)


def _has_own_memory(node: Node) -> bool:
    """Whether what a node makes is of static shape, comes into the graph, or leaves the model as it is."""
    own = (is_static(output.shape) or _is_model_output(output) for output in node.outputs)
    return isinstance(node, Parameter) or all(own)


def _is_model_output(output: Value) -> bool:
    returned = output.graph.owner is None and any(isinstance(use.node, Result) for use in output.uses)
    return returned and output.dtype in UNCONVERTED


def _end(node: If) -> Value:
    """Beyond every dimension on both sides, and yet nothing that could be folded; shape [1]."""
    condition = node.inputs[0]
    assert condition is not None
    ends = [Constant(np.array([each]), graph=node.graph, dtype=i64) for each in (TO_THE_END, TO_THE_END - 1)]
    end = ops.Select(condition, *ends).output
    return without_bounds(end if end.shape == (1,) else ops.Reshape(end, [1]).output)
