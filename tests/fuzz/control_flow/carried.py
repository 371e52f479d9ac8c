"""Lists in control flow: states of a loop, and outputs of an If. Needs opset 16, where Identity copies lists."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .lists import append, build, change, chosen
from .scope import Scope
from .values import STATE_LIMIT, Dim, Seq


@dataclass
class ListState:
    """A list that a loop carries."""

    init: Seq
    inside: Seq

    def final(self, s: Scope, name: str) -> Seq:
        """The list after the loop, in the scope that contains the loop."""
        return s.add_list(self.inside, self.inside.least, name)


def list_states(s: Scope, body: Scope, known: set[Dim]) -> list[ListState]:
    """The lists that a loop carries, if any; their element sizes and least lengths hold in all iterations."""
    c = s.context
    if not c.carries_lists or not c.chance(0.95 if s.carries else 0.75):
        return []
    states = []
    for _ in range(s.rng.choice((1, 1, 2))):
        init = chosen(s)
        if init is None or c.chance(0.15):
            init = build(s)
        like = replace(init, sizes=_steady(init.sizes, known), mag=max(init.mag, STATE_LIMIT[init.dtype]))
        states.append(ListState(init, body.list_parameter(like, s.rng.choice((0, init.least)))))
    body.carries = True
    c.features["list carried"] += 1
    c.features["lists carried, several"] += len(states) > 1
    c.features["list carried two deep"] += s.carries
    return states


def _steady(sizes: Sequence[Dim | None], known: set[Dim]) -> tuple[Dim | None, ...]:
    """The symbols that mean the same size in every iteration."""
    return tuple(d if isinstance(d, int) or d in known else None for d in sizes)


def next_list(body: Scope, state: ListState) -> Seq:
    """The next value of a list: the list changed, unchanged, or another one of its kind."""
    c, inside = body.context, state.inside
    others = [each for each in body.visible_lists() if each.name != inside.name and _is_kind(each, inside)]
    way = body.rng.choices(("changed", "same", "other"), (8, 1, 2 if others else 0))[0]
    made = inside if way != "other" else body.rng.choice(others)
    c.features["list carried that becomes another"] += way == "other"
    for _ in range(body.rng.randint(1, 3) if way == "changed" else 0):
        made = change(body, made)
    while made.least < inside.least:
        made = append(body, made)
    return made


def _is_kind(seq: Seq, other: Seq) -> bool:
    """Whether the other list may contain the elements of a list."""
    if seq.dtype != other.dtype or seq.rank != other.rank or seq.mag > other.mag:
        return False
    return all(b is None or a == b for a, b in zip(seq.sizes, other.sizes, strict=True))


def returned_lists(s: Scope, then: Scope, otherwise: Scope) -> list[tuple[Seq, Seq, Seq]]:
    """Lists that an If returns: those of the branches, and their common kind outside."""
    c = s.context
    if not c.carries_lists or not c.chance(0.55):
        return []
    found = []
    for _ in range(s.rng.choice((1, 1, 2))):
        seq = chosen(s) or build(s)
        yes, no = _made(then, seq), _made(otherwise, seq)
        found.append((yes, no, replace(seq, least=min(yes.least, no.least))))
        c.features["list returned from If"] += 1
    return found


def _made(body: Scope, seq: Seq) -> Seq:
    if seq.name in body.hidden:
        return append(body, body.emit_list("SequenceEmpty", [], seq, 0, dtype=seq.dtype))
    body.context.features["list captured and returned"] += 1
    for _ in range(body.rng.choice((0, 1, 1, 2))):
        seq = change(body, seq)
    return seq
