"""Search: makes a candidate smaller as long as it shows the condition, bounded by time.

    best = ReductionSearch(candidate, trials, seconds=120, better=print).run()

The search begins at the nodes that the error or the piece names (suspects.py). Each phase removes parts of one kind;
the phases repeat until none finds anything. Nodes are removed in halves, quarters and so on (delta debugging), several
trials at a time. No candidate has more nodes than the model, unless
it is small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.reducing.candidate import Candidate, Feeds, bodies_of
from mo_loop.compare.reducing.inner_values import graph_at, inferred, places, recorded
from mo_loop.compare.reducing.nodes import with_nodes, with_outputs
from mo_loop.compare.reducing.smaller_bodies import unwrapped, without_body_nodes, without_port
from mo_loop.compare.reducing.smaller_sizes import lengths, plainer_weights, shortened, with_fewer_iterations
from mo_loop.compare.reducing.suspects import windows
from mo_loop.compare.reducing.trial import Trials

T = TypeVar("T")

_SMALL = 8
"""A model of at most so many nodes may have more for a while: a body in place of its loop has Identity nodes."""


class ReductionSearch:
    """The search for a smaller candidate. `best` is the smallest so far, `seconds` the time for all of it."""

    def __init__(
        self, start: Candidate, trials: Trials, *, seconds: float, better: Callable[[Candidate], None]
    ) -> None:
        """`better` is called with each smaller candidate that shows the condition."""
        self.best = start
        self._most = max(start.size.all_nodes, _SMALL)
        self._trials = trials
        self._end = time.monotonic() + seconds
        self._better = better

    def run(self) -> Candidate:
        """The smallest candidate that was found."""
        phases = (self._sets, self._outputs, self._nodes, self._unwrap, self._bodies, self._ports, self._sizes)
        self._named()
        while True:
            before = self.best
            for phase in phases:
                phase()
            if self.best is before or self._is_late():
                return self.best

    def _is_late(self) -> bool:
        return time.monotonic() > self._end

    def _takes(self, candidates: Iterable[Candidate | None]) -> bool:
        """Whether one of the candidates shows the condition; it is then the best, if it is smaller."""
        source = iter(candidates)
        while not self._is_late():
            tried = [each for each in islice(source, self._trials.jobs)]
            if not tried:
                return False
            smaller = [each for each in tried if each is not None and self._is_smaller(each)]
            place = self._trials.first(smaller)
            if place is not None:
                self.best = smaller[place]
                self._better(self.best)
                return True
        return False

    def _reduce(self, items: Sequence[T], build: Callable[[Sequence[T]], Candidate | None]) -> None:
        """Delta debugging: the smallest part of `items` from which `build` makes a candidate with the condition."""
        count = 2
        kept = list(items)
        while len(kept) > 1 and not self._is_late():
            chunks = [kept[len(kept) * n // count : len(kept) * (n + 1) // count] for n in range(count)]
            rests = [[each for each in kept if each not in chunk] for chunk in chunks] if count > 2 else []
            parts = [part for part in (*(chunks if count <= 8 else ()), *rests) if part]
            found = self._part(parts, build)
            if found is not None:
                count = 2 if found in chunks else max(count - 1, 2)
                kept = found
            elif count >= len(kept):
                return
            else:
                count = min(2 * count, len(kept))

    def _part(self, parts: Sequence[list[T]], build: Callable[[Sequence[T]], Candidate | None]) -> list[T] | None:
        """The first part whose candidate shows the condition."""
        for start in range(0, len(parts), self._trials.jobs):
            if self._is_late():
                return None
            batch = [(part, made) for part in parts[start : start + self._trials.jobs]
                     if (made := build(part)) is not None and self._is_smaller(made)]  # fmt: skip
            place = self._trials.first([made for _, made in batch])
            if place is not None:
                part, self.best = batch[place]
                self._better(self.best)
                return part
        return None

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

    def _ports(self) -> None:
        while self._takes(self._without_ports()):
            pass

    def _without_ports(self) -> Iterator[Candidate]:
        base = self.best
        for path in ((), *places(base.proto)):
            for number, node in enumerate(graph_at(base.proto, path).node):
                if bodies_of(node):
                    yield from without_port(base, path, number)

    def _sizes(self) -> None:
        base = self.best
        for size in lengths(base):
            for new in (1, 2):
                if new < size and self._takes([shortened(self.best, size, new)]):
                    break
        self._takes(with_fewer_iterations(self.best))
        while self._takes(plainer_weights(self.best)):
            pass
