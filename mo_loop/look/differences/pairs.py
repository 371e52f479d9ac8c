"""Pairs: the items and scopes of two models that correspond to each other."""

from __future__ import annotations

from collections.abc import Iterator

from mo_loop.look.records.data import changed
from mo_loop.look.records.structure import Item, Ref, ScopeRecord


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
