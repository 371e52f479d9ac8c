"""Reachability in a graph.

    set(reached([3], lambda number: [number // 2]))       # {3, 1, 0}
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


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
