"""Search: makes a candidate smaller as long as it shows the condition, bounded by time.

    best = ReductionSearch(candidate, trials, seconds=120, better=print).run()

The search begins at the nodes that the error or the piece names. Each phase removes parts of one kind; the phases
repeat until none finds anything. Nodes are removed in halves, quarters and so on (delta debugging), several trials at a
time. No candidate has more nodes than the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.reducing.candidate import Candidate, Feeds
from mo_loop.compare.reducing.smaller_candidates import (
    lengths,
    recorded,
    shortened,
    types_in,
    unwrapped,
    with_nodes,
    with_outputs,
    with_simpler_numbers,
)
from mo_loop.compare.reducing.trial import Trials
from mo_loop.frontend.names_read import NamesRead

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
        phases = (self._sets, self._outputs, partial(self._nodes, 0), self._unwrap, self._bodies, self._numbers)
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
        return self._first(enumerate(candidates)) is not None

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
        graph = self.best.proto.graph
        place = self._trials.suspect(self.best)
        if place is not None and len(graph.node) > 1:
            self._takes(map(self._maker(0), windows(graph, place)))

    def _sets(self) -> None:
        """One set of inputs instead of several."""
        self._takes(Candidate(self.best.model, (feeds,)) for feeds in self.best.sets)

    def _outputs(self) -> None:
        self._reduce([each.name for each in self.best.proto.graph.output], partial(with_outputs, self.best))

    def _nodes(self, number: int) -> None:
        """Fewer nodes of the graph of this number."""
        places = range(len(self.best.graphs[number].node))
        if len(places) > 1:
            self._reduce(places, self._maker(number))

    def _maker(self, number: int) -> Callable[[Sequence[int]], Candidate | None]:
        """The function that keeps some nodes of the graph of this number."""
        base, values = self.best, list[Feeds]()
        if base.sets and not number:
            try:
                values = isolated(recorded, base)
            except IsolatedError:  # only inputs and constants have known values then
                values = [dict(feeds) for feeds in base.sets]
        types = types_in(base)
        return lambda kept: with_nodes(base, number, kept, values, types)

    def _unwrap(self) -> None:
        while self._takes(unwrapped(self.best, number) for number in range(1, len(self.best.graphs))):
            pass

    def _bodies(self) -> None:
        number = 1
        while number < len(self.best.graphs):
            self._nodes(number)
            number += 1

    def _numbers(self) -> None:
        for size in lengths(self.best):
            self._takes(shortened(self.best, size, new) for new in (1, 2) if new < size)
        while self._takes(with_simpler_numbers(self.best)):
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
