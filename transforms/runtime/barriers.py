"""Barriers: the base of rules that only place them, and what hides a fact: numbers of iterations, zeros that the
runtime cannot fold, and tensors that are carried in another shape.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from mo_loop.graph.dimension import Dimension, low
from mo_loop.graph.types import f16, f32, f64, i8, i32, i64, u8
from mo_loop.ops.control import If, Loop
from mo_loop.transforms.function_pass import pass_with
from mo_loop.transforms.port_maps import captured, iteration_number
from mo_loop.transforms.vocabulary import F, FunctionPass, Gap, Graph, Node, Use, Value, ops, source_of

_COMPARED = (f32, f16, f64, i64, i32, i8, u8)
"""Types that every device compares."""

HiddenPort = tuple[Use, tuple[int, ...]]
"""A port that must read a Barrier, and the axes that this hides; none if it hides no size."""


class BarrierPass(FunctionPass):
    """a node that reads x  ->  the same node that reads Barrier(x)

    A rule that only hides a fact from the runtime: it states the fact, the kind of node, and the `places`.
    """

    hides: ClassVar[str]

    def places(self, node: Any) -> Sequence[HiddenPort] | str:
        """The ports that need Barriers for a node; the reason if there are none."""
        raise NotImplementedError

    def rewrite(self, node: Node) -> bool:
        places = self.places(node)
        if isinstance(places, str):
            return self.refuse(node, places)
        values = [reader.inputs[port] for (reader, port), _ in places]
        if not all(value is not None and value.dtype for value in values):
            return self.refuse(node, "a list of an operator that could not be converted is not a tensor")
        for (reader, port), axes in places:
            reader.graph.set_input(reader, port, F.Barrier(reader.inputs[port], hides=self.hides, axes=axes))
        return self.accept(node)


def barrier_rule(
    kinds: tuple[type[Node], ...], hides: str, instead: str, *avoids: Gap
) -> Callable[[Callable[[Any], Any]], type[BarrierPass]]:
    """A decorator: the BarrierPass whose `places` is a function, with the name of the function."""
    return pass_with(BarrierPass, "places", kinds=kinds, hides=hides, instead=instead, avoids=avoids)


def iterations(node: Loop) -> Dimension:
    """The number of iterations, as far as it is known."""
    trip, go = node.operands[:2]
    return node.count_for(source_of(trip, ops.Barrier).type, source_of(go, ops.Barrier).type)


def opaque_zero(graph: Graph) -> Value:
    """0 of type i64[1], which no inference of shapes or bounds recognises as constant: x > x of the first element of an
    input of the outermost graph, or a random integer of [0, 1) if no input has such numbers.

    ARM does not compile a tensor in f16 whose size depends on constants alone, and the GPU ends the process where its
    inference of shapes reads ReverseSequence.
    """
    if (source := _source(graph)) is None:
        return _random(graph, 0, 1)
    first, axes = source, np.arange(source.type.rank)
    if source.type.rank:
        first = F.Slice(source, 0 * axes, 0 * axes + 1, 0 * axes + 1, axes)
    zero: Value = F.Greater(first, first).astype(i64).reshape([-1])
    return zero if zero.shape == (1,) else F.Gather(F.Concat(zero, [0], axis=0), [0], 0)  # the input may be empty


def _source(graph: Graph) -> Value | None:
    """The input of a graph for `opaque_zero`: one that is not empty if there is one."""
    values = [node.output for node in graph.parameters]
    known = [value for value in values if value.dtype in _COMPARED and value.shape is not None]
    inputs = [value for value in known if 0 not in value.type.dims]
    return min(inputs, key=lambda value: 0 in map(low, value.type.dims), default=None)


def _random(graph: Graph, number: int, count: int) -> Value:
    """A vector of random integers of [number, number + 1).

    The runtime does not fold random numbers, but its inference of bounds evaluates them. That inference stops at
    ReverseSequence, which it cannot evaluate.
    """
    shape = F.Constant(np.array([1, count]), graph=graph, dtype=i64)
    low, high = (ops.Constant(each, graph=graph, dtype=i64) for each in (number, number + 1))
    return F.ReverseSequence(F.RandomUniform(shape, low, high, output_type=i64), [1]).reshape([count])


def zero_from_outside(graph: Graph) -> Value:
    """An `opaque_zero` in the outermost graph, passed into all bodies.

    The runtime evaluates loops whose inputs are all constants. If it cannot evaluate a body, it returns arbitrary
    memory.
    """
    return opaque_zero(graph) if graph.owner is None else captured(graph, zero_from_outside(graph.owner.graph))


class RunTimeNumbers:
    """Numbers that are known only at run time, each made once for a graph."""

    def __init__(self) -> None:
        self._zeros: dict[Graph, Value] = {}
        self._repeats: dict[tuple[Graph, int], Value] = {}

    def clear(self) -> None:
        self._zeros.clear()
        self._repeats.clear()

    def zero(self, graph: Graph) -> Value:
        """0 of type i64[1]: min(i, 0) with the iteration number i of the innermost Loop around it, else one from the
        outermost graph."""
        if graph not in self._zeros:
            self._zeros[graph] = self._made_zero(graph)
        return self._zeros[graph]

    def repeats(self, graph: Graph, rank: int) -> Value:
        """Ones of type i64[rank], for a Tile. They come from the outermost graph: no iteration computes them, and a
        Tile does not overwrite them (see IsolateParameters)."""
        if (graph, rank) not in self._repeats:
            owner = graph.owner
            outer = None if owner is None else self.repeats(owner.graph, rank)
            self._repeats[graph, rank] = self._ones(graph, rank) if outer is None else captured(graph, outer)
        return self._repeats[graph, rank]

    def _ones(self, graph: Graph, rank: int) -> Value:
        if _source(graph) is None:
            return _random(graph, 1, rank)
        return self.zero(graph) + np.ones(rank, np.int64)

    def _made_zero(self, graph: Graph) -> Value:
        owner = graph.owner
        if owner is None:
            return opaque_zero(graph)
        if isinstance(owner, Loop):
            return F.Minimum(iteration_number(owner), 0).reshape([1])
        zero = captured(graph, self.zero(owner.graph))
        return zero if isinstance(owner, If) else F.Maximum(zero, zero)  # see IsolateParameters


def pattern(dims: Sequence[Dimension]) -> list[int] | None:
    """The sizes with a -1 for the only unknown one; None if they do not follow from the number of elements."""
    if len(dims) == 1:
        return [-1]
    sizes = [dim if isinstance(dim, int) else -1 for dim in dims]
    return None if sizes.count(-1) > 1 or 0 in sizes else sizes


def reshaped(value: Value, dims: Sequence[Dimension], shape: Callable[[], Value]) -> Value:
    """`value` with the sizes `dims`; `shape` makes them where `pattern` does not know them."""
    sizes = pattern(dims)
    if len(dims) > 1 or value.rank != 1:
        value = F.Reshape(value, shape() if sizes is None else sizes, special_zero=False)
    return at_least(value, [low(dim) for dim in dims])


def size_of(value: Value, axis: int) -> Value:
    """The size along an axis, [1]."""
    size = value.type.dims[axis]
    if isinstance(size, int):
        return F.Constant([size], graph=value.graph, dtype=i64)
    return F.Gather(value.sizes, [axis], 0)


def at_least(value: Value, sizes: Sequence[int]) -> Value:
    """`value`, of which inference knows that its sizes are at least `sizes`."""
    return F.AtLeast(value, sizes=tuple(sizes)) if any(sizes) else value
