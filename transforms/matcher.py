"""The matcher: finds the matches of a pattern in a graph.

    match = Matcher(hswish).match(node)            # a new Match, or None
    match[x], match.node(gate), match.root         # a Value, its Node, the root node

Matching goes from the root to its producers and tries all alternatives of a pattern that has several; the first one
that fits is used. `Pattern` is the interface of a pattern for the matcher. The kinds of patterns are in
transforms/pattern.py, which offers `Match`, `Matcher` and `Pattern` as well: passes import all of them from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mo_loop.errors import InternalError
from mo_loop.graph import Node, Value
from mo_loop.ops.base import Constant
from mo_loop.transforms.predicates import Check, Predicate, as_predicate

Bound = dict["Pattern", Any]
"""Pattern -> the Value that it matched (for the inner end of a `repeated`, the values of each step)."""
Agenda = list[tuple["Pattern", Value]]
Refusal = str | Predicate
Way = tuple[Agenda, Bound]
"""One alternative of a choice: the pairs that remain to be matched, and the bindings that it adds."""


class Pattern:
    """The base of all patterns. `when` is a condition on the value; `name` is used in explanations."""

    __slots__ = ("name", "when")

    chooses = False
    """Whether there may be several ways to match."""

    def __init__(self, when: Check | None = None, name: str = "") -> None:
        self.when = None if when is None else as_predicate(when)
        self.name = name

    def enter(self, value: Value, agenda: Agenda) -> Refusal | None:
        """Check `value` itself and put its inputs on the agenda; returns the refusal, if any."""
        return self.when if self.when is not None and not self.when.check(value) else None

    def fits(self, value: Value) -> Refusal | None:
        """The refusal of the value itself, without the inputs of its node; also None if only `ways` can decide."""
        return None

    def begins(self, value: Value) -> bool:
        """False only if `value` cannot match, by itself or by the inputs of its node: a quick answer for most nodes."""
        return self.fits(value) is None

    def quick_check(self) -> Check:
        """`begins` for values of nodes of `root_types`."""
        return self.begins

    def ways(self, value: Value, bound: Bound, trace: Trace | None) -> Iterator[Way]:
        """The ways in which a pattern that `chooses` can match, best first."""
        raise NotImplementedError

    def parts(self) -> Iterable[Pattern]:
        """The direct parts of this pattern."""
        return ()

    def root_types(self) -> frozenset[type[Node]] | None:
        """The classes that a matching node can have, subclasses apart; None for any."""
        return None

    def may_match(self, cls: type[Node], producers: Sequence[type[Node] | None]) -> bool:
        """False only if no node of class `cls` whose first inputs come from `producers` can match."""
        return True

    def is_single_node(self) -> bool:
        """Whether the pattern is one node, whatever its inputs."""
        return False

    def output(self, index: int) -> Pattern:
        """The output `index` of the node that this pattern matches."""
        return _Output(self, index)

    # -- what a Match reports of this pattern

    def sign(self) -> Pattern:
        """The pattern that is bound if and only if the match uses this one."""
        return self

    def nodes(self, bound: Bound) -> Iterable[Node]:
        """The nodes that the pattern itself matched, without those of its parts."""
        return ()

    def chain(self, bound: Bound) -> list[Node]:
        """The nodes of a `repeated`, in the order of the data."""
        raise InternalError(f"{self!r} is not a `repeated`: it has no chain")

    def __repr__(self) -> str:
        return self.name or type(self).__name__.lower()


class _Output(Pattern):
    """One output of a node with several outputs."""

    __slots__ = ("index", "pattern")

    def __init__(self, pattern: Pattern, index: int) -> None:
        super().__init__()
        self.pattern = pattern
        self.index = index

    def enter(self, value: Value, agenda: Agenda) -> Refusal | None:
        if value.index != self.index:
            return f"is output {value.index}"
        agenda.append((self.pattern, value.node.outputs[0]))  # all outputs belong to the same node
        return None

    def parts(self) -> Iterable[Pattern]:
        return (self.pattern,)

    def root_types(self) -> frozenset[type[Node]] | None:
        return self.pattern.root_types()

    def may_match(self, cls: type[Node], producers: Sequence[type[Node] | None]) -> bool:
        return self.pattern.may_match(cls, producers)

    def __repr__(self) -> str:
        return self.name or f"output {self.index} of {self.pattern!r}"


class Match:
    """The result of a match. Indexed by patterns it returns Values."""

    __slots__ = ("_bound", "_pattern", "root")

    def __init__(self, root: Node, pattern: Pattern, bound: Bound) -> None:
        self.root = root
        self._pattern = pattern
        self._bound = bound

    def __getitem__(self, pattern: Pattern) -> Value:
        return self._bound[pattern]

    def __contains__(self, pattern: Pattern) -> bool:
        return pattern.sign() in self._bound

    def get(self, pattern: Pattern) -> Value | None:
        """The value of a pattern; None for a pattern that an `optional` or `any_of` did not use."""
        return self._bound[pattern] if pattern in self else None

    def node(self, pattern: Pattern) -> Any:
        """The node that makes the value of `pattern`."""
        return self._bound[pattern].node

    def chain(self, pattern: Pattern) -> list[Node]:
        """The nodes of a `repeated`, in the order of the data: the one that reads its source comes first."""
        return pattern.chain(self._bound)

    @property
    def nodes(self) -> list[Node]:
        """All nodes that a `wrap_type` of the pattern matched, also in the steps of a `repeated`; the root first."""
        return list(dict.fromkeys((self.root, *matched_nodes(self._bound))))

    def leaks(self) -> Value | None:
        """An inner value that a node outside the match reads; None if there is none."""
        inner = [node for node in self.nodes if node is not self.root and not isinstance(node, Constant)]
        within = {*inner, self.root}
        for node in inner:
            for value in node.outputs:
                if any(use.node not in within for use in value.uses):
                    return value
        return None


class Trace:
    """Keeps the refusal at which the largest part of a pattern had matched."""

    def __init__(self) -> None:
        self.depth = -1
        self.reason = ""

    def refused(self, depth: int, pattern: Pattern, value: Value, refusal: Refusal) -> None:
        if depth > self.depth:
            self.depth = depth
            reason = refusal.reason(value) if isinstance(refusal, Predicate) else refusal
            self.reason = f"{pattern!r} at {value.node.path}: {reason}"


class Matcher:
    """Matches one pattern at any number of nodes."""

    __slots__ = ("begins", "contained", "fits", "is_single", "pattern")

    def __init__(self, pattern: Pattern, *, contained: bool = False) -> None:
        """With `contained`, a match is refused if a node outside it reads an inner value."""
        self.pattern = pattern
        self.fits = pattern.fits
        """The reason why a value cannot be the root, without its inputs; None if it can."""
        self.begins = pattern.quick_check()
        """Whether a value of a node of the classes of the root may be the root, by its node and the direct inputs."""
        self.contained = contained
        self.is_single = pattern.is_single_node()
        """Whether the pattern is one node, whatever its inputs."""

    def match(self, node: Node, trace: Trace | None = None) -> Match | None:
        """The match with `node` as its root, or None; `trace` records why."""
        fits = self.fits
        for value in node.outputs:
            if trace is None and fits(value) is not None:  # most nodes fail here, before anything is made
                continue
            is_bound = trace is None and self.is_single
            bound = {self.pattern: value} if is_bound else solve([(self.pattern, value)], {}, trace)
            if bound is None:
                continue
            match = Match(node, self.pattern, bound)
            leak = match.leaks() if self.contained else None
            if leak is None:
                return match
            if trace is not None:
                trace.refused(len(bound), self.pattern, leak, "a node outside the match reads it")
        return None


def solve(agenda: Agenda, bound: Bound, trace: Trace | None) -> Bound | None:
    """Match all pairs on the agenda, consistently with the bound values; None if that is impossible."""
    while agenda:
        pattern, value = agenda.pop()
        seen = bound.get(pattern)
        if seen is not None:
            if seen is value:
                continue
            if trace is not None:
                trace.refused(len(bound), pattern, value, f"is not the value that {pattern!r} matched before")
            return None
        if pattern.chooses:
            for more, chosen in pattern.ways(value, bound, trace):
                found = solve([*agenda, *more], {**bound, **chosen}, trace)
                if found is not None:
                    return found
            return None
        refusal = pattern.enter(value, agenda)
        if refusal is not None:
            if trace is not None:
                trace.refused(len(bound), pattern, value, refusal)
            return None
        bound[pattern] = value
    return bound


def matched_nodes(bound: Bound) -> Iterator[Node]:
    """The nodes that the bound patterns themselves matched."""
    for pattern in bound:
        yield from pattern.nodes(bound)
