"""The changes between two models whose items are paired."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, get_args

from mo_loop.look.differences.pairing import Pairs, bodies_of
from mo_loop.look.records.data import changed
from mo_loop.look.records.structure import Feed, Item, Output, OutputRecord, ScopeRecord, Structure, shown
from mo_loop.support.traversal import by_key

ADDED, REMOVED, CHANGED = "added", "removed", "changed"

Aspect = Literal["names", "shapes", "weights", "metadata"]
NAMES, SHAPES, WEIGHTS, METADATA = ASPECTS = get_args(Aspect)
"""The aspects that a comparison can ignore."""


@dataclass(frozen=True)
class Detail:
    """One difference of a node: `what` and its `name`, with the old and the new text.

    `aspect` is one of `ASPECTS`, or "". `data` has the numbers of changed weights.
    """

    what: str
    name: str = ""
    old: str = ""
    new: str = ""
    aspect: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        named, data = {"name": self.name} if self.name else {}, {"data": self.data} if self.data else {}
        return {"what": self.what, **named, "old": self.old, "new": self.new, **data}

    def __str__(self) -> str:
        what = " ".join(each for each in (self.what, self.name) if each)
        return f"{what}: {self.new}" if self.data else f"{what} {self.old or 'none'} -> {self.new or 'none'}"


@dataclass(frozen=True)
class Change:
    """A node that was added, removed or changed; without a node, a property of the model.

    `scope` is the path of its graph, `readers` are the nodes that read a constant. `old_node` is its name in the first
    model where it has another one, or None. With `follows` its details are shapes that follow from those of its inputs,
    or it is a constant for nodes that were added or removed with it. `subject` is the Item or OutputRecord that it
    describes, that of the second model if it is there.
    """

    kind: str
    scope: str
    node: str
    operator: str
    details: tuple[Detail, ...] = ()
    readers: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    old_node: str | None = None
    inner: int = 0
    follows: bool = False
    subject: Any = field(default=None, compare=False, repr=False)

    @property
    def path(self) -> str:
        return "/".join(each for each in (self.scope, self.node) if each)

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {key: getattr(self, key) for key in ("kind", "scope", "node", "operator", "old_node")}
        found |= {"readers": list(self.readers) or None, "inputs": list(self.inputs) or None}
        found["nodes_in_bodies"] = self.inner or None
        if self.kind == CHANGED:
            found |= {"follows": self.follows, "details": [each.as_json() for each in self.details]}
        return {key: value for key, value in found.items() if value is not None}


Details = list[Detail]


def changes_of(old: Structure, new: Structure, pairs: Pairs, tolerance: float = 0.0) -> Iterator[Change]:
    """All changes: those of the model, then by scope, outer ones first. `tolerance` is that of weights."""
    details = [*_texts("opset", old.opsets, new.opsets), *_texts("metadata", old.metadata, new.metadata, METADATA)]
    if details:
        yield Change(CHANGED, "", "", "", tuple(details))
    for kind, here, there in ((REMOVED, old.functions, new.functions), (ADDED, new.functions, old.functions)):
        for name in here:  # in the order of the model, not of a set
            if name not in there:
                yield Change(kind, "", name, "function", inner=len(here[name].items))
    found = {(left, right): _paired(left, right, pairs, tolerance) for left, right in pairs.items}
    reshaped = {item for item, details in found.items() if any(each.what in ("shape", "type") for each in details)}
    moved = {left for left, _ in reshaped}
    order = {id(scope): place for place, scope in enumerate(old.scopes())}
    for left_scope, right_scope in sorted(pairs.scopes, key=lambda scopes: order[id(scopes[0])]):
        yield from _of_scope(left_scope, right_scope, pairs, found, moved)


def _of_scope(
    old: ScopeRecord, new: ScopeRecord, pairs: Pairs, found: Mapping[tuple[Item, Item], Details], moved: set[Item]
) -> Iterator[Change]:
    path = old.text
    details = [*_texts("", old.settings, new.settings), *_texts("rt_info", old.info, new.info, METADATA)]
    if old.owner is None:
        details += _order("inputs", old.parameters, new.parameters, pairs)
    if details:
        yield Change(CHANGED, path, "", "", tuple(details))
    if old.owner is None:
        yield from _results(old.results, new.results, pairs, path)
    reads = ((ref, item) for item in (*old.items, *new.items) for ref in (*item.inputs, *item.captures))
    readers = by_key((ref.item, item) for ref, item in reads if ref is not None)
    stored = {
        kind: {item.data.key for item in scope.items if item.data is not None}
        for kind, scope in ((ADDED, old), (REMOVED, new))
    }

    def named(item: Item) -> tuple[str, ...]:
        """The readers of a constant by name."""
        return tuple(dict.fromkeys(each.label for each in readers.get(item, ()))) if item.is_constant else ()

    def lonely(kind: str, item: Item) -> Change:
        """An item that was added or removed. A constant for others of these, or stored in the other model, follows."""
        own = readers.get(item, ())
        is_apart = bool(own) and all(pairs.of(each) is None for each in own)
        inner = sum(len(scope.items) for body in item.bodies.values() for scope in body.all())
        refs = item.inputs if item.feed is None or item.feed.source is None else [item.feed.source]
        return Change(
            kind, path, item.label, item.operator, (), named(item), tuple(map(shown, refs)), inner=inner,
            follows=item.data is not None and (is_apart or item.data.key in stored[kind]), subject=item,
        )

    for item in old.items:
        other = pairs.of(item)
        if other is None:
            yield lonely(REMOVED, item)
        elif found[item, other]:
            details = found[item, other]
            shapes = all(each.aspect == SHAPES for each in details)
            yield Change(
                CHANGED, path, other.label, other.operator, tuple(details), named(other),
                old_node=item.label if item.label != other.label else None,
                follows=shapes and any(source in moved for source in _sources(item)), subject=other,
            )
    yield from (lonely(ADDED, item) for item in new.items if pairs.of(item) is None)


def _sources(item: Item) -> Iterator[Item]:
    """The items that its types depend on."""
    feed = item.feed
    refs = [*item.inputs, *((feed.source, feed.next) if feed is not None else ())]
    refs += [ref for drain in item.drains for ref in drain.sources.values()]
    yield from (ref.item for ref in refs if ref is not None)


# -- one pair


def _paired(old: Item, new: Item, pairs: Pairs, tolerance: float) -> Details:
    details: Details = []
    if old.operator != new.operator:
        details.append(Detail("operator", "", old.operator, new.operator))
    elif old.version != new.version:
        details.append(Detail("version", "", old.version, new.version))
    details += _texts("attribute", old.attributes, new.attributes)
    details += _inputs(old, new, pairs)
    details += _ports(old, new, pairs)
    details += _outputs(old, new, pairs)
    if old.data is not None and new.data is not None:
        change = changed(old.data, new.data, tolerance)
        if change is not None:
            details.append(Detail("weights", "", change.old, str(change), WEIGHTS, change.as_json()))
    if old.name and new.name and old.name != new.name and not (old.is_generated and new.is_generated):
        details.append(Detail("name", "", old.name, new.name, NAMES))
    details += _texts("rt_info", old.info, new.info, METADATA)
    return details


def _inputs(old: Item, new: Item, pairs: Pairs) -> Iterator[Detail]:
    """Inputs that read another value. Those of a node with bodies that its port map hands on are not compared here."""
    longest = max(len(old.inputs), len(new.inputs))
    for place in range(longest if old.direct is None else old.direct):
        a, b = old.input(place), new.input(place)
        if not pairs.same_value(a, b):
            name = new.input_names[place] if place < len(new.input_names) else str(place)
            yield Detail("input", name, shown(a), shown(b))


def _outputs(old: Item, new: Item, pairs: Pairs) -> Iterator[Detail]:
    taken = set()
    for place, output in enumerate(old.outputs):
        other = pairs.output(old, place)
        name = str(place) if len(old.outputs) > 1 else ""
        if other is None:
            yield Detail("output", str(place), _typed(output), "")
            continue
        taken.add(other)
        yield from types(output, new.outputs[other], name)
        a, b = output.names, new.outputs[other].names
        if a and b and set(a) != set(b) and (a[:1] != (old.name,) or b[:1] != (new.name,)):
            yield Detail("tensor name", name, ", ".join(a), ", ".join(b), NAMES)
    for place, output in enumerate(new.outputs):
        if place not in taken:
            yield Detail("output", str(place), "", _typed(output))


def types(old: Output | OutputRecord, new: Output | OutputRecord, name: str) -> Iterator[Detail]:
    """Element types and dimensions, where both are known."""
    if old.dtype and new.dtype and old.dtype != new.dtype:
        yield Detail("type", name, old.dtype, new.dtype)
    if old.shape and new.shape and old.shape != new.shape:
        yield Detail("shape", name, old.shape, new.shape, SHAPES)


def _typed(output: Output) -> str:
    return f"{output.dtype or '?'}{output.shape}"


def _texts(what: str, old: Mapping[str, str], new: Mapping[str, str], aspect: str = "", *, of: str = "") -> Details:
    """Entries that differ, were added or were removed; `of` names what has them."""
    keys = [key for key in dict.fromkeys((*old, *new)) if old.get(key) != new.get(key)]
    named = f"{of}: " if of else ""
    return [Detail(what, f"{named}{key}", old.get(key, ""), new.get(key, ""), aspect) for key in keys]


# -- outputs and inputs of a model or function


def _results(old: Sequence[OutputRecord], new: Sequence[OutputRecord], pairs: Pairs, path: str) -> Iterator[Change]:
    places = partners(old, new)
    matched = [(each, None if place is None else new[place]) for each, place in zip(old, places, strict=True)]
    for each, other in matched:
        if other is None:
            yield Change(REMOVED, path, each.name, "output", inputs=(shown(each.ref),), subject=each)
            continue
        details = list(types(each, other, ""))
        if each.name != other.name:
            details.append(Detail("name", "", each.name, other.name, NAMES))
        if not pairs.same_value(each.ref, other.ref):
            details.append(Detail("value", "", shown(each.ref), shown(other.ref)))
        if details:
            renamed = each.name if each.name != other.name else None
            yield Change(CHANGED, path, other.name, "output", tuple(details), old_node=renamed, subject=other)
    for place, each in enumerate(new):
        if place not in places:
            yield Change(ADDED, path, each.name, "output", inputs=(shown(each.ref),), subject=each)
    before = [new[place].name for place in places if place is not None]
    after = [each.name for place, each in enumerate(new) if place in places]
    if before != after:
        yield Change(CHANGED, path, "", "", (Detail("order", "of outputs", ", ".join(before), ", ".join(after)),))


def partners(old: Sequence[OutputRecord], new: Sequence[OutputRecord]) -> list[int | None]:
    """For each output its place among those of the other graph: that of the same name, else, where as many are left on
    both sides, that of the same place among them."""
    known, others = _names(old), {key: place for place, key in enumerate(_names(new))}
    left = [key for key in known if key not in others]
    taken = set(known)
    right = [place for key, place in others.items() if key not in taken]
    matched = dict(zip(left, right, strict=True)) if len(left) == len(right) else {}
    return [others.get(key, matched.get(key)) for key in known]


def _names(results: Sequence[OutputRecord]) -> list[tuple[str, int]]:
    """The names of outputs; one that a body returns several times is numbered."""
    numbers: dict[str, count[int]] = {}
    return [(each.name, next(numbers.setdefault(each.name, count()))) for each in results]


def _order(what: str, old: Iterable[Item], new: Iterable[Item], pairs: Pairs) -> Details:
    """The order of those that are in both models."""
    before = [other.label for item in old if (other := pairs.of(item)) is not None]
    after = [item.label for item in new if pairs.of(item) is not None]
    return [] if before == after else [Detail("order", f"of {what}", ", ".join(before), ", ".join(after))]


# -- port maps: slices, back edges, outer values, outputs of Loop, Scan, TensorIterator and If


def _ports(old: Item, new: Item, pairs: Pairs) -> Iterator[Detail]:
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
    yield from _texts("slice of", old.settings, new.settings, of=name)
    if not pairs.same_value(old.source, new.source):
        yield Detail("outer value of", name, shown(old.source), shown(new.source))
    if not pairs.same_value(old.next, new.next):
        yield Detail("back edge of", name, shown(old.next), shown(new.next))


def _drains(old: Item, new: Item, left: ScopeRecord, right: ScopeRecord, prefix: str, pairs: Pairs) -> Iterator[Detail]:
    for place, drain in enumerate(old.drains):
        partner = pairs.output(old, place)
        if partner is None or partner >= len(new.drains):
            continue  # reported as an output that was removed
        other = new.drains[partner]
        names = new.outputs[partner].names if partner < len(new.outputs) else ()
        name = f"{prefix}output {names[0] if names else partner}"
        if drain.kind != other.kind and not prefix:
            yield Detail("port of", name, drain.kind, other.kind)
        if not prefix or left.tag == next(iter(old.bodies)):
            yield from _texts("slices of", drain.settings, other.settings, of=name)
        a, b = drain.sources.get(left.tag), other.sources.get(right.tag)
        if not pairs.same_value(a, b):
            yield Detail("inner value of", name, shown(a), shown(b))
