"""Patterns of values, and the matcher that finds them in a graph.

    x = any_input()
    gate = wrap_type(HSigmoid, x, when=consumers_count(1))
    hswish = any_order(Multiply, x, gate)          # x * HSigmoid(x) or HSigmoid(x) * x

    match = Matcher(hswish).match(node)            # a new Match, or None
    match[x], match.node(gate), match.root         # a Value, its Node, the root node

A pattern matches one value: used twice, it matches the same value twice. Matching goes from the root to its producers
and tries all alternatives of `any_of`, `any_order`, `optional` and `repeated`; the first one that fits is used.
Patterns are not changed while they are matched, so several matchers can share one pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from mo_loop.errors import InternalError
from mo_loop.graph import Node, Value
from mo_loop.ops.base import Constant
from transforms.predicates import Check, Predicate, as_predicate

Bound = dict["Pattern", Any]
"""Pattern -> the Value that it matched (for the inner end of a `repeated`, the values of each step)."""
Agenda = list[tuple["Pattern", Value]]
Kinds = type[Node] | tuple[type[Node], ...]
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
        """The refusal of the value itself, without the inputs of its node; None too where only `ways` can tell."""
        return None

    def begins(self, value: Value) -> bool:
        """False only if `value` cannot match, by itself or by the inputs of its node: a quick answer for most nodes."""
        return self.fits(value) is None

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

    def output(self, index: int) -> Pattern:
        """The output `index` of the node that this pattern matches."""
        return _Output(self, index)

    def __repr__(self) -> str:
        return self.name or type(self).__name__.lower()


class _AnyInput(Pattern):
    __slots__ = ()

    def __repr__(self) -> str:
        return self.name or "any_input"


class _WrapType(Pattern):
    """A node of certain classes with certain inputs and attributes."""

    __slots__ = ("attributes", "classes", "inputs", "is_open", "plain")

    def __init__(
        self, kinds: Kinds, inputs: Sequence[Any], attributes: Mapping[str, Any], when: Check | None, name: str
    ) -> None:
        super().__init__(when, name)
        self.classes = kinds if isinstance(kinds, tuple) else (kinds,)
        if ... in inputs[:-1]:
            raise InternalError("`...` matches the remaining inputs: it comes last in a pattern")
        self.is_open = bool(inputs) and inputs[-1] is ...
        self.inputs: tuple[Pattern | None, ...] = tuple(each for each in inputs if each is not ...)
        self.attributes = dict(attributes)
        self.plain = bool(inputs) and not self.is_open and None not in inputs

    def enter(self, value: Value, agenda: Agenda) -> Refusal | None:
        refusal = self.fits(value)
        if refusal is not None:
            return refusal
        if self.inputs or self.is_open:
            return self.pair(value.node.inputs, self.inputs, agenda)
        return None

    def fits(self, value: Value) -> Refusal | None:
        """The refusal of the node itself, without its inputs."""
        node = value.node
        if not isinstance(node, self.classes):
            return f"is a {type(node).__name__}"
        for key, wanted in self.attributes.items():
            found = getattr(node, key, None)
            if not (wanted(found) if callable(wanted) else found == wanted):
                return f"has {key}={found!r}"
        return self.when if self.when is not None and not self.when.check(value) else None

    def begins(self, value: Value) -> bool:
        if self.fits(value) is not None:
            return False
        values = value.node.inputs
        if not self.plain or len(values) != len(self.inputs) or None in values:
            return True
        return self._fit(values, self.inputs)

    def _fit(self, values: Iterable[Any], patterns: Iterable[Any]) -> bool:
        for pattern, value in zip(patterns, values, strict=True):  # noqa: SIM110  # `all` takes twice as long
            if pattern.fits(value) is not None:
                return False
        return True

    def pair(
        self, values: tuple[Value | None, ...], patterns: tuple[Pattern | None, ...], agenda: Agenda
    ) -> Refusal | None:
        """Put every input on the agenda with its pattern. The pattern None matches an absent input."""
        if self.plain and len(values) == len(patterns) and None not in values:
            agenda.extend(zip(patterns, values, strict=True))  # type: ignore[arg-type]  # no None is among them
            return None
        if len(values) > len(patterns) and not self.is_open and any(v is not None for v in values[len(patterns) :]):
            return f"has {len(values)} inputs"
        for port, pattern in enumerate(patterns):
            value = values[port] if port < len(values) else None
            if (value is None) != (pattern is None):
                return f"has {'no' if value is None else 'an'} input {port}"
            if value is not None and pattern is not None:
                agenda.append((pattern, value))
        return None

    def parts(self) -> Iterable[Pattern]:
        return (each for each in self.inputs if each is not None)

    def root_types(self) -> frozenset[type[Node]] | None:
        return frozenset(self.classes)

    def may_match(self, cls: type[Node], producers: Sequence[type[Node] | None]) -> bool:
        return issubclass(cls, self.classes) and self._may_pair(self.inputs, producers)

    def _may_pair(self, patterns: Iterable[Pattern | None], producers: Sequence[type[Node] | None]) -> bool:
        for pattern, producer in zip(patterns, producers, strict=False):
            if pattern is None or producer is None:
                if (pattern is None) != (producer is None):
                    return False
                continue
            types = pattern.root_types()
            if types is not None and not issubclass(producer, tuple(types)):
                return False
        return True

    def __repr__(self) -> str:
        return self.name or "|".join(cls.__name__ for cls in self.classes)


class _AnyOrder(_WrapType):
    """A node with inputs in any order."""

    __slots__ = ()

    chooses = True

    def _fit(self, values: Iterable[Any], patterns: Iterable[Any]) -> bool:
        return any(super(_AnyOrder, self)._fit(values, order) for order in permutations(patterns))

    def ways(self, value: Value, bound: Bound, trace: Trace | None) -> Iterator[Way]:
        refusal = self.fits(value)
        if refusal is not None:
            if trace is not None:
                trace.refused(len(bound), self, value, refusal)
            return
        for order in permutations(self.inputs):
            agenda: Agenda = []
            refusal = self.pair(value.node.inputs, order, agenda)
            if refusal is None:
                yield agenda, {self: value}
            elif trace is not None:
                trace.refused(len(bound), self, value, refusal)

    def may_match(self, cls: type[Node], producers: Sequence[type[Node] | None]) -> bool:
        return issubclass(cls, self.classes) and any(
            self._may_pair(order, producers) for order in permutations(self.inputs)
        )


class _AnyOf(Pattern):
    __slots__ = ("patterns",)

    chooses = True

    def __init__(self, patterns: Sequence[Pattern], when: Check | None, name: str) -> None:
        super().__init__(when, name)
        self.patterns = tuple(patterns)

    def ways(self, value: Value, bound: Bound, trace: Trace | None) -> Iterator[Way]:
        if self.when is not None and not self.when.check(value):
            if trace is not None:
                trace.refused(len(bound), self, value, self.when)
            return
        for pattern in self.patterns:
            yield [(pattern, value)], {self: value}

    def parts(self) -> Iterable[Pattern]:
        return self.patterns

    def root_types(self) -> frozenset[type[Node]] | None:
        return _union(self.patterns)

    def may_match(self, cls: type[Node], producers: Sequence[type[Node] | None]) -> bool:
        return any(pattern.may_match(cls, producers) for pattern in self.patterns)

    def __repr__(self) -> str:
        return self.name or f"any_of({', '.join(map(repr, self.patterns))})"


class _Optional(Pattern):
    """A node that may be missing: `source` is then the value itself."""

    __slots__ = ("source", "step")

    chooses = True

    def __init__(self, step: Pattern, source: Pattern, name: str) -> None:
        super().__init__(None, name)
        self.step = step
        self.source = source

    def ways(self, value: Value, bound: Bound, trace: Trace | None) -> Iterator[Way]:
        yield [(self.step, value)], {self: value}
        yield [(self.source, value)], {self: value}

    def parts(self) -> Iterable[Pattern]:
        return self.step, self.source

    def root_types(self) -> frozenset[type[Node]] | None:
        return _union((self.step, self.source))

    def __repr__(self) -> str:
        return self.name or f"optional({self.step!r})"


class _Repeated(Pattern):
    """The longest chain of equal steps above `source`."""

    __slots__ = ("at_least", "at_most", "hole", "outer", "source", "step")

    chooses = True

    def __init__(
        self, step: Callable[[Pattern], Pattern], source: Pattern, at_least: int, at_most: int | None, name: str
    ) -> None:
        super().__init__(None, name)
        self.hole: Pattern = _AnyInput(name="previous")
        self.step = step(self.hole)
        if self.hole not in _within(self.step):
            raise InternalError("the step of `repeated` does not use its argument, the pattern of the previous step")
        # Patterns that a second step contains too come from outside: they match one value in all steps.
        again = set(_within(step(_AnyInput())))
        self.outer = tuple(each for each in _within(self.step) if each in again)
        self.source = source
        self.at_least = at_least
        self.at_most = at_most

    def ways(self, value: Value, bound: Bound, trace: Trace | None) -> Iterator[Way]:
        steps: list[Bound] = []  # the values of each step, from the last step of the chain upwards
        above, shared = value, [dict[Pattern, Any]()]
        while self.at_most is None or len(steps) < self.at_most:
            found = solve([(self.step, above)], {**bound, **shared[-1]}, trace)
            if found is None or found[self.hole] is above:
                break
            above = found[self.hole]
            steps.append({pattern: each for pattern, each in found.items() if pattern not in bound})
            shared.append({pattern: found[pattern] for pattern in self.outer if pattern in found})
        for count in range(len(steps), self.at_least - 1, -1):
            first = steps[count - 1][self.hole] if count else value
            yield [(self.source, first)], {**shared[count], self: value, self.hole: steps[:count]}

    def parts(self) -> Iterable[Pattern]:
        return self.step, self.source

    def root_types(self) -> frozenset[type[Node]] | None:
        return self.step.root_types() if self.at_least else _union((self.step, self.source))

    def __repr__(self) -> str:
        return self.name or f"repeated({self.step!r})"


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


# -- the parts of patterns


def any_input(when: Check | None = None, *, name: str = "") -> Pattern:
    """Any value for which `when` holds."""
    return _AnyInput(when, name)


def wrap_type(
    kinds: Kinds, *inputs: Any, when: Check | None = None, attributes: Mapping[str, Any] | None = None, name: str = ""
) -> Pattern:
    """A node of one of `kinds` or a subclass.

    Without `inputs` they may be anything; else each has a pattern, None stands for an absent one, a last `...` for any
    more. `attributes` maps names to values or to functions of the value.
    """
    return _WrapType(kinds, inputs, attributes or {}, when, name)


def any_order(
    kinds: Kinds, *inputs: Any, when: Check | None = None, attributes: Mapping[str, Any] | None = None, name: str = ""
) -> Pattern:
    """`wrap_type` of a commutative operation: the inputs may be in any order."""
    return _AnyOrder(kinds, inputs, attributes or {}, when, name)


def any_of(*patterns: Pattern, when: Check | None = None, name: str = "") -> Pattern:
    """A value that one of `patterns` matches; the first one that fits the rest as well is used."""
    return _AnyOf(patterns, when, name)


def optional(kinds: Kinds, source: Pattern, *inputs: Any, when: Check | None = None,
             attributes: Mapping[str, Any] | None = None, name: str = "") -> Pattern:  # fmt: skip
    """A node of `kinds` whose first input is `source`, or `source` itself. `match.get` shows which; `match[...]` is
    the value in both cases."""
    return _Optional(wrap_type(kinds, source, *inputs, when=when, attributes=attributes), source, name)


def repeated(
    step: Callable[[Pattern], Pattern], source: Pattern, *, at_least: int = 1, at_most: int | None = None,
    name: str = "",
) -> Pattern:  # fmt: skip
    """A chain of `step(previous)` above `source`, the longest that fits.

    `repeated(lambda x: wrap_type(ReLU, x), data)` is a chain of ReLUs of any length from 1 on. What `step` makes anew
    may differ from step to step; a pattern from outside stands for one value in all of them. `match.chain` gives the
    nodes.
    """
    return _Repeated(step, source, at_least, at_most, name)


def constant(when: Check | None = None, *, name: str = "") -> Pattern:
    """A Constant for which `when` holds."""
    return wrap_type(Constant, when=when, name=name)


# -- matching


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
        return (pattern.step if isinstance(pattern, _Optional) else pattern) in self._bound

    def get(self, pattern: Pattern) -> Value | None:
        """The value of a pattern; None for a pattern that an `optional` or `any_of` did not use."""
        return self._bound[pattern] if pattern in self else None

    def node(self, pattern: Pattern) -> Any:
        """The node that makes the value of `pattern`."""
        return self._bound[pattern].node

    def chain(self, pattern: Pattern) -> list[Node]:
        """The nodes of a `repeated`, in the order of the data: the one that reads its source comes first."""
        assert isinstance(pattern, _Repeated)
        return [step[pattern.step].node for step in reversed(self._bound[pattern.hole])]

    @property
    def nodes(self) -> list[Node]:
        """All nodes that a `wrap_type` of the pattern matched, also in the steps of a `repeated`; the root first."""
        return list(dict.fromkeys((self.root, *_named(self._bound))))

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
            said = refusal.reason(value) if isinstance(refusal, Predicate) else refusal
            self.reason = f"{pattern!r} at {value.node.path}: {said}"


class Matcher:
    """Matches one pattern at any number of nodes."""

    __slots__ = ("begins", "contained", "fits", "is_single", "pattern")

    def __init__(self, pattern: Pattern, *, contained: bool = False) -> None:
        """With `contained`, a match is refused if a node outside it reads an inner value."""
        self.pattern = pattern
        self.fits = pattern.fits
        """The reason why a value cannot be the root, without its inputs; None if it can."""
        self.begins = pattern.begins
        """Whether a value may be the root, by what its node and the direct inputs are."""
        self.contained = contained
        self.is_single = type(pattern) is _WrapType and not pattern.inputs and not pattern.is_open
        """Whether the pattern is one node, whatever its inputs."""

    def match(self, node: Node, trace: Trace | None = None) -> Match | None:
        """The match with `node` as its root, or None; `trace` records why."""
        fits = self.fits
        for value in node.outputs:
            if trace is None and fits(value) is not None:  # most nodes fail here, before anything is made
                continue
            bound = solve([(self.pattern, value)], {}, trace)
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


def _within(pattern: Pattern) -> list[Pattern]:
    """The pattern and all its parts, each once."""
    found = {pattern: None}
    pending = [pattern]
    while pending:
        for each in pending.pop().parts():
            if each not in found:
                found[each] = None
                pending.append(each)
    return list(found)


def _named(bound: Bound) -> Iterator[Node]:
    for pattern, found in bound.items():
        if isinstance(pattern, _WrapType):
            yield found.node
        elif isinstance(pattern, _Repeated):
            for step in reversed(bound[pattern.hole]):
                yield from _named(step)


def _union(patterns: Iterable[Pattern]) -> frozenset[type[Node]] | None:
    found: frozenset[type[Node]] = frozenset()
    for pattern in patterns:
        types = pattern.root_types()
        if types is None:
            return None
        found |= types
    return found
