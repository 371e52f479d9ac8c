"""The nodes of a graph that are not translated yet, with their inputs and outputs.

    waiting = WaitingNodes(nodes, NamesRead())
    waiting.done(3)                          # it is translated
    waiting.readers({"y"})                   # the places of the nodes that read y, in order
    waiting.behind({"y"}, last=9)            # those that depend on y, up to the place 9
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mo_loop.frontend.names_read import NamesRead
from mo_loop.support.reached import reached


class WaitingNodes:
    """Places in a list of nodes, producers first; a query takes time in proportion to the nodes that it finds."""

    def __init__(self, nodes: Sequence[Any | None], names_read: NamesRead) -> None:
        """`None` is a node that is translated."""
        self.nodes = {place: node for place, node in enumerate(nodes) if node is not None}
        self.reads = {place: names_read.of_node(node) for place, node in self.nodes.items()}
        self.makes = {place: frozenset(filter(None, node.output)) for place, node in self.nodes.items()}
        self._readers: dict[str, list[int]] = {}
        for place, names in self.reads.items():
            for name in names:
                self._readers.setdefault(name, []).append(place)
        self._makers = {name: place for place, names in self.makes.items() for name in names}

    def __contains__(self, place: int) -> bool:
        return place in self.nodes

    def done(self, place: int) -> None:
        self.nodes.pop(place, None)

    def readers(self, names: Iterable[str]) -> list[int]:
        """The places of the nodes that read one of the names, in order."""
        return sorted({each for name in names for each in self._readers.get(name, ()) if each in self.nodes})

    def makers(self, place: int) -> set[int]:
        """The places of the nodes that make the inputs of a node."""
        found = {self._makers.get(name, -1) for name in self.reads[place]}
        return {each for each in found if each in self.nodes}

    def behind(self, names: Iterable[str], last: int) -> set[int]:
        """The places of the nodes that depend on one of the names, up to the place `last`."""

        def readers(names: Iterable[str]) -> list[int]:
            return [place for place in self.readers(names) if place <= last]

        return set(reached(readers(names), lambda place: readers(self.makes[place])))

    def before(self, places: Iterable[int], among: set[int] | None = None) -> set[int]:
        """The places of the nodes that nodes depend on, and these nodes; only those in `among`."""
        return set(reached(places, lambda each: self.makers(each) if among is None else self.makers(each) & among))
