"""Slices whose size the runtime takes for the size of the whole tensor."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import high
from mo_loop.graph.types import string
from mo_loop.ops.base import Constant
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass


class RemoveSliceBounds(FunctionPass):
    """x : [0..9], x[:k]  ->  Barrier(x, bounds of its sizes)[:k]

    The runtime infers the bounds 0 and M for a Slice of a dimension of at most M if the end is known only at run time,
    and takes sizes of the same bounds for one.
    """

    instead = "`Tile` by a number known only at run time before it"
    avoids = (Gap(
        "slice-symbols",
        "a Slice with ends known only at run time of a dimension 0..M has the symbol of the whole dimension: the "
        "size of one is taken from the other",
    ),)  # fmt: skip

    def run_on_graph(self, graph: Graph) -> bool:
        unbounded: dict[tuple[Value, tuple[int, ...]], Value] = {}
        for node in self.candidates(graph, ops.Slice):
            data = node.inputs[0]
            axes = _axes(node)
            if data is None or data.dtype is string or not axes:
                self.refuse(node, "its ends are constants, or its dimensions are static or without bounds")
                continue
            if (data, axes) not in unbounded:
                unbounded[data, axes] = ops.Barrier(data, hides="bounds", axes=axes).output
            graph.set_input(node, 0, unbounded[data, axes])
            self.accept(node)
        return bool(unbounded)


def _axes(node: ops.Slice) -> tuple[int, ...]:
    """The axes of bounded size that are sliced with an end known only at run time."""
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
