"""Outputs of If whose memory the runtime hands out too early."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Constant, Result
from mo_loop.ops.control import If
from mo_loop.shape import is_static
from mo_loop.types import f32, i32, i64, string
from transforms.base import FunctionPass

TO_THE_END = 2**30
"""A Slice end beyond every dimension; the runtime gets ends above 2^31 - 1 wrong."""


class SettleBranches(FunctionPass):
    """y = If(c)  ->  Slice(y, 0, Select(c, 2^30, 2^30 - 1)): all of y, behind a node that waits for the values

    The runtime gives all nodes up to the next one whose output shape depends on values the memory for their outputs
    before it runs the first of them. What an If with bodies returned is not protected from that: a later node of
    dynamic shape takes over its memory while a consumer is still to come. A Slice with an end known only at run time is
    such a node, and what it returns is protected. An output that a Result reads has memory of its own already, unless
    the runtime converts its type on the way out of the model.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in graph.of(If):
            end: Value | None = None
            for output in node.outputs:
                if _is_exposed(output):
                    end = end or _end(node)
                    _settle(output, end)
                    changed = True
        return changed


def _is_exposed(output: Value) -> bool:
    if is_static(output.shape) or not output.rank or output.dtype is string:
        return False
    readers = [use.node for use in output.uses]
    if all(_waits(reader) for reader in readers):
        return False
    is_returned = any(isinstance(reader, Result) for reader in readers)
    return not is_returned or (output.graph.owner is None and output.dtype not in (f32, i32))


def _waits(reader: object) -> bool:
    if not isinstance(reader, ops.Slice):
        return False
    end = reader.inputs[2]
    return end is not None and not isinstance(end.node, Constant)


def _end(node: If) -> Value:
    """Of shape [1], the same in effect either way, and nothing that could be folded."""
    condition = node.inputs[0]
    assert condition is not None
    ends = (Constant(np.array([each]), graph=node.graph, dtype=i64) for each in (TO_THE_END, TO_THE_END - 1))
    end = ops.Select(condition, *ends).output
    return end if end.shape == (1,) else ops.Reshape(end, [1]).output


def _settle(output: Value, end: Value) -> None:
    readers = output.uses
    settled = ops.Slice(output, [0], end, [1], [0]).output
    settled.names, output.names = output.names, ()
    for node, port in readers:
        if isinstance(node, Result) and node.output_names:
            settled.node.name, output.node.name = output.node.name, ""
        node.graph.set_input(node, port, settled)
