"""Outputs of If whose memory the runtime gives away too early."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Constant, Result
from mo_loop.ops.control import If
from mo_loop.shape import is_static
from mo_loop.types import f32, i32, i64, string
from transforms.base import FunctionPass
from transforms.front.guard_zero_trips import TO_THE_END
from transforms.replace import move_readers


class SettleBranches(FunctionPass):
    """y = If(c)  ->  Slice(y, 0, Select(c, end, end - 1)), the whole of y

    A node whose output shape depends on values ends a section: the runtime sizes the outputs of all nodes of a section
    before it runs the first of them. It keeps apart what two sections share, but overlooks what an If returns: a node
    further down the next section, of dynamic shape too, may get the same memory, and its sizing destroys the contents
    before a consumer has read them. A Slice with an end known at run time alone ends a section, and what it returns is
    kept. An output that a Result reads has memory of its own, unless its type is converted on the way out of the model.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in graph.of(If):
            exposed = [output for output in node.outputs if _is_exposed(output)]
            if exposed:
                end = _end(node)
                for output in exposed:
                    _settle(output, end)
                changed = True
        return changed


def _is_exposed(output: Value) -> bool:
    if output.rank is None or is_static(output.shape) or output.dtype is string:
        return False
    readers = [use.node for use in output.uses]
    if all(_ends_section(reader) for reader in readers):
        return False
    has_own_memory = any(isinstance(reader, Result) for reader in readers)
    return not has_own_memory or (output.graph.owner is None and output.dtype not in (f32, i32))


def _ends_section(reader: Node) -> bool:
    if not isinstance(reader, ops.Slice):
        return False
    end = reader.inputs[2]
    return end is not None and not isinstance(end.node, Constant)


def _end(node: If) -> Value:
    """Beyond every dimension on both sides, and yet nothing that could be folded; shape [1]."""
    condition = node.inputs[0]
    assert condition is not None
    ends = [Constant(np.array([each]), graph=node.graph, dtype=i64) for each in (TO_THE_END, TO_THE_END - 1)]
    end = ops.Select(condition, *ends).output
    return end if end.shape == (1,) else ops.Reshape(end, [1]).output


def _settle(output: Value, end: Value) -> None:
    readers = output.uses
    axis = next(axis for axis, dim in enumerate(output.type.dims) if not isinstance(dim, int))
    move_readers(output, ops.Slice(output, [0], end, [1], [axis]).output, readers)
