"""Search: makes a candidate smaller as long as it shows the condition, bounded by time.

    best = ReductionSearch(candidate, trials, seconds=120, better=print).run()

The search begins at the nodes that the error or the piece names. Each phase removes parts of one kind; the phases
repeat until none finds anything. Nodes are removed in halves, quarters and so on (delta debugging), several trials at a
time. No candidate has more nodes than the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.reducing.candidate import (
    Candidate,
    Feeds,
    graph_at,
    inferred,
    places,
    recorded,
    with_nodes,
    with_outputs,
)
from mo_loop.compare.reducing.smaller_bodies import (
    lengths,
    plainer_weights,
    shortened,
    unwrapped,
    with_fewer_iterations,
    without_body_nodes,
)
from mo_loop.compare.reducing.trial import Trials
from mo_loop.frontend.node_order import NamesRead

T = TypeVar("T")

class ReductionSearch:
    """The search for a smaller candidate. `best` is the smallest so far, `seconds` the time for all of it."""

    def __init__(
        self, start: Candidate, trials: Trials, *, seconds: float, better: Callable[[Candidate], None]
    ) -> None:
        """`better` is called with each smaller candidate that shows the condition."""
        self.best = start
        self._most = start.size.all_nodes
        self._trials = trials
        self._end = time.monotonic() + seconds
        self._better = better

    def run(self) -> Candidate:
        """The smallest candidate that was found."""
        phases = (self._sets, self._outputs, self._nodes, self._unwrap, self._bodies, self._sizes)
        self._named()
        while True:
            before = self.best
            for phase in phases:
                phase()
            if self.best is before or self._is_late():
                return self.best

    def _is_late(self) -> bool:
        return time.monotonic() > self._end

    def _first(self, made: Iterable[tuple[T, Candidate | None]]) -> T | None:
        """The item of the first smaller candidate that shows the condition, which is the best then."""
        source = iter(made)
        while not self._is_late():
            tried = list(islice(source, self._trials.jobs))
            if not tried:
                return None
            smaller = [(item, each) for item, each in tried if each is not None and self._is_smaller(each)]
            place = self._trials.first([each for _, each in smaller])
            if place is not None:
                item, self.best = smaller[place]
                self._better(self.best)
                return item
        return None

    def _takes(self, candidates: Iterable[Candidate | None]) -> bool:
        """Whether one of the candidates shows the condition; it is then the best, if it is smaller."""
        return self._first((True, each) for each in candidates) is not None

    def _reduce(self, items: Sequence[T], build: Callable[[Sequence[T]], Candidate | None]) -> None:
        """Delta debugging: the smallest part of `items` from which `build` makes a candidate with the condition."""
        count = 2
        kept = list(items)
        while len(kept) > 1 and not self._is_late():
            chunks = [kept[len(kept) * n // count : len(kept) * (n + 1) // count] for n in range(count)]
            rests = [[each for each in kept if each not in chunk] for chunk in chunks] if count > 2 else []
            parts = [part for part in (*(chunks if count <= 8 else ()), *rests) if part]
            found = self._first((part, build(part)) for part in parts)
            if found is not None:
                count = 2 if found in chunks else max(count - 1, 2)
                kept = found
            elif count >= len(kept):
                return
            else:
                count = min(2 * count, len(kept))

    def _is_smaller(self, candidate: Candidate) -> bool:
        return candidate.size < self.best.size and candidate.size.all_nodes <= self._most

    # -- the phases

    def _named(self) -> None:
        """The node that the error or the verdict names, with as many nodes around it as the condition needs."""
        base = self.best
        numbers = self._trials.suspects(base)
        if not numbers or len(base.proto.graph.node) < 2:
            return
        values, types = self._values(), inferred(base.proto)
        self._takes(with_nodes(base, kept, values, types) for kept in windows(base.proto.graph, numbers[0]))

    def _sets(self) -> None:
        """One set of inputs instead of several."""
        if len(self.best.sets) < 2:
            return
        singles = [Candidate(self.best.model, (feeds,)) for feeds in self.best.sets]
        place = self._trials.first(singles)
        if place is not None:
            self.best = singles[place]

    def _outputs(self) -> None:
        base = self.best
        self._reduce([each.name for each in base.proto.graph.output], lambda kept: with_outputs(base, kept))

    def _nodes(self) -> None:
        base = self.best
        values = self._values()
        types = inferred(base.proto)
        numbers = range(len(base.proto.graph.node))
        self._reduce(list(numbers), lambda kept: with_nodes(base, kept, values, types))

    def _values(self) -> list[Feeds]:
        if not self.best.sets:
            return []
        try:
            return isolated(recorded, self.best)
        except IsolatedError:  # only inputs and constants have known values then
            return [dict(feeds) for feeds in self.best.sets]

    def _unwrap(self) -> None:
        while self._takes(each for path in places(self.best.proto) for each in unwrapped(self.best, path)):
            pass

    def _bodies(self) -> None:
        for path in places(self.best.proto):
            if path not in places(self.best.proto):
                return  # an outer body has lost the node
            self._reduce_body(path)

    def _reduce_body(self, path: tuple[tuple[int, int], ...]) -> None:
        base = self.best
        types = inferred(base.proto)
        numbers = list(range(len(graph_at(base.proto, path).node)))

        def build(kept: Sequence[int]) -> Candidate | None:
            return without_body_nodes(base, path, set(numbers) - set(kept), types)

        self._reduce(numbers, build)

    def _sizes(self) -> None:
        base = self.best
        for size in lengths(base):
            for new in (1, 2):
                if new < size and self._takes([shortened(self.best, size, new)]):
                    break
        self._takes(with_fewer_iterations(self.best))
        while self._takes(plainer_weights(self.best)):
            pass


def windows(graph: Any, number: int) -> Iterator[list[int]]:
    """The node alone, and the nodes within 1, 2, 4 ... steps before and after it; the last one has less than all."""
    names = NamesRead()
    makers: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    reads = [names.of_node(node) for node in graph.node]
    for place, node in enumerate(graph.node):
        makers.update((name, place) for name in node.output if name)
        for name in reads[place]:
            readers.setdefault(name, []).append(place)
    kept, edge, distance, wanted = {number}, {number}, 0, 0
    while edge and len(kept) < len(graph.node):
        if distance == wanted:
            yield sorted(kept)
            wanted = max(1, 2 * wanted)
        before = {makers[name] for place in edge for name in reads[place] if name in makers}
        after = {each for place in edge for name in graph.node[place].output for each in readers.get(name, ())}
        edge = (before | after) - kept
        kept |= edge
        distance += 1
