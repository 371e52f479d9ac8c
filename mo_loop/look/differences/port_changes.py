"""The differences of port maps: slices, back edges, outer values, outputs of Loop, Scan, TensorIterator and If."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mo_loop.look.differences.change import Detail
from mo_loop.look.differences.pairs import Pairs, bodies_of
from mo_loop.look.records.structure import Drain, Feed, Item, ScopeRecord, shown


def port_details(old: Item, new: Item, pairs: Pairs) -> Iterator[Detail]:
    """The differences of the connections of two items with their bodies."""
    for left, right in bodies_of(old, new):
        prefix = f"{left.tag} " if len(old.bodies) > 1 else ""
        for parameter in left.parameters:
            other = pairs.of(parameter)
            if other is not None:
                yield from _feed(parameter.feed, other.feed, f"{prefix}{other.label}", pairs)
        yield from _drains(old, new, left, right, prefix, pairs)
        if not prefix and not pairs.same_value(old.condition, new.condition):
            yield Detail("condition of the body", "", shown(old.condition), shown(new.condition))


def _feed(old: Feed | None, new: Feed | None, name: str, pairs: Pairs) -> Iterator[Detail]:
    if old is None or new is None:
        if old is not new:
            yield Detail("port of", name, "" if old is None else old.kind, "" if new is None else new.kind)
        return
    if old.kind != new.kind:
        yield Detail("port of", name, old.kind, new.kind)
    yield from _settings("slice of", name, old.settings, new.settings)
    if not pairs.same_value(old.source, new.source):
        yield Detail("outer value of", name, shown(old.source), shown(new.source))
    if not pairs.same_value(old.next, new.next):
        yield Detail("back edge of", name, shown(old.next), shown(new.next))


def _drains(old: Item, new: Item, left: ScopeRecord, right: ScopeRecord, prefix: str, pairs: Pairs) -> Iterator[Detail]:
    for place, drain in enumerate(old.drains):
        partner = pairs.output(old, place)
        if partner is None or partner >= len(new.drains):
            continue  # reported as an output that was removed
        other: Drain = new.drains[partner]
        name = f"{prefix}{_output_name(new, partner)}"
        if old.drains[place].kind != other.kind and not prefix:
            yield Detail("port of", name, drain.kind, other.kind)
        if not prefix or left.tag == next(iter(old.bodies)):
            yield from _settings("slices of", name, drain.settings, other.settings)
        a, b = drain.sources.get(left.tag), other.sources.get(right.tag)
        if not pairs.same_value(a, b):
            yield Detail("inner value of", name, shown(a), shown(b))


def _output_name(item: Item, place: int) -> str:
    names = item.outputs[place].names if place < len(item.outputs) else ()
    return f"output {names[0] if names else place}"


def _settings(what: str, name: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Detail]:
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            yield Detail(what, f"{name}: {key}", old.get(key, ""), new.get(key, ""))
