"""pair: which item of one model is which item of the other.

    pairs = pair(old, new)
    pairs.of(item)                     # the item of the other model, None for one that was added or removed

Scopes are paired from outside to inside: the main scopes, functions of one name, and the bodies of paired items under
the same tag. Within two scopes, items are paired in this order:

1. parameters: by name, then by what feeds them, then by place
2. items of the same origin, then items of the same name, if they have the same operator. A name that ends in a number
   counts later, because exporters number names anew.
3. items of equal structure: the same operator, attributes and data, and the same inputs, or the same readers. Inputs
   and readers that are paired are the same if they are paired with each other; others, if their structure is equal
4. items whose name ends in a number
5. items of equal structure apart from their data
6. items whose name is their operator with a number, as the writer of an IR names layers that have no name
7. items of equal structure apart from their attributes
8. items of one name and different operators (if the name ends in a number, they have an input or reader in common),
   and items with the same inputs and readers

An item is only paired if there is no other like it in its scope; of several alike, as many in both scopes, those of one
name are paired, and the others in their order. Structure is
compared again while that finds anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mo_loop.differences.data import changed
from mo_loop.differences.keys import DATA, EXACT, OPERATOR, Keys
from mo_loop.differences.structure import Item, Ref, Scope, Structure

STRONG, NUMBERED, GENERATED = range(3)
"""Kinds of names: any; one that ends in a number; the operator with a number."""

_OUTPUT = re.compile(r"_output_\d+$")


class Pairs:
    """Items and scopes of two models that correspond to each other."""

    def __init__(self) -> None:
        self.items: list[tuple[Item, Item]] = []
        self.scopes: list[tuple[Scope, Scope]] = []
        self._other: dict[Item, Item] = {}
        self._numbers: dict[Item, int] = {}

    def add(self, old: Item, new: Item) -> None:
        self._numbers[old] = self._numbers[new] = len(self.items)
        self.items.append((old, new))
        self._other[old] = new
        self._other[new] = old

    def of(self, item: Item) -> Item | None:
        return self._other.get(item)

    def number(self, item: Item) -> int | None:
        """The number of the pair that an item belongs to."""
        return self._numbers.get(item)

    def output(self, old: Item, index: int) -> int | None:
        """The output of the other item that is output `index` of an item of the first model: the one with the same
        tensor name where the numbers of outputs differ, else the one at the same place."""
        outputs = self._other[old].outputs
        if len(outputs) == len(old.outputs):
            return index
        names = set(old.outputs[index].names) if index < len(old.outputs) else set()
        found = next((place for place, each in enumerate(outputs) if names & set(each.names)), None)
        if found is not None or index >= len(outputs):
            return found
        others = {name for each in old.outputs for name in each.names}
        return None if others & set(outputs[index].names) else index

    def agree(self, old: Ref | None, new: Ref | None) -> bool:
        """Whether two values are the same output of paired items."""
        if old is None or new is None:
            return old is new
        if old.item.operator == new.item.operator == "undefined":
            return old.item.name == new.item.name
        return self._other.get(old.item) is new.item and self.output(old.item, old.output) == new.output

    def same_value(self, old: Ref | None, new: Ref | None) -> bool:
        """Whether two values agree, or are constants with the same data: how often one is stored does not matter."""
        if self.agree(old, new):
            return True
        if old is None or new is None or old.item.data is None or new.item.data is None:
            return False
        one, other = old.item.data, new.item.data
        return one.key == other.key and changed(one, other) is None


def pair(old: Structure, new: Structure) -> Pairs:
    """The pairs of two models."""
    pairs = Pairs()
    waiting = [(old.main, new.main)]
    waiting += [(scope, new.functions[name]) for name, scope in old.functions.items() if name in new.functions]
    while waiting:
        left, right = waiting.pop(0)
        pairs.scopes.append((left, right))
        _Scopes(left, right, pairs).pair()
        for item in left.items:
            other = pairs.of(item)
            if item.bodies and other is not None:
                waiting += bodies_of(item, other)
    return pairs


def bodies_of(old: Item, new: Item) -> Iterator[tuple[Scope, Scope]]:
    """The bodies of two items that correspond: those of one tag, or the only two."""
    if len(old.bodies) == len(new.bodies) == 1:
        yield next(iter(old.bodies.values())), next(iter(new.bodies.values()))
        return
    yield from ((body, new.bodies[tag]) for tag, body in old.bodies.items() if tag in new.bodies)


class _Scopes:
    """Pairs the items of two scopes."""

    def __init__(self, old: Scope, new: Scope, pairs: Pairs) -> None:
        self.old, self.new, self.pairs = old, new, pairs
        self._keys = Keys(old, new, pairs.number)

    def pair(self) -> None:
        self._parameters()
        self._by(lambda item: [(item.origins, item.operator)] if item.origins else [])
        self._by(_names(STRONG))
        self._structure(EXACT, ends=False)
        self._by(_names(NUMBERED))
        while self._structure(EXACT, DATA):
            pass
        self._by(_names(GENERATED))
        self._rest()
        self._by(_names(STRONG, operator=False))
        self._by(_names(NUMBERED, operator=False), self._are_near)
        self._by(self._neighbours)
        self._rest()

    def _rest(self) -> None:
        while self._structure(EXACT, DATA, OPERATOR) or self._in_order():
            pass

    def _free(self, scope: Scope) -> list[Item]:
        return [item for item in scope.items if self.pairs.number(item) is None]

    def _is_done(self) -> bool:
        return not self._free(self.old) or not self._free(self.new)

    # -- parameters

    def _parameters(self) -> None:
        keys: list[Callable[[Item], Any]] = [
            lambda item: item.name,
            lambda item: None if item.feed is None else (item.feed.kind, self._outer(item.feed.source)),
        ]
        for key in keys:
            self._match(self._group(self.old.parameters, key), self._group(self.new.parameters, key))
        left = [item for item in self.old.parameters if self.pairs.of(item) is None]
        right = [item for item in self.new.parameters if self.pairs.of(item) is None]
        if len(left) == len(right):
            for a, b in zip(left, right, strict=True):
                self.pairs.add(a, b)

    def _outer(self, ref: Ref | None) -> Any:
        return None if ref is None else (self.pairs.number(ref.item), ref.output)

    def _group(self, items: Iterable[Item], key: Callable[[Item], Any]) -> dict[Any, list[Item]]:
        found: dict[Any, list[Item]] = {}
        for item in items:
            if self.pairs.of(item) is None and (it := key(item)) is not None:
                found.setdefault(it, []).append(item)
        return found

    # -- names and origins

    def _by(self, keys: Callable[[Item], list[Any]], fits: Callable[[Item, Item], bool] | None = None) -> None:
        """Pair items that alone have a key, in both scopes; of the keys of an item the first that fits."""
        sides = []
        for scope in (self.old, self.new):
            found: dict[Any, list[Item]] = {}
            for item in self._free(scope):
                for key in keys(item):
                    found.setdefault(key, []).append(item)
            sides.append(found)
        left, right = sides
        for key, items in left.items():
            others = right.get(key, ())
            if len(items) != 1 or len(others) != 1:
                continue
            a, b = items[0], others[0]
            if self.pairs.of(a) is None and self.pairs.of(b) is None and (fits is None or fits(a, b)):
                self.pairs.add(a, b)

    def _are_near(self, old: Item, new: Item) -> bool:
        """Whether they have an input or a reader in common."""
        shared = [set(near(old)) & set(near(new)) - {None} for near in (self._keys.inputs, self._keys.readers)]
        return any(shared)

    def _neighbours(self, item: Item) -> list[Any]:
        """Its inputs and readers, if all of them are paired and there are both."""
        inputs, readers = self._keys.inputs(item), self._keys.readers(item)
        known = inputs and readers and None not in inputs and None not in readers
        return [(inputs, readers, len(item.outputs))] if known else []

    # -- structure

    def _structure(self, *levels: int, ends: bool = True) -> bool:
        """Pair items of equal structure; of the levels the first that finds any. Whether it found any."""
        found = False
        for level in levels:
            again = True
            while again:
                again = False
                for forward in (True, False):
                    if self._is_done():
                        return found
                    left, right = self._groups(level, forward, ends)
                    again = self._match(left, right, several=level == EXACT) or again
                found = found or again
            if found:
                return True
        return False

    def _groups(self, level: int, forward: bool, ends: bool) -> Iterator[dict[Any, list[Item]]]:
        """Without constants forwards: equal constants say nothing about what they are for."""
        for groups in self._keys.groups(level, forward, ends):
            yield {key: items for key, items in groups.items() if not (forward and items[0].is_constant)}

    def _match(self, left: dict[Any, list[Item]], right: dict[Any, list[Item]], several: bool = False) -> bool:
        """Pair the groups of one key if they have one item, or with `several` if they are of one size."""
        found = False
        for key, items in left.items():
            others = right.get(key, [])
            if len(items) != len(others) or (len(items) > 1 and not several):
                continue
            for a, b in [*_alike(items, [*others])]:
                self.pairs.add(a, b)
                found = True
        return found

    def _in_order(self) -> bool:
        """Pair constants of equal data, then items of equal structure of which there are as many in both scopes."""
        if self._is_done():
            return False
        for level in (EXACT, DATA, OPERATOR):
            for forward in (True, False):
                left, right = self._keys.groups(level, forward, ends=True)
                if self._match(left, right, several=True):
                    return True
        return False


def _alike(items: list[Item], others: list[Item]) -> Iterator[tuple[Item, Item]]:
    """Pairs of two groups of one size: those with the same names, then with one name, the others in their order."""
    for key in (_all_names, lambda item: item.name, lambda item: ""):
        waiting: dict[Any, list[Item]] = {}
        for item in reversed(others):
            waiting.setdefault(key(item), []).append(item)
        left = []
        for item in items:
            found = waiting.get(key(item))
            if not found:
                left.append(item)
                continue
            others.remove(found[-1])
            yield item, found.pop()
        items = left


def _all_names(item: Item) -> Any:
    return item.name, tuple(output.names for output in item.outputs)


def _names(kind: int, operator: bool = True) -> Callable[[Item], list[Any]]:
    """The names of a kind that an item has, as keys: its own, then those of its tensors."""

    def keys(item: Item) -> list[Any]:
        own = [(0, item.name)] if item.name else []
        tensors = [(1, index, name) for index, output in enumerate(item.outputs) for name in output.names]
        names = [key for key in (*own, *tensors) if _kind(str(key[-1]), item) == kind]
        return [(item.operator, *key) for key in names] if operator else list(names)

    return keys


def _kind(name: str, item: Item) -> int:
    if name == item.name and item.is_generated:
        return GENERATED
    return NUMBERED if _OUTPUT.sub("", name)[-1:].isdigit() else STRONG
