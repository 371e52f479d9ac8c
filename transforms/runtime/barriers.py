"""Barriers: the base of rules that only place them, and the number of iterations that they hide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from mo_loop import ops
from mo_loop.graph import Node, Use
from mo_loop.graph.dimension import Dimension
from mo_loop.ops.control import Loop
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.operands import behind

HiddenPort = tuple[Use, tuple[int, ...]]
"""A port that must read a Barrier, and the axes that this hides; none if it hides no size."""


class BarrierPass(FunctionPass):
    """a node that reads x  ->  the same node that reads Barrier(x)

    A rule that only hides a fact from the runtime: it states the fact, the kind of node, and the `places`.
    """

    hides: ClassVar[str]

    def places(self, node: Any) -> Sequence[HiddenPort] | str:
        """The ports that need Barriers for a node; the reason if there are none."""
        raise NotImplementedError

    def rewrite(self, node: Node) -> bool:
        places = self.places(node)
        if isinstance(places, str):
            return self.refuse(node, places)
        for (reader, port), axes in places:
            barrier = ops.Barrier(reader.inputs[port], hides=self.hides, axes=axes)
            reader.graph.set_input(reader, port, barrier.output)
        return self.accept(node)


def iterations(node: Loop) -> Dimension:
    """The number of iterations, as far as it is known."""
    trip, go = node.operands[:2]
    return node.count_for(behind(trip, ops.Barrier).type, behind(go, ops.Barrier).type)
