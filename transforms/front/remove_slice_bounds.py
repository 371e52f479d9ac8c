"""Sizes of pieces that the runtime takes for the size of the whole."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import high
from mo_loop.graph.types import string
from mo_loop.ops.base import Constant
from transforms.function_pass import FunctionPass
from transforms.unfoldable import repeated_once, zero_from_outside


class RemoveSliceBounds(FunctionPass):
    """x : [0..9], x[:k]  ->  Tile(x, 1 + 0)[:k], a 0 known at run time only

    Of a Slice with ends known at run time alone the runtime infers the bounds 0 and M of a dimension of at most M.
    Where these are the bounds of the whole too, it gives the piece the symbol of the whole, and reads the size of the
    one off the other. Repeating once takes the bounds away; a Reshape to its own size would as well, but the runtime
    removes it.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        loosened: dict[tuple[Value, tuple[int, ...]], Value] = {}
        zero: Value | None = None
        for node in self.candidates(graph, ops.Slice):
            data = node.inputs[0]
            axes = _axes(node)
            if data is None or data.dtype is string or not axes:
                self.refuse(node, "its ends are known, or its dimensions are static or without bounds")
                continue
            zero = zero or zero_from_outside(graph)
            if (data, axes) not in loosened:
                loosened[data, axes] = repeated_once(data, axes, zero)
            graph.set_input(node, 0, loosened[data, axes])
            self.accept(node)
        return bool(loosened)


def _axes(node: ops.Slice) -> tuple[int, ...]:
    """The axes of bounded size that are cut where only the run can tell."""
    data, start, stop, _, *rest = node.inputs
    if (
        data is None
        or data.shape is None
        or all(end is None or isinstance(end.node, Constant) for end in (start, stop))
    ):
        return ()
    axes = rest[0].type.integers if rest and rest[0] is not None else tuple(range(len(data.shape)))
    if axes is None:
        return ()
    dims = {axis % len(data.shape): data.shape[axis] for axis in axes}
    return tuple(axis for axis, dim in dims.items() if not isinstance(dim, int) and high(dim) is not None)
