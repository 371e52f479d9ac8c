"""Ordered unions of names and origins, which nodes gather while others are merged into them.

    union(("a", "b"), ("b", "c"))         # ("a", "b", "c")

A union of many elements takes the same time as one of a few: a chain of nodes that become one node, or constants that
become one constant, would take quadratic time otherwise. Few elements, as nearly all nodes have, are a tuple.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")

FEW = 32
"""The largest number of elements that are compared at once."""


def union(first: Sequence[T], second: Sequence[T]) -> Sequence[T]:
    """The elements of `first`, then those of `second` that are not among them; each side has an element once."""
    if not first:
        return second
    if not second or first is second:
        return first
    if isinstance(first, Many) or isinstance(second, Many) or len(first) + len(second) > FEW:
        return Many(first, second)
    return first if first == second else (*first, *(each for each in second if each not in first))


class Many(Sequence[T]):
    """The union of two sequences, whose elements are listed when more than the first one is needed.

    It never changes, and compares as a tuple.
    """

    __slots__ = ("_elements", "_head", "_sides")

    def __init__(self, first: Sequence[T], second: Sequence[T]) -> None:
        """`first` is not empty."""
        self._head: T = first._head if isinstance(first, Many) else first[0]
        self._sides: tuple[Sequence[T], ...] = (first, second)
        self._elements: tuple[T, ...] | None = None

    @property
    def elements(self) -> tuple[T, ...]:
        """All elements."""
        if self._elements is None:
            self._elements = tuple(self._listed())
            self._sides = ()
        return self._elements

    def _listed(self) -> dict[T, None]:
        found: dict[T, None] = {}
        pending: list[Sequence[T]] = [self]
        seen: set[int] = set()
        while pending:
            each = pending.pop()
            if not isinstance(each, Many):
                found.update(dict.fromkeys(each))
            elif id(each) not in seen:  # a union can be a part of both sides
                seen.add(id(each))
                pending.extend(reversed(each._sides) if each._elements is None else (each._elements,))
        return found

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.elements)

    def __iter__(self) -> Iterator[T]:
        return iter(self.elements)

    def __contains__(self, element: object) -> bool:
        return element in self.elements

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._head if index == 0 else self.elements[index]

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        return self.elements == tuple(other) if isinstance(other, Many | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.elements)

    def __reduce__(self) -> Any:
        return tuple, (self.elements,)  # the sides of a union can be nested as deep as a model is long

    def __repr__(self) -> str:
        return repr(self.elements)
