"""Reachability in a graph, the topological order that changes least, and groups of items.

    set(reached([3], lambda number: [number // 2]))       # {3, 1, 0}
    producers_first([[1], [], [0]])                       # [1, 0, 2]: 0 reads 1, and 2 reads 0
    by_key((len(word), word) for word in ("a", "bc", "d"))  # {1: ["a", "d"], 2: ["bc"]}
"""

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def reached(start: Iterable[T], following: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """The elements that can be reached from `start`, each once. `following` of an element is called when the next one
    is requested."""
    pending, seen = list(start), set[T]()
    while pending:
        each = pending.pop()
        if each not in seen:
            seen.add(each)
            yield each
            pending += following(each)


def producers_first(reads: Sequence[Iterable[int]]) -> list[int]:
    """The places of a list, each after those that it reads; among those that could be next, the first.

    Those of a cycle, and their readers, are left out.
    """
    readers: list[list[int]] = [[] for _ in reads]
    waiting = [0] * len(reads)
    for place, sources in enumerate(reads):
        for source in sources:
            readers[source].append(place)
            waiting[place] += 1
    ready = [place for place, count in enumerate(waiting) if not count]
    order = []
    while ready:
        place = heapq.heappop(ready)
        order.append(place)
        for reader in readers[place]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    return order


def by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The items by their keys, both in the order of the pairs."""
    found: dict[K, list[V]] = {}
    for key, item in pairs:
        found.setdefault(key, []).append(item)
    return found
