"""The topological order that changes least.

    producers_first([[1], [], [0]])       # [1, 0, 2]: 0 reads 1, and 2 reads 0
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence


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
