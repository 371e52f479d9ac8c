"""NodeKeys: numbers that are equal for items of equal structure in two scopes.

    left, right = NodeKeys(old, new, pairs.number).of(EXACT, forward=True, ends=True)     # item -> key

A forward key describes the computation of an item: its operator, attributes and data, and the keys of its inputs. A
backward key describes its use: the same, and the keys of its readers with their ports. An item that is paired has the
number of its pair as key, so that structure counts only as far as the next pair. Keys are numbered by a table that both
scopes share: each is made in one step from those of its neighbours, in the order of the scope.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mo_loop.look.records.structure import Item, Ref, ScopeRecord
from mo_loop.support.traversal import by_key

EXACT, DATA, OPERATOR = 0, 1, 2
"""The required equality: of everything; of all but the data of constants; of the operator and the kind of data."""

ROUNDS = 6
"""The number of rounds in which keys are refined."""

VISITS = 3_000_000
"""The number of visits of items in two scopes, or 20 times each if that is more."""

Number = Callable[[Item], int | None]


class NodeKeys:
    """The keys of the items of two scopes; `number` is that of the pair of an item."""

    def __init__(self, old: ScopeRecord, new: ScopeRecord, number: Number) -> None:
        self._scopes = (old, new)
        self._number = number
        self._table: dict[Any, int] = {}
        self._readers: dict[int, dict[Item, list[tuple[Any, ...]]]] = {}
        self._contents: dict[Item, tuple[Any, ...]] = {}
        self._left = max(VISITS, 20 * (len(old.items) + len(new.items)))
        self._results = {each.name for each in old.results} & {each.name for each in new.results}

    @property
    def is_spent(self) -> bool:
        """Whether the items of these scopes were visited too often: the remaining ones are too different to be paired.
        """
        return self._left < 0

    def of(self, level: int, forward: bool, ends: bool) -> Iterator[dict[Item, int]]:
        """For both scopes: item -> key. With `ends` outputs of a scope differ from each other, else only by kind."""
        self._table.clear()
        self._contents.clear()
        for scope in self._scopes:
            self._left -= len(scope.items)
            yield self._forward(scope, level) if forward else self._backward(scope, level, ends)

    def refined(self, level: int) -> list[list[dict[Item, int]]]:
        """Keys for both scopes, each made from those before it: first forwards and backwards, then with the keys of
        inputs and readers, as long as more items differ from each other."""
        forwards, backwards = (list(self.of(level, forward, ends=True)) for forward in (True, False))
        both = zip(forwards, backwards, strict=True)
        sides = [
            {item: self._key((key, backward[item])) for item, key in forward.items()} for forward, backward in both
        ]
        found = [sides]
        for _ in range(ROUNDS):
            sides = [self._refined(scope, keys) for scope, keys in zip(self._scopes, found[-1], strict=True)]
            if all(len({*new.values()}) == len({*old.values()}) for new, old in zip(sides, found[-1], strict=True)):
                break
            found.append(sides)
        return found

    def _refined(self, scope: ScopeRecord, keys: dict[Item, int]) -> dict[Item, int]:
        self._left -= len(scope.items)
        readers = self._readers_in(scope)

        def parts(item: Item, _: dict[Item, int]) -> Any:
            inputs = tuple(None if ref is None else (keys.get(ref.item), ref.output) for ref in item.inputs)
            uses = ((index, kind, keys.get(reader, 0), port) for index, kind, reader, port in readers.get(item, ()))
            return keys[item], inputs, tuple(sorted(uses)), "refined"

        return self._numbered(scope.items, parts)

    def _numbered(self, items: Iterable[Item], parts: Callable[[Item, dict[Item, int]], Any]) -> dict[Item, int]:
        """The keys of items: the number of the pair, else that of the parts, which can depend on the keys before."""
        keys: dict[Item, int] = {}
        for item in items:
            number = self._number(item)
            keys[item] = self._key(parts(item, keys)) if number is None else -1 - number
        return keys

    def _key(self, parts: Any) -> int:
        return self._table.setdefault(parts, len(self._table))

    def _content(self, item: Item, level: int) -> tuple[Any, ...]:
        """The key of an item alone, without its neighbours."""
        data = None if item.data is None else item.data.key if level == EXACT else item.data.kind
        attributes = () if level == OPERATOR else tuple(sorted(item.attributes.items()))
        inner = self._inner(item) if item.bodies and level == EXACT else ()
        return (item.operator, attributes, data, inner)

    def _inner(self, item: Item) -> tuple[Any, ...]:
        """The contents of the bodies of an item: operators and attributes in any order."""
        if item not in self._contents:
            self._contents[item] = tuple(
                (tag, self._key(tuple(sorted(
                    (each.operator, tuple(sorted(each.attributes.items())))
                    for scope in body.all() for each in scope.items
                )))) for tag, body in item.bodies.items()
            )
        return self._contents[item]

    # -- forward

    def _forward(self, scope: ScopeRecord, level: int) -> dict[Item, int]:
        places = {item: place for place, item in enumerate(scope.parameters)}

        def parts(item: Item, keys: dict[Item, int]) -> Any:
            sources = tuple(self._source(ref, keys, level) for ref in (*item.inputs, *item.captures))
            return self._content(item, level), sources, places.get(item)

        return self._numbered(scope.items, parts)

    def _source(self, ref: Ref | None, keys: dict[Item, int], level: int) -> Any:
        if ref is None:
            return None
        return keys[ref.item] if ref.item in keys else self._outer(ref.item, level), ref.output

    def _outer(self, item: Item, level: int) -> int:
        """The key of an item of an outer scope, or of a cycle. Constants of outer scopes are paired by the facts there:
        it does not matter which of several equal constants a body reads."""
        if item.data is not None:
            return self._key(("outer", item.data.key if level == EXACT else item.data.kind))
        number = self._number(item)
        return -1 - number if number is not None else self._key(("outer", item.operator, item.name))

    # -- backward

    def _backward(self, scope: ScopeRecord, level: int, ends: bool) -> dict[Item, int]:
        readers = self._readers_in(scope)

        def parts(item: Item, keys: dict[Item, int]) -> Any:
            found = sorted(
                (index, kind, keys.get(reader, -1), port) if isinstance(reader, Item)
                else (index, kind, 0, str(reader) if ends else "")
                for index, kind, reader, port in readers.get(item, ())
            )
            return self._content(item, level), tuple(found), "readers"

        return self._numbered(reversed(scope.items), parts)

    def _readers_in(self, scope: ScopeRecord) -> dict[Item, list[tuple[Any, ...]]]:
        """Item -> (output, kind of use, reader, port); a use at the end of the scope has the place instead."""
        known = self._readers.get(id(scope))
        if known is not None:
            return known
        reads: list[tuple[Ref | None, str, Any, str]] = []
        for item in scope.items:
            reads += [(ref, "input", item, str(port)) for port, ref in enumerate(item.inputs)]
            reads += [(ref, "captured", item, ", ".join(sorted(uses))) for ref, uses in item.captures.items()]
        reads += [(ref, kind, place, "") for kind, place, ref in self._ends(scope)]
        found = by_key((ref.item, (ref.output, *of)) for ref, *of in reads if ref is not None)
        self._readers[id(scope)] = found
        return found

    def _ends(self, scope: ScopeRecord) -> list[tuple[str, Any, Ref | None]]:
        """The uses at the end of a scope: outputs of the model, of the owner, next values of states, conditions."""
        owner = scope.owner
        if owner is None:
            return [
                ("result", each.name if each.name in self._results else place, each.ref)
                for place, each in enumerate(scope.results)
            ]
        feeds = ((parameter, parameter.feed) for parameter in scope.parameters)
        return [
            *((drain.kind, place, drain.sources.get(scope.tag)) for place, drain in enumerate(owner.drains)),
            *(("next", self._number(each), feed.next) for each, feed in feeds if feed is not None and feed.next),
            ("condition", "", owner.condition),
        ]

    # -- neighbours

    def neighbours(self, item: Item) -> Iterator[Item]:
        """The producers of its inputs, and its readers."""
        yield from (ref.item for ref in (*item.inputs, *item.captures) if ref is not None)
        for _, _, reader, _ in self._readers_in(item.scope).get(item, ()):
            if isinstance(reader, Item):
                yield reader

    def inputs(self, item: Item) -> tuple[Any, ...]:
        """For each input the number of the pair of its producer and the output, None if that is not paired."""
        known = ((ref, None if ref is None else self._number(ref.item)) for ref in item.inputs)
        return tuple(None if ref is None or number is None else (number, ref.output) for ref, number in known)

    def near(self, item: Item, level: int) -> Any:
        """The content of an item, and the pairs that its inputs and readers belong to; None if none of these is paired.
        """
        inputs = self.inputs(item)
        uses = [
            (index, kind, number, port) for index, kind, reader, port in self._readers_in(item.scope).get(item, ())
            if (number := self._number(reader)) is not None
        ]
        self._left -= 1
        return (self._content(item, level), inputs, tuple(sorted(uses))) if uses or any(inputs) else None

    def readers(self, item: Item) -> tuple[Any, ...]:
        """For each use the number of the pair of the reader and the port, None if that is not paired."""
        found: list[Any] = []
        for index, kind, reader, port in self._readers_in(item.scope).get(item, ()):
            number = self._number(reader) if isinstance(reader, Item) else str(reader)
            found.append(None if number is None else (index, kind, str(number), port))
        return (None,) if None in found else tuple(sorted(found))
