"""First values of states whose sizes the runtime takes for those of all iterations."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import string
from mo_loop.ops.control import Loop, Merged
from transforms.function_pass import FunctionPass


class BreakStateSymbols(FunctionPass):
    """state of [N] that grows  ->  from Slice(first, 0, its own length), of a size that is nobody else's

    The runtime follows sizes by symbols, and a state in the body bears those of its first value: what the body asks of
    another tensor of size N, or of another state that begins as the same tensor, it reads off the state, which is
    longer by then. The end of the Slice is known at run time alone, so its result bears no symbol. Where several states
    begin as one tensor, each is cut from what the one before is cut to: equal nodes would be merged.
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
            changed = (self.accept(node) if found else self.refuse(node, "no state changes its size")) or changed
        return changed


def _changing(entry: Merged, first: Value, ports: int) -> list[int]:
    """The axes along which the size of a state changes from one that the first value shares with others.

    `ports` is the number of ports of the loop that the first value feeds.
    """
    shapes = (entry.parameter.output.shape, first.shape)
    if None in shapes or first.dtype is string or (ports == 1 and _is_cut(first)):
        return []
    pairs = zip(shapes[0] or (), shapes[1] or (), strict=True)
    return [axis for axis, (state, size) in enumerate(pairs) if not isinstance(size, int) and state != size]


def _is_cut(value: Value) -> bool:
    """Whether a value is what this pass makes: a Slice to the length of what it is cut from."""
    if not isinstance(value.node, ops.Slice):
        return False
    data, _, end, *_ = value.node.inputs
    length = None if end is None or not isinstance(end.node, ops.Gather) else end.node.inputs[0]
    return length is not None and isinstance(length.node, ops.ShapeOf) and length.node.inputs[0] is data


def _cut(first: Value, axes: list[int]) -> Value:
    ends = ops.Gather(ops.ShapeOf(first), axes, 0)
    return ops.Slice(first, [0] * len(axes), ends, [1] * len(axes), axes).output
