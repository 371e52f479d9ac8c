"""Patterns of values, with which passes describe the nodes that they search.

    x = any_input()
    gate = wrap_type(HSigmoid, x, when=consumers_count(1))
    hswish = any_order(Multiply, x, gate)          # x * HSigmoid(x) or HSigmoid(x) * x

    match = Matcher(hswish).match(node)            # a new Match, or None
    match[x], match.node(gate), match.root         # a Value, its Node, the root node

A pattern matches one value: used twice, it matches the same value twice. Matching goes from the root to its producers
and tries all alternatives of `any_of`, `any_order`, `optional` and `repeated`; the first one that fits is used.
Patterns are not changed while they are matched, so several matchers can share one pattern.

The functions that make patterns and the classes after them are here. The classes that match them are in
transforms/matcher.py: `Matcher`, `Match`, and `Pattern`, the base of all patterns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

from mo_loop.errors import InternalError
from mo_loop.graph import Node, Value
from mo_loop.ops.base import Constant
from mo_loop.support.traversal import reached
from mo_loop.transforms.matcher import Agenda, Bound, Match, Matcher, Pattern, Refusal, Trace, Way, matched_nodes, solve
from mo_loop.transforms.predicates import Check

__all__ = [
    "Match", "Matcher", "Pattern", "any_input", "any_of", "any_order", "constant", "optional", "repeated", "wrap_type",
]

Kinds = type[Node] | tuple[type[Node], ...]


class _WrapType(Pattern):
    """A node of certain classes with certain inputs and attributes."""

    __slots__ = ("attributes", "classes", "inputs", "is_open", "plain", "types")

    def __init__(
        self, kinds: Kinds, inputs: Sequence[Any], attributes: Mapping[str, Any], when: Check | None, name: str
    ) -> None:
        super().__init__(when, name)
        self.classes = kinds if isinstance(kinds, tuple) else (kinds,)
        self.types = frozenset(self.classes)
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
        if self.attributes:
            for key, wanted in self.attributes.items():
                found = getattr(node, key, None)
                if not (wanted(found) if callable(wanted) else found == wanted):
                    return f"has {key}={found!r}"
        when = self.when
        return None if when is None or when.check(value) else when

    def begins(self, value: Value) -> bool:
        if self.fits(value) is not None:
            return False
        values = value.node.inputs
        if not self.plain or len(values) != len(self.inputs) or None in values:
            return True
        return self._fit(values, self.inputs)

    def quick_check(self) -> Check:
        if self.inputs or self.attributes or self.when is None:
            return self.begins
        return self.when.check  # a rule of one node: a condition for each of many nodes

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

    def nodes(self, bound: Bound) -> Iterable[Node]:
        return (bound[self].node,)

    def is_single_node(self) -> bool:
        return not self.inputs and not self.is_open

    def root_types(self) -> frozenset[type[Node]] | None:
        return self.types

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

    __slots__ = ("orders",)

    chooses = True

    def __init__(
        self, kinds: Kinds, inputs: Sequence[Any], attributes: Mapping[str, Any], when: Check | None, name: str
    ) -> None:
        super().__init__(kinds, inputs, attributes, when, name)
        self.orders = tuple(permutations(self.inputs))

    def _fit(self, values: Iterable[Any], patterns: Iterable[Any]) -> bool:
        for order in self.orders:  # noqa: SIM110  # `any` takes twice as long
            if super()._fit(values, order):
                return True
        return False

    def ways(self, value: Value, bound: Bound, trace: Trace | None) -> Iterator[Way]:
        refusal = self.fits(value)
        if refusal is not None:
            if trace is not None:
                trace.refused(len(bound), self, value, refusal)
            return
        for order in self.orders:
            agenda: Agenda = []
            refusal = self.pair(value.node.inputs, order, agenda)
            if refusal is None:
                yield agenda, {self: value}
            elif trace is not None:
                trace.refused(len(bound), self, value, refusal)

    def may_match(self, cls: type[Node], producers: Sequence[type[Node] | None]) -> bool:
        return issubclass(cls, self.classes) and any(
            self._may_pair(order, producers) for order in self.orders
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


class _Optional(_AnyOf):
    """A node that may be missing: the second pattern is then the value itself."""

    __slots__ = ()

    def sign(self) -> Pattern:
        return self.patterns[0]

    def __repr__(self) -> str:
        return self.name or f"optional({self.patterns[0]!r})"


class _Repeated(Pattern):
    """The longest chain of equal steps above `source`."""

    __slots__ = ("at_least", "at_most", "hole", "outer", "source", "step")

    chooses = True

    def __init__(
        self, step: Callable[[Pattern], Pattern], source: Pattern, at_least: int, at_most: int | None, name: str
    ) -> None:
        super().__init__(None, name)
        self.hole = Pattern(name="previous")
        self.step = step(self.hole)
        parts = list(_within(self.step))
        if self.hole not in parts:
            raise InternalError("the step of `repeated` does not use its argument, the pattern of the previous step")
        # Patterns that a second step contains too come from outside: they match one value in all steps.
        again = set(_within(step(Pattern())))
        self.outer = tuple(each for each in parts if each in again)
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

    def nodes(self, bound: Bound) -> Iterator[Node]:
        for step in reversed(bound[self.hole]):
            yield from matched_nodes(step)

    def chain(self, bound: Bound) -> list[Node]:
        return [step[self.step].node for step in reversed(bound[self.hole])]

    def root_types(self) -> frozenset[type[Node]] | None:
        return self.step.root_types() if self.at_least else _union((self.step, self.source))

    def __repr__(self) -> str:
        return self.name or f"repeated({self.step!r})"


# -- the parts of patterns


def any_input(when: Check | None = None, *, name: str = "") -> Pattern:
    """Any value for which `when` holds."""
    return Pattern(when, name or "any_input")


def wrap_type(
    kinds: Kinds, *inputs: Any, when: Check | None = None, attributes: Mapping[str, Any] | None = None, name: str = ""
) -> Pattern:
    """A node of one of `kinds` or a subclass.

    Without `inputs`, the inputs may be anything. Otherwise each input has a pattern, None for an absent one; a last
    `...` allows more inputs. `attributes` maps names to values or to functions of the value.
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
             attributes: Mapping[str, Any] | None = None, name: str = "") -> Pattern:
    """A node of `kinds` whose first input is `source`, or `source` itself. `match.get` shows which; `match[...]` is
    the value in both cases."""
    return _Optional((wrap_type(kinds, source, *inputs, when=when, attributes=attributes), source), None, name)


def repeated(
    step: Callable[[Pattern], Pattern], source: Pattern, *, at_least: int = 1, at_most: int | None = None,
    name: str = "",
) -> Pattern:
    """A chain of `step(previous)` that begins at `source`, the longest that fits.

    `repeated(lambda x: wrap_type(ReLU, x), data)` is a chain of ReLUs of any length from 1 on. A pattern that `step`
    makes may match another value in each step; a pattern from outside matches the same value in all of them.
    `match.chain` gives the nodes.
    """
    return _Repeated(step, source, at_least, at_most, name)


def constant(when: Check | None = None, *, name: str = "") -> Pattern:
    """A Constant for which `when` holds."""
    return wrap_type(Constant, when=when, name=name)


def _within(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and all its parts, each once."""
    return reached([pattern], lambda each: each.parts())


def _union(patterns: Iterable[Pattern]) -> frozenset[type[Node]] | None:
    found: frozenset[type[Node]] = frozenset()
    for pattern in patterns:
        types = pattern.root_types()
        if types is None:
            return None
        found |= types
    return found
