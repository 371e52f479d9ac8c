"""Variables that become a model input, or a constant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mo_loop import ops
from mo_loop.graph import Graph, Node, Use, Value
from mo_loop.graph.shape import element_count, is_static, of_declared_sizes
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control
from mo_loop.target import Gap
from mo_loop.transforms.runtime.barriers import BarrierPass, HiddenPort
from mo_loop.transforms.runtime.memory import computed_from_constants, is_in_place

REMOVED = (ops.Convert, ops.Slice, ops.Tile, ops.Broadcast, ops.Pad, ops.Reduction)
"""Operations that the runtime removes, or makes a view of, where they change nothing but the shape or the type."""


class CopyAssignedInputs(BarrierPass):
    """Assign(view(x))  ->  Assign(view(Barrier(x, memory))), where x is an input of the model, or constant

    The runtime gives a variable and the value assigned to it one memory, and a view the memory of its input. An
    operation makes a view if it works in place, or if it may do nothing. A Concat works in place if all its sizes are
    known.
    """

    instead = "`max(x, x)` after the input, `x or x` for booleans"
    avoids = (
        Gap(
            "assigned-input",
            "a variable that becomes an input, or a view of one (Squeeze, Reshape, Concat of known sizes), has what "
            "the caller writes into that memory later",
        ),
        Gap(
            "assigned-constant",
            "a variable that becomes a constant, or a view of one, has the contents of other memory from then on",
            "`Tile` of the constant by a number known only at run time",
        ),
    )  # fmt: skip

    bodies = "never"  # variables are in the main graph

    kinds, hides = (ops.Assign,), "memory"

    def run_on_graph(self, graph: Graph) -> bool:
        self.constant = set(computed_from_constants(graph)) if graph.of(ops.Assign) else set()
        return super().run_on_graph(graph)

    def places(self, node: ops.Assign) -> list[HiddenPort] | str:
        return [(use, ()) for use in _shared(node, self.constant)] or "its value is no view of an input or a constant"


def _shared(assign: ops.Assign, constant: set[Node]) -> Iterator[Use]:
    """The readers, and their ports, of inputs and constants whose memory the variable would have."""
    pending: list[tuple[Node, int]] = [(assign, 0)]
    seen: set[Node] = set()
    while pending:
        reader, port = pending.pop()
        value = reader.operands[port]
        source = value.node
        if isinstance(source, Parameter | Constant) or source in constant:
            yield Use(reader, port)
        elif source not in seen:
            seen.add(source)
            pending += [(source, port) for port in _viewed(value)]


def _viewed(value: Value) -> Iterable[int]:
    """The ports of nodes that have the memory of a value."""
    node = value.node
    if isinstance(node, ops.Concat):
        return range(len(node.inputs)) if is_static(of_declared_sizes(value.shape)) else ()
    if isinstance(node, Control):  # what it returns is a copy
        return ()
    is_view = is_in_place(node) or (isinstance(node, REMOVED) and _may_have_as_many(value, node.inputs[0]))
    return (0,) if is_view else ()


def _may_have_as_many(value: Value, source: Value | None) -> bool:
    """Whether two values may have one number of elements."""
    if source is None or not is_static(value.shape) or not is_static(source.shape):
        return True
    return element_count(value.shape) == element_count(source.shape)
