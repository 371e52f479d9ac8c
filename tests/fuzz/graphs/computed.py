"""Shapes, bounds and indices that are computed from the shape of a value, as exporters write them."""

import numpy as np

from tests.fuzz.graphs.graph import MOST_RANK, Graph, Value, may_grow_to


def size_of(g: Graph, x: Value, axis: int) -> str:
    """The size along an axis, as a tensor of one number."""
    (shape,) = g.node("Shape", x)
    if g.chance(0.5):
        return g.node("Gather", shape, g.constant([axis]), axis=0)[0]
    return g.node("Slice", shape, g.constant([axis]), g.constant([axis + 1]), g.constant([0]))[0]


def reshape(g: Graph, x: Value) -> None:
    """A Reshape to the joined sizes, one of them unknown to the exporter."""
    if not 2 <= x.rank < MOST_RANK:
        return
    if g.chance(0.5):
        parts, behind = [size_of(g, x, 0), g.constant([-1])], x.shape[1:]
        if any(isinstance(each, str) for each in behind):
            return
        shape: tuple[int | str, ...] = (x.shape[0], int(np.prod(behind, dtype=np.int64)))
    else:
        parts = [size_of(g, x, 0), g.constant([1]), *(size_of(g, x, axis) for axis in range(1, x.rank))]
        shape = (x.shape[0], 1, *x.shape[1:])
    g.add("Reshape", x, *g.node("Concat", *parts, axis=0), shape=shape)


def expand_like(g: Graph, x: Value) -> None:
    """One row, or a constant, in the shape of a value."""
    if not x.rank:
        return
    (shape,) = g.node("Shape", x)
    if g.chance(0.5):
        (row,) = g.node("ReduceMean", x, g.constant([g.choices.randrange(x.rank)]), keepdims=1)
        g.add("Expand", row, shape, shape=x.shape)
    else:
        g.add("Expand", g.constant(0.7), shape, shape=x.shape)


def filled_like(g: Graph, x: Value) -> None:
    """x without a column, joined with a constant of the shape of the others."""
    if x.rank < 2 or x.rank - 1 not in x.known or not may_grow_to(x.with_size(x.rank - 1, x.size(-1) + 1)):
        return
    sizes = [*(size_of(g, x, axis) for axis in range(x.rank - 1)), g.constant([1])]
    (ones,) = g.node("Expand", g.constant(1.0), *g.node("Concat", *sizes, axis=0))
    parts = [x.name, ones]
    shape = x.with_size(x.rank - 1, x.size(-1) + 1)
    g.add("Concat", *(parts if g.chance(0.5) else parts[::-1]), shape=shape, axis=-1)


def positions(g: Graph, x: Value) -> None:
    """x and the number of each place along an axis."""
    if not x.rank:
        return
    axis = g.choices.randrange(x.rank)
    (size,) = g.node("Squeeze", size_of(g, x, axis), g.constant([0]))
    (numbers,) = g.node("Cast", *g.node("Range", g.constant(0), size, g.constant(1)), to=1)
    (numbers,) = g.node("Mul", numbers, g.constant(0.1))
    behind = list(range(1, x.rank - axis))
    if behind:
        (numbers,) = g.node("Unsqueeze", numbers, g.constant(behind))
    g.add(g.choice_of("Add", "Mul"), x, numbers, shape=x.shape)


def causal_mask(g: Graph, x: Value) -> None:
    """Places above the diagonal of the last two axes become a constant."""
    if x.rank < 2:
        return
    ranges = []
    for axis in (x.rank - 2, x.rank - 1):
        (size,) = g.node("Squeeze", size_of(g, x, axis), g.constant([0]))
        ranges += g.node("Range", g.constant(0), size, g.constant(1))
    (rows,) = g.node("Unsqueeze", ranges[0], g.constant([1]))
    (mask,) = g.node("LessOrEqual", ranges[1], rows)
    g.add("Where", mask, x, g.constant(g.choice_of(-2.0, 0.0)), shape=x.shape)


def reversed_by_size(g: Graph, x: Value) -> None:
    """The order along an axis reversed by indices that count down from its size."""
    if not x.rank:
        return
    axis = g.choices.randrange(x.rank)
    (size,) = g.node("Squeeze", size_of(g, x, axis), g.constant([0]))
    (last,) = g.node("Sub", size, g.constant(1))
    (indices,) = g.node("Range", last, g.constant(-1), g.constant(-1))
    g.add("Gather", x, indices, axis=axis, shape=x.shape)


def halves(g: Graph, x: Value) -> None:
    """The second half, negated, before the first one: the rotation of rotary embeddings, with a computed bound."""
    if not x.known:
        return
    axis = g.choices.choice(x.known)
    half = g.node("Div", size_of(g, x, axis), g.constant([2]))[0]
    (first,) = g.node("Slice", x, g.constant([0]), half, g.constant([axis]))
    (second,) = g.node("Slice", x, half, g.constant([2**63 - 1]), g.constant([axis]))
    g.add("Concat", *g.node("Neg", second), first, shape=x.shape, axis=axis)


LAYERS = ((1, reshape), (1, expand_like), (1, filled_like), (1, positions), (1, causal_mask), (1, reversed_by_size),
          (1, halves))
