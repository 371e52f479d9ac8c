"""pair: which item of one model is which item of the other.

    pairs = pair(old, new)
    pairs.of(item)                     # the item of the other model, None for one that was added or removed

Scopes are paired from outside to inside: the main scopes, functions of one name, and the bodies of paired items under
the same tag. Within two scopes, items are paired in this order:

1. parameters: by name, then by what feeds them, then by place; what reads or assigns a variable, by its id
2. items of the same origin, then items of the same name, if they have the same operator. A name that ends in a number
   counts later, because exporters number names anew.
3. items of equal structure: the same operator, attributes and data, and the same inputs, or the same readers. Inputs
   and readers that are paired are the same if they are paired with each other; others, if their structure is equal
4. items whose name ends in a number
5. items of equal structure apart from their data
6. items whose name is their operator with a number, as the writer of an IR names layers that have no name
7. items of equal structure apart from their attributes
8. loops, and branches, with an input or reader in common
9. items of one name and different operators (if the name ends in a number, they have an input or reader in common),
   and items with the same inputs and readers

An item is only paired if there is no other like it in its scope. Of several alike, as many in both scopes, those with
the same inputs and readers are paired in their order. Structure is compared again while that finds anything.

`Alignment` pairs the items of two scopes. A pair makes the keys of its neighbours more certain, so each step by
structure is repeated until it finds nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mo_loop.look.differences.keys import DATA, EXACT, OPERATOR, NodeKeys
from mo_loop.look.records.data import changed
from mo_loop.look.records.structure import Item, Ref, ScopeRecord, Structure
from mo_loop.support.traversal import by_key, reached

STRONG, NUMBERED, GENERATED = range(3)
"""Kinds of names: any; one that ends in a number; the operator with a number."""

_OUTPUT = re.compile(r"_output_\d+$")

Groups = dict[Any, list[Item]]

ROUNDS = 100
"""The number of rounds in which single items of several alike are paired, in two scopes."""


class Pairs:
    """Items and scopes of two models that correspond to each other."""

    def __init__(self) -> None:
        self.items: list[tuple[Item, Item]] = []
        self.scopes: list[tuple[ScopeRecord, ScopeRecord]] = []
        self._other: dict[Item, Item] = {}
        self._numbers: dict[Item, int] = {}

    def add(self, old: Item, new: Item) -> None:
        self._numbers[old] = self._numbers[new] = len(self.items)
        self.items.append((old, new))
        self._other[old] = new
        self._other[new] = old

    def has(self, item: Item) -> bool:
        """Whether an item has a partner."""
        return item in self._other

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


def bodies_of(old: Item, new: Item) -> Iterator[tuple[ScopeRecord, ScopeRecord]]:
    """The bodies of two items that correspond: those of one tag, or the only two."""
    if len(old.bodies) == len(new.bodies) == 1:
        yield next(iter(old.bodies.values())), next(iter(new.bodies.values()))
        return
    yield from ((body, new.bodies[tag]) for tag, body in old.bodies.items() if tag in new.bodies)


def grouped(items: Iterable[tuple[Any, Item]]) -> Groups:
    """Items by their keys; None is not a key."""
    return by_key((key, item) for key, item in items if key is not None)


class Alignment:
    """Adds pairs of items of two scopes to `pairs`."""

    def __init__(self, old: ScopeRecord, new: ScopeRecord, pairs: Pairs) -> None:
        self._keys = NodeKeys(old, new, pairs.number)
        self._scopes = (old, new)
        self._pairs = pairs
        self._rounds = 0

    def run(self) -> None:
        """Add all pairs."""
        self._parameters()
        self._by(lambda item: [(item.operator, id_)] if (id_ := item.attributes.get("variable_id")) is not None else [])
        self._by(lambda item: [(item.origins, item.operator)] if item.origins else [])
        self._by(_names(STRONG))
        self._unique(EXACT, ends=False)
        self._by(_names(NUMBERED))
        self._exhaust(EXACT, DATA)
        self._by(_names(GENERATED))
        self._all()
        self._by(lambda item: [(item.operator == "If", len(item.bodies))] if item.bodies else [], self._are_near)
        self._by(_names(STRONG, operator=False), _are_of_a_kind)
        self._by(_names(NUMBERED, operator=False), self._are_near)
        self._by(self._neighbours)
        self._all()

    @property
    def _is_done(self) -> bool:
        """Whether a scope has no item left without a partner, or there was no success for long."""
        return self._keys.is_spent or any(all(self._pairs.has(item) for item in scope.items) for scope in self._scopes)

    def _free(self, *, parameters: bool = False) -> list[list[Item]]:
        """For both scopes the items without a partner, or only the parameters among them."""
        listed = [scope.parameters if parameters else scope.items for scope in self._scopes]
        return [[item for item in items if not self._pairs.has(item)] for items in listed]

    def _add(self, chosen: Iterable[tuple[Item, Item]]) -> bool:
        """Pair these items. Returns whether there were any."""
        pairs = list(chosen)
        for each in pairs:
            self._pairs.add(*each)
        return bool(pairs)

    # -- parameters, names and origins

    def _parameters(self) -> None:
        self._by(lambda item: [item.name], parameters=True)
        self._by(
            lambda item: [] if item.feed is None else [(item.feed.kind, self._outer(item.feed.source))], parameters=True
        )
        left, right = self._free(parameters=True)
        if len(left) == len(right):
            self._add(zip(left, right, strict=True))

    def _outer(self, ref: Ref | None) -> Any:
        return None if ref is None else (self._pairs.number(ref.item), ref.output)

    def _by(
        self, keys: Callable[[Item], Iterable[Any]], fits: Callable[[Item, Item], bool] | None = None, *,
        parameters: bool = False,
    ) -> bool:
        """Pair items that alone have a key, in both scopes; of the keys of an item the first that fits. Whether there
        were any."""
        count = len(self._pairs.items)
        sides = self._free(parameters=parameters)
        old, new = (grouped((key, item) for item in items for key in keys(item)) for items in sides)
        for key, items in old.items():
            both = (*items, *new.get(key, ()))
            is_alone = len(items) == 1 and len(both) == 2 and not any(map(self._pairs.has, both))
            if is_alone and (fits is None or fits(*both)):
                self._pairs.add(*both)
        return len(self._pairs.items) > count

    def _are_near(self, old: Item, new: Item) -> bool:
        """Whether they have an input or a reader in common, and both have bodies or neither."""
        if not _are_of_a_kind(old, new):
            return False
        return any(set(near(old)) & set(near(new)) - {None} for near in (self._keys.inputs, self._keys.readers))

    def _neighbours(self, item: Item) -> list[Any]:
        """Its inputs and readers, if all of them are paired and there are both."""
        inputs, readers = self._keys.inputs(item), self._keys.readers(item)
        known = inputs and readers and None not in inputs and None not in readers
        return [(inputs, readers, len(item.outputs))] if known else []

    # -- equal structure

    def _all(self) -> None:
        """Pair items of equal structure at all levels, until there are no more."""
        self._exhaust(EXACT, DATA, OPERATOR)
        while self._rest():
            self._exhaust(EXACT, DATA, OPERATOR)

    def _exhaust(self, *levels: int) -> None:
        """Pair items of equal structure at any of these levels, the first level first, until there are no more."""
        steps = (self._unique, self._near, self._several)
        while any(step(level) for step in steps for level in levels):
            pass

    def _unique(self, level: int, *, ends: bool = True) -> bool:
        """Pair items whose computation or use is unique. Returns whether there were any."""
        found = False
        while not self._is_done and any([self._alone(level, forward, ends) for forward in (True, False)]):
            found = True
        return found

    def _alone(self, level: int, forward: bool, ends: bool) -> bool:
        known = {item: key for side in self._sides(level, forward, ends) for item, key in side.items()}
        # Without small constants forwards: equal data do not show their purpose.
        return self._by(
            lambda item: [] if forward and item.data is not None and not item.data.is_large else [known[item]]
        )

    def _near(self, level: int) -> bool:
        """Pair items that alone have their neighbours, as far as these are paired. Whether there were any."""
        return not self._is_done and self._by(lambda item: [self._keys.near(item, level)])

    def _several(self, level: int) -> bool:
        """Pair items of which several have the same computation and use, in their order. Those whose neighbours are
        also alike come first."""
        if self._is_done:
            return False
        for sides in reversed(self._keys.refined(level)):
            left, right = ([each for each in side.items() if not self._pairs.has(each[0])] for side in sides)
            if self._in_order(left, right):
                return True
        return False

    def _rest(self) -> bool:
        """Pair items with the same computation, or the same use, in their order."""
        return not self._is_done and any(
            self._in_order(*(side.items() for side in self._sides(level, forward, True)))
            for level in (EXACT, DATA, OPERATOR) for forward in (True, False)
        )

    def _sides(self, level: int, forward: bool, ends: bool) -> Iterator[dict[Item, int]]:
        """For both scopes the keys of the items without a partner."""
        for keys in self._keys.of(level, forward, ends):
            yield {item: key for item, key in keys.items() if not self._pairs.has(item)}

    def _in_order(self, left: Any, right: Any) -> bool:
        """Pair items of groups of one size. Whether there were any.

        Of items that are connected only one is paired at once: then the keys show which of the others belong to it.
        In scopes with very many items that are alike, all are paired at once after some rounds.
        """
        old, new = (grouped((key, item) for item, key in side) for side in (left, right))
        alike = [(items, new[key]) for key, items in old.items() if len(items) == len(new.get(key, ()))]
        self._rounds += bool(alike)
        if self._rounds > ROUNDS:
            return self._add(pair for items, others in alike for pair in zip(items, others, strict=True))
        return self._add(self._independent(alike))

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
            near = (each for each in self._keys.neighbours(item) if each.scope is scope and each not in found)
            return [each for each in near if not self._pairs.has(each)]

        found: dict[Item, int] = {}
        for start in scope.items:
            if start not in found and not self._pairs.has(start):
                found |= dict.fromkeys(reached([start], connected), len(found))
        return found


def pair(old: Structure, new: Structure) -> Pairs:
    """The pairs of two models."""
    pairs = Pairs()
    waiting = [(old.main, new.main)]
    waiting += [(scope, new.functions[name]) for name, scope in old.functions.items() if name in new.functions]
    while waiting:
        left, right = waiting.pop(0)
        pairs.scopes.append((left, right))
        Alignment(left, right, pairs).run()
        for item in left.items:
            other = pairs.of(item)
            if item.bodies and other is not None:
                waiting += bodies_of(item, other)
    return pairs


def _are_of_a_kind(old: Item, new: Item) -> bool:
    """Whether both have bodies or neither."""
    return bool(old.bodies) == bool(new.bodies)


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
