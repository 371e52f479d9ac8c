"""Slices with an end that is known only at run time.

    y  ->  Slice(y, 0, end) of every element of y

The runtime keeps the result of such a Slice in memory of its own, and infers no size for it.
"""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.ops.base import Constant
from transforms.replace import move_readers

TO_THE_END = 2**30
"""A Slice end beyond every dimension; the runtime computes wrong results for ends above 2^31 - 1."""


def has_run_time_end(node: Node) -> bool:
    """Whether a node is a Slice whose end is known only at run time, or becomes one."""
    if isinstance(node, ops.Barrier):
        return node.hides == "memory"
    end = node.inputs[2] if isinstance(node, ops.Slice) else None
    return end is not None and not isinstance(end.node, Constant)


def hide_memory(output: Value) -> None:
    """Readers of `output` read a Barrier, which becomes such a Slice."""
    readers = output.uses
    move_readers(output, ops.Barrier(output, hides="memory").output, readers)
