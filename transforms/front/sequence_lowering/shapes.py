"""Arithmetic on shapes and positions for the layouts of sequences; values that are known at conversion are folded at
once. Numbers are i64. A position is a scalar, a size or an offset a tensor [1].

Sequences that are always empty have a layout without tensors: the type of such a sequence does not contain the shape of
an element, so there is no ElementKind for it.

    kind = NOTHING if type_.is_empty else ElementKind.of(type_)          # in place of an ElementKind of layouts.py
    sequence_of(kind.made([]), graph, type_)                      # a SequenceEmpty
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.graph.types import SequenceType
from mo_loop.ops.infer import of_one_element
from mo_loop.ops.port_map import Invariant
from mo_loop.transforms.vocabulary import Constant, F, Graph, Parameter, Value, ops, source_of


@dataclass(frozen=True)
class Listed:
    """A sequence as its elements, as a layout; one that is always empty has none."""

    tensors: tuple[Value, ...] = ()

    def like(self, tensors: Sequence[Value]) -> "Listed":
        return Listed(tuple(tensors))

    def sequence(self) -> Value:
        return F.SequenceConstruct(*self.tensors)


@dataclass(frozen=True)
class ListKind:
    """Sequences of one length."""

    type: SequenceType | None = None
    length: int = 0

    def types(self) -> tuple[Any, ...]:
        return tuple(of_one_element(self.type) for _ in range(self.length) if self.type is not None)

    def made(self, tensors: Sequence[Value]) -> Listed:
        return Listed(tuple(tensors))

    def empty(self, graph: Graph) -> Listed:
        return Listed()


NOTHING = ListKind()
"""The kind of sequences that are always empty."""


def sequence_of(layout, graph: Graph, type_: SequenceType) -> Value:
    """The sequence that a layout holds, as a value."""
    return layout.sequence() if layout.tensors else F.SequenceEmpty(graph=graph, dtype=type_.element.dtype)


LARGEST = (1 << 63) - 1
"""A Slice with this constant as its end goes to the end. From any other constant the runtime infers an upper bound."""


def numbers(graph: Graph, values) -> Value:
    """A constant of integers."""
    return F.Constant(np.asarray(values, np.int64), graph=graph)


def known(value: Value) -> int | None:
    """The only number of a value, if it is known."""
    integers = value.type.integers
    if integers is None and value.constant is not None:
        integers = tuple(int(each) for each in np.asarray(value.constant).reshape(-1))
    return integers[0] if integers is not None and len(integers) == 1 else None


def folded(value: Value) -> Value:
    """A constant, if inference knows all numbers; else the value."""
    integers = value.type.integers
    if integers is None or isinstance(value.node, Constant):
        return value
    return numbers(value.graph, np.array(integers, np.int64).reshape(value.type.known.shape))


def size(x: Value, axis: int) -> Value:
    """One dimension, [1]."""
    return folded(F.Gather(x.sizes, [axis], 0))


def rows(x: Value) -> Value:
    """The first dimension as a scalar."""
    return folded(F.Gather(x.sizes, np.array(0), 0))


def as_list(place: Value) -> Value:
    """A scalar as [1]."""
    number = known(place)
    return numbers(place.graph, [number]) if number is not None else place.reshape([1])


def is_from_front(place: Value) -> bool:
    """Whether a position is proven not to be below 0: a number, the iteration number of a Loop, a remainder, a size."""
    place = source_of(place, ops.SameElements)
    number, node = known(place), place.node
    if number is not None:
        return number >= 0
    if isinstance(node, ops.FloorMod):
        divisor = known(node.operands[1])
        return divisor is not None and divisor > 0
    if not isinstance(node, Parameter):
        return isinstance(node, ops.ShapeOf)
    owner = node.graph.owner
    if isinstance(owner, ops.Loop) and owner.iteration is node:
        return True
    if not isinstance(owner, ops.Iteration):
        return False
    return any(entry.parameter is node and is_from_front(x) for entry, x in owner.fed if isinstance(entry, Invariant))


def from_front(place: Value, length: Value) -> Value:
    """A position of the shape of `length`, counted from the front; below 0 it counts from the end."""
    number = known(place)
    if is_from_front(place):
        return place
    after = place + length
    return after if number is not None else F.Select(place < np.int64(0), after, place)


def plus(a: Value, b) -> Value:
    return folded(a + b)


def cut(x: Value, axis: int, start: Value | None, stop: Value | None) -> Value:
    """x[start:stop] along an axis; None means an end of it."""
    first = numbers(x.graph, [0]) if start is None else start
    last = numbers(x.graph, [LARGEST]) if stop is None else stop
    return F.Slice(x, first, last, [1], [axis])


def before_erasing(stack: Value, place: Value) -> Value | None:
    """The stack S of which `stack` is S[:p] and S[p + 1:], concatenated, where p is `place` and not below 0."""
    parts = stack.node.operands if isinstance(stack.node, ops.Concat) else ()
    if len(parts) != 2 or not all(isinstance(part.node, ops.Slice) for part in parts) or not is_from_front(place):
        return None
    (whole, _, end, *_), (other, start, *_) = (part.node.operands for part in parts)
    number = known(place)
    if number is not None:
        is_at_place = (known(end), known(start)) == (number, number + 1)
    else:
        is_at_place = source_of(end, ops.SameElements) is source_of(place, ops.SameElements)
        is_at_place = is_at_place and isinstance(start.node, ops.Add) and start.node.operands[0] is end
    return whole if whole is other and is_at_place else None


def joined(values: Sequence[Value], axis: int) -> Value:
    return values[0] if len(values) == 1 else F.Concat(*values, axis=axis)


def vector(graph: Graph, parts: Sequence[Value | int]) -> Value:
    """Numbers and tensors [1] as one vector."""
    if all(isinstance(part, int) for part in parts):
        return numbers(graph, list(parts))
    return folded(joined([numbers(graph, [part]) if isinstance(part, int) else part for part in parts], 0))


def reshaped(x: Value, dims: Sequence[Value | int]) -> Value:
    """`x` with these dimensions, numbers and tensors [1]; a single unknown one becomes -1 where that is possible."""
    open_ = [i for i, dim in enumerate(dims) if not isinstance(dim, int)]
    rest = [dim for dim in dims if isinstance(dim, int)]
    if len(open_) == 1 and 0 not in rest and -1 not in rest:
        dims = [-1 if i == open_[0] else dim for i, dim in enumerate(dims)]
    return F.Reshape(x, vector(x.graph, dims))


def dims_of(x: Value) -> list[Value | int]:
    """All dimensions: numbers where known, else tensors [1]."""
    return [dim if isinstance(dim, int) else size(x, axis) for axis, dim in enumerate(x.type.dims)]


def merged(x: Value, axis: int) -> Value:
    """The dimensions `axis` and `axis + 1` merged into one."""
    dims = dims_of(x)
    a, b = dims[axis], dims[axis + 1]
    if isinstance(a, int) and isinstance(b, int):
        both: Value | int = a * b
    else:
        both = vector(x.graph, [a]) * vector(x.graph, [b])
    return reshaped(x, [*dims[:axis], both, *dims[axis + 2 :]])


def repeated(number: Value | int, count: Value, graph: Graph) -> Value:
    """A number (or tensor [1]), `count` (tensor [1]) times."""
    value = numbers(graph, [number]) if isinstance(number, int) else number
    return F.Broadcast(value, count)


def offsets(sizes: Value) -> Value:
    """The start of each part, and the end of the last: [N+1]."""
    return F.Concat(numbers(sizes.graph, [0]), F.CumSum(sizes, 0), axis=0)


def column(values: Value) -> Value:
    return F.Unsqueeze(values, [1])


def product(graph: Graph, dims: Sequence[Value | int]) -> Value:
    """A product of dimensions, [1]."""
    total = numbers(graph, [int(np.prod([dim for dim in dims if isinstance(dim, int)], dtype=np.int64))])
    for dim in dims:
        if not isinstance(dim, int):
            total = total * dim
    return total
