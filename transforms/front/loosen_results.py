"""States whose shape after an iteration excludes their initial one."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Loop, Merged
from mo_loop.shape import Dimension, high, low
from mo_loop.types import i64
from transforms.base import FunctionPass
from transforms.front.opaque import repeated_once


class LoosenResults(FunctionPass):
    """state' : [2..] from [1], zero iterations possible  ->  Tile(state', 1 + min(i, 0)) : [?]

    The runtime gives the final value the bounds of the body's Result, and fails or keeps old values where a loop that
    did not run hands on an initial value outside of them. Repeating once, a number known only at run time, leaves the
    value as it is and has no bounds; a Reshape would have none either, but the runtime removes it.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in graph.of(Loop):
            if low(node.count) > 0:
                continue
            for entry, initial in node.fed:
                axes = _excluding(entry.result.value, initial) if isinstance(entry, Merged) else []
                if axes:
                    node.body.set_input(entry.result, 0, _loosened(node, entry.result.value, axes))
                    changed = True
        return changed


def _excluding(result: Value, initial: Value) -> list[int]:
    """The axes along which the bounds of `result` leave out a size that `initial` may have."""
    if result.shape is None or initial.shape is None or len(result.shape) != len(initial.shape):
        return []
    return [axis for axis, (a, b) in enumerate(zip(result.shape, initial.shape, strict=True)) if not _covers(a, b)]


def _covers(wide: Dimension, narrow: Dimension) -> bool:
    if wide == narrow:
        return True
    hi_wide, hi_narrow = high(wide), high(narrow)
    return low(wide) <= low(narrow) and (hi_wide is None or (hi_narrow is not None and hi_narrow <= hi_wide))


def _loosened(node: Loop, value: Value, axes: list[int]) -> Value:
    if node.iteration is None:
        node.iteration = Parameter(graph=node.body, dtype=i64, shape=())
    return repeated_once(value, axes, ops.Reshape(ops.Minimum(node.iteration, 0), [1]).output)
