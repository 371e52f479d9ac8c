"""Origin: the node or tensor of the ONNX model that a node or value of a graph comes from.

    Origin(("loop", "step"), "add", "Add").path                 # loop/step/add
    Origin(("loop", "step"), "add", "Add", "y").path            # loop/step/y
    with made_for((origin,)):
        ops.ReLU(x).origins                                     # (origin,)

The front end gives each node the origin of the ONNX node that it translates. A node that a pass makes has the origins
of the candidate that the pass examines. A node has several origins if ONNX nodes were merged or fused.

Nodes gather names and origins in ordered unions while others are merged into them:

    union(("a", "b"), ("b", "c"))                               # ("a", "b", "c")

A union of many elements takes the same time as one of a few: a chain of nodes that become one node, or constants that
become one constant, would take quadratic time otherwise. Few elements, as nearly all nodes have, are a tuple.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar, Token
from functools import reduce
from typing import Any, NamedTuple, TypeVar, overload

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


class Origin(NamedTuple):
    """A node or a tensor of an ONNX model.

    `scope` is the path of the ONNX graph that holds it: for each body the name of the node and that of the body, for a
    function the name of the node that calls it. `node` is the name of the node, that of its first output where it has
    none; it is empty for an input, an initializer, and a graph as a whole. `operator` is the node's, with its domain
    where that is not the default one; of a body it is that of the node which holds it. `output` is the name of a
    tensor, empty for a node.
    """

    scope: tuple[str, ...] = ()
    node: str = ""
    operator: str = ""
    output: str = ""

    @property
    def path(self) -> str:
        """The path as text, for messages only: names may contain slashes, so it cannot be parsed."""
        name = self.output or self.node
        return "/".join(map(str, (*self.scope, name) if name else self.scope))  # a damaged file has names in bytes

    @property
    def inner_scope(self) -> tuple[str, ...]:
        """The path of a function that the node calls; the paths of its bodies begin so."""
        return (*self.scope, self.node)

    def of_node(self) -> "Origin":
        """The node that makes a tensor."""
        return self._replace(output="")

    def is_below(self, node: "Origin") -> bool:
        """Whether it is in a body of `node`, or in a function that `node` calls."""
        return self.scope[: len(node.scope) + 1] == node.inner_scope


def new_origin(scope: tuple[str, ...], node: str, operator: str, output: str = "") -> Origin:
    return tuple.__new__(Origin, (scope, node, operator, output))  # half the time of Origin(..): every tensor has one


Origins = Sequence[Origin]
"""The node or tensor itself, then those that were merged into it: a tuple, or a union of many."""

current: ContextVar[Origins] = ContextVar("current", default=())
"""The origins that new nodes get."""


class made_for:
    """A context in which new nodes get these origins."""

    __slots__ = ("_origins", "_token")

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def __enter__(self) -> None:
        self._token: Token[Origins] = current.set(self._origins)

    def __exit__(self, *_: Any) -> None:
        current.reset(self._token)


def all_of(several: Iterable[Origins]) -> Origins:
    """All of them, each origin once."""
    return reduce(union, several, ())
