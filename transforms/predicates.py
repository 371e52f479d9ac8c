"""Conditions on a value in a pattern, each with the reason for a refusal.

    wrap_type(ops.Add, x, any_input(when=value_equals(0)), when=consumers_count(1) & has_static_shape())

A predicate is called with a Value. `a & b`, `a | b` and `~a` combine predicates; any function of a Value is one as
well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mo_loop.graph import ElementType, Node, Value, is_static
from mo_loop.ops.base import Constant

Check = Callable[[Value], Any]


class Predicate:
    """A condition with a name: `check` evaluates it, `found` describes the value that does not meet it."""

    __slots__ = ("check", "found", "wanted")

    def __init__(self, wanted: str, check: Check, found: Callable[[Value], str] | None = None) -> None:
        self.wanted = wanted
        self.check = check
        self.found = found

    def __call__(self, value: Value) -> bool:
        return bool(self.check(value))

    def reason(self, value: Value) -> str:
        """Why `value` does not meet the condition."""
        found = self.found(value) if self.found is not None else str(value.type)
        return f"wants {self.wanted}, found {found}"

    def __and__(self, other: Check) -> Predicate:
        second = as_predicate(other)

        def found(value: Value) -> str:
            first = next((each for each in (self, second) if not each(value)), self)
            return first.reason(value).partition(", found ")[2]

        return Predicate(f"{_grouped(self)} and {_grouped(second)}", lambda v: self.check(v) and second.check(v), found)

    def __or__(self, other: Check) -> Predicate:
        second = as_predicate(other)
        return Predicate(f"{self.wanted} or {second.wanted}", lambda v: self.check(v) or second.check(v), self.found)

    def __invert__(self) -> Predicate:
        return Predicate(f"not {_grouped(self, ' and ')}", lambda v: not self.check(v), self.found)


def _grouped(each: Predicate, *joints: str) -> str:
    """The name of the condition, in parentheses where it is combined from others."""
    return f"({each.wanted})" if any(joint in each.wanted for joint in (" or ", *joints)) else each.wanted


def as_predicate(check: Check) -> Predicate:
    """A plain function becomes a Predicate of its name."""
    if isinstance(check, Predicate):
        return check
    return Predicate(getattr(check, "__name__", "a condition").replace("<lambda>", "a condition"), check)


def consumers_count(count: int) -> Predicate:
    """Exactly `count` inputs read the value."""
    if count == 1:  # without counting: a constant may have many consumers
        return Predicate("1 consumer", lambda v: v.only_use is not None, _consumers)
    return Predicate(f"{count} consumers", lambda v: len(v.uses) == count, _consumers)


def consumers_more_than(count: int) -> Predicate:
    """More than `count` inputs read the value."""
    return Predicate(f"more than {count} consumers", lambda v: len(v.uses) > count, _consumers)


def consumed_by(*kinds: type[Node]) -> Predicate:
    """A node of one of `kinds` reads the value."""
    wanted = f"a consumer {_named(kinds)}"
    return Predicate(wanted, lambda v: any(isinstance(use.node, kinds) for use in v.uses), _nodes)


def consumed_only_by(*kinds: type[Node]) -> Predicate:
    """Every node that reads the value is one of `kinds`; a value that nothing reads meets it, too."""
    wanted = f"no other consumer than {_named(kinds)}"
    return Predicate(wanted, lambda v: all(isinstance(use.node, kinds) for use in v.uses), _nodes)


def in_graph_with(*kinds: type[Node]) -> Predicate:
    """The graph of the value has a node of one of `kinds`: a condition that costs next to nothing."""
    return Predicate(f"a graph with {_named(kinds)}", lambda v: v.graph.has(*kinds), lambda v: "none")


def rank_equals(*ranks: int) -> Predicate:
    """The rank is known and one of `ranks`."""
    return Predicate(f"rank {_either(ranks)}", lambda v: v.rank in ranks, _rank)


def rank_more_than(rank: int) -> Predicate:
    """The rank is known and above `rank`."""
    return Predicate(f"a rank above {rank}", lambda v: v.rank is not None and v.rank > rank, _rank)


def has_static_rank() -> Predicate:
    """The rank is known."""
    return Predicate("a known rank", lambda v: v.rank is not None, _rank)


def has_static_shape() -> Predicate:
    """All dimensions are known numbers."""
    return Predicate("a static shape", lambda v: is_static(v.shape))


def has_static_dims(*axes: int) -> Predicate:
    """The dimensions at `axes` (negative ones count from the end) are known numbers."""

    def check(value: Value) -> bool:
        shape = value.shape
        if shape is None or any(not -len(shape) <= axis < len(shape) for axis in axes):
            return False
        return all(isinstance(shape[axis], int) for axis in axes)

    return Predicate(f"static dimensions at {_either(axes, 'and')}", check)


def shape_equals(*dims: int) -> Predicate:
    """The shape is known and exactly `dims`."""
    return Predicate(f"the shape {list(dims)}", lambda v: v.shape == dims)


def type_matches(*dtypes: ElementType) -> Predicate:
    """The element type is one of `dtypes`."""
    return Predicate(f"element type {_either(dtypes)}", lambda v: v.dtype in dtypes)


def is_constant() -> Predicate:
    """The value is a Constant."""
    return Predicate("a Constant", lambda v: isinstance(v.node, Constant), lambda v: type(v.node).__name__)


def value_equals(wanted: Any, limit: int = 1 << 16) -> Predicate:
    """Every element equals `wanted`, or the element of an array `wanted`; constants above `limit` bytes never match.

    Operations on small constants are evaluated, as `Value.constant` does.
    """

    is_array = bool(np.ndim(wanted))

    def check(value: Value) -> bool:
        array = _small(value, limit)
        if array is None or array.dtype.kind == "O":
            return False
        if is_array:
            return bool(array.shape == np.shape(wanted) and (array == wanted).all())
        # The first element decides nearly always, in a tenth of the time.
        return bool(array.size and array.item(0) == wanted and (array == wanted).all())

    return Predicate(f"the value {wanted}", check, lambda v: _shown(v, limit))


def _small(value: Value, limit: int) -> Any:
    if isinstance(value.node, Constant):
        return None if value.node.tensor.nbytes > limit else value.node.tensor.array()
    return value.constant


def _shown(value: Value, limit: int) -> str:
    array = _small(value, limit)
    return f"a value that is not constant: {value.type}" if array is None else np.array2string(array, threshold=8)


def _consumers(value: Value) -> str:
    return str(len(value.uses))


def _nodes(value: Value) -> str:
    return ", ".join(dict.fromkeys(type(use.node).__name__ for use in value.uses)) or "none"


def _named(kinds: tuple[type[Node], ...]) -> str:
    return _either(tuple(kind.__name__ for kind in kinds))


def _rank(value: Value) -> str:
    return "an unknown rank" if value.rank is None else str(value.rank)


def _either(items: tuple[Any, ...], word: str = "or") -> str:
    return f" {word} ".join(str(item) for item in items)
