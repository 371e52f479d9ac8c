"""Initial values whose symbolic sizes the runtime uses for all iterations."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Use, Value
from mo_loop.graph.types import string
from mo_loop.ops.control import Loop
from mo_loop.ops.port_map import Merged
from mo_loop.target import Gap
from mo_loop.transforms.runtime.barriers import BarrierPass, HiddenPort


class BreakStateSymbols(BarrierPass):
    """state of initial shape [N] that grows  ->  initial value Barrier(first, symbols)

    The runtime identifies sizes by symbols, and in the body a state has the symbols of its initial value.
    """

    instead = "`Slice` of the initial value to its own length, which has no symbol"
    avoids = (
        Gap(
            "state-symbols",
            "a state that grows has the symbols of its initial value in the body: the size of a captured tensor of "
            "the same initial size is taken from the state",
        ),
        Gap(
            "state-symbols-of-two-states",
            "two states with the same initial value have the same symbols: the size of one is taken from the other",
        ),
    )  # fmt: skip

    kinds, hides = (Loop,), "symbols"

    def places(self, node: Loop) -> list[HiddenPort] | str:
        found = [
            (Use(node, port), axes) for port, (entry, value) in enumerate(node.fed, node.first_data_port)
            if isinstance(entry, Merged) and (axes := _changing(entry, value, node.inputs.count(value)))
        ]  # fmt: skip
        return found or "no state changes a size that it shares with another tensor"


def _changing(entry: Merged, first: Value, ports: int) -> tuple[int, ...]:
    """The axes along which a state changes its size, if the initial value shares that size with other tensors.

    `ports` is the number of ports of the loop that the initial value feeds.
    """
    shapes = (entry.parameter.output.shape, first.shape)
    if None in shapes or first.dtype is string or (ports == 1 and isinstance(first.node, ops.Barrier)):
        return ()
    pairs = zip(shapes[0] or (), shapes[1] or (), strict=True)
    return tuple(axis for axis, (state, size) in enumerate(pairs) if not isinstance(size, int) and state != size)
