"""States that change their shape, although the runtime gives them that of their initial value."""

from __future__ import annotations

from typing import ClassVar

from mo_loop.graph import Use, Value
from mo_loop.graph.types import string
from mo_loop.ops.control import Iteration
from mo_loop.ops.port_map import Final, Merged
from mo_loop.target import Gap
from mo_loop.transforms.runtime.barriers import BarrierPass, HiddenPort
from mo_loop.transforms.runtime.inference import is_bounded


class InitialShapesPass(BarrierPass):
    """initial value  ->  Barrier(initial value, bounds of its sizes)"""

    kinds, hides = (Iteration,), "bounds"
    is_read: ClassVar[bool]
    """Whether it is for states whose final value is read, or for the others."""
    otherwise: ClassVar[str]
    """The reason where there is none."""
    instead = "`Tile` of the initial value by a number known only at run time"

    def places(self, node: Iteration) -> list[HiddenPort] | str:
        ports = zip(node.output_map, node.outputs, strict=True)
        read = {entry.result for entry, output in ports if isinstance(entry, Final) and output.is_used}
        found = [
            (Use(node, port), axes) for port, (entry, value) in enumerate(node.fed, node.first_data_port)
            if isinstance(entry, Merged) and (entry.result in read) == self.is_read and value.dtype is not string
            and (axes := _changing(value, entry))
        ]  # fmt: skip
        return found or self.otherwise


def _changing(initial: Value, entry: Merged) -> tuple[int, ...]:
    """The axes along which a state changes its size, and for which the runtime knows a size or bounds."""
    shape, state = initial.shape, entry.parameter.output.shape
    if shape is None or state is None:
        return ()
    return tuple(axis for axis, (a, b) in enumerate(zip(shape, state, strict=True)) if a != b and is_bounded(a))


class MakeStateShapesDynamic(InitialShapesPass):
    """initial value  ->  Barrier(initial value, bounds of its sizes)

    The runtime infers only from the outputs of a loop that a state changes its shape. Otherwise the loop ends without a
    message when the next value does not fit. The dimensions of the initial value that change become dynamic.
    """

    is_read = False
    otherwise = "each state that changes its shape is read outside, or is dynamic already"
    avoids = (Gap(
        "unread-final-shape", "a state that changes its shape keeps its first shape if its final value is unused",
    ),)  # fmt: skip


class MakeFinalShapesDynamic(InitialShapesPass):
    """initial value  ->  Barrier(initial value, bounds of its sizes)

    The runtime does not infer from the final value that a state changes its shape if the Result of the body has no
    bounds, or bounds that include the initial size.
    """

    is_read = True
    otherwise = "no state that changes its shape is read outside, or it is dynamic already"
    avoids = (Gap(
        "state-of-static-initial-shape",
        "a state whose next value has no known bounds keeps its first shape, and the memory for it, also if its "
        "final value is read: values are lost, old ones, or the inference fails", until="2026.2.1",
    ),)  # fmt: skip
