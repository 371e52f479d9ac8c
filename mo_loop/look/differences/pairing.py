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
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mo_loop.look.differences.alignment import Alignment, Pairs, alone, bodies_of, grouped
from mo_loop.look.differences.keys import DATA, EXACT, OPERATOR
from mo_loop.look.records.structure import Item, Ref, ScopeRecord, Structure

STRONG, NUMBERED, GENERATED = range(3)
"""Kinds of names: any; one that ends in a number; the operator with a number."""

_OUTPUT = re.compile(r"_output_\d+$")


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


class _Scopes:
    """Pairs the items of two scopes."""

    def __init__(self, old: ScopeRecord, new: ScopeRecord, pairs: Pairs) -> None:
        self.old, self.new, self.pairs = old, new, pairs
        self.alignment = Alignment(old, new, pairs)

    def pair(self) -> None:
        self._parameters()
        self._by(_variable)
        self._by(lambda item: [(item.origins, item.operator)] if item.origins else [])
        self._by(_names(STRONG))
        self.alignment.unique(EXACT, ends=False)
        self._by(_names(NUMBERED))
        self.alignment.exhaust(EXACT, DATA)
        self._by(_names(GENERATED))
        self._rest()
        self._by(_kind_of_bodies, self._are_near)
        self._by(_names(STRONG, operator=False), _are_of_a_kind)
        self._by(_names(NUMBERED, operator=False), self._are_near)
        self._by(self._neighbours)
        self._rest()

    def _rest(self) -> None:
        self.alignment.exhaust(EXACT, DATA, OPERATOR)
        while self.alignment.rest():
            self.alignment.exhaust(EXACT, DATA, OPERATOR)

    # -- parameters

    def _parameters(self) -> None:
        keys: list[Callable[[Item], Any]] = [
            lambda item: item.name,
            lambda item: None if item.feed is None else (item.feed.kind, self._outer(item.feed.source)),
        ]
        for key in keys:
            sides = [[item for item in scope.parameters if not self.pairs.has(item)] for scope in (self.old, self.new)]
            for pair in alone(*(grouped((key(item), item) for item in side) for side in sides)):
                self.pairs.add(*pair)
        left = [item for item in self.old.parameters if not self.pairs.has(item)]
        right = [item for item in self.new.parameters if not self.pairs.has(item)]
        if len(left) == len(right):
            for a, b in zip(left, right, strict=True):
                self.pairs.add(a, b)

    def _outer(self, ref: Ref | None) -> Any:
        return None if ref is None else (self.pairs.number(ref.item), ref.output)

    # -- names and origins

    def _by(self, keys: Callable[[Item], list[Any]], fits: Callable[[Item, Item], bool] | None = None) -> None:
        """Pair items that alone have a key, in both scopes; of the keys of an item the first that fits."""
        free = ([item for item in scope.items if not self.pairs.has(item)] for scope in (self.old, self.new))
        sides = [grouped((key, item) for item in items for key in keys(item)) for items in free]
        for a, b in alone(*sides):
            if not self.pairs.has(a) and not self.pairs.has(b) and (fits is None or fits(a, b)):
                self.pairs.add(a, b)

    def _are_near(self, old: Item, new: Item) -> bool:
        """Whether they have an input or a reader in common, and both have bodies or neither."""
        if not _are_of_a_kind(old, new):
            return False
        keys = self.alignment.keys
        return any(set(near(old)) & set(near(new)) - {None} for near in (keys.inputs, keys.readers))

    def _neighbours(self, item: Item) -> list[Any]:
        """Its inputs and readers, if all of them are paired and there are both."""
        inputs, readers = self.alignment.keys.inputs(item), self.alignment.keys.readers(item)
        known = inputs and readers and None not in inputs and None not in readers
        return [(inputs, readers, len(item.outputs))] if known else []


def _kind_of_bodies(item: Item) -> list[Any]:
    """Whether it is a branch or a loop."""
    return [(item.operator == "If", len(item.bodies))] if item.bodies else []


def _are_of_a_kind(old: Item, new: Item) -> bool:
    """Whether both have bodies or neither."""
    return bool(old.bodies) == bool(new.bodies)


def _variable(item: Item) -> list[Any]:
    id_ = item.attributes.get("variable_id")
    return [] if id_ is None else [(item.operator, id_)]


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
