"""Initial values whose symbolic sizes the runtime uses for all iterations."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import string
from mo_loop.ops.control import Loop, Merged
from transforms.function_pass import FunctionPass


class BreakStateSymbols(FunctionPass):
    """state of initial shape [N] that grows  ->  initial value Slice(first, 0, its own length), without the symbol N

    The runtime identifies sizes by symbols, and in the body a state has the symbols of its initial value. If the body
    asks for the size of another tensor of size N, or of another state with the same initial value, the runtime reads
    the size of the state, which has grown. The end of the Slice is known only at run time, so its result has no symbol.
    If several states have the same initial value, each is sliced from the slice of the one before, because equal nodes
    would be merged.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Loop):
            found = [
                (port, axes)
                for port, (entry, value) in enumerate(node.fed, node.first_data_port)
                if isinstance(entry, Merged) and (axes := _changing(entry, value, node.inputs.count(value)))
            ]
            latest: dict[Value, Value] = {}
            for port, axes in found:
                first = node.inputs[port]
                assert first is not None
                latest[first] = _cut(latest.get(first, first), axes)
                graph.set_input(node, port, latest[first])
            if found:
                changed = self.accept(node)
            else:
                self.refuse(node, "no state changes a size that it shares with another tensor")
        return changed


def _changing(entry: Merged, first: Value, ports: int) -> list[int]:
    """The axes along which a state changes its size, if the initial value shares that size with other tensors.

    `ports` is the number of ports of the loop that the initial value feeds.
    """
    shapes = (entry.parameter.output.shape, first.shape)
    if None in shapes or first.dtype is string or (ports == 1 and _is_cut(first)):
        return []
    pairs = zip(shapes[0] or (), shapes[1] or (), strict=True)
    return [axis for axis, (state, size) in enumerate(pairs) if not isinstance(size, int) and state != size]


def _is_cut(value: Value) -> bool:
    """Whether this pass made the value: a Slice to the length of its own data."""
    if not isinstance(value.node, ops.Slice):
        return False
    data, _, end, *_ = value.node.inputs
    length = None if end is None or not isinstance(end.node, ops.Gather) else end.node.inputs[0]
    return length is not None and isinstance(length.node, ops.ShapeOf) and length.node.inputs[0] is data


def _cut(first: Value, axes: list[int]) -> Value:
    ends = ops.Gather(ops.ShapeOf(first), axes, 0)
    return ops.Slice(first, [0] * len(axes), ends, [1] * len(axes), axes).output
