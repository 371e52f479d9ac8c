"""First values of states whose sizes the runtime takes for those of all iterations."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Loop, Merged
from mo_loop.types import string
from transforms.base import FunctionPass


class ForgetSizes(FunctionPass):
    """state of [N] that grows  ->  from Slice(first, 0, its own length), of a size that is nobody else's

    The runtime follows sizes by symbols, and a state in the body bears those of its first value: what the body asks of
    another tensor of size N it reads off the state, which is longer by then. The end of the Slice is known at run time
    alone, so its result bears no symbol.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Loop):
            found = [
                (port, axes)
                for port, (entry, value) in enumerate(node.fed, node.first_data_port)
                if isinstance(entry, Merged) and (axes := _changing(entry, value))
            ]
            for port, axes in found:
                first = node.inputs[port]
                assert first is not None
                graph.set_input(node, port, _cut(first, axes))
            changed = (self.accept(node) if found else self.refuse(node, "no state changes its size")) or changed
        return changed


def _changing(entry: Merged, first: Value) -> list[int]:
    """The axes along which the size of a state changes from one that the first value shares with others."""
    shapes = (entry.parameter.output.shape, first.shape)
    if None in shapes or first.dtype is string or _is_cut(first):
        return []
    pairs = zip(shapes[0] or (), shapes[1] or (), strict=True)
    return [axis for axis, (state, size) in enumerate(pairs) if not isinstance(size, int) and state != size]


def _is_cut(value: Value) -> bool:
    end = value.node.inputs[2] if isinstance(value.node, ops.Slice) else None
    return end is not None and not isinstance(end.node, Constant)


def _cut(first: Value, axes: list[int]) -> Value:
    ends = ops.Gather(ops.ShapeOf(first), axes, 0)
    return ops.Slice(first, [0] * len(axes), ends, [1] * len(axes), axes).output
