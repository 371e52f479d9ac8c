"""Outputs of If and Loop whose memory the runtime reuses too early."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import string
from mo_loop.ops.base import Result
from mo_loop.ops.control import Control, If, Iteration, Loop
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.runtime.memory import (
    UNCONVERTED,
    Resized,
    has_run_time_ends,
    hide_memory,
    overwritten,
    views_of,
)

KINDS: tuple[type[Control], ...] = (If, Loop)


class CopyControlOutputs(FunctionPass):
    """y = If(c), or an output of a Loop  ->  Barrier(y, memory)

    The runtime divides a graph into sections; each ends at a node whose output shape depends on values. It computes the
    shapes of all outputs of a section before it executes the first node. Memory that two sections share is kept apart,
    except for the outputs of If and Loop: a node of dynamic shape later in the next section may get the same memory,
    and resizing it destroys the contents before a reader has read them. A Slice whose end is known only at run time
    ends a section, and its output is kept.

    A model output has memory of its own, unless its type is converted at the output. If all nodes of dynamic shape that
    y does not depend on are such outputs or read y themselves, nothing can take its memory.
    """

    instead = "`Slice` to its own length"
    avoids = (
        Gap(
            "loop-output-memory",
            "a final value or a concatenated output of dynamic shape is overwritten by a later node before it is read",
        ),
        Gap(
            "if-output-memory", "an output of If of dynamic shape is overwritten by a later node before it is read",
            "`Slice` with an end that depends on the condition", since="2025.1.0",
        ),
    )  # fmt: skip

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        while self._copy_all(graph):  # a copy takes memory as well
            changed = True
        return changed

    def _copy_all(self, graph: Graph) -> bool:
        if not any(graph.of(kind) for kind in KINDS):
            return False
        resized = Resized(graph, overwritten(graph.owner) if isinstance(graph.owner, Iteration) else ())
        found = [self.rewrite_each(graph, kind, lambda node: self._copy(node, resized)) for kind in KINDS]
        return any(found)

    def _copy(self, node: Control, resized: Resized) -> bool:
        # Without a later node a conversion of the type at an output takes memory; then so does the copy of that output.
        exposed = [
            output for output in node.outputs
            if _is_exposed(output) and (_may_be_converted(output) or resized.may_overwrite(output))
        ]  # fmt: skip
        if not exposed:
            return self.refuse(node, "no output can lose its memory to a later node")
        for output in exposed:
            hide_memory(output)
        return self.accept(node)


def _is_exposed(output: Value) -> bool:
    if output.rank is None or is_static(output.shape) or output.dtype is string:
        return False
    *_, last = (output, *views_of(output))
    readers = [use.node for use in last.uses if not isinstance(use.node, ops.ShapeOf)]  # it reads no contents
    if all(has_run_time_ends(reader) for reader in readers):
        return False
    return not _is_returned(output) or (isinstance(output.node, If) and _may_be_converted(output))


def _may_be_converted(output: Value) -> bool:
    """Whether a model output of this type is converted."""
    return output.graph.owner is None and output.dtype not in UNCONVERTED


def _is_returned(output: Value) -> bool:
    """Whether a Result reads `output`, or a view of it: its memory is not used for other tensors then."""
    return any(isinstance(use.node, Result) for each in (output, *views_of(output)) for use in each.uses)
