"""Alignment: pairs the items of two scopes that have equal structure.

    alignment = Alignment(old, new, pairs)
    while alignment.unique(EXACT) or alignment.several(EXACT):
        pass

A pair makes the keys of its neighbours more certain, so each step is repeated until it finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mo_loop.look.differences.keys import DATA, EXACT, OPERATOR, NodeKeys
from mo_loop.look.differences.pairs import Pairs
from mo_loop.look.records.structure import Item, ScopeRecord
from mo_loop.support.reached import reached

Groups = dict[Any, list[Item]]

ROUNDS = 100
"""The number of rounds in which single items of several alike are paired, in two scopes."""


class Alignment:
    """Adds pairs of items of two scopes to `pairs`."""

    def __init__(self, old: ScopeRecord, new: ScopeRecord, pairs: Pairs) -> None:
        self.keys = NodeKeys(old, new, pairs.number)
        self._scopes = (old, new)
        self._pairs = pairs
        self._rounds = 0

    @property
    def is_done(self) -> bool:
        """Whether a scope has no item left without a partner, or there was no success for long."""
        return self.keys.is_spent or any(all(self._pairs.has(item) for item in scope.items) for scope in self._scopes)

    def exhaust(self, *levels: int) -> None:
        """Pair items of equal structure at any of these levels, the first level first, until there are no more."""
        steps = (self.unique, self.near, self.several)
        while any(step(level) for step in steps for level in levels):
            pass

    def unique(self, level: int, *, ends: bool = True) -> bool:
        """Pair items whose computation or use is unique. Returns whether there were any."""
        found, again = False, True
        while again and not self.is_done:
            again = False
            for forward in (True, False):
                left, right = (self._grouped(side, forward) for side in self._sides(level, forward, ends))
                for key, items in left.items():
                    others = right.get(key, ())
                    if len(items) == len(others) == 1:
                        self._pairs.add(items[0], others[0])
                        again = True
            found = found or again
        return found

    def near(self, level: int) -> bool:
        """Pair items that alone have their neighbours, as far as these are paired. Whether there were any."""
        if self.is_done:
            return False
        groups: list[Groups] = []
        for scope in self._scopes:
            found: Groups = {}
            for item in scope.items:
                key = None if self._pairs.has(item) else self.keys.near(item, level)
                if key is not None:
                    found.setdefault(key, []).append(item)
            groups.append(found)
        pairs = [(items, groups[1].get(key, ())) for key, items in groups[0].items()]
        chosen = [(items[0], others[0]) for items, others in pairs if len(items) == len(others) == 1]
        for a, b in chosen:
            self._pairs.add(a, b)
        return bool(chosen)

    def _grouped(self, side: dict[Item, int], forward: bool) -> Groups:
        """Without small constants forwards: equal data do not show their purpose."""
        found: Groups = {}
        for item, key in side.items():
            if not (forward and item.data is not None and not item.data.is_large):
                found.setdefault(key, []).append(item)
        return found

    def several(self, level: int) -> bool:
        """Pair items of which several have the same computation and use, in their order. Those whose neighbours are
        also alike come first."""
        if self.is_done:
            return False
        for sides in reversed(self.keys.refined(level)):
            left, right = ([each for each in side.items() if not self._pairs.has(each[0])] for side in sides)
            if self._in_order(left, right):
                return True
        return False

    def rest(self) -> bool:
        """Pair items with the same computation, or the same use, in their order."""
        if self.is_done:
            return False
        for level in (EXACT, DATA, OPERATOR):
            for forward in (True, False):
                if self._in_order(*(side.items() for side in self._sides(level, forward, True))):
                    return True
        return False

    def _sides(self, level: int, forward: bool, ends: bool) -> Iterator[dict[Item, int]]:
        """For both scopes the keys of the items without a partner."""
        for keys in self.keys.of(level, forward, ends):
            yield {item: key for item, key in keys.items() if not self._pairs.has(item)}

    def _in_order(self, left: Any, right: Any) -> bool:
        """Pair items of groups of one size. Whether there were any.

        Of items that are connected only one is paired at once: then the keys show which of the others belong to it.
        In scopes with very many items that are alike, all are paired at once after some rounds.
        """
        groups: list[Groups] = []
        for side in (left, right):
            found: Groups = {}
            for item, key in side:
                found.setdefault(key, []).append(item)
            groups.append(found)
        alike = [
            (items, groups[1][key]) for key, items in groups[0].items() if len(items) == len(groups[1].get(key, ()))
        ]
        self._rounds += bool(alike)
        if self._rounds > ROUNDS:
            chosen = [pair for items, others in alike for pair in zip(items, others, strict=True)]
        else:
            chosen = list(self._independent(alike))
        for a, b in chosen:
            self._pairs.add(a, b)
        return bool(chosen)

    def _independent(self, alike: list[tuple[list[Item], list[Item]]]) -> Iterator[tuple[Item, Item]]:
        """Pairs of items of which no two are connected by items without a partner."""
        old, new = (self._parts(scope) for scope in self._scopes)
        taken: set[tuple[bool, int]] = set()
        for items, others in alike:
            waiting = iter(others)
            for item in items:
                if (True, old[item]) in taken:
                    continue
                other = next((each for each in waiting if (False, new[each]) not in taken), None)
                if other is None:
                    break
                taken |= {(True, old[item]), (False, new[other])}
                yield item, other

    def _parts(self, scope: ScopeRecord) -> dict[Item, int]:
        """For each item without a partner the number of its part: items of a part are connected by such items."""

        def connected(item: Item) -> list[Item]:
            near = (each for each in self.keys.neighbours(item) if each.scope is scope and each not in found)
            return [each for each in near if not self._pairs.has(each)]

        found: dict[Item, int] = {}
        for start in scope.items:
            if start not in found and not self._pairs.has(start):
                found |= dict.fromkeys(reached([start], connected), len(found))
        return found
